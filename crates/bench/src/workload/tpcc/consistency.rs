//! The twelve consistency conditions (TPC-C 5.11, clauses 3.3.2.1 to 3.3.2.12).
//!
//! Rules
//! 1. Everything is recomputed from the tables by full scans in one snapshot per warehouse; nothing is taken from the
//!    run.
//! 2. Sums are exact (cents in 64 bits).
//! 3. Condition 11 is stated for the initial population (orders minus new orders is 2,100 a district). Each delivery
//!    increases the difference by one, and exactly one customer's C_DELIVERY_CNT counts it: the sum of these is added.
//! 4. A request to stop takes effect between the rows of HISTORY and between districts.
//! 5. A violated condition names the first violation found.

use super::schema::*;
use crate::error::Result;
use crate::interrupt;
use crate::result::Condition;
use crate::store::{Read, RowView, Scan, Session, Store};
use crate::workload::in_parallel;
use highwater::values;
use parking_lot::Mutex;
use std::ops::ControlFlow::{Break, Continue};

const TEXTS: [&str; 12] = [
    "W_YTD = sum(D_YTD)",
    "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
    "max(NO_O_ID) - min(NO_O_ID) + 1 = count(NEW-ORDER)",
    "sum(O_OL_CNT) = count(ORDER-LINE)",
    "O_CARRIER_ID is null if and only if the order is in NEW-ORDER",
    "O_OL_CNT = count of the order's ORDER-LINE rows",
    "OL_DELIVERY_D is null if and only if the order's O_CARRIER_ID is null",
    "W_YTD = sum(H_AMOUNT) of the warehouse",
    "D_YTD = sum(H_AMOUNT) of the district",
    "C_BALANCE = sum(delivered OL_AMOUNT) - sum(H_AMOUNT) of the customer",
    "count(ORDER) - count(NEW-ORDER) = 2100 + sum(C_DELIVERY_CNT)",
    "C_BALANCE + C_YTD_PAYMENT = sum(delivered OL_AMOUNT) of the customer",
];

/// First violation of each condition.
struct Findings(Mutex<[Option<String>; 12]>);

impl Findings {
    /// Notes that condition `number` (1 to 12) fails unless `holds`.
    fn expect(&self, number: usize, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.lock()[number - 1].get_or_insert_with(what);
        }
    }

    fn into_conditions(self) -> Vec<Condition> {
        let findings = self.0.into_inner().into_iter().zip(TEXTS).enumerate();
        findings
            .map(|(n, (finding, text))| Condition {
                condition: format!("3.3.2.{}", n + 1),
                text: text.into(),
                holds: finding.is_none(),
                detail: finding.unwrap_or_default(),
            })
            .collect()
    }
}

/// Sums of HISTORY, in cents.
struct History {
    by_district: Vec<i64>,
    by_customer: Vec<i64>,
}

fn district_slot(w: u64, d: u64) -> usize {
    ((w - 1) * DISTRICTS + d - 1) as usize
}

fn customer_slot(w: u64, d: u64, c: u64) -> usize {
    district_slot(w, d) * CUSTOMERS as usize + c as usize - 1
}

fn read_history<S: Store>(store: &S, tables: &Tables<S::Table>, warehouses: u64) -> Result<History> {
    let districts = (warehouses * DISTRICTS) as usize;
    let mut history = History { by_district: vec![0; districts], by_customer: vec![0; districts * CUSTOMERS as usize] };
    let mut session = store.session()?;
    let mut read = session.snapshot()?;
    read.scan(&tables.history, &Scan::all(), |row| {
        let amount = row.cents(H_AMOUNT);
        let district = district_slot(row.u64(H_W_ID), row.u64(H_D_ID));
        let customer = customer_slot(row.u64(H_C_W_ID), row.u64(H_C_D_ID), row.u64(H_C_ID));
        let sums = [history.by_district.get_mut(district), history.by_customer.get_mut(customer)];
        sums.into_iter().flatten().for_each(|sum| *sum += amount);
        if interrupt::is_requested() { Break(()) } else { Continue(()) }
    })?;
    read.finish()?;
    interrupt::check()?;
    Ok(history)
}

