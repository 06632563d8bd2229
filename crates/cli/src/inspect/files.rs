//! The database as a whole: file header, tables, extents.

use super::{View, columns};
use crate::at_rest::AtRest;
use crate::failure::Failure;
use highwater::inspect::{ListLengths, LogInfo, RawFile, RawTable, RawTree};
use highwater::{Database, Options};
use highwater_storage::{Device, SetFile};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// Opens the data file to read it.
///
/// # Errors
/// It cannot be opened.
pub(super) fn data_file(files: &AtRest) -> Result<Arc<dyn Device>, Failure> {
    files.open(SetFile::Data).map_err(|error| Failure::Usage(error.to_string()))
}

/// Looks at a data file.
///
/// # Errors
/// [`Failure::Usage`] if it is not one of ours.
pub(super) fn raw_file(data: &dyn Device) -> Result<RawFile<'_>, Failure> {
    RawFile::open(data).map_err(|error| match error {
        highwater::Error::Incompatible(reason) => Failure::Usage(reason),
        error => error.into(),
    })
}

/// The summary.
///
/// # Errors
/// There is no database, or its page size cannot be found out.
pub(super) fn summary(files: &AtRest) -> Result<View, Failure> {
    let data = data_file(files)?;
    let file = raw_file(&*data)?;
    let log = super::log::read(files);
    let (mut text, header) = (String::new(), header_json(&file));
    let mut rows = vec![vec![
        "data file".to_string(),
        format!("{} bytes, {} pages of {} bytes", file.len_bytes(), file.page_count(), file.page_bytes()),
    ]];
    match file.header() {
        Ok(header) => rows.push(vec!["database id".to_string(), format!("{:016x}", header.database_id)]),
        Err(reason) => rows.push(vec!["file header".to_string(), reason.clone()]),
    }
    rows.push(vec!["page store".to_string(), super::segments::summary(&file)]);
    let extents = file.extent_use();
    rows.push(vec!["extents".to_string(), format!("{}, {} of them free", extents.extents, extents.free_extents)]);
    rows.extend(log_rows(&log));
    let (flush_rows, flush) = super::flush::view(&file);
    rows.extend(flush_rows);
    let width = rows.iter().map(|row| row[0].len()).max().unwrap_or(0);
    for row in rows {
        let _ = writeln!(text, "{:<width$}  {}", row[0], row[1]);
    }
    let tables = tables_of(&file);
    text.push('\n');
    text.push_str(&tables.text);
    let groups = log.as_ref().ok().and_then(|log| log.scan.as_ref()).map_or(0, |scan| scan.groups);
    let damage = log.as_ref().ok().and_then(|log| super::log::damage(log, files));
    if groups > 0 {
        let _ = writeln!(
            text,
            "the database was not closed: up to {groups} changes are only in the redo log and are not shown"
        );
    }
    if let Some(damage) = &damage {
        let _ = writeln!(text, "{damage}");
    }
    let problem = file.header().as_ref().err().cloned().or(damage).or(tables.problem);
    let json = json!({
        "dir": files.dir().display().to_string(),
        "data": header,
        "log": log.as_ref().map_or_else(|reason| json!({ "problem": reason }), super::log::summary_json),
        "flush": flush,
        "tables": tables.json,
    });
    Ok(View { text, json, problem })
}

fn header_json(file: &RawFile<'_>) -> Value {
    let extents = file.extent_use();
    json!({
        "bytes": file.len_bytes(),
        "pages": file.page_count(),
        "page_bytes": file.page_bytes(),
        "database_id": file.header().as_ref().ok().map(|header| format!("{:016x}", header.database_id)),
        "problem": file.header().as_ref().err(),
        "page_store": super::segments::summary_json(file),
        "extents": extents.extents,
        "free_extents": extents.free_extents,
    })
}

fn log_rows(log: &Result<LogInfo, String>) -> Vec<Vec<String>> {
    let row = |name: &str, text: String| vec![name.to_string(), text];
    let log = match log {
        Ok(log) => log,
        Err(reason) => return vec![row("redo log", reason.clone())],
    };
    let Some(scan) = &log.scan else { return vec![row("redo log", "no usable header".to_string())] };
    let bytes = scan.end_lsn.0 - scan.checkpoint_lsn.0;
    vec![
        row("redo log", format!("a ring of {} bytes", log.ring_bytes)),
        row("checkpoint LSN", scan.checkpoint_lsn.to_string()),
        row("log end LSN", format!("{} ({bytes} bytes, {} groups since the checkpoint)", scan.end_lsn, scan.groups)),
    ]
}

