//! The choice of the next statement on a table.

use super::choices::Choices;
use super::content::{A, B, BODY, C, Content, NOTE, Rows as Contents};
use super::scan::{FIRST_TEXT_VALUES, IDS, SOME};
use super::writes::Statement;
use highwater::LockMode;

/// Number of rows from which statements delete more rows than they insert.
const MANY: usize = 360;

/// Columns that an update sets.
pub(super) const SETS: [&[usize]; 8] =
    [&[A, B, C, BODY, NOTE], &[A, B, C, BODY], &[A], &[B], &[C], &[BODY], &[NOTE], &[A, BODY, NOTE]];

pub(super) fn random_content(rng: &mut Choices) -> Content {
    let body_bytes = if rng.u32(..12) == 0 { rng.u32(1000..9000) } else { rng.u32(..60) };
    // Rows with two long columns are as frequent as rows with one.
    let note_bytes = if rng.u32(..24) < if body_bytes > 60 { 12 } else { 1 } { rng.u32(300..5000) } else { 0 };
    let note = Content::with_body(note_bytes, rng);
    Content {
        note_bytes,
        note_letter: note.letter,
        a: rng.u32(..FIRST_TEXT_VALUES),
        b: rng.u32(..),
        c: rng.bool().then(|| rng.u32(..SOME)),
        ..Content::with_body(body_bytes, rng)
    }
}

/// The id of the first row from a random id on; that id if there is no such row.
fn id_of_row(rows: &Contents, rng: &mut Choices) -> u64 {
    let id = if rng.u32(..4) == 0 { IDS } else { rng.u64(..IDS) };
    rows.range(id..).next().map_or(id, |(id, _)| *id)
}

impl Statement {
    /// A random statement on a table with these rows.
    pub(super) fn random(rows: &Contents, rng: &mut Choices) -> Statement {
        let statement = Statement::random_typed(rows, rng);
        match statement.has_raw_call() && rng.u32(..4) == 0 {
            true => Statement::Raw(Box::new(statement)),
            false => statement,
        }
    }

    fn random_typed(rows: &Contents, rng: &mut Choices) -> Statement {
        if rows.len() > MANY && rng.bool() {
            return Statement::Delete(id_of_row(rows, rng));
        }
        match rng.u32(..32) {
            0..=6 => Statement::put(rows, rng.u64(..IDS), random_content(rng)),
            7 => {
                let lock = [LockMode::None, LockMode::Shared, LockMode::Exclusive][rng.usize(..3)];
                Statement::InsertOrGet(rng.u64(..IDS), random_content(rng), lock)
            }
            8..=9 => Statement::Upsert(rng.u64(..IDS), random_content(rng), SETS[rng.usize(..SETS.len())]),
            10 => Statement::Replace(rng.u64(..IDS), random_content(rng)),
            11..=13 => Statement::Insert(Some(rng.u64(..IDS)), random_content(rng)),
            14 => Statement::Insert(None, random_content(rng)),
            15 => {
                let (first, count, is_long) = (rng.u64(..IDS), rng.u64(1..12), rng.u32(..4) == 0);
                let content = |rng: &mut Choices| match is_long {
                    true => {
                        Content { a: rng.u32(..FIRST_TEXT_VALUES), b: rng.u32(..), ..Content::with_body(9000, rng) }
                    }
                    false => random_content(rng),
                };
                Statement::InsertMany((first..first + count).map(|id| (id, content(rng))).collect())
            }
            16 => {
                let rows = (0..rng.u32(1..7)).map(|_| (rng.bool().then(|| rng.u64(..IDS)), random_content(rng)));
                let mut rows: Vec<_> = rows.collect();
                // So that no id that the table gives is asked for afterwards.
                rows.sort_by_key(|(id, _)| id.is_none());
                Statement::InsertManyWith(rows)
            }
            17 => {
                let first = rng.u64(..IDS);
                Statement::DeleteRange(first, first + rng.u64(..20), rng.bool())
            }
            18..=19 => Statement::Delete(rng.u64(..IDS)),
            20..=23 => Statement::Delete(id_of_row(rows, rng)),
            24..=26 => Statement::Update(id_of_row(rows, rng), random_content(rng), SETS[rng.usize(..SETS.len())]),
            27 => Statement::Update(rng.u64(..IDS), random_content(rng), SETS[0]),
            28..=30 => Statement::Modify(id_of_row(rows, rng)),
            _ => Statement::Move(id_of_row(rows, rng), rng.u64(..IDS)),
        }
    }
}