/// An order as found in its table.
#[derive(Clone, Copy, Default)]
struct Order {
    exists: bool,
    customer: u64,
    lines: u64,
    has_carrier: bool,
    is_new: bool,
    lines_found: u64,
}

/// Everything about one district that the conditions compare.
#[derive(Default)]
struct District {
    orders: Vec<Order>,
    order_count: u64,
    new_orders: Vec<u64>,
    line_sum: u64,
    line_count: u64,
    delivered: Vec<i64>,
    delivery_count: u64,
    ytd: i64,
    next_order: u64,
}

/// Checks all twelve with `threads` threads.
pub(crate) fn check<S: Store>(store: &S, warehouses: u64, threads: usize) -> Result<Vec<Condition>> {
    let tables = Tables::open(store)?;
    let history = read_history(store, &tables, warehouses)?;
    let findings = Findings(Mutex::new([const { None }; 12]));
    in_parallel(warehouses as usize, threads, |w| {
        let mut session = store.session()?;
        let mut read = session.snapshot()?;
        let checker = Checker { tables: &tables, history: &history, findings: &findings, w: w as u64 + 1 };
        checker.warehouse(&mut read)?;
        read.finish()
    })?;
    Ok(findings.into_conditions())
}

struct Checker<'a, T> {
    tables: &'a Tables<T>,
    history: &'a History,
    findings: &'a Findings,
    w: u64,
}

impl<T: Clone + Send + Sync + 'static> Checker<'_, T> {
    fn warehouse<R: Read<Table = T>>(&self, read: &mut R) -> Result<()> {
        let w = self.w;
        let ytd = read.get(&self.tables.warehouse, &values![w], |row| row.cents(W_YTD))?.unwrap_or(i64::MIN);
        let (mut district_sum, mut history_sum) = (0, 0);
        for d in 1..=DISTRICTS {
            district_sum += self.district(read, d)?;
            history_sum += self.history.by_district[district_slot(w, d)];
        }
        self.findings
            .expect(1, ytd == district_sum, || format!("warehouse {w}: {ytd} cents, districts {district_sum}"));
        self.findings.expect(8, ytd == history_sum, || format!("warehouse {w}: {ytd} cents, history {history_sum}"));
        Ok(())
    }

    /// Checks one district; returns D_YTD.
    fn district<R: Read<Table = T>>(&self, read: &mut R, d: u64) -> Result<i64> {
        interrupt::check()?;
        let mut district = District { delivered: vec![0; CUSTOMERS as usize + 1], ..District::default() };
        read.get(&self.tables.district, &values![self.w, d], |row| {
            district.ytd = row.cents(D_YTD);
            district.next_order = row.u64(D_NEXT_O_ID);
        })?;
        self.read_orders(read, d, &mut district)?;
        self.read_new_orders(read, d, &mut district)?;
        self.read_lines(read, d, &mut district)?;
        self.check_customers(read, d, &mut district)?;
        self.check_district(d, &district);
        self.check_orders(d, &district);
        Ok(district.ytd)
    }

    fn read_orders<R: Read<Table = T>>(&self, read: &mut R, d: u64, district: &mut District) -> Result<()> {
        read.scan(&self.tables.orders, &Scan::prefix(&values![self.w, d]), |row| {
            let id = row.u64(O_ID) as usize;
            if district.orders.len() <= id {
                district.orders.resize(id + 1, Order::default());
            }
            district.orders[id] = Order {
                exists: true,
                customer: row.u64(O_C_ID),
                lines: row.u64(O_OL_CNT),
                has_carrier: !row.is_null(O_CARRIER_ID),
                ..Order::default()
            };
            district.order_count += 1;
            district.line_sum += row.u64(O_OL_CNT);
            Continue(())
        })
    }

    fn read_new_orders<R: Read<Table = T>>(&self, read: &mut R, d: u64, district: &mut District) -> Result<()> {
        let w = self.w;
        read.scan(&self.tables.new_order, &Scan::prefix(&values![w, d]), |row| {
            let id = row.u64(NO_O_ID);
            district.new_orders.push(id);
            match district.orders.get_mut(id as usize) {
                Some(order) if order.exists => order.is_new = true,
                _ => self.findings.expect(5, false, || format!("new order {w}/{d}/{id} has no order")),
            }
            Continue(())
        })
    }

