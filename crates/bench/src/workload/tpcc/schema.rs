//! The nine tables (TPC-C 5.11, clause 1.3) and the positions of their columns.
//!
//! Rules
//! 1. Every column of the specification is there with at least its size; key columns come first, in key order.
//! 2. HISTORY has no primary key in the specification (1.3); here it is numbered by `h_id`.
//! 3. Two secondary indexes: customers by name (2.5.2.2, 2.6.2.2) and orders by customer (2.6.2.2).
//! 4. Money is decimal with two digits after the point, rates four; the code counts in cents and ten-thousandths.

use crate::error::Result;
use crate::store::{Column, IndexSpec, Store, TableSpec, column, nullable};
use crate::workload::open_table;
use highwater::Type;

/// Districts of a warehouse (1.2.1).
pub(super) const DISTRICTS: u64 = 10;
/// Customers of a district (1.2.1).
pub(super) const CUSTOMERS: u64 = 3_000;
/// Items, and stock rows of a warehouse (1.2.1).
pub(super) const ITEMS: u64 = 100_000;
/// Orders of a district after the load (4.3.3.1).
pub(super) const ORDERS: u64 = 3_000;
/// First order of a district that is not delivered after the load (4.3.3.1).
pub(super) const FIRST_NEW_ORDER: u64 = 2_101;

macro_rules! positions {
    ($($name:ident = $position:expr;)*) => { $(pub(crate) const $name: usize = $position;)* };
}

positions! {
    W_NAME = 1; W_TAX = 7; W_YTD = 8;
    D_NAME = 2; D_TAX = 8; D_YTD = 9; D_NEXT_O_ID = 10;
    C_ID = 2; C_FIRST = 3; C_LAST = 5; C_CREDIT = 13; C_DISCOUNT = 15; C_BALANCE = 16;
    C_YTD_PAYMENT = 17; C_PAYMENT_CNT = 18; C_DELIVERY_CNT = 19; C_DATA = 20;
    H_C_ID = 1; H_C_D_ID = 2; H_C_W_ID = 3; H_D_ID = 4; H_W_ID = 5; H_AMOUNT = 7;
    NO_O_ID = 2;
    O_ID = 2; O_C_ID = 3; O_ENTRY_D = 4; O_CARRIER_ID = 5; O_OL_CNT = 6;
    OL_O_ID = 2; OL_I_ID = 4; OL_SUPPLY_W_ID = 5; OL_DELIVERY_D = 6; OL_QUANTITY = 7; OL_AMOUNT = 8;
    I_NAME = 2; I_PRICE = 3; I_DATA = 4;
    S_QUANTITY = 2; S_DIST_01 = 3; S_YTD = 13; S_ORDER_CNT = 14; S_REMOTE_CNT = 15; S_DATA = 16;
}

const MONEY: Type = Type::Decimal(12, 2);
const RATE: Type = Type::Decimal(4, 4);

const WAREHOUSE: &[Column] = &[
    column("w_id", Type::U32),
    column("w_name", Type::Text(10)),
    column("w_street_1", Type::Text(20)),
    column("w_street_2", Type::Text(20)),
    column("w_city", Type::Text(20)),
    column("w_state", Type::Text(2)),
    column("w_zip", Type::Text(9)),
    column("w_tax", RATE),
    column("w_ytd", MONEY),
];

const DISTRICT: &[Column] = &[
    column("d_w_id", Type::U32),
    column("d_id", Type::U8),
    column("d_name", Type::Text(10)),
    column("d_street_1", Type::Text(20)),
    column("d_street_2", Type::Text(20)),
    column("d_city", Type::Text(20)),
    column("d_state", Type::Text(2)),
    column("d_zip", Type::Text(9)),
    column("d_tax", RATE),
    column("d_ytd", MONEY),
    column("d_next_o_id", Type::U32),
];