/// The tables.
///
/// # Errors
/// There is no database, or its page size cannot be found out.
pub(super) fn tables(files: &AtRest) -> Result<View, Failure> {
    let data = data_file(files)?;
    let file = raw_file(&*data)?;
    let mut view = tables_of(&file);
    for table in file.tables() {
        let _ = write!(view.text, "\n{}", columns_of(table));
    }
    Ok(view)
}

fn columns_of(table: &RawTable) -> String {
    let definition = &table.definition;
    let mut rows = vec![vec![format!("table {}", definition.name), "type".to_string(), String::new()]];
    for (i, column) in definition.columns.iter().enumerate() {
        let null = if column.nullable { "NULL" } else { "" };
        let auto = if definition.auto_increment == Some(i) { "auto-increment" } else { "" };
        rows.push(vec![format!("  {}", column.name), column.ty.to_string(), format!("{null}{auto}")]);
    }
    columns(&rows)
}

fn tables_of(file: &RawFile<'_>) -> View {
    let head = ["table, index", "root", "levels", "pages", "fill %", "records ~", "columns"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    let extents = file.extent_use();
    let pages_of = |segment: u32| extents.segments.get(&segment).map_or(0, |segment| segment.pages_used);
    let (mut all, mut notes) = (Vec::new(), String::new());
    for table in file.tables() {
        rows.push(vec![table.definition.name.clone()]);
        let mut trees = Vec::new();
        for tree in &table.trees {
            let (row, json) = tree_of(file, table, tree, pages_of(tree.segment));
            rows.push(row);
            if let Some(problem) = json["problem"].as_str() {
                let _ = writeln!(notes, "{}, {}: {problem}", table.definition.name, tree.name);
            }
            trees.push(json);
        }
        let overflow = pages_of(table.overflow_segment);
        if overflow > 0 {
            let dash = || "-".to_string();
            rows.push(vec!["  overflow pages".to_string(), dash(), dash(), overflow.to_string()]);
        }
        all.push(table_json(table, trees, overflow));
    }
    let mut text = columns(&rows);
    if file.tables().is_empty() {
        text = "no tables\n".to_string();
    }
    text.push_str(&notes);
    let problem = file.catalog_problem().map(|reason| format!("the catalog cannot be read: {reason}"));
    if let Some(problem) = &problem {
        let _ = writeln!(text, "{problem}");
    }
    View { text, json: Value::Array(all), problem }
}

fn table_json(table: &RawTable, trees: Vec<Value>, overflow_pages: u64) -> Value {
    let definition = &table.definition;
    let column = |(i, column): (usize, &highwater::Column)| {
        json!({
            "name": column.name,
            "type": column.ty.to_string(),
            "nullable": column.nullable,
            "collation": column.collation,
            "auto_increment": definition.auto_increment == Some(i),
        })
    };
    json!({
        "name": definition.name,
        "number": table.id,
        "columns": definition.columns.iter().enumerate().map(column).collect::<Vec<_>>(),
        "auto_increment_bound": definition.auto_increment.map(|_| table.auto_increment_bound),
        "overflow_pages": overflow_pages,
        "indexes": trees,
    })
}

fn tree_of(file: &RawFile<'_>, table: &RawTable, tree: &RawTree, pages: u64) -> (Vec<String>, Value) {
    let size = file.tree_size(tree, pages);
    let columns = &table.definition.columns;
    let names: Vec<String> = tree.key.parts().iter().map(|part| columns[part.column].name.clone()).collect();
    let shown: Vec<String> = tree.key.parts().iter().map(|part| show_part(&columns[part.column].name, part)).collect();
    let covered: Vec<String> = tree.covered.columns().map(|column| columns[column].name.clone()).collect();
    let covers = if covered.is_empty() { String::new() } else { format!(" covering ({})", covered.join(", ")) };
    let unknown = || "?".to_string();
    let (levels, fill, records) = match &size {
        Ok(size) => (size.levels.to_string(), size.fill_percent.to_string(), size.records_estimate.to_string()),
        Err(_) => (unknown(), unknown(), unknown()),
    };
    let problem = size.as_ref().err().map(ToString::to_string);
    let unique = if tree.unique { " unique" } else { "" };
    let columns = format!("({}){unique}{covers}", shown.join(", "));
    let row =
        vec![format!("  {}", tree.name), tree.root.to_string(), levels, pages.to_string(), fill, records, columns];
    let size = size.as_ref().ok();
    let json = json!({
        "name": tree.name,
        "number": tree.id,
        "segment": tree.segment,
        "root_page": tree.root.0,
        "unique": tree.unique,
        "columns": names,
        "as_declared": shown,
        "covers": covered,
        "max_key_bytes": tree.max_key_bytes,
        "pages": pages,
        "levels": size.map(|size| size.levels),
        "fill_percent": size.map(|size| size.fill_percent),
        "records_estimate": size.map(|size| size.records_estimate),
        "problem": problem,
    });
    (row, json)
}

/// A column of a key, as it is declared: `body(40) de_ci desc`.
fn show_part(name: &str, part: &highwater::inspect::KeyPart) -> String {
    let prefix = part.prefix_bytes.map_or(String::new(), |bytes| format!("({bytes})"));
    let collation = part.collation.as_ref().map_or(String::new(), |collation| format!(" {}", collation.name()));
    let direction = if part.descending { " desc" } else { "" };
    format!("{name}{prefix}{collation}{direction}")
}

/// Extents by segment; and, if the database opens, the pool's lists.
///
/// # Errors
/// There is no database, or its page size cannot be found out.
pub(super) fn lists(files: &AtRest, options: Options) -> Result<View, Failure> {
    let on_disk = data_file(files)?;
    let opened = Database::open_read_only(files.dir(), options);
    let opened = match opened.map_err(Failure::from) {
        Err(wrong_use @ Failure::Usage(_)) => return Err(wrong_use),
        opened => opened,
    };
    // As recovery leaves it, in memory, so that the maps are those of now.
    let recovered = opened.as_ref().ok().map(|db| db.storage().data.clone());
    let file = raw_file(recovered.as_deref().unwrap_or(&*on_disk))?;
    let extents = file.extent_use();
    let mut rows =
        vec![["segment", "pages used", "pages free", "extents", "fragments", ""].map(str::to_string).to_vec()];
    let mut segments = Vec::new();
    for (number, segment) in &extents.segments {
        let owner = file.segment_name(*number).unwrap_or_else(|| "unknown".to_string());
        let counts = [segment.pages_used, segment.pages_free, segment.extents, segment.fragments];
        let mut row = vec![format!("{number} {owner}")];
        row.extend(counts.map(|count| count.to_string()));
        rows.push(row);
        segments.push(json!({
            "segment": number, "owner": owner, "pages_used": counts[0], "pages_free": counts[1],
            "extents": counts[2], "fragments": counts[3],
        }));
    }
    let mut text = format!(
        "{} extents of 64 pages: {} free, {} shared by fragments of 8 pages ({} fragments free)\n\n{}",
        extents.extents,
        extents.free_extents,
        extents.shared_extents,
        extents.free_fragments,
        columns(&rows)
    );
    let (pool_text, pool, problem) = pool_lists(opened);
    let _ = write!(text, "\n{pool_text}");
    let json = json!({
        "extents": extents.extents,
        "free_extents": extents.free_extents,
        "shared_extents": extents.shared_extents,
        "free_fragments": extents.free_fragments,
        "segments": segments,
        "pool": pool,
    });
    Ok(View { text, json, problem })
}

fn pool_lists(opened: Result<Database, Failure>) -> (String, Value, Option<String>) {
    let db = match opened {
        Ok(db) => db,
        Err(error) => {
            let problem = format!("the database cannot be opened: {error}");
            return (format!("{problem}\n"), Value::Null, Some(problem));
        }
    };
    let ListLengths { frames, free, lru, dirty, history } = db.list_lengths();
    let text = format!(
        "buffer pool after opening: {frames} frames; free list {free}, LRU list {lru}, flush list {dirty}\n\
         history list: {history} transactions to purge\n"
    );
    let json = json!({
        "frames": frames, "free_list": free, "lru_list": lru, "flush_list": dirty, "history_list_transactions": history,
    });
    (text, json, db.close().err().map(|error| error.to_string()))
}
