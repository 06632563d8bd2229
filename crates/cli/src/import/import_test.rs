//! Files into tables and back; bad lines are named; nothing is half imported.

use super::file::each_line;
use super::*;
use crate::export::{self, ExportArgs};
use highwater::{Type, ValueRef, values};
use std::fs;
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    /// The arguments to import these bytes, each time from a file of its own.
    fn import(&self, csv: &[u8]) -> ImportArgs {
        let number = fs::read_dir(self.0.path()).unwrap().count();
        let file = self.0.path().join(format!("in{number}.csv"));
        fs::write(&file, csv).unwrap();
        ImportArgs {
            dir: self.0.path().join("db"),
            table: "t".to_string(),
            file,
            name: None,
            format: None,
            columns: Vec::new(),
            collations: Vec::new(),
            long_keys: false,
            primary_key: None,
            indexes: Vec::new(),
            unique: Vec::new(),
            header: true,
            delimiter: None,
            null: "\\N".to_string(),
            commit_every: Some(2),
            on_error: OnError::Stop,
            engine: EngineOptions::with(&[("log_file_size", "8M"), ("buffer_pool_size", "4M")]),
        }
    }

    fn export(&self) -> String {
        let file = self.0.path().join("out.csv");
        let args = self.import(b"x");
        let args = ExportArgs {
            dir: args.dir,
            table: args.table,
            file: Some(file.clone()),
            header: true,
            delimiter: b',',
            null: args.null,
            engine: args.engine,
        };
        export::run(&args).unwrap();
        assert!(!file.with_extension("csv.part").exists());
        fs::read_to_string(file).unwrap()
    }

    fn db(&self) -> Database {
        let args = self.import(b"x");
        args.engine.open(&args.dir, &[], true).unwrap()
    }
}

