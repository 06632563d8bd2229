//! A terminal: the state of a client between transactions, and the choice of the next transaction.
//!
//! Rules
//! 1. Kinds come from a shuffled deck of cards (5.2.4.2), so a run's shares match the mix closely and any terminal runs
//!    every kind.
//! 2. No think time and no keying time. Each transaction draws its home warehouse among all, so that any number of
//!    terminals works on all data.
//! 3. Buffers are reused: a transaction allocates nothing of its own.

use super::random::{Constants, nurand, push_last_name};
use super::schema::{BY_NAME, C_ID, CUSTOMERS, DISTRICTS, ITEMS, Tables};
use crate::error::{Error, Result};
use crate::store::{Read, RowView, Scan};
use crate::workload::Outcome;
use fastrand::Rng;
use highwater::ValueRef;
use highwater::values;
use std::ops::ControlFlow;

/// The five transactions, in the order of their cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 2.4.
    NewOrder,
    /// 2.5.
    Payment,
    /// 2.6.
    OrderStatus,
    /// 2.7.
    Delivery,
    /// 2.8.
    StockLevel,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 5] = [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];
    /// Names, in the same order.
    pub const NAMES: &[&str] = &["new_order", "payment", "order_status", "delivery", "stock_level"];
}

/// The number of cards of each kind in a deck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// 45 new orders, 43 payments, 4 of each other kind (the specification's minimum shares, 5.2.3).
    #[default]
    Specification,
    /// 10, 10, 1, 1, 1: what tpcc-mysql runs.
    TpccMysql,
}

highwater_storage::names!(Mix {
    Specification => "45/43/4/4/4",
    TpccMysql => "10/10/1/1/1",
});

impl Mix {
    fn cards(self) -> [usize; 5] {
        match self {
            Mix::Specification => [45, 43, 4, 4, 4],
            Mix::TpccMysql => [10, 10, 1, 1, 1],
        }
    }
}

/// A shuffled deck that is shuffled again when it is empty.
#[derive(Clone, Debug)]
pub(crate) struct Deck {
    cards: Vec<Kind>,
    next: usize,
}

impl Deck {
    pub(crate) fn new(mix: Mix) -> Deck {
        let cards: Vec<Kind> =
            Kind::ALL.iter().zip(mix.cards()).flat_map(|(&kind, count)| std::iter::repeat_n(kind, count)).collect();
        Deck { next: cards.len(), cards }
    }

    pub(crate) fn draw(&mut self, rng: &mut Rng) -> Kind {
        if self.next == self.cards.len() {
            rng.shuffle(&mut self.cards);
            self.next = 0;
        }
        self.next += 1;
        self.cards[self.next - 1]
    }
}

/// The customer of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Customer {
    /// C_ID.
    Number(u64),
    /// The number of a last name (4.3.2.3).
    LastName(u64),
}

/// One line of a new order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) item: u64,
    pub(crate) supply_warehouse: u64,
    pub(crate) quantity: i64,
}

/// An order that is being delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) district: u64,
    pub(crate) id: u64,
    pub(crate) customer: u64,
    pub(crate) lines: u64,
    /// Sum of the lines' amounts.
    pub(crate) cents: i64,
}

/// State of a client besides its connection.
#[derive(Debug)]
pub(crate) struct Terminal<T> {
    pub(crate) tables: Tables<T>,
    pub(crate) rng: Rng,
    pub(crate) constants: Constants,
    pub(crate) warehouses: u64,
    /// This terminal's district, for stock-level (2.8.1.1).
    pub(crate) district: u64,
    pub(crate) lines: Vec<Line>,
    pub(crate) numbers: Vec<u64>,
    pub(crate) delivered: Vec<Delivered>,
    pub(crate) text: String,
    pub(crate) other_text: String,
    pub(crate) last_name: String,
    pub(crate) outcome: Outcome,
}

