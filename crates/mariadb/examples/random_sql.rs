//! A random stream of SQL statements whose answers are the same on every engine: types, NULL, collations, changes of
//! rows and of tables. `scripts/test-mariadb-plugin random` runs it on InnoDB and on Highwater.
//!
//! ```text
//! cargo run -p highwater-mariadb --example random_sql -- SEED STATEMENTS ENGINE
//! ```
//!
//! Rules
//! 1. A statement whose effect depends on the order of rows names an order that is whole: UPDATE and DELETE with LIMIT
//!    order by all columns that identify a row; a SELECT orders by all that it shows.
//! 2. Everything follows from the seed.

use std::fmt::Write;

/// Xorshift: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % end
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Makes a value.
type Make = fn(&mut Random) -> String;

/// A column's name, type, and how a value of it is made.
const COLUMNS: [(&str, &str, Make); 14] = [
    ("i", "int", |r| (r.below(40) as i64 - 20).to_string()),
    ("u", "tinyint unsigned", |r| r.below(30).to_string()),
    ("m", "mediumint", |r| (r.below(60) as i64 - 30).to_string()),
    ("big", "bigint", |r| (r.below(u64::MAX / 2) as i64 >> r.below(60)).to_string()),
    ("f", "double", |r| format!("{}.{}", r.below(20) as i64 - 10, r.below(4) * 25)),
    ("d", "decimal(8,2)", |r| format!("{}.{:02}", r.below(2000) as i64 - 1000, r.below(100))),
    ("s", "varchar(20)", text),
    ("c", "char(6) character set latin1", |r| text(r).chars().filter(char::is_ascii).take(8).collect()),
    ("v", "varbinary(12)", |r| format!("x'{:0width$x}'", r.below(1 << 24), width = 6)),
    ("t", "text", |r| format!("concat({},repeat('{}',{}))", text(r), r.pick(&["x", "yz"]), r.below(9) * r.below(900))),
    ("dt", "datetime(2)", |r| {
        format!("'20{:02}-0{}-1{} 1{}:00:00.{}'", r.below(30), 1 + r.below(9), r.below(9), r.below(9), r.below(99))
    }),
    ("tm", "time", |r| format!("'{}{}:{}:00'", r.pick(&["-", ""]), r.below(30), 10 + r.below(49))),
    ("e", "enum('red','green','blue')", |r| format!("'{}'", r.pick(&["red", "green", "blue"]))),
    ("b", "bit(11)", |r| format!("b'{:b}'", r.below(2048))),
];

fn text(random: &mut Random) -> String {
    let letters = ["a", "A", "b", "B", "z", "ä", "Ö", " ", "0", "!", "", "ab"];
    let mut text = String::from("'");
    for _ in 0..random.below(6) {
        text.push_str(random.pick(&letters));
    }
    text.push('\'');
    text
}

const COLLATIONS: [&str; 6] = [
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_bin",
    "utf8mb4_general_nopad_ci",
    "latin1_swedish_ci",
    "utf8mb4_uca1400_ai_ci",
];

/// A key part of a column: all of it, or its beginning, up or down.
fn part(random: &mut Random, column: usize) -> String {
    let (name, ..) = COLUMNS[column];
    let prefix = if name == "t" || (name == "s" && random.below(3) == 0) { "(5)" } else { "" };
    format!("{name}{prefix}{}", if random.below(3) == 0 { " desc" } else { "" })
}

struct Stream {
    random: Random,
    engine: String,
    out: String,
    /// Whether a table has a primary key.
    has_key: [bool; 3],
    indexes: [usize; 3],
    /// Columns of each table's indexes k0 and k1.
    keys: [[(usize, usize); 2]; 3],
    next_id: u64,
}

impl Stream {
    fn say(&mut self, statement: &str) {
        writeln!(self.out, "{statement};").expect("writing to a string");
    }

    fn value(&mut self, column: usize) -> String {
        let (name, _, make) = COLUMNS[column];
        if self.random.below(7) == 0 {
            return "NULL".to_string();
        }
        let value = make(&mut self.random);
        if name == "c" && !value.ends_with('\'') { format!("{value}'") } else { value }
    }

