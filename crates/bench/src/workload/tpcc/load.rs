//! The initial population (TPC-C 5.11, clause 4.3.3.1).
//!
//! Rules
//! 1. Units of parallel work are the item table, the stock of a warehouse and a district with its customers and orders;
//!    each unit inserts its tables in key order.
//! 2. A unit's random values come from the seed and the unit's number, so the data do not depend on the number of
//!    threads.
//! 3. Orders 1 to 2,100 of a district are delivered, the last 900 are new; every customer has one order, in random
//!    order.

use super::random::{nurand, push_a_string, push_data, push_last_name, push_zip};
use super::schema::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS, Tables};
use crate::error::Result;
use crate::store::{Store, Transaction, money, rate, time};
use crate::workload::random::{push_alphanumeric, push_digits, rng};
use crate::workload::{Batch, Progress, in_parallel};
use fastrand::Rng;
use highwater::ValueRef;
use highwater::values;

const LINES_MIN: u64 = 5;
const LINES_MAX: u64 = 15;

/// Approximate number of rows of a load: the number of order lines is random (ten an order on average).
pub(crate) fn expected_rows(warehouses: u64) -> u64 {
    let district = 1 + CUSTOMERS * 2 + ORDERS * (1 + (LINES_MIN + LINES_MAX) / 2) + (ORDERS + 1 - FIRST_NEW_ORDER);
    ITEMS + warehouses * (1 + ITEMS + DISTRICTS * district)
}

/// State of all units of a load.
pub(crate) struct Loader<'a, S: Store> {
    pub(crate) store: &'a S,
    pub(crate) tables: Tables<S::Table>,
    pub(crate) warehouses: u64,
    pub(crate) seed: u64,
    pub(crate) c_last: u64,
    pub(crate) now_us: i64,
    pub(crate) progress: &'a dyn Progress,
}

/// Random strings of one row, in one buffer that is reused.
struct Strings {
    rng: Rng,
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    fn new(rng: Rng) -> Strings {
        Strings { rng, text: String::new(), ends: vec![0] }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.truncate(1);
    }

    /// Adds one string, made by `push`.
    fn add(&mut self, push: impl FnOnce(&mut Rng, &mut String)) {
        push(&mut self.rng, &mut self.text);
        self.ends.push(self.text.len());
    }

    fn a_string(&mut self, min: usize, max: usize) {
        self.add(|rng, text| push_a_string(rng, text, min, max));
    }

    /// Streets, city, state, zip.
    fn address(&mut self) {
        (0..3).for_each(|_| self.a_string(10, 20));
        self.add(|rng, text| (0..2).for_each(|_| text.push(char::from(rng.u8(b'A'..=b'Z')))));
        self.add(push_zip);
    }

    fn get(&self, n: usize) -> ValueRef<'_> {
        ValueRef::Text(&self.text[self.ends[n]..self.ends[n + 1]])
    }
}