impl<T: Clone + Send + Sync + 'static> Terminal<T> {
    pub(crate) fn new(tables: Tables<T>, rng: Rng, warehouses: u64, constants: Constants, number: u64) -> Terminal<T> {
        Terminal {
            tables,
            constants,
            rng,
            warehouses,
            district: number % DISTRICTS + 1,
            lines: Vec::with_capacity(15),
            numbers: Vec::with_capacity(400),
            delivered: Vec::with_capacity(DISTRICTS as usize),
            text: String::with_capacity(512),
            other_text: String::with_capacity(512),
            last_name: String::with_capacity(16),
            outcome: Outcome::default(),
        }
    }

    pub(crate) fn home_warehouse(&mut self) -> u64 {
        self.rng.u64(1..=self.warehouses)
    }

    pub(crate) fn any_district(&mut self) -> u64 {
        self.rng.u64(1..=DISTRICTS)
    }

    /// Another warehouse than `home`; `home` when there is no other.
    pub(crate) fn other_warehouse(&mut self, home: u64) -> u64 {
        if self.warehouses == 1 {
            return home;
        }
        let other = self.rng.u64(1..self.warehouses);
        if other >= home { other + 1 } else { other }
    }

    pub(crate) fn customer_number(&mut self) -> u64 {
        nurand(&mut self.rng, 1023, self.constants.customer, 1, CUSTOMERS)
    }

    pub(crate) fn item(&mut self) -> u64 {
        nurand(&mut self.rng, 8191, self.constants.item, 1, ITEMS)
    }

    /// A random customer, by last name in 60 of 100 cases (2.5.1.2, 2.6.1.2).
    pub(crate) fn any_customer(&mut self) -> Customer {
        if self.rng.u32(..100) < 60 {
            Customer::LastName(nurand(&mut self.rng, 255, self.constants.last_name, 0, 999))
        } else {
            Customer::Number(self.customer_number())
        }
    }

    /// The customer's number; by name it is the one in the middle, rounded up, ordered by first name (2.5.2.2).
    pub(crate) fn find_customer<R: Read<Table = T>>(
        &mut self,
        read: &mut R,
        w: u64,
        d: u64,
        customer: Customer,
    ) -> Result<u64> {
        let name = match customer {
            Customer::Number(number) => return Ok(number),
            Customer::LastName(name) => name,
        };
        self.last_name.clear();
        push_last_name(&mut self.last_name, name);
        self.numbers.clear();
        let numbers = &mut self.numbers;
        let prefix = values![w, d, self.last_name.as_str()];
        read.scan(&self.tables.customer, &Scan { index: Some(BY_NAME), ..Scan::prefix(&prefix) }, |row| {
            numbers.push(row.u64(C_ID));
            ControlFlow::Continue(())
        })?;
        self.outcome.reads += 1;
        match self.numbers.len() {
            0 => Err(Error::Data(format!("no customer {} in district {d} of warehouse {w}", self.last_name))),
            found => Ok(self.numbers[found.div_ceil(2) - 1]),
        }
    }
}

/// The error of a missing row that the workload loaded or inserted.
#[cold]
pub(crate) fn missing(what: &str, key: &[ValueRef<'_>]) -> Error {
    Error::Data(format!("{what} {key:?} is missing"))
}

/// Microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |d| d.as_micros() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::rng;

    #[test]
    fn a_deck_holds_the_mix() {
        for (mix, cards) in [(Mix::Specification, [45, 43, 4, 4, 4]), (Mix::TpccMysql, [10, 10, 1, 1, 1])] {
            let mut deck = Deck::new(mix);
            let mut rng = rng(1, 0);
            for _ in 0..3 {
                let mut drawn = [0; 5];
                (0..cards.iter().sum::<usize>()).for_each(|_| drawn[deck.draw(&mut rng) as usize] += 1);
                assert_eq!(drawn, cards);
            }
        }
    }
}