const CUSTOMER: &[Column] = &[
    column("c_w_id", Type::U32),
    column("c_d_id", Type::U8),
    column("c_id", Type::U32),
    column("c_first", Type::Text(16)),
    column("c_middle", Type::Text(2)),
    column("c_last", Type::Text(16)),
    column("c_street_1", Type::Text(20)),
    column("c_street_2", Type::Text(20)),
    column("c_city", Type::Text(20)),
    column("c_state", Type::Text(2)),
    column("c_zip", Type::Text(9)),
    column("c_phone", Type::Text(16)),
    column("c_since", Type::DateTime),
    column("c_credit", Type::Text(2)),
    column("c_credit_lim", MONEY),
    column("c_discount", RATE),
    column("c_balance", MONEY),
    column("c_ytd_payment", MONEY),
    column("c_payment_cnt", Type::U32),
    column("c_delivery_cnt", Type::U32),
    column("c_data", Type::Text(500)),
];

const HISTORY: &[Column] = &[
    column("h_id", Type::U64),
    column("h_c_id", Type::U32),
    column("h_c_d_id", Type::U8),
    column("h_c_w_id", Type::U32),
    column("h_d_id", Type::U8),
    column("h_w_id", Type::U32),
    column("h_date", Type::DateTime),
    column("h_amount", Type::Decimal(6, 2)),
    column("h_data", Type::Text(24)),
];

const NEW_ORDER: &[Column] = &[column("no_w_id", Type::U32), column("no_d_id", Type::U8), column("no_o_id", Type::U32)];

const ORDERS_COLUMNS: &[Column] = &[
    column("o_w_id", Type::U32),
    column("o_d_id", Type::U8),
    column("o_id", Type::U32),
    column("o_c_id", Type::U32),
    column("o_entry_d", Type::DateTime),
    nullable("o_carrier_id", Type::U8),
    column("o_ol_cnt", Type::U8),
    column("o_all_local", Type::U8),
];

const ORDER_LINE: &[Column] = &[
    column("ol_w_id", Type::U32),
    column("ol_d_id", Type::U8),
    column("ol_o_id", Type::U32),
    column("ol_number", Type::U8),
    column("ol_i_id", Type::U32),
    column("ol_supply_w_id", Type::U32),
    nullable("ol_delivery_d", Type::DateTime),
    column("ol_quantity", Type::U8),
    column("ol_amount", Type::Decimal(6, 2)),
    column("ol_dist_info", Type::Text(24)),
];

const ITEM: &[Column] = &[
    column("i_id", Type::U32),
    column("i_im_id", Type::U32),
    column("i_name", Type::Text(24)),
    column("i_price", Type::Decimal(5, 2)),
    column("i_data", Type::Text(50)),
];

const STOCK: &[Column] = &[
    column("s_w_id", Type::U32),
    column("s_i_id", Type::U32),
    column("s_quantity", Type::I32),
    column("s_dist_01", Type::Text(24)),
    column("s_dist_02", Type::Text(24)),
    column("s_dist_03", Type::Text(24)),
    column("s_dist_04", Type::Text(24)),
    column("s_dist_05", Type::Text(24)),
    column("s_dist_06", Type::Text(24)),
    column("s_dist_07", Type::Text(24)),
    column("s_dist_08", Type::Text(24)),
    column("s_dist_09", Type::Text(24)),
    column("s_dist_10", Type::Text(24)),
    column("s_ytd", Type::U32),
    column("s_order_cnt", Type::U32),
    column("s_remote_cnt", Type::U32),
    column("s_data", Type::Text(50)),
];

/// Index on customers by name.
pub(crate) const BY_NAME: &str = "by_name";
/// Index on orders by customer.
pub(crate) const BY_CUSTOMER: &str = "by_customer";

const CUSTOMER_INDEXES: &[IndexSpec] =
    &[IndexSpec { name: BY_NAME, columns: &["c_w_id", "c_d_id", "c_last", "c_first"] }];
const ORDERS_INDEXES: &[IndexSpec] =
    &[IndexSpec { name: BY_CUSTOMER, columns: &["o_w_id", "o_d_id", "o_c_id", "o_id"] }];