impl<S: Store> Loader<'_, S> {
    /// Loads everything with `threads` threads.
    pub(crate) fn run(&self, threads: usize) -> Result<()> {
        let units = 1 + self.warehouses * (1 + DISTRICTS);
        in_parallel(units as usize, threads, |unit| {
            let mut session = self.store.session()?;
            let strings = Strings::new(rng(self.seed, unit as u64 | 1 << 40));
            match unit as u64 {
                0 => self.items(&mut session, strings),
                unit => {
                    let (warehouse, part) = ((unit - 1) / (DISTRICTS + 1) + 1, (unit - 1) % (DISTRICTS + 1));
                    match part {
                        0 => self.warehouse(&mut session, warehouse, strings),
                        district => self.district(&mut session, warehouse, district, strings),
                    }
                }
            }
        })
    }

    fn batch(&self) -> Batch<'_> {
        Batch::new(self.progress)
    }

    fn items(&self, session: &mut S::Session, mut s: Strings) -> Result<()> {
        self.batch().run(session, 1..ITEMS + 1, |txn, item| {
            s.clear();
            s.a_string(14, 24);
            s.add(push_data);
            let (image, price) = (s.rng.u32(1..=10_000), s.rng.i64(100..=10_000));
            txn.insert(&self.tables.item, &values![item, image, s.get(0), money(price), s.get(1)])?;
            Ok(1)
        })
    }

    fn warehouse(&self, session: &mut S::Session, w: u64, mut s: Strings) -> Result<()> {
        self.batch().run(session, w..w + 1, |txn, w| {
            s.clear();
            s.a_string(6, 10);
            s.address();
            let tax = rate(s.rng.i64(0..=2_000));
            let row = values![w, s.get(0), s.get(1), s.get(2), s.get(3), s.get(4), s.get(5), tax, money(30_000_000)];
            txn.insert(&self.tables.warehouse, &row)?;
            Ok(1)
        })?;
        self.batch().run(session, 1..ITEMS + 1, |txn, item| {
            s.clear();
            (0..10).for_each(|_| s.add(|rng, text| push_alphanumeric(rng, text, 24)));
            s.add(push_data);
            let mut row = values![
                w,
                item,
                s.rng.i32(10..=100),
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                0,
                0,
                0,
                s.get(10)
            ];
            (0..10).for_each(|n| row[3 + n] = s.get(n));
            txn.insert(&self.tables.stock, &row)?;
            Ok(1)
        })
    }

    fn district(&self, session: &mut S::Session, w: u64, d: u64, mut s: Strings) -> Result<()> {
        self.batch().run(session, d..d + 1, |txn, d| {
            s.clear();
            s.a_string(6, 10);
            s.address();
            let tax = rate(s.rng.i64(0..=2_000));
            let (ytd, next) = (money(3_000_000), ORDERS + 1);
            let row = values![w, d, s.get(0), s.get(1), s.get(2), s.get(3), s.get(4), s.get(5), tax, ytd, next];
            txn.insert(&self.tables.district, &row)?;
            Ok(1)
        })?;
        self.customers(session, w, d, &mut s)?;
        self.orders(session, w, d, &mut s)
    }

    fn customers(&self, session: &mut S::Session, w: u64, d: u64, s: &mut Strings) -> Result<()> {
        self.batch().run(session, 1..CUSTOMERS + 1, |txn, c| {
            s.clear();
            s.a_string(8, 16);
            let name = if c <= 1000 { c - 1 } else { nurand(&mut s.rng, 255, self.c_last, 0, 999) };
            s.add(|_, text| push_last_name(text, name));
            s.address();
            s.add(|rng, text| push_digits(rng, text, 16));
            s.a_string(300, 500);
            let credit = if s.rng.u32(..10) == 0 { "BC" } else { "GC" };
            let discount = rate(s.rng.i64(0..=5_000));
            let row = values![
                w,
                d,
                c,
                s.get(0),
                "OE",
                s.get(1),
                s.get(2),
                s.get(3),
                s.get(4),
                s.get(5),
                s.get(6),
                s.get(7),
                time(self.now_us),
                credit,
                money(5_000_000),
                discount,
                money(-1_000),
                money(1_000),
                1,
                0,
                s.get(8)
            ];
            txn.insert(&self.tables.customer, &row)?;
            Ok(1)
        })?;
        self.batch().run(session, 1..CUSTOMERS + 1, |txn, c| {
            s.clear();
            s.a_string(12, 24);
            txn.insert(&self.tables.history, &values![null, c, d, w, d, w, time(self.now_us), money(1_000), s.get(0)])?;
            Ok(1)
        })
    }

    fn orders(&self, session: &mut S::Session, w: u64, d: u64, s: &mut Strings) -> Result<()> {
        let mut customers: Vec<u64> = (1..=CUSTOMERS).collect();
        s.rng.shuffle(&mut customers);
        self.batch().run(session, 1..ORDERS + 1, |txn, o| {
            let customer = customers[o as usize - 1];
            let lines = s.rng.u64(LINES_MIN..=LINES_MAX);
            let delivered = o < FIRST_NEW_ORDER;
            let carrier = delivered.then(|| s.rng.u8(1..=10));
            txn.insert(&self.tables.orders, &values![w, d, o, customer, time(self.now_us), carrier, lines, 1])?;
            for line in 1..=lines {
                self.order_line(txn, [w, d, o, line], s)?;
            }
            if !delivered {
                txn.insert(&self.tables.new_order, &values![w, d, o])?;
            }
            Ok(1 + lines + u64::from(!delivered))
        })
    }

    fn order_line<X>(&self, txn: &mut X, [w, d, o, line]: [u64; 4], s: &mut Strings) -> Result<()>
    where
        X: Transaction<Table = S::Table>,
    {
        s.clear();
        s.add(|rng, text| push_alphanumeric(rng, text, 24));
        let item = s.rng.u64(1..=ITEMS);
        let (delivery, amount) =
            if o < FIRST_NEW_ORDER { (time(self.now_us), 0) } else { (ValueRef::Null, s.rng.i64(1..=999_999)) };
        let row = values![w, d, o, line, item, w, delivery, 5, money(amount), s.get(0)];
        txn.insert(&self.tables.order_line, &row)?;
        Ok(())
    }
}
