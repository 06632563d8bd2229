//! Damage of one page of a database at rest, compared with the declared table.

use super::declared::{Loss, PageKind, declared};
use super::whole::{INDEXES, TABLES, Whole, data, place_of, reads_right};
use highwater::{Database, PageNo, salvage};
use highwater_bench::Result;
use highwater_storage::StorageSet;

/// Offset of the flipped byte from the start of a page, or of its image out of place.
const FLIPPED_AT: usize = 77;

/// Flips a byte of a page of this kind, opens the database and reads everything; returns the differences from the
/// declared table.
///
/// # Errors
/// The engine's, of the files as they are.
pub fn costs_what_is_declared(whole: &Whole, kind: PageKind, page: PageNo) -> Result<Vec<String>> {
    let storage = whole.storage.cut(0);
    let Some(place) = place_of(data(&storage)?, page)? else { return Ok(vec![format!("page {page} lies nowhere")]) };
    data(&storage)?.damage(|bytes| bytes[place.start + FLIPPED_AT.min(place.len() - 1)] ^= 4);
    let row = declared(kind);
    let wrong = match Database::open_storage_idle(storage.clone(), whole.options.clone()) {
        Ok(_) if !row.opens() => vec!["it opens".to_string()],
        Ok(db) => reads(whole, &db, row.loss)?,
        Err(error) if row.opens() => vec![format!("it does not open: {error}")],
        // Where the pages are is not known.
        Err(_) if kind == PageKind::FileHeader && whole.is_out_of_place() => Vec::new(),
        Err(_) => salvaged(whole, &storage)?,
    };
    Ok(wrong.into_iter().map(|what| format!("page {page}, {}: {what}", row.page)).collect())
}

/// The unexpected results of reads, a check and a repair.
fn reads(whole: &Whole, db: &Database, loss: Loss) -> Result<Vec<String>> {
    let (mut wrong, mut hurt) = (Vec::new(), Vec::new());
    for (table, model) in TABLES.iter().zip(&whole.models) {
        for index in INDEXES {
            match reads_right(db, table, index, model) {
                Ok(true) => {}
                Ok(false) => wrong.push(format!("{table}.{index} reads wrong rows")),
                Err(_) if loss == Loss::Rows || loss == Loss::Indexes && index != INDEXES[0] => hurt.push(*table),
                Err(error) => wrong.push(format!("{table}.{index}: {error}")),
            }
        }
    }
    hurt.dedup();
    if loss == Loss::Rows && hurt.len() > 1 {
        wrong.push("it costs rows of both tables".to_string());
    }
    if db.check()?.is_sound() {
        wrong.push("the check finds nothing".to_string());
    }
    if loss == Loss::Indexes {
        let repaired = db.repair_indexes(&mut |_, _| {})?;
        if !repaired.left.is_sound() {
            wrong.push(format!("after a repair: {:?}, refused: {:?}", repaired.left.findings, repaired.refused));
        }
        wrong.extend(TABLES.iter().zip(&whole.models).flat_map(|(table, model)| {
            let is_right = |index: &&str| reads_right(db, table, index, model).is_ok_and(|is_right| is_right);
            INDEXES
                .into_iter()
                .filter(move |index| !is_right(index))
                .map(move |index| format!("repaired {table}.{index}"))
        }));
    }
    Ok(wrong)
}

/// The rows that a salvage of a database that does not open should have and lacks.
fn salvaged(whole: &Whole, storage: &StorageSet) -> Result<Vec<String>> {
    let into = Database::open_storage(StorageSet::memory(), whole.options.clone())?;
    salvage(data(storage)?, &into, &mut |_, _| {})?;
    let lacks = |(table, model)| !reads_right(&into, table, INDEXES[0], model).is_ok_and(|is_right| is_right);
    let tables = TABLES.iter().zip(&whole.models).filter(|(table, model)| lacks((*table, *model)));
    Ok(tables.map(|(table, _)| format!("a salvage lacks rows of {table}")).collect())
}