type Definition =
    (&'static str, &'static [Column], Option<&'static str>, &'static [&'static str], &'static [IndexSpec]);

const TABLES: [Definition; 9] = [
    ("warehouse", WAREHOUSE, None, &["w_id"], &[]),
    ("district", DISTRICT, None, &["d_w_id", "d_id"], &[]),
    ("customer", CUSTOMER, None, &["c_w_id", "c_d_id", "c_id"], CUSTOMER_INDEXES),
    ("history", HISTORY, Some("h_id"), &["h_id"], &[]),
    ("new_order", NEW_ORDER, None, &["no_w_id", "no_d_id", "no_o_id"], &[]),
    ("orders", ORDERS_COLUMNS, None, &["o_w_id", "o_d_id", "o_id"], ORDERS_INDEXES),
    ("order_line", ORDER_LINE, None, &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"], &[]),
    ("item", ITEM, None, &["i_id"], &[]),
    ("stock", STOCK, None, &["s_w_id", "s_i_id"], &[]),
];

/// Prepared handles of the nine tables.
#[derive(Clone, Debug)]
pub(crate) struct Tables<T> {
    pub(crate) warehouse: T,
    pub(crate) district: T,
    pub(crate) customer: T,
    pub(crate) history: T,
    pub(crate) new_order: T,
    pub(crate) orders: T,
    pub(crate) order_line: T,
    pub(crate) item: T,
    pub(crate) stock: T,
}

impl<T> Tables<T> {
    fn from_definitions(mut table: impl FnMut(&Definition) -> Result<T>) -> Result<Tables<T>> {
        let [warehouse, district, customer, history, new_order, orders, order_line, item, stock] = &TABLES;
        Ok(Tables {
            warehouse: table(warehouse)?,
            district: table(district)?,
            customer: table(customer)?,
            history: table(history)?,
            new_order: table(new_order)?,
            orders: table(orders)?,
            order_line: table(order_line)?,
            item: table(item)?,
            stock: table(stock)?,
        })
    }

    /// Opens the tables of a loaded database.
    pub(crate) fn open<S: Store<Table = T>>(store: &S) -> Result<Tables<T>> {
        Tables::from_definitions(|(name, ..)| open_table(store, name))
    }

    pub(crate) fn create<S: Store<Table = T>>(store: &S) -> Result<Tables<T>> {
        Tables::from_definitions(|definition| store.create_table(&spec(definition)))
    }
}

fn spec(&(name, columns, auto_increment, primary_key, indexes): &Definition) -> TableSpec {
    TableSpec { name: name.into(), columns, auto_increment, primary_key, indexes }
}

/// The nine tables.
pub(crate) fn specs() -> Vec<TableSpec> {
    TABLES.iter().map(spec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_name_the_columns() {
        let at = |columns: &[Column], position: usize, name: &str| assert_eq!(columns[position].name, name);
        at(WAREHOUSE, W_TAX, "w_tax");
        at(WAREHOUSE, W_YTD, "w_ytd");
        at(DISTRICT, D_TAX, "d_tax");
        at(DISTRICT, D_YTD, "d_ytd");
        at(DISTRICT, D_NEXT_O_ID, "d_next_o_id");
        at(CUSTOMER, C_LAST, "c_last");
        at(CUSTOMER, C_CREDIT, "c_credit");
        at(CUSTOMER, C_DISCOUNT, "c_discount");
        at(CUSTOMER, C_BALANCE, "c_balance");
        at(CUSTOMER, C_DELIVERY_CNT, "c_delivery_cnt");
        at(CUSTOMER, C_DATA, "c_data");
        at(HISTORY, H_W_ID, "h_w_id");
        at(HISTORY, H_AMOUNT, "h_amount");
        at(ORDERS_COLUMNS, O_CARRIER_ID, "o_carrier_id");
        at(ORDERS_COLUMNS, O_OL_CNT, "o_ol_cnt");
        at(ORDER_LINE, OL_I_ID, "ol_i_id");
        at(ORDER_LINE, OL_DELIVERY_D, "ol_delivery_d");
        at(ORDER_LINE, OL_AMOUNT, "ol_amount");
        at(ITEM, I_PRICE, "i_price");
        at(ITEM, I_DATA, "i_data");
        at(STOCK, S_QUANTITY, "s_quantity");
        at(STOCK, S_DIST_01, "s_dist_01");
        at(STOCK, S_REMOTE_CNT, "s_remote_cnt");
        at(STOCK, S_DATA, "s_data");
    }
}
