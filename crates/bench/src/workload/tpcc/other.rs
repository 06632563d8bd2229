//! Order-status, delivery and stock-level (TPC-C 5.11, clauses 2.6, 2.7 and 2.8).
//!
//! Rules
//! 1. Order-status and stock-level only read.
//! 2. Delivery delivers the oldest new order of each of the ten districts in one transaction (2.7.4.1 allows it); a
//!    district without one is skipped. It loads table by table, so that the store knows the number of rows of the next
//!    table.

use super::schema::*;
use super::terminal::{Delivered, Terminal, missing, now_us};
use crate::error::Result;
use crate::store::{Read, RowChanges, RowView, Scan, Transaction, money, time};
use highwater::values;
use std::ops::ControlFlow;

/// Number of recent orders that stock-level reads (2.8.2.2).
const RECENT_ORDERS: u64 = 20;
/// Stock rows that stock-level prefetches at a time.
const FETCHED_TOGETHER: usize = 32;

impl<T: Clone + Send + Sync + 'static> Terminal<T> {
    pub(crate) fn order_status<R: Read<Table = T>>(&mut self, read: &mut R) -> Result<()> {
        let w = self.home_warehouse();
        let d = self.any_district();
        let who = self.any_customer();
        let c = self.find_customer(read, w, d, who)?;
        let key = values![w, d, c];
        let customer = read.get(&self.tables.customer, &key, |row| {
            std::hint::black_box((row.cents(C_BALANCE), row.str(C_FIRST)));
        })?;
        customer.ok_or_else(|| missing("customer", &key))?;

        let mut order = None;
        let newest = Scan { index: Some(BY_CUSTOMER), reverse: true, limit: 1, ..Scan::prefix(&key) };
        read.scan(&self.tables.orders, &newest, |row| {
            std::hint::black_box((row.is_null(O_CARRIER_ID), row.is_null(O_ENTRY_D)));
            order = Some(row.u64(O_ID));
            ControlFlow::Break(())
        })?;
        self.outcome.reads += 3;
        let Some(order) = order else { return Err(missing("an order of customer", &key)) };

        read.scan(&self.tables.order_line, &Scan::prefix(&values![w, d, order]), |row| {
            std::hint::black_box((
                row.u64(OL_I_ID),
                row.u64(OL_SUPPLY_W_ID),
                row.u64(OL_QUANTITY),
                row.cents(OL_AMOUNT),
            ));
            ControlFlow::Continue(())
        })
    }

    pub(crate) fn delivery<X: Transaction<Table = T>>(&mut self, txn: &mut X) -> Result<()> {
        let w = self.home_warehouse();
        let mut orders = std::mem::take(&mut self.delivered);
        orders.clear();
        let done = self.deliver(txn, w, &mut orders);
        self.delivered = orders;
        done
    }

    fn deliver<X: Transaction<Table = T>>(&mut self, txn: &mut X, w: u64, orders: &mut Vec<Delivered>) -> Result<()> {
        for district in 1..=DISTRICTS {
            orders.extend(self.take_oldest(txn, w, district)?);
        }
        txn.prefetch(&self.tables.orders, orders.iter().map(|o| values![w, o.district, o.id]))?;
        txn.prefetch(&self.tables.order_line, orders.iter().map(|o| values![w, o.district, o.id, 1u64]))?;
        let carrier = self.rng.u64(1..=10);
        orders.iter_mut().try_for_each(|order| self.set_carrier(txn, w, order, carrier))?;
        txn.prefetch(&self.tables.customer, orders.iter().map(|o| values![w, o.district, o.customer]))?;
        let now = now_us();
        orders.iter_mut().try_for_each(|order| self.deliver_lines(txn, w, order, now))?;
        orders.iter().try_for_each(|order| self.charge(txn, w, order))
    }

    /// Deletes and returns the oldest new order of a district, if it has one.
    fn take_oldest<X: Transaction<Table = T>>(&mut self, txn: &mut X, w: u64, d: u64) -> Result<Option<Delivered>> {
        let mut oldest = None;
        let prefix = values![w, d];
        let scan = Scan { limit: 1, for_update: true, ..Scan::prefix(&prefix) };
        txn.scan(&self.tables.new_order, &scan, |row| {
            oldest = Some(row.u64(NO_O_ID));
            ControlFlow::Break(())
        })?;
        self.outcome.reads += 1;
        let Some(id) = oldest else { return Ok(None) };
        txn.delete(&self.tables.new_order, &values![w, d, id])?;
        self.outcome.writes += 1;
        Ok(Some(Delivered { district: d, id, ..Delivered::default() }))
    }

    fn set_carrier<X: Transaction<Table = T>>(
        &mut self,
        txn: &mut X,
        w: u64,
        order: &mut Delivered,
        carrier: u64,
    ) -> Result<()> {
        let key = values![w, order.district, order.id];
        let found = txn.modify(&self.tables.orders, &key, |row, set| {
            order.customer = row.u64(O_C_ID);
            order.lines = row.u64(O_OL_CNT);
            set.put(O_CARRIER_ID, carrier.into());
        })?;
        self.outcome.writes += 1;
        if found { Ok(()) } else { Err(missing("order", &key)) }
    }

    fn deliver_lines<X: Transaction<Table = T>>(
        &mut self,
        txn: &mut X,
        w: u64,
        order: &mut Delivered,
        now: i64,
    ) -> Result<()> {
        for line in 1..=order.lines {
            let mut cents = 0;
            txn.modify(&self.tables.order_line, &values![w, order.district, order.id, line], |row, set| {
                cents = row.cents(OL_AMOUNT);
                set.put(OL_DELIVERY_D, time(now));
            })?;
            order.cents += cents;
        }
        self.outcome.writes += order.lines as u32;
        Ok(())
    }

    /// Adds the order's amount to its customer's balance.
    fn charge<X: Transaction<Table = T>>(&mut self, txn: &mut X, w: u64, order: &Delivered) -> Result<()> {
        let key = values![w, order.district, order.customer];
        let found = txn.modify(&self.tables.customer, &key, |row, set| {
            set.put(C_BALANCE, money(row.cents(C_BALANCE) + order.cents));
            set.put(C_DELIVERY_CNT, (row.u64(C_DELIVERY_CNT) + 1).into());
        })?;
        self.outcome.writes += 1;
        if found { Ok(()) } else { Err(missing("customer", &key)) }
    }

    pub(crate) fn stock_level<R: Read<Table = T>>(&mut self, read: &mut R) -> Result<()> {
        let w = self.home_warehouse();
        let (d, threshold) = (self.district, self.rng.i64(10..=20));
        let key = values![w, d];
        let next = read.get(&self.tables.district, &key, |row| row.u64(D_NEXT_O_ID))?;
        let next = next.ok_or_else(|| missing("district", &key))?;
        let recent = Scan {
            from: Some(next.saturating_sub(RECENT_ORDERS).into()),
            to: Some((next - 1).into()),
            ..Scan::prefix(&key)
        };
        self.numbers.clear();
        let items = &mut self.numbers;
        read.scan(&self.tables.order_line, &recent, |row| {
            items.push(row.u64(OL_I_ID));
            ControlFlow::Continue(())
        })?;
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        for items in items.chunks(FETCHED_TOGETHER) {
            read.prefetch(&self.tables.stock, items.iter().map(|item| values![w, *item]))?;
            for &item in items {
                let key = values![w, item];
                let quantity = read.get(&self.tables.stock, &key, |row| row.i64(S_QUANTITY))?;
                low += u32::from(quantity.ok_or_else(|| missing("stock", &key))? < threshold);
            }
        }
        std::hint::black_box(low);
        self.outcome.reads += 3;
        Ok(())
    }
}
