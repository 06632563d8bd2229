//! The events that a program's log gets, with the feature `tracing`.

use highwater::{Database, Options, Schema, TableChange, Type, values};
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the events as lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "highwater"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn the_life_of_a_database_is_told() {
    let (folder, lines) = (tempfile::tempdir().unwrap(), Lines::default());
    tracing::subscriber::with_default(lines.clone(), || {
        let db = Database::open(folder.path(), Options::default()).unwrap();
        let schema = Schema::new().column("id", Type::U64).column("x", Type::U64).primary_key(&["id"]);
        let table = db.create_table("t", schema).unwrap();
        db.create_index("t", "by_x", &["x"], false).unwrap();
        db.transact(|txn| txn.insert(&table, &values![1u64, 2u64])).unwrap();
        db.drop_index("t", "by_x").unwrap();
        db.alter_table("t", &[TableChange::drop_column("x")]).unwrap();
        db.truncate_table("t").unwrap();
        db.drop_table("t").unwrap();
        db.close().unwrap();
    });
    let lines = lines.0.lock().unwrap().clone();
    let mut rest = lines.iter();
    for wanted in [
        "the database is open",
        "a table was created table=t",
        "an index was built table=t index=by_x",
        "an index was dropped table=t index=by_x",
        "a table was changed table=t",
        "a table was truncated table=t",
        "a table was dropped table=t",
        "checkpoint",
        "the database is closed",
    ] {
        let told = |line: &&String| {
            let line = line.replace("message=", "");
            wanted.split(' ').all(|word| line.contains(word))
        };
        assert!(rest.any(|line| told(&line)), "{wanted:?} is missing, or out of turn, in {lines:#?}");
    }
}
