//! Random scans: range, order, locks, way of reading, and the expected answer.

use super::choices::Choices;
use super::content::{
    self, Content, INDEXES, Key, PRIMARY, PROJECTIONS, Rows, SOME_COLUMNS, columns_of, compare, content_of,
    content_of_columns, key_of, text, value_of,
};
use super::found::difference;
use super::oracle::Model;
use super::played::{Played, call};
use highwater::{LockWait, Row, RowRef, Scan, ScanIter, Value, ValueRef};
use highwater_bench::{Error, Result};
use std::ops::ControlFlow;
use std::time::Duration;

pub(super) const FIRST_TEXT_VALUES: u32 = 20;
/// Ids below this are those of rows that do not use auto-increment.
pub(super) const IDS: u64 = 300;
/// Values of the column that may be NULL.
pub(super) const SOME: u32 = 400;

/// A bound of a scan: the first columns of a key.
#[derive(Clone, Debug)]
enum Edge {
    Open,
    Inclusive(Vec<Option<u64>>),
    Exclusive(Vec<Option<u64>>),
}

/// The range of keys.
#[derive(Clone, Debug)]
enum Range {
    Between(Edge, Edge),
    /// Entries that begin with these values.
    Prefix(Vec<Option<u64>>),
    /// Entries with these values, of which the last is a text: only this many of its first bytes must be equal.
    StartsWith(Vec<Option<u64>>, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    Plain,
    Share,
    Update,
}

/// The behavior of a locking read at the locks of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Default,
    Short,
    Not,
    Skip,
}

impl Wait {
    /// A random behavior except skipping.
    pub(super) fn random(rng: &mut Choices) -> Wait {
        [Wait::Default, Wait::Short, Wait::Not][rng.usize(..3)]
    }

    pub(super) fn policy(self) -> LockWait {
        match self {
            Wait::Default => LockWait::Default,
            Wait::Short => LockWait::Timeout(Duration::from_millis(1)),
            Wait::Not => LockWait::NoWait,
            Wait::Skip => LockWait::SkipLocked,
        }
    }
}

/// The way in which the rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Iter,
    NextRef,
    Keys,
    Columns,
    Count,
    First,
    /// Visits, until this many rows.
    Visit(usize),
}

const ENDS: [End; 11] = [
    End::Iter,
    End::Iter,
    End::NextRef,
    End::Keys,
    End::Keys,
    End::Columns,
    End::Columns,
    End::Count,
    End::First,
    End::Visit(usize::MAX),
    End::Visit(3),
];

/// A scan.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub index: &'static str,
    range: Range,
    reverse: bool,
    limit: usize,
    pub lock: Lock,
    wait: Wait,
    one_by_one: bool,
    end: End,
    columns: Option<&'static [usize]>,
}

/// The answer of a scan.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Rows(Vec<(u64, Content)>),
    Keys(Vec<(Key, u64)>),
    Columns(Vec<Vec<Option<u64>>>),
    Count(u64),
}

impl Answer {
    /// Whether it is a subsequence of another answer.
    fn is_part_of(&self, all: &Answer) -> bool {
        fn is_part<T: PartialEq>(part: &[T], all: &[T]) -> bool {
            let mut all = all.iter();
            part.iter().all(|one| all.any(|other| other == one))
        }
        match (self, all) {
            (Answer::Rows(part), Answer::Rows(all)) => is_part(part, all),
            (Answer::Keys(part), Answer::Keys(all)) => is_part(part, all),
            (Answer::Columns(part), Answer::Columns(all)) => is_part(part, all),
            (Answer::Count(part), Answer::Count(all)) => part <= all,
            _ => false,
        }
    }
}

fn random_number(column: &str, rng: &mut Choices) -> Option<u64> {
    match column {
        "a" => Some(rng.u32(..FIRST_TEXT_VALUES + 1).into()),
        "b" => Some(rng.u32(..).into()),
        "c" => (rng.u32(..4) > 0).then(|| rng.u32(..SOME).into()),
        _ => Some(rng.u64(..IDS + 20)),
    }
}