    fn condition(&mut self) -> String {
        let column = self.random.below(COLUMNS.len() as u64) as usize;
        self.condition_of(column)
    }

    fn condition_of(&mut self, column: usize) -> String {
        let (name, ..) = COLUMNS[column];
        let value = self.value(column);
        match self.random.below(6) {
            0 => format!("{name} is null"),
            1 => format!("{name} >= {value}"),
            2 => format!("{name} < {value}"),
            3 => format!("{name} between {value} and {}", self.value(column)),
            4 => format!("id < {}", self.random.below(self.next_id + 1)),
            _ => format!("{name} = {value}"),
        }
    }

    fn create(&mut self, table: usize) {
        let collation = self.random.pick(&COLLATIONS).to_string();
        let mut columns = String::from("id int not null");
        for (name, ty, _) in COLUMNS {
            let ty = if name == "s" { format!("{ty} collate {collation}") } else { ty.to_string() };
            let ty = if name == "s" && collation.starts_with("latin1") {
                ty.replace(" collate", " character set latin1 collate")
            } else {
                ty
            };
            write!(columns, ", {name} {ty}").expect("writing to a string");
        }
        self.has_key[table] = self.random.below(4) != 0;
        if self.has_key[table] {
            let second = self.random.below(3) == 0;
            columns.push_str(if second { ", primary key (id desc)" } else { ", primary key (id)" });
        }
        for index in 0..3 {
            let column = self.random.below(COLUMNS.len() as u64) as usize;
            let other = (column + 1 + self.random.below(5) as usize) % COLUMNS.len();
            if let Some(key) = self.keys[table].get_mut(index) {
                *key = (column, other);
            }
            let parts = format!("{}, {}", part(&mut self.random, column), part(&mut self.random, other));
            write!(columns, ", key k{index} ({parts})").expect("writing to a string");
        }
        columns.push_str(", unique key un (s, i)");
        self.indexes[table] = 3;
        let engine = self.engine.clone();
        self.say(&format!("drop table if exists t{table}"));
        self.say(&format!("create table t{table} ({columns}) engine={engine} default charset=utf8mb4"));
    }

    fn row(&mut self) -> String {
        let id = if self.random.below(4) == 0 { self.random.below(self.next_id) } else { self.next_id };
        self.next_id = self.next_id.max(id) + 1;
        let values: Vec<String> = (0..COLUMNS.len()).map(|column| self.value(column)).collect();
        format!("({id}, {})", values.join(", "))
    }

    fn change(&mut self, table: usize) {
        // Without a key, which rows go first depends on the engine: whole statements only.
        let order = if self.has_key[table] && self.random.below(3) == 0 { " order by id limit 3" } else { "" };
        match self.random.below(10) {
            0..=3 => {
                let row = self.row();
                self.say(&format!("insert ignore into t{table} values {row}"));
            }
            4 => {
                let row = self.row();
                self.say(&format!("insert into t{table} values {row}"));
            }
            5 if self.has_key[table] => {
                let row = self.row();
                self.say(&format!("replace into t{table} values {row}"));
            }
            6 if self.has_key[table] => {
                let (row, value) = (self.row(), self.value(0));
                self.say(&format!("insert into t{table} values {row} on duplicate key update u = u + 1, m = {value}"));
            }
            7 => {
                let condition = self.condition();
                self.say(&format!("delete from t{table} where {condition} and id % 3 = 0{order}"));
            }
            _ => {
                let column = self.random.below(COLUMNS.len() as u64) as usize;
                // A unique column is set in one row.
                let (name, value, condition) = (COLUMNS[column].0, self.value(column), self.condition());
                let one = if name == "i" || name == "s" {
                    format!("id = {}", self.random.below(self.next_id))
                } else {
                    condition
                };
                self.say(&format!("update t{table} set {name} = {value} where {one}{order}"));
            }
        }
    }