fn types(table: &Table) -> Vec<String> {
    table.columns().iter().map(|c| format!("{}:{}{}", c.name, c.ty, if c.nullable { "?" } else { "" })).collect()
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

#[test]
fn types_are_guessed_and_rows_come_back() {
    let place = Place::new();
    let csv = "id,name,price,seen,note\r\n1,Ada,1.50,2026-01-31T12:00:00,\r\n\
        2,\"Bob, the \"\"second\"\"\",2.25,,\\N\r\n3,\"two\nlines\",,2026-02-01T00:00:00,\\\\N\r\n";
    let args = ImportArgs {
        primary_key: Some("id".to_string()),
        indexes: strings(&["by_name=name,id"]),
        ..place.import(csv.as_bytes())
    };
    assert_eq!(run(&args).unwrap(), Imported { table: "t".to_string(), rows: 3, skipped: 0 });
    {
        let db = place.db();
        let table = db.table("t").unwrap();
        assert_eq!(
            types(&table),
            ["id:i64", "name:text(64)", "price:decimal(18,2)?", "seen:datetime?", "note:text(16)?"]
        );
        let mut read = db.snapshot().unwrap();
        let names: Vec<String> =
            read.scan(&table).index("by_name").iter().unwrap().map(|row| row.unwrap().str(1).to_string()).collect();
        assert_eq!(names, ["Ada", "Bob, the \"second\"", "two\nlines"]);
        let row = read.get(&table, &[3.into()]).unwrap().unwrap();
        assert!(row.is_null(2));
        assert_eq!(row.str(4), "\\N");
    }
    let out = place.export();
    assert_eq!(out, csv.replace(",,2026", ",\\N,2026").replace("2.25,,", "2.25,\\N,"));
}

#[test]
fn export_and_import_round_trip_every_type() {
    let place = Place::new();
    let csv = concat!(
        "a,b,c,d,e,f,g\r\n",
        "-128,18446744073709551615,0.1,-1.50,\"\",\\x00ff,1969-12-31T23:59:59.999999\r\n",
        "127,0,\\N,\\N,\\N,\\N,\\N\r\n"
    );
    let columns = strings(&["a:i8", "b:u64", "c:f64?", "d:decimal(5,2)?", "e:text(9)?", "f:binary(9)?", "g:datetime?"]);
    let args = ImportArgs { columns, primary_key: Some("a".to_string()), ..place.import(csv.as_bytes()) };
    run(&args).unwrap();
    assert_eq!(place.export(), csv.replace("\"\"", ""));
}

#[test]
fn without_a_primary_key_rows_are_numbered() {
    let place = Place::new();
    let args = ImportArgs { header: false, ..place.import(b"x,1\ny,2\n") };
    run(&args).unwrap();
    assert_eq!(place.export(), "row_id,c1,c2\r\n1,x,1\r\n2,y,2\r\n");
    // Into the table that is there now, by name and in another order.
    run(&place.import(b"c2,c1\n3,z\n")).unwrap();
    assert!(place.export().ends_with("3,z,3\r\n"));
}

#[test]
fn a_bad_line_stops_everything_and_is_named() {
    let place = Place::new();
    let args = ImportArgs {
        columns: strings(&["n:u8"]),
        primary_key: Some("n".to_string()),
        ..place.import(b"n,name\n1,a\n2,b\n300,c\n4\n")
    };
    let error = run(&args).unwrap_err().to_string();
    assert!(error.contains("2 bad lines") && error.contains("nothing was imported"), "{error}");
    assert!(place.db().tables().is_empty());
    let skipping = ImportArgs { on_error: OnError::Skip, ..args };
    assert_eq!(run(&skipping).unwrap(), Imported { table: "t".to_string(), rows: 2, skipped: 2 });
}

#[test]
fn a_duplicate_key_leaves_no_new_table_and_tells_what_an_old_one_kept() {
    let place = Place::new();
    let key = Some("n".to_string());
    let args = ImportArgs { primary_key: key.clone(), ..place.import(b"n,x\n1,a\n2,b\n3,c\n1,d\n") };
    let error = run(&args).unwrap_err().to_string();
    assert!(error.starts_with("line 5: duplicate key") && error.ends_with("nothing was imported"), "{error}");
    assert!(place.db().tables().is_empty());

    run(&ImportArgs { primary_key: key, ..place.import(b"n,x\n1,a\n") }).unwrap();
    let error = run(&place.import(b"n,x\n2,b\n3,c\n4,d\n1,e\n")).unwrap_err().to_string();
    assert!(error.ends_with("the 2 rows up to line 3 were imported"), "{error}");
    assert_eq!(place.export(), "n,x\r\n1,a\r\n2,b\r\n3,c\r\n");
    let whole = ImportArgs { commit_every: Some(0), ..place.import(b"n,x\n4,d\n1,e\n") };
    assert!(run(&whole).unwrap_err().to_string().ends_with("nothing was imported"));
    let skipping = ImportArgs { on_error: OnError::Skip, ..place.import(b"n,x\n4,d\n1,e\n5,f\n") };
    assert_eq!(run(&skipping).unwrap(), Imported { table: "t".to_string(), rows: 2, skipped: 1 });
}

#[test]
fn a_bad_line_among_many_is_the_only_one_that_is_missing() {
    const LINES: u64 = 40_000;
    let place = Place::new();
    run(&ImportArgs { primary_key: Some("n".to_string()), ..place.import(b"n,x\n0,a\n") }).unwrap();
    // A duplicate of the first row, one of a row of this file, and a line that is too long.
    let line = |n: u64| match n {
        9_000 => "0,again\n".to_string(),
        21_000 => "20999,again\n".to_string(),
        33_000 => "33000,a,b\n".to_string(),
        n => format!("{n},{n:015}\n"),
    };
    let csv = ["n,x\n".to_string()].into_iter().chain((1..=LINES).map(line)).collect::<String>();

    let stopped = ImportArgs { commit_every: Some(4_000), ..place.import(csv.as_bytes()) };
    let error = run(&stopped).unwrap_err().to_string();
    assert!(error.contains("bad lines") && error.contains("nothing was imported"), "{error}");
    let no_long_line = csv.replace("33000,a,b\n", "");
    let stopped = ImportArgs { commit_every: Some(4_000), ..place.import(no_long_line.as_bytes()) };
    let error = run(&stopped).unwrap_err().to_string();
    assert!(error.starts_with("line 9001: duplicate key"), "{error}");
    assert!(error.ends_with("the 8000 rows up to line 8001 were imported"), "{error}");

    for commit_every in [0, 7_000] {
        let place = Place::new();
        run(&ImportArgs { primary_key: Some("n".to_string()), ..place.import(b"n,x\n0,a\n") }).unwrap();
        let skipping =
            ImportArgs { commit_every: Some(commit_every), on_error: OnError::Skip, ..place.import(csv.as_bytes()) };
        assert_eq!(run(&skipping).unwrap(), Imported { table: "t".to_string(), rows: LINES - 3, skipped: 3 });
        let rows: Vec<String> = place.export().lines().skip(2).map(str::to_string).collect();
        let good = (1..=LINES).filter(|n| ![9_000, 21_000, 33_000].contains(n));
        assert!(rows.iter().map(String::as_str).eq(good.map(line).collect::<String>().lines()));
    }
}

#[test]
fn unique_indexes_hold() {
    let place = Place::new();
    let args = ImportArgs { unique: strings(&["u=x"]), ..place.import(b"n,x\n1,a\n2,a\n") };
    let error = run(&args).unwrap_err().to_string();
    assert!(error.contains("line 3: duplicate key in index u"), "{error}");
}

#[test]
fn wrong_use_is_reported_before_anything_is_made() {
    let place = Place::new();
    let usage = |args: ImportArgs| run(&args).unwrap_err().to_string();
    let base = || place.import(b"a,b\n1,2\n");
    let cases = [
        (ImportArgs { columns: strings(&["a"]), ..base() }, "write NAME:TYPE"),
        (ImportArgs { columns: strings(&["a:int"]), ..base() }, "is not a type"),
        (ImportArgs { columns: strings(&["z:i8"]), ..base() }, "the file has no column z"),
        (ImportArgs { primary_key: Some("z".to_string()), ..base() }, "there is no column z"),
        (ImportArgs { indexes: strings(&["by_a"]), ..base() }, "write NAME=COLUMN"),
        (ImportArgs { indexes: strings(&["i=z"]), ..base() }, "index i: there is no column z"),
        (
            ImportArgs { header: false, columns: strings(&["a:i8"]), ..base() },
            "1 columns given, but the first line has 2",
        ),
        (ImportArgs { file: "missing.csv".into(), ..base() }, "missing.csv"),
        (place.import(b""), "is empty"),
    ];
    for (args, expected) in cases {
        let found = usage(args);
        assert!(found.contains(expected), "{found} / {expected}");
    }
    assert!(place.db().tables().is_empty());
    run(&base()).unwrap();
    assert!(usage(ImportArgs { columns: strings(&["a:i8"]), ..base() }).contains("table t exists"));
    assert!(usage(place.import(b"a\n1\n")).contains("no column b, which is never NULL"));
    assert!(usage(place.import(b"a,a,b\n1,1,2\n")).contains("two columns a"));
    assert!(usage(place.import(b"a,b,c\n1,2,3\n")).contains("has no column c"));
}

#[test]
fn line_numbers_are_right_whatever_ends_a_line() {
    let place = Place::new();
    for csv in ["n,x\n1,a\n\"2\",\"b\nb\"\n\nbad,c\n", "n,x\r\n1,a\r\n2,\"b\r\nb\"\r\n\r\nbad,c\r\n"] {
        let args = ImportArgs { primary_key: Some("n".to_string()), ..place.import(csv.as_bytes()) };
        let first = ImportArgs { columns: strings(&["n:u8"]), ..args };
        let mut lines = Vec::new();
        each_line(&first, &read_header(&first).unwrap(), |_, place| {
            lines.push(place.line(&first));
            Ok(())
        })
        .unwrap();
        assert_eq!(lines, [2, 3, 6], "{csv:?}");
    }
}

#[test]
fn a_quote_that_is_never_closed_is_named_and_nothing_imported() {
    let place = Place::new();
    let text = b"n,x\n1,a\n2,\"b\n3,c\n4,d\n";
    for on_error in [OnError::Stop, OnError::Skip] {
        let args = ImportArgs { on_error, ..place.import(text) };
        let error = run(&args).unwrap_err().to_string();
        assert!(error.contains("line 3: the quote that opens a field here is never closed"), "{error}");
        assert!(place.db().tables().is_empty(), "{on_error:?}");
        let header = ImportArgs { on_error, ..place.import(b"n,\"x\n1,a\n") };
        let error = run(&header).unwrap_err().to_string();
        assert!(error.contains("line 1: the quote"), "{error}");
    }
    let closed = place.import(b"n,x\n1,\"a\nb\"\n2,\"c\"\"\"\n");
    assert_eq!(run(&closed).unwrap().rows, 2);
}

#[test]
fn names_of_columns_are_text() {
    let place = Place::new();
    let error = run(&place.import(b"n,ab\xff\n1,a\n")).unwrap_err().to_string();
    assert!(error.contains("line 1: the name of column 2 is not UTF-8 text (byte 3 of it)"), "{error}");
    assert!(place.db().tables().is_empty());
    let rows = ImportArgs { header: false, ..place.import(b"1,a\n") };
    assert_eq!(run(&rows).unwrap().rows, 1);
}

/// At each moment at which an import into a new table can be killed, the same command makes the whole table afterwards;
/// a table that was changed since is the user's.
#[test]
fn what_a_killed_import_left_is_imported_again() {
    let csv = b"n,x\n1,a\n2,b\n3,c\n";
    for stage in 0..6 {
        let place = Place::new();
        let key = Some("n".to_string());
        let args = ImportArgs { primary_key: key, indexes: strings(&["by_x=x"]), ..place.import(csv) };
        let db = place.db();
        let schema = Schema::new().column("n", Type::U64).column("x", Type::Text(64)).primary_key(&["n"]);
        let definition = schema.check("t").unwrap();
        let unfinished = Unfinished::begin(&db, &definition).unwrap();
        if stage > 0 {
            let table = db.create_table("t", schema).unwrap();
            let rows = [0, 0, 2, 3, 3, 3][stage];
            let mut txn = db.begin().unwrap();
            for n in 1..=rows {
                txn.insert(&table, &values![n, "a"]).unwrap();
            }
            unfinished.note(&mut txn, rows).unwrap();
            txn.commit().unwrap();
            if stage > 3 {
                db.create_index("t", "by_x", &["x"], false).unwrap();
            }
            if stage == 5 {
                db.transact(|txn| txn.insert(&table, &values![9u64, "of a user"])).unwrap();
            }
        }
        drop(unfinished);
        db.close().unwrap();
        let again = run(&args);
        let db = place.db();
        assert!(!db.has_table(unfinished::RECORDS), "stage {stage}");
        let table = db.table("t").unwrap();
        let rows = db.snapshot().unwrap().scan(&table).count().unwrap();
        match stage {
            5 => {
                assert!(again.unwrap_err().to_string().contains("table t exists"));
                assert_eq!(rows, 4);
            }
            _ => {
                assert_eq!((again.unwrap().rows, rows), (3, 3), "stage {stage}");
                assert_eq!(table.definition().indexes.len(), 1);
            }
        }
    }
}

fn usage(args: &ImportArgs) -> String {
    match run(args) {
        Err(CsvError::Usage(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_with_another_delimiter_is_not_one_column() {
    let place = Place::new();
    for (text, hint) in [
        ("id;name;area\n1;Lund;2,5\n", "has ';' in it 2 times: add --delimiter ';'"),
        ("id\tname\n1\tLund\n", "has tab in it 1 times: add --delimiter tab"),
        ("id|name\n", "add --delimiter '|'"),
        ("{\"id\": 1}\n", "add --format jsonl"),
    ] {
        let reason = usage(&place.import(text.as_bytes()));
        assert!(reason.contains(hint), "{text:?}: {reason}");
        assert!(place.db().tables().is_empty());
    }
    let one = ImportArgs { delimiter: Some(b','), ..place.import(b"a;b\nx;y\n") };
    assert_eq!(run(&one).unwrap().rows, 1);
    assert_eq!(types(&place.db().table("t").unwrap())[1], "a;b:text(16)");
}

#[test]
fn json_lines_become_rows() {
    let place = Place::new();
    let lines = br#"{"id": 1, "name": "Lund", "zip": "00123", "born": "2026-01-31", "price": 1.50}
{"id": 2, "name": "", "tags": ["a", {"b": null}], "price": 12345678901234567890.25, "seen": "2026-01-31T10:00:00Z"}

{"id": 3, "name": null, "ok": true, "price": -0.5, "born": "\u0032026-02-01"}
"#;
    let jsonl = ImportArgs {
        format: Some(Format::Jsonl),
        primary_key: Some("id".to_string()),
        null: String::new(),
        ..place.import(lines)
    };
    assert_eq!(run(&jsonl).unwrap().rows, 3);
    let db = place.db();
    let table = db.table("t").unwrap();
    assert_eq!(
        types(&table),
        [
            "id:i64",
            "name:text(16)?",
            "zip:text(16)?",
            "born:date?",
            "price:decimal(38,2)",
            "tags:text(64)?",
            "seen:datetime?",
            "ok:bool?"
        ]
    );
    let mut read = db.snapshot().unwrap();
    let mut row = |id: i64| read.get(&table, &values![id]).unwrap().unwrap();
    assert_eq!((row(1).str(2), &row(1).get(3).to_string()[..]), ("00123", "2026-01-31"));
    assert_eq!((row(2).str(1), row(2).str(5)), ("", r#"["a", {"b": null}]"#));
    assert!(row(3).is_null(1) && row(3).get(7) == ValueRef::Bool(true) && row(3).get(3).to_string() == "2026-02-01");
    assert_eq!(row(2).get(4).to_string(), "12345678901234567890.25");
}

#[test]
fn bad_json_lines_are_named_by_line_and_column() {
    let place = Place::new();
    let import = |lines: &[u8], on_error| ImportArgs {
        format: Some(Format::Jsonl),
        columns: strings(&["n:u8"]),
        primary_key: Some("n".to_string()),
        on_error,
        ..place.import(lines)
    };
    for (lines, reason) in [
        (&b"{\"n\": 1}\n\n{\"n\": 2,}\n"[..], "line 3, column 9: trailing comma; nothing was imported"),
        (b"{\"n\": 1}\n[2]\n", "line 2, column 0: invalid type: sequence, expected an object"),
        (b"{\"n\": 1}\n{\"n\": \"\xff\"}\n", "line 2, column 8: not UTF-8"),
        (b"", "is empty"),
    ] {
        let error = run(&import(lines, OnError::Stop)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(place.db().tables().is_empty());
    }
    let lines = b"{\"n\": 1}\n{\"n\": 300}\n{\"n\": 2, \"n\": 3}\nnonsense\n{\"n\": 4}\n";
    let skipping = import(lines, OnError::Skip);
    assert_eq!(run(&skipping).unwrap(), Imported { table: "t".to_string(), rows: 2, skipped: 3 });
}

#[test]
fn a_pipe_is_read_as_a_file_is() {
    let place = Place::new();
    let text: String =
        "n,x\n".chars().chain((0..9000).flat_map(|n| format!("{n},{n}\n").chars().collect::<Vec<_>>())).collect();
    let pipe = place.0.path().join("pipe.csv");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let to = pipe.clone();
    let writer = std::thread::spawn(move || fs::write(to, text).unwrap());
    let args = ImportArgs { file: pipe.clone(), ..place.import(b"") };
    assert_eq!(run(&args).unwrap().rows, 9000);
    writer.join().unwrap();
    let writer = std::thread::spawn(move || fs::write(pipe, "n,x\nbad,1\n").unwrap());
    let error = run(&args).unwrap_err().to_string();
    assert!(error.contains("1 bad lines in") && error.contains("pipe.csv"), "{error}");
    writer.join().unwrap();
}