fn random_bound(index: &str, rng: &mut Choices) -> Vec<Option<u64>> {
    let columns = columns_of(index);
    columns[..rng.usize(1..=columns.len())].iter().map(|column| random_number(column, rng)).collect()
}

fn random_edge(index: &str, rng: &mut Choices) -> Edge {
    match rng.u32(..4) {
        0 | 1 => Edge::Open,
        2 => Edge::Inclusive(random_bound(index, rng)),
        _ => Edge::Exclusive(random_bound(index, rng)),
    }
}

fn random_range(index: &str, rng: &mut Choices) -> Range {
    let bound = random_bound(index, rng);
    let ends_in_text = matches!(columns_of(index)[bound.len() - 1], "a" | "b");
    match rng.u32(..8) {
        0 => Range::Prefix(bound),
        1 if ends_in_text => Range::StartsWith(bound, rng.usize(1..20)),
        2..=4 => Range::Between(random_edge(index, rng), random_edge(index, rng)),
        _ => Range::Between(Edge::Open, Edge::Open),
    }
}

impl Look {
    /// A random scan of a table; a locking one only if `may_lock`.
    pub(super) fn random(model: &Model, may_lock: bool, rng: &mut Choices) -> Look {
        let index = rng.choice(model.indexes.iter()).copied().filter(|_| rng.bool()).unwrap_or(PRIMARY);
        let lock = if may_lock {
            [Lock::Plain, Lock::Plain, Lock::Plain, Lock::Share, Lock::Update][rng.usize(..5)]
        } else {
            Lock::Plain
        };
        Look {
            index,
            range: random_range(index, rng),
            reverse: rng.u32(..3) == 0,
            limit: if rng.u32(..3) == 0 { rng.usize(..12) } else { usize::MAX },
            lock,
            wait: if rng.u32(..3) == 0 { Wait::Skip } else { Wait::random(rng) },
            one_by_one: rng.bool(),
            end: ENDS[rng.usize(..ENDS.len())],
            columns: (rng.u32(..4) == 0).then(|| PROJECTIONS[rng.usize(..PROJECTIONS.len())]),
        }
    }

    /// Whether it passes rows that others have locked.
    pub(super) fn skips(&self) -> bool {
        self.lock != Lock::Plain && self.wait == Wait::Skip
    }

    /// Runs the scan and compares its answer with these rows, of which some may be missing if `may_miss`.
    ///
    /// # Errors
    /// [`Error::Data`] for a wrong answer; the engine's.
    pub(super) fn compare(&self, scan: Scan<'_, '_>, (rows, may_miss): (&Rows, bool), played: &Played) -> Result<()> {
        let found = self.run(scan, played)?;
        if may_miss {
            let end = if matches!(self.end, End::Keys | End::Columns | End::Count) { self.end } else { End::Iter };
            let all = Look { limit: usize::MAX, end, ..self.clone() }.right(rows);
            let text = format!("{self:?}: {found:?} is no part of {all:?}");
            return if found.is_part_of(&all) { Ok(()) } else { Err(Error::Data(text)) };
        }
        let right = self.right(rows);
        let text = match (&found, &right) {
            (Answer::Rows(found), Answer::Rows(right)) => difference(self.index, found, right),
            (Answer::Keys(found), Answer::Keys(right)) => difference(self.index, found, right),
            _ if found == right => None,
            _ => Some(format!("{}: {found:?}, {right:?} is right", self.index)),
        };
        text.map_or(Ok(()), |text| Err(Error::Data(format!("{self:?}: {text}"))))
    }