    fn select(&mut self, table: usize) {
        let (condition, other) = (self.condition(), self.random.below(3));
        match self.random.below(8) {
            0 => self.say(&format!("select count(*), min(i), max(d), sum(m) from t{table} where {condition}")),
            1 => self.say(&format!("select hex(min(binary s)) h, count(*) from t{table} group by s order by 1, 2")),
            2 => {
                let join = format!("t{table} a join t{other} b on a.i = b.i");
                self.say(&format!("select a.id, b.id from {join} where a.{condition} order by 1, 2 limit 50"));
            }
            5..=7 => self.select_by_index(table, condition),
            3 => self.say(&format!("select i, f from t{table} where {condition} order by f desc, i limit 20")),
            _ => {
                let order = (1..=15).map(|at| at.to_string()).collect::<Vec<_>>().join(", ");
                let shown = "id, i, u, m, big, f, d, hex(s), c, hex(v), md5(t), dt, tm, e, hex(b)";
                self.say(&format!("select {shown} from t{table} where {condition} order by {order}"));
            }
        }
    }

    /// By an index that may have all columns, with conditions on its entries.
    fn select_by_index(&mut self, table: usize, mut condition: String) {
        let index = self.random.below(2) as usize;
        let (first, second) = self.keys[table][index];
        let mut columns = vec![first, second];
        if self.random.below(3) == 0 {
            columns.push(self.random.below(COLUMNS.len() as u64) as usize);
        }
        let shown = |column: &usize| match COLUMNS[*column].0 {
            name @ ("s" | "v" | "b") => format!(", hex({name})"),
            "t" => ", md5(t)".to_string(),
            name => format!(", {name}"),
        };
        let shown: String = columns.iter().map(shown).collect();
        if self.random.below(4) != 0 {
            condition = format!("{} and {}", self.condition_of(first), self.condition_of(second));
        }
        let order = (1..=columns.len() + 1).map(|at| at.to_string()).collect::<Vec<_>>().join(", ");
        let lock = self.random.pick(&["", "", "", " lock in share mode", " for update"]);
        let from = format!("t{table} force index (k{index})");
        self.say(&format!("select id{shown} from {from} where {condition} order by {order}{lock}"));
    }

    fn alter(&mut self, table: usize) {
        match self.random.below(5) {
            0 => self.create(table),
            1 => self.say(&format!("truncate table t{table}")),
            2 => {
                let index = self.indexes[table];
                self.indexes[table] += 1;
                let column = self.random.below(COLUMNS.len() as u64) as usize;
                let part = part(&mut self.random, column);
                self.say(&format!("alter table t{table} add key k{index} ({part})"));
            }
            3 if self.indexes[table] > 2 => {
                self.indexes[table] -= 1;
                let index = self.indexes[table];
                self.say(&format!("alter table t{table} drop key k{index}"));
            }
            _ => {
                self.say(&format!("alter table t{table} add column extra{} int default 5", self.next_id));
                self.say(&format!("alter table t{table} drop column extra{}", self.next_id));
            }
        }
    }

    fn step(&mut self) {
        let table = self.random.below(3) as usize;
        match self.random.below(40) {
            0 => self.say("begin"),
            1 => self.say("commit"),
            2 => self.say("rollback"),
            3 => self.say("savepoint s"),
            4 => self.say("rollback to savepoint s"),
            5 if self.random.below(4) == 0 => self.alter(table),
            6..=20 => self.select(table),
            _ => self.change(table),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seed, statements, engine] = &arguments[..] else {
        eprintln!("usage: random_sql SEED STATEMENTS ENGINE");
        std::process::exit(2);
    };
    let seed: u64 = seed.parse().expect("a number");
    let mut stream = Stream {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        engine: engine.clone(),
        out: String::new(),
        has_key: [false; 3],
        indexes: [3; 3],
        keys: [[(0, 0); 2]; 3],
        next_id: 1,
    };
    stream.say("set names utf8mb4");
    stream.say("set sql_mode = ''");
    (0..3).for_each(|table| stream.create(table));
    for _ in 0..statements.parse::<u64>().expect("a number") {
        stream.step();
    }
    stream.say("commit");
    (0..3).for_each(|table| stream.say(&format!("check table t{table}")));
    print!("{}", stream.out);
}
