//! The `user` table of the flush-method study: an insert load of a given number of bytes.
//!
//! Source: the 2010 study of `innodb_flush_method` (MySQL 5.5.7): table `user(id bigint auto_increment primary key,
//! last_name, first_name, duty, cellphone, housephone, telephone, office_fax, home_address, office_address
//! varchar(256), remark text, key NAME_INDEX(first_name, last_name))`, 500 MB written.
//!
//! Rules
//! 1. There is nothing to load: the run inserts until the bytes of the values reach the target, all clients together.
//! 2. Values resemble real ones: names drawn from lists with a long tail, telephone numbers, addresses,
//!    a remark of 0 to 1,000 characters.
//! 3. Each transaction inserts `rows_per_transaction` rows (1 by default, as the study's autocommit).

use super::random::{push_alphanumeric, push_digits, rng};
use super::{Client, Outcome, Progress, Workload, open_table, options};
use crate::error::Result;
use crate::store::{Column, IndexSpec, Read, Session, Store, TableSpec, Transaction, column, nullable};
use fastrand::Rng;
use highwater::{Type, ValueRef};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Its name.
pub(crate) const TABLE: &str = "user";
const VARCHAR: Type = Type::Text(256);

const COLUMNS: &[Column] = &[
    column("id", Type::U64),
    column("last_name", VARCHAR),
    column("first_name", VARCHAR),
    column("duty", VARCHAR),
    column("cellphone", VARCHAR),
    column("housephone", VARCHAR),
    column("telephone", VARCHAR),
    column("office_fax", VARCHAR),
    column("home_address", VARCHAR),
    column("office_address", VARCHAR),
    nullable("remark", Type::Text(65_535)),
];

const INDEXES: &[IndexSpec] = &[IndexSpec { name: "NAME_INDEX", columns: &["first_name", "last_name"] }];

/// Common names first: a name's number is drawn as the square of a uniform number.
const LAST_NAMES: [&str; 20] = [
    "Kim", "Lee", "Park", "Choi", "Jung", "Kang", "Cho", "Yoon", "Jang", "Lim", "Han", "Oh", "Seo", "Shin", "Kwon",
    "Hwang", "Ahn", "Song", "Ryu", "Hong",
];
const FIRST_SYLLABLES: [&str; 16] =
    ["Min", "Seo", "Ji", "Hyun", "Jun", "Ha", "Do", "Ye", "Su", "Young", "Eun", "Sang", "Dong", "Jae", "Kyung", "Tae"];
const SECOND_SYLLABLES: [&str; 16] =
    ["jun", "yeon", "woo", "jin", "hee", "ho", "ah", "won", "soo", "bin", "kyu", "mi", "seok", "hwan", "sun", "chul"];
const DUTIES: [&str; 8] = [
    "engineer",
    "senior engineer",
    "manager",
    "sales representative",
    "accountant",
    "designer",
    "director",
    "researcher",
];
const STREETS: [&str; 8] =
    ["Teheran-ro", "Sejong-daero", "Gangnam-daero", "Eulji-ro", "Jong-ro", "Olympic-ro", "Dasan-ro", "Pangyo-ro"];
const CITIES: [&str; 8] = ["Seoul", "Busan", "Incheon", "Daegu", "Daejeon", "Gwangju", "Suwon", "Ulsan"];

/// Options.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of column values to insert.
    pub bytes: u64,
    /// Rows of one transaction.
    pub rows_per_transaction: u64,
    /// Seed.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config { bytes: 500 << 20, rows_per_transaction: 1, seed: 1 }
    }
}

/// The workload.
#[derive(Debug)]
pub struct UserTable {
    config: Config,
    inserted: Arc<AtomicU64>,
}

impl UserTable {
    /// A workload with these options.
    pub fn new(config: Config) -> UserTable {
        UserTable { config, inserted: Arc::default() }
    }
}

pub(super) fn table_spec() -> TableSpec {
    TableSpec {
        name: TABLE.into(),
        columns: COLUMNS,
        auto_increment: Some("id"),
        primary_key: &["id"],
        indexes: INDEXES,
    }
}

impl<S: Store> Workload<S> for UserTable {
    fn name(&self) -> String {
        "user-table".into()
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["insert"]
    }

    fn identity(&self) -> BTreeMap<String, String> {
        options([("workload", "user-table".into())])
    }

    fn options(&self) -> BTreeMap<String, String> {
        options([
            ("bytes", self.config.bytes.to_string()),
            ("rows_per_transaction", self.config.rows_per_transaction.to_string()),
            ("seed", self.config.seed.to_string()),
        ])
    }

    fn is_bounded(&self) -> bool {
        true
    }

    fn load_units(&self) -> u64 {
        0
    }

    fn load(&self, store: &S, _threads: usize, _progress: &dyn Progress) -> Result<()> {
        store.create_table(&table_spec()).map(drop)
    }

