//! Payment (TPC-C 5.11, clause 2.5).
//!
//! Rules
//! 1. 15 % of payments are by a customer of another warehouse (2.5.1.2); 60 % find the customer by last name.
//! 2. For a customer with bad credit the payment is prepended to C_DATA, which is truncated to 500 characters
//!    (2.5.2.2).

use super::schema::*;
use super::terminal::{Terminal, missing, now_us};
use crate::error::Result;
use crate::store::{RowChanges, RowView, Transaction, money, time};
use crate::workload::key1;
use highwater::values;
use std::fmt::Write;

const DATA_BYTES: usize = 500;

struct Payment {
    w: u64,
    d: u64,
    customer_w: u64,
    customer_d: u64,
    cents: i64,
}

impl<T: Clone + Send + Sync + 'static> Terminal<T> {
    fn draw_payment(&mut self) -> Payment {
        let w = self.home_warehouse();
        let d = self.any_district();
        let remote = self.rng.u32(..100) >= 85 && self.warehouses > 1;
        let (customer_w, customer_d) = if remote { (self.other_warehouse(w), self.any_district()) } else { (w, d) };
        Payment { w, d, customer_w, customer_d, cents: self.rng.i64(100..=500_000) }
    }

    pub(crate) fn payment<X: Transaction<Table = T>>(&mut self, txn: &mut X) -> Result<()> {
        let p = self.draw_payment();
        let who = self.any_customer();
        self.text.clear();
        let text = &mut self.text;
        let found = txn.modify(&self.tables.warehouse, &key1(p.w), |row, set| {
            text.clear();
            text.push_str(row.str(W_NAME));
            set.put(W_YTD, money(row.cents(W_YTD) + p.cents));
        })?;
        if !found {
            return Err(missing("warehouse", &key1(p.w)));
        }
        let warehouse_name = text.len();
        let found = txn.modify(&self.tables.district, &values![p.w, p.d], |row, set| {
            text.truncate(warehouse_name);
            text.push_str("    ");
            text.push_str(row.str(D_NAME));
            set.put(D_YTD, money(row.cents(D_YTD) + p.cents));
        })?;
        if !found {
            return Err(missing("district", &values![p.w, p.d]));
        }
        let c = self.find_customer(txn, p.customer_w, p.customer_d, who)?;
        self.pay(txn, &p, c)?;
        let row =
            values![null, c, p.customer_d, p.customer_w, p.d, p.w, time(now_us()), money(p.cents), self.text.as_str()];
        txn.insert(&self.tables.history, &row)?;
        self.outcome.reads += 3;
        self.outcome.writes += 4;
        Ok(())
    }

    fn pay<X: Transaction<Table = T>>(&mut self, txn: &mut X, p: &Payment, c: u64) -> Result<()> {
        let data = &mut self.other_text;
        let key = values![p.customer_w, p.customer_d, c];
        let found = txn.modify(&self.tables.customer, &key, |row, set| {
            set.put(C_BALANCE, money(row.cents(C_BALANCE) - p.cents));
            set.put(C_YTD_PAYMENT, money(row.cents(C_YTD_PAYMENT) + p.cents));
            set.put(C_PAYMENT_CNT, (row.u64(C_PAYMENT_CNT) + 1).into());
            if row.str(C_CREDIT) == "BC" {
                bad_credit(data, p, c, row.str(C_DATA));
                set.put(C_DATA, data.as_str().into());
            }
        })?;
        if found { Ok(()) } else { Err(missing("customer", &key)) }
    }
}

fn bad_credit(out: &mut String, p: &Payment, c: u64, old: &str) {
    out.clear();
    let (whole, hundredths) = (p.cents / 100, p.cents % 100);
    // Writing to a String cannot fail.
    let _ = write!(out, "| {c} {} {} {} {} {whole}.{hundredths:02} ", p.customer_d, p.customer_w, p.d, p.w);
    let room = DATA_BYTES.saturating_sub(out.len()).min(old.len());
    out.push_str(old.get(..room).unwrap_or(""));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_credit_data_is_cut_to_its_column() {
        let p = Payment { w: 3, d: 4, customer_w: 1, customer_d: 2, cents: 12_305 };
        let mut out = String::new();
        bad_credit(&mut out, &p, 77, &"x".repeat(500));
        assert!(out.starts_with("| 77 2 1 4 3 123.05 xxx") && out.len() == 500, "{out}");
        bad_credit(&mut out, &p, 77, "short");
        assert!(out.ends_with(" short"));
    }
}