    fn run(&self, scan: Scan<'_, '_>, played: &Played) -> Result<Answer> {
        let [low, high] = self.bounds();
        let [low, high] = [&low, &high].map(|values| values.iter().map(Value::as_ref).collect::<Vec<ValueRef<'_>>>());
        let scan = call!(played, Scan::index(scan, self.index));
        let scan = match &self.range {
            Range::Prefix(_) => call!(played, Scan::prefix(scan, &low)),
            Range::StartsWith(..) => call!(played, Scan::starts_with(scan, &low)),
            Range::Between(from, to) => {
                let scan = match from {
                    Edge::Open => scan,
                    Edge::Inclusive(_) => call!(played, Scan::from(scan, &low)),
                    Edge::Exclusive(_) => call!(played, Scan::from_exclusive(scan, &low)),
                };
                match to {
                    Edge::Open => scan,
                    Edge::Inclusive(_) => call!(played, Scan::to(scan, &high)),
                    Edge::Exclusive(_) => call!(played, Scan::to_exclusive(scan, &high)),
                }
            }
        };
        let scan = if self.reverse { call!(played, Scan::rev(scan)) } else { scan };
        let scan = if self.limit < usize::MAX { call!(played, Scan::limit(scan, self.limit)) } else { scan };
        let scan = match self.lock {
            Lock::Plain => scan,
            Lock::Share => call!(played, Scan::for_share(scan)),
            Lock::Update => call!(played, Scan::for_update(scan)),
        };
        let scan = match self.columns {
            Some(columns) => call!(played, Scan::columns(scan, columns)),
            None => scan,
        };
        let scan = if self.one_by_one { call!(played, Scan::one_by_one(scan)) } else { scan };
        let scan = match self.wait.policy() {
            _ if self.lock == Lock::Plain => scan,
            LockWait::Default => scan,
            LockWait::Timeout(timeout) => call!(played, Scan::lock_timeout(scan, timeout)),
            LockWait::NoWait => call!(played, Scan::nowait(scan)),
            LockWait::SkipLocked => call!(played, Scan::skip_locked(scan)),
        };
        self.end(scan, played)
    }

    fn content(&self, row: RowRef<'_>) -> Result<(u64, Content)> {
        self.columns.map_or_else(|| content_of(row), |columns| content_of_columns(row, columns))
    }

    fn end(&self, scan: Scan<'_, '_>, played: &Played) -> Result<Answer> {
        let of_row = |row: highwater::Result<Row>| self.content(row?.as_ref());
        match self.end {
            End::Iter => call!(played, Scan::iter(scan))?.map(of_row).collect::<Result<_>>().map(Answer::Rows),
            End::NextRef => {
                let (mut iter, mut rows) = (call!(played, Scan::iter(scan))?, Vec::new());
                while let Some(row) = call!(played, ScanIter::next_ref(&mut iter))? {
                    rows.push(self.content(row)?);
                }
                Ok(Answer::Rows(rows))
            }
            End::Keys => {
                let keys = call!(played, Scan::keys(scan))?.map(|key| content::key(self.index, &key?.to_values()));
                keys.collect::<Result<_>>().map(Answer::Keys)
            }
            End::Columns => {
                let rows = call!(played, Scan::select(scan, &SOME_COLUMNS))?;
                rows.map(|row| content::numbers_of(&row?.to_values())).collect::<Result<_>>().map(Answer::Columns)
            }
            End::Count => Ok(Answer::Count(call!(played, Scan::count(scan))?)),
            End::First => {
                let row = call!(played, Scan::first(scan))?;
                row.iter().map(|row| self.content(row.as_ref())).collect::<Result<_>>().map(Answer::Rows)
            }
            End::Visit(max) => {
                let mut rows = Vec::new();
                let mut look = |row: RowRef<'_>| {
                    rows.push(self.content(row)?);
                    Ok(if rows.len() >= max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                };
                let (mut wrong, is_whole) = (None, max == usize::MAX);
                let shown = match is_whole {
                    true => call!(played, Scan::try_visit(scan, look))?,
                    false => {
                        let mut stop = |error: Error| {
                            wrong = Some(error);
                            ControlFlow::Break(())
                        };
                        call!(played, Scan::visit(scan, |row| look(row).unwrap_or_else(&mut stop)))?
                    }
                };
                match wrong {
                    Some(error) => Err(error),
                    None if shown != rows.len() as u64 => Err(Error::Data(format!("{shown} rows were shown"))),
                    None => Ok(Answer::Rows(rows)),
                }
            }
        }
    }

    /// The values of the lower bound, or of the only one, and of the upper one.
    fn bounds(&self) -> [Vec<Value>; 2] {
        let values = |numbers: &[Option<u64>]| {
            columns_of(self.index).iter().zip(numbers).map(|(column, number)| value_of(column, *number)).collect()
        };
        let of_edge = |edge: &Edge| match edge {
            Edge::Open => Vec::new(),
            Edge::Inclusive(numbers) | Edge::Exclusive(numbers) => values(numbers),
        };
        match &self.range {
            Range::Between(from, to) => [of_edge(from), of_edge(to)],
            Range::Prefix(numbers) => [values(numbers), Vec::new()],
            Range::StartsWith(numbers, bytes) => {
                let mut values = values(numbers);
                if let Some(Value::Text(text)) = values.last_mut() {
                    text.truncate(*bytes);
                }
                [values, Vec::new()]
            }
        }
    }

    fn takes(&self, key: &Key) -> bool {
        let compared = |bound: &[Option<u64>]| compare(self.index, &key[..bound.len()], bound);
        match &self.range {
            Range::Prefix(numbers) => compared(numbers).is_eq(),
            Range::StartsWith(numbers, bytes) => {
                let last = numbers.len() - 1;
                let begins = |number: Option<u64>| number.map(|number| text(number as u32)[..*bytes].to_string());
                key[..last] == numbers[..last] && begins(key[last]) == begins(numbers[last])
            }
            Range::Between(from, to) => {
                let is_above = match from {
                    Edge::Open => true,
                    Edge::Inclusive(numbers) => compared(numbers).is_ge(),
                    Edge::Exclusive(numbers) => compared(numbers).is_gt(),
                };
                is_above
                    && match to {
                        Edge::Open => true,
                        Edge::Inclusive(numbers) => compared(numbers).is_le(),
                        Edge::Exclusive(numbers) => compared(numbers).is_lt(),
                    }
            }
        }
    }

    fn right_content(&self, content: Content) -> Content {
        self.columns.map_or(content, |columns| content.only(columns))
    }

    fn right(&self, rows: &Rows) -> Answer {
        let keyed = rows.iter().map(|(id, content)| (key_of(self.index, *id, content), *id, *content));
        let mut taken: Vec<(Key, u64, Content)> = keyed.filter(|(key, _, _)| self.takes(key)).collect();
        taken.sort_unstable_by(|a, b| compare(self.index, &a.0, &b.0).then(a.1.cmp(&b.1)));
        if self.reverse {
            taken.reverse();
        }
        let max = match self.end {
            End::First => 1,
            End::Visit(max) => max,
            _ => usize::MAX,
        };
        taken.truncate(self.limit.min(max));
        match self.end {
            End::Count => Answer::Count(taken.len() as u64),
            End::Columns => Answer::Columns(taken.iter().map(|(_, id, row)| content::numbers(*id, row)).collect()),
            End::Keys => Answer::Keys(taken.into_iter().map(|(key, id, _)| (key, id)).collect()),
            _ => Answer::Rows(taken.into_iter().map(|(_, id, content)| (id, self.right_content(content))).collect()),
        }
    }
}

/// A random index that a table may get.
pub(super) fn random_index(rng: &mut Choices) -> content::KnownIndex {
    INDEXES[rng.usize(..INDEXES.len())]
}
