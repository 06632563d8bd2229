//! CSV files and JSON lines of any bytes, imported, exported and imported again: the rows stay the same, and fields of
//! CSV files whose type was inferred are exported as they were.

#![no_main]

/// In place of the command line's macro, which writes to standard error.
macro_rules! tell {
    ($($what:tt)*) => {{
        let _ = format_args!($($what)*);
    }};
}

#[path = "../../crates/cli/src/csv_field.rs"]
#[allow(dead_code)]
mod csv_field;
#[path = "../../crates/cli/src/export.rs"]
#[allow(dead_code)]
mod export;
#[path = "../../crates/cli/src/import/mod.rs"]
#[allow(dead_code)]
mod import;
#[path = "../../crates/cli/src/source.rs"]
#[allow(dead_code)]
mod source;

use export::ExportArgs;
use highwater::internals::{DeterministicDb, OpenOverrides};
use highwater::{Database, Options, Schema, Type};
use highwater_fuzz::input::Input;
use highwater_storage::StorageSet;
use import::{CsvError, Format, ImportArgs, OnError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What stands for the command line's outputs: here they are files.
mod output {
    /// What a write has given.
    ///
    /// # Errors
    /// That of the write.
    pub fn while_read<T>(written: std::io::Result<T>) -> std::io::Result<Option<T>> {
        written.map(Some)
    }
}

/// What stands for the options of a database on the command line: here it is open already.
mod engine_options {
    use highwater::{Database, Error, Options};
    use std::path::Path;

    /// No options.
    #[derive(Clone, Debug, Default)]
    pub struct EngineOptions;

    impl EngineOptions {
        /// Opens a database.
        pub fn open(&self, dir: &Path, _defaults: &[(&str, &str)], _create: bool) -> Result<Database, Error> {
            Database::open(dir, Options::default())
        }

        /// Opens one to read it.
        pub fn open_read_only(&self, dir: &Path) -> Result<Database, Error> {
            Database::open_read_only(dir, Options::default())
        }
    }
}

/// What stands for progress on a terminal: nothing is shown.
mod progress {
    /// Shows nothing.
    pub struct Progress;

    impl Progress {
        /// Begins.
        pub fn new(_what: &'static str, _total: u64) -> Progress {
            Progress
        }

        /// Continues.
        pub fn at(&mut self, _position: u64, _count: u64) {}

        /// Says something.
        pub fn line(&self, _text: &str) {}
    }
}

struct State {
    folder: tempfile::TempDir,
    db: DeterministicDb,
}

static STATE: OnceLock<State> = OnceLock::new();

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    let state = STATE.get_or_init(|| {
        let options = Options { buffer_pool_size: 4 << 20, log_file_size: 4 << 20, ..Options::default() };
        let db = DeterministicDb::open(StorageSet::memory(), options, &OpenOverrides::default(), Arc::default());
        let db = db.expect("a database in memory opens");
        State { folder: highwater_fuzz::folder(), db }
    });
    let db = state.db.database();
    let mut input = Input::new(data);
    let args = arguments(&mut input, state.folder.path());
    std::fs::write(&args.file, input.rest()).expect("a file in memory is written");
    match import(&args, db) {
        Ok(imported) => imported_well(&args, db, imported),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    for name in ["t", "again"] {
        if db.table(name).is_ok() {
            db.drop_table(name).expect("a table is dropped");
        }
    }
});

fn import(args: &ImportArgs, db: &Database) -> Result<import::Imported, CsvError> {
    let header = import::read_header(args)?;
    import::import(args, db, &header)
}

