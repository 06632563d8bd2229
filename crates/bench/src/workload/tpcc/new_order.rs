//! New-order (TPC-C 5.11, clause 2.4).
//!
//! Rules
//! 1. 5 to 15 lines; 1 % of them supplied by another warehouse; 1 % of orders end with an unused item and roll back.
//! 2. Stock is changed in the order of (warehouse, item), so that two new orders cannot deadlock on it; the lines keep
//!    their numbers. The unused item comes last, after all other work is done (2.4.2.3).
//! 3. The input names all rows of customer, items and stock, so the store can prefetch them.

use super::random::ORIGINAL;
use super::schema::*;
use super::terminal::{Line, Terminal, missing, now_us};
use crate::error::Result;
use crate::store::{RowChanges, RowView, Transaction, money, time};
use crate::workload::key1;
use highwater::ValueRef;
use highwater::values;

/// An item number that ITEM does not have.
const UNUSED_ITEM: u64 = ITEMS + 1;

struct Order {
    w: u64,
    d: u64,
    c: u64,
    id: u64,
}

impl<T: Clone + Send + Sync + 'static> Terminal<T> {
    fn draw_lines(&mut self, w: u64) {
        let count = self.rng.u64(5..=15);
        let unused = self.rng.u32(..100) == 0;
        self.lines.clear();
        for number in 1..=count {
            let item = if unused && number == count { UNUSED_ITEM } else { self.item() };
            let supply_warehouse = if self.rng.u32(..100) == 0 { self.other_warehouse(w) } else { w };
            self.lines.push(Line { number, item, supply_warehouse, quantity: self.rng.i64(1..=10) });
        }
        self.lines.sort_unstable_by_key(|l| (l.item == UNUSED_ITEM, l.supply_warehouse, l.item, l.number));
    }

    /// Runs the transaction; returns false if it must roll back because of an unused item.
    pub(crate) fn new_order<X: Transaction<Table = T>>(&mut self, txn: &mut X) -> Result<bool> {
        let w = self.home_warehouse();
        let (d, c) = (self.any_district(), self.customer_number());
        self.draw_lines(w);
        txn.prefetch(&self.tables.customer, [values![w, d, c]])?;
        txn.prefetch(&self.tables.item, self.lines.iter().map(|line| key1(line.item)))?;
        txn.prefetch(&self.tables.stock, self.lines.iter().map(|line| values![line.supply_warehouse, line.item]))?;

        let warehouse_tax = txn.get(&self.tables.warehouse, &key1(w), |row| row.unscaled(W_TAX))?;
        let warehouse_tax = warehouse_tax.ok_or_else(|| missing("warehouse", &key1(w)))?;
        let (mut district_tax, mut id) = (0, 0);
        let found = txn.modify(&self.tables.district, &values![w, d], |row, set| {
            district_tax = row.unscaled(D_TAX);
            id = row.u64(D_NEXT_O_ID);
            set.put(D_NEXT_O_ID, (id + 1).into());
        })?;
        if !found {
            return Err(missing("district", &values![w, d]));
        }
        let key = values![w, d, c];
        let discount = txn.get(&self.tables.customer, &key, |row| {
            std::hint::black_box((row.str(C_LAST), row.str(C_CREDIT)));
            row.unscaled(C_DISCOUNT)
        })?;
        let discount = discount.ok_or_else(|| missing("customer", &key))?;
        self.outcome.reads += 2;

        let order = Order { w, d, c, id };
        self.insert_order(txn, &order)?;
        let Some(total) = self.order_lines(txn, &order)? else { return Ok(false) };
        std::hint::black_box(total * (10_000 - discount) * (10_000 + warehouse_tax + district_tax) / 100_000_000);
        Ok(true)
    }

    fn insert_order<X: Transaction<Table = T>>(&mut self, txn: &mut X, o: &Order) -> Result<()> {
        let local = self.lines.iter().all(|l| l.supply_warehouse == o.w);
        let row = values![o.w, o.d, o.id, o.c, time(now_us()), null, self.lines.len(), u8::from(local)];
        txn.insert(&self.tables.orders, &row)?;
        txn.insert(&self.tables.new_order, &values![o.w, o.d, o.id])?;
        self.outcome.writes += 3;
        Ok(())
    }

    /// Sum of the lines' amounts in cents; `None` at the unused item.
    fn order_lines<X: Transaction<Table = T>>(&mut self, txn: &mut X, o: &Order) -> Result<Option<i64>> {
        let mut total = 0;
        for n in 0..self.lines.len() {
            let line = self.lines[n];
            self.outcome.reads += 1;
            let item = txn.get(&self.tables.item, &key1(line.item), |row| {
                std::hint::black_box(row.str(I_NAME));
                (row.cents(I_PRICE), row.str(I_DATA).contains(ORIGINAL))
            })?;
            let Some((price, brand)) = item else { return Ok(None) };
            let amount = price * line.quantity;
            self.take_stock(txn, o, &line, brand)?;
            let row = values![
                o.w,
                o.d,
                o.id,
                line.number,
                line.item,
                line.supply_warehouse,
                null,
                line.quantity,
                money(amount),
                self.text.as_str()
            ];
            txn.insert(&self.tables.order_line, &row)?;
            self.outcome.writes += 2;
            total += amount;
        }
        Ok(Some(total))
    }

    /// Changes the stock row (2.4.2.2) and stores the district's information in `self.text`.
    fn take_stock<X: Transaction<Table = T>>(
        &mut self,
        txn: &mut X,
        o: &Order,
        line: &Line,
        brand: bool,
    ) -> Result<()> {
        let text = &mut self.text;
        let key = values![line.supply_warehouse, line.item];
        let found = txn.modify(&self.tables.stock, &key, |row, set| {
            text.clear();
            text.push_str(row.str(S_DIST_01 + o.d as usize - 1));
            std::hint::black_box(brand && row.str(S_DATA).contains(ORIGINAL));
            let left = row.i64(S_QUANTITY) - line.quantity;
            set.put(S_QUANTITY, ValueRef::Int(if left >= 10 { left } else { left + 91 }));
            set.put(S_YTD, (row.u64(S_YTD) + line.quantity as u64).into());
            set.put(S_ORDER_CNT, (row.u64(S_ORDER_CNT) + 1).into());
            if line.supply_warehouse != o.w {
                set.put(S_REMOTE_CNT, (row.u64(S_REMOTE_CNT) + 1).into());
            }
        })?;
        if found { Ok(()) } else { Err(missing("stock", &key)) }
    }
}