    fn read_lines<R: Read<Table = T>>(&self, read: &mut R, d: u64, district: &mut District) -> Result<()> {
        let w = self.w;
        read.scan(&self.tables.order_line, &Scan::prefix(&values![w, d]), |row| {
            let id = row.u64(OL_O_ID);
            district.line_count += 1;
            let Some(order) = district.orders.get_mut(id as usize).filter(|o| o.exists) else {
                self.findings.expect(6, false, || format!("order line of {w}/{d}/{id} has no order"));
                return Continue(());
            };
            order.lines_found += 1;
            let delivered = !row.is_null(OL_DELIVERY_D);
            self.findings.expect(7, delivered == order.has_carrier, || format!("order {w}/{d}/{id}"));
            if delivered && let Some(sum) = district.delivered.get_mut(order.customer as usize) {
                *sum += row.cents(OL_AMOUNT);
            }
            Continue(())
        })
    }

    fn check_customers<R: Read<Table = T>>(&self, read: &mut R, d: u64, district: &mut District) -> Result<()> {
        let w = self.w;
        read.scan(&self.tables.customer, &Scan::prefix(&values![w, d]), |row| {
            let c = row.u64(C_ID);
            let (balance, paid) = (row.cents(C_BALANCE), row.cents(C_YTD_PAYMENT));
            let delivered = district.delivered.get(c as usize).copied().unwrap_or(i64::MIN);
            let history = self.history.by_customer.get(customer_slot(w, d, c)).copied().unwrap_or(i64::MIN);
            self.findings.expect(10, Some(balance) == delivered.checked_sub(history), || {
                format!("customer {w}/{d}/{c}: balance {balance}, delivered {delivered}, paid {history} (cents)")
            });
            self.findings.expect(12, balance + paid == delivered, || {
                format!("customer {w}/{d}/{c}: balance {balance}, paid {paid}, delivered {delivered} (cents)")
            });
            district.delivery_count += row.u64(C_DELIVERY_CNT);
            Continue(())
        })
    }

    fn check_district(&self, d: u64, found: &District) {
        let w = self.w;
        let place = || format!("district {w}/{d}: ");
        let last = (found.orders.len() as u64).saturating_sub(1);
        let (first_new, last_new) = (found.new_orders.first().copied(), found.new_orders.last().copied());
        let next = found.next_order;
        self.findings.expect(2, next == last + 1 && last_new.is_none_or(|n| n == last), || {
            place() + &format!("next {next}, last order {last}, last new order {last_new:?}")
        });
        let span = first_new.zip(last_new).map_or(0, |(first, last)| last - first + 1);
        let count = found.new_orders.len() as u64;
        self.findings.expect(3, span == count, || place() + &format!("span {span}, count {count}"));
        let (sum, lines) = (found.line_sum, found.line_count);
        self.findings.expect(4, sum == lines, || place() + &format!("orders say {sum} lines, there are {lines}"));
        let (ytd, history) = (found.ytd, self.history.by_district[district_slot(w, d)]);
        self.findings.expect(9, ytd == history, || place() + &format!("{ytd} cents, history {history}"));
        let (orders, deliveries) = (found.order_count, found.delivery_count);
        self.findings.expect(11, orders == count + FIRST_NEW_ORDER - 1 + deliveries, || {
            place() + &format!("{orders} orders, {count} new, {deliveries} delivered since the load")
        });
    }

    fn check_orders(&self, d: u64, found: &District) {
        let w = self.w;
        for (id, order) in found.orders.iter().enumerate().filter(|(_, o)| o.exists) {
            self.findings.expect(5, order.has_carrier != order.is_new, || format!("order {w}/{d}/{id}"));
            self.findings.expect(6, order.lines == order.lines_found, || {
                format!("order {w}/{d}/{id}: {} lines, found {}", order.lines, order.lines_found)
            });
        }
    }
}