fn arguments(input: &mut Input<'_>, folder: &Path) -> ImportArgs {
    const TYPES: [&str; 20] = [
        "i8",
        "u16?",
        "i32",
        "u64?",
        "f32",
        "f64?",
        "decimal(10,2)",
        "decimal(38,10)?",
        "text(20)",
        "text(70000)?",
        "binary(20)",
        "binary(70000)?",
        "datetime",
        "datetime?",
        "i64?",
        "text(5)?",
        "bool",
        "date?",
        "time",
        "uuid?",
    ];
    let how = input.byte();
    let header = how & 1 != 0;
    let given = if how & 2 != 0 { input.below(4) } else { 0 };
    let columns = (1..=given).map(|n| format!("c{n}:{}", input.one_of(&TYPES))).collect();
    let index = |bit: u8, column: &str| if how & bit != 0 { vec![format!("by={column}")] } else { Vec::new() };
    ImportArgs {
        dir: PathBuf::new(),
        table: "t".into(),
        file: folder.join("x.csv"),
        name: None,
        format: Some(if how & 64 != 0 { Format::Jsonl } else { Format::Csv }),
        columns,
        collations: Vec::new(),
        long_keys: false,
        primary_key: (how & 4 != 0).then(|| "c1".to_string()),
        indexes: index(8, "c2"),
        unique: index(16, "c2"),
        header,
        delimiter: Some(*input.one_of(b",;\t|")),
        null: input.one_of(&["", "\\N", "NULL", "\\"]).to_string(),
        commit_every: Some(input.byte()).filter(|how| how & 8 == 0).map(|how| u64::from(how % 4)),
        on_error: if how & 32 != 0 { OnError::Skip } else { OnError::Stop },
        engine: engine_options::EngineOptions,
    }
}

fn delimiter_of(args: &ImportArgs) -> u8 {
    args.delimiter.expect("it is given")
}

fn exported(args: &ImportArgs, table: &str, db: &Database) -> (Vec<u8>, u64) {
    let ImportArgs { header, null, .. } = args.clone();
    let delimiter = delimiter_of(args);
    let (table, engine) = (table.to_string(), engine_options::EngineOptions);
    let how = ExportArgs { dir: PathBuf::new(), table, file: None, header, delimiter, null, engine };
    let (mut out, mut rows) = (Vec::new(), 0);
    let source = source::Source::Own(db.clone());
    export::write_rows(&how, &source, &mut out, &mut rows).expect("a table is exported");
    (out, rows)
}

fn imported_well(args: &ImportArgs, db: &Database, imported: import::Imported) {
    let (text, rows) = exported(args, "t", db);
    assert_eq!(rows, imported.rows, "rows imported and exported");
    let table = db.table("t").expect("it was imported");
    let is_csv = args.format == Some(Format::Csv);
    if is_csv && args.columns.is_empty() && args.primary_key.is_none() && imported.skipped == 0 {
        let original = std::fs::read(&args.file).expect("it was written");
        let types: Vec<Type> = table.columns().iter().map(|column| column.ty).collect();
        same_fields(args, &original, &text, &types);
    }
    let definition = table.definition();
    let mut schema = Schema::new();
    for column in &definition.columns {
        schema = match column.nullable {
            true => schema.nullable(&column.name, column.ty),
            false => schema.column(&column.name, column.ty),
        };
    }
    let keys: Vec<&str> = definition.primary_key.iter().map(|key| &definition.columns[key.column].name[..]).collect();
    db.create_table("again", schema.primary_key(&keys)).expect("the same table once more");
    std::fs::write(&args.file, &text).expect("a file in memory is written");
    let again = ImportArgs {
        table: "again".into(),
        format: Some(Format::Csv),
        columns: Vec::new(),
        primary_key: None,
        indexes: Vec::new(),
        unique: Vec::new(),
        on_error: OnError::Stop,
        ..args.clone()
    };
    if rows > 0 || args.header {
        let imported = import(&again, db).expect("what was exported is imported");
        assert_eq!(imported.rows, rows);
    }
    assert!(exported(args, "again", db).0 == text, "exported again");
}

/// Fields of the file are fields of the export, after its first column. Decimals, floats and times may be written in
/// another form.
fn same_fields(args: &ImportArgs, original: &[u8], text: &[u8], types: &[Type]) {
    let records = |bytes: &[u8]| -> Vec<csv::ByteRecord> {
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(args.header).flexible(true).delimiter(delimiter_of(args));
        builder.from_reader(bytes).into_byte_records().map(|record| record.expect("it was read before")).collect()
    };
    let (before, after) = (records(original), records(text));
    assert_eq!(before.len(), after.len(), "records");
    for (before, after) in before.iter().zip(&after) {
        for ((field, found), ty) in before.iter().zip(after.iter().skip(1)).zip(&types[1..]) {
            let is_exact = matches!(ty, Type::Text(_)) || (!field.is_empty() && matches!(ty, Type::I64 | Type::U64));
            assert!(!is_exact || field == found, "{:?} is exported as {:?}", field, found);
        }
    }
}