    fn client(&self, store: &S, number: usize) -> Result<Box<dyn Client>> {
        // Each run inserts the bytes.
        if number == 0 {
            self.inserted.store(0, Relaxed);
        }
        Ok(Box::new(UserClient::<S> {
            session: store.session()?,
            table: open_table(store, TABLE)?,
            rng: rng(self.config.seed, number as u64),
            text: String::with_capacity(2048),
            config: self.config.clone(),
            inserted: self.inserted.clone(),
        }))
    }
}

/// One thread.
pub struct UserClient<S: Store> {
    session: S::Session,
    table: S::Table,
    rng: Rng,
    text: String,
    config: Config,
    inserted: Arc<AtomicU64>,
}

fn pick<'a>(rng: &mut Rng, list: &[&'a str]) -> &'a str {
    list[rng.usize(..list.len())]
}

/// Early entries are drawn more often than late ones.
fn pick_skewed<'a>(rng: &mut Rng, list: &[&'a str]) -> &'a str {
    let u = rng.f64();
    list[(u * u * list.len() as f64) as usize]
}

fn push_telephone(rng: &mut Rng, text: &mut String, prefix: &str) {
    text.push_str(prefix);
    text.push('-');
    push_digits(rng, text, 4);
    text.push('-');
    push_digits(rng, text, 4);
}

fn push_address(rng: &mut Rng, text: &mut String) {
    push_digits(rng, text, 3);
    for word in [" ", pick(rng, &STREETS), ", ", pick(rng, &CITIES), " "] {
        text.push_str(word);
    }
    push_digits(rng, text, 5);
}

fn push_words(rng: &mut Rng, text: &mut String, bytes: usize) {
    let end = text.len() + bytes;
    while text.len() < end {
        let word = rng.usize(2..=9).min(end - text.len());
        push_alphanumeric(rng, text, word);
        if text.len() < end {
            text.push(' ');
        }
    }
}

/// Writes the ten text columns into `text` and returns where each ends.
fn write_person(rng: &mut Rng, text: &mut String) -> [usize; 10] {
    text.clear();
    let mut ends = [0; 10];
    for (column, end) in ends.iter_mut().enumerate() {
        match column {
            0 => text.push_str(pick_skewed(rng, &LAST_NAMES)),
            1 => {
                text.push_str(pick_skewed(rng, &FIRST_SYLLABLES));
                text.push('-');
                text.push_str(pick_skewed(rng, &SECOND_SYLLABLES));
            }
            2 => text.push_str(pick(rng, &DUTIES)),
            3 => push_telephone(rng, text, "010"),
            4..=6 => push_telephone(rng, text, "02"),
            7 | 8 => push_address(rng, text),
            _ => {
                let bytes = rng.usize(..=1000);
                push_words(rng, text, bytes);
            }
        }
        *end = text.len();
    }
    ends
}

impl<S: Store> Client for UserClient<S> {
    fn run(&mut self) -> Result<Option<Outcome>> {
        if self.inserted.load(Relaxed) >= self.config.bytes {
            return Ok(None);
        }
        let mut bytes = 0;
        let mut txn = self.session.begin()?;
        for _ in 0..self.config.rows_per_transaction {
            let ends = write_person(&mut self.rng, &mut self.text);
            let mut row = [ValueRef::Null; 11];
            let mut start = 0;
            for (value, end) in row[1..].iter_mut().zip(ends) {
                *value = ValueRef::Text(&self.text[start..end]);
                start = end;
            }
            txn.insert(&self.table, &row)?;
            bytes += self.text.len() as u64 + 8;
        }
        txn.finish()?;
        self.inserted.fetch_add(bytes, Relaxed);
        Ok(Some(Outcome { writes: self.config.rows_per_transaction as u32, other: 2, ..Outcome::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::Model;
    use crate::store::{RowView, Scan};
    use crate::workload::{Silent, load_or_reuse};
    use std::ops::ControlFlow;

    #[test]
    fn inserts_until_the_bytes_are_there() {
        let store = Model::default();
        let workload = UserTable::new(Config { bytes: 100_000, ..Config::default() });
        load_or_reuse(&store, &workload, 1, &Silent).unwrap();
        let mut client = workload.client(&store, 0).unwrap();
        let mut events = 0;
        while client.run().unwrap().is_some() {
            events += 1;
        }
        assert_eq!(store.count(TABLE), events);
        assert!(workload.client(&store, 0).unwrap().run().unwrap().is_some(), "another run has its bytes too");
        assert!((100..300).contains(&events), "{events}");

        let table = store.table(TABLE).unwrap().unwrap();
        let mut session = store.session().unwrap();
        let mut read = session.snapshot().unwrap();
        let scan = Scan { index: Some("NAME_INDEX"), limit: 1, ..Scan::all() };
        read.scan(&table, &scan, |row| {
            assert!(row.str(4).starts_with("010-") && row.str(4).len() == 13, "{}", row.str(4));
            assert!(row.str(8).ends_with(|c: char| c.is_ascii_digit()));
            ControlFlow::Break(())
        })
        .unwrap();
    }
}
