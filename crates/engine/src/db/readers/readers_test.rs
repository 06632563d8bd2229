//! Messages that no program of this version sends: both sides end the connection, and nothing else happens.

use super::link::Link;
use super::message::{
    Answer, Bound, ChangeForm, ChangesHead, Failure, Kind, MAX_REQUEST_BYTES, PROTOCOL, Request, ScanForm, Wanted,
    first_row, message, put_frame, put_message, put_row, read_frame,
};
use super::reader_changes::ReaderChanges;
use super::value::{Field, to_fields, to_values};
use crate::db::testing::{by_id, commit_all};
use crate::db::{ChangeKind, Database};
use crate::error::Error;
use crate::{Schema, Type, values};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

fn database(folder: &Path) -> Database {
    let db = Database::open(folder, crate::Options { buffer_pool_size: 2 << 20, ..Default::default() }).unwrap();
    let table = db.create_table("t", by_id()).unwrap();
    commit_all(&db, 0..10u64, |txn, id| txn.insert(&table, &values![id]));
    db
}

fn framed(message: &impl serde::Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(message, &mut out);
    out
}

/// Everything that the other side sends until it closes the connection.
fn sent_to_end(stream: &mut UnixStream) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut sent = Vec::new();
    // A connection that is closed with bytes unread is reset.
    match stream.read_to_end(&mut sent) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the connection continues"),
        _ => sent,
    }
}

#[test]
fn a_server_ends_the_connection_of_a_wrong_reader_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let _db = database(folder.path());
    let hello = framed(&Request::Hello { protocol: PROTOCOL });
    let table = framed(&Request::Table { name: "t" });
    let scan = |table, columns: Vec<u32>| {
        let (from, to, wanted) = (Bound::Open, Bound::Open, Wanted::Columns(columns));
        let (index, starts_with, is_reverse, limit) = (None, None, false, 9);
        let scan = ScanForm { index, from, to, starts_with, is_reverse, limit, wanted };
        framed(&Request::Scan { table, scan })
    };
    let time = Field::Time(u64::MAX);
    let rows = {
        let mut out = Vec::new();
        put_frame(Kind::Rows, &mut out, |_| {});
        out
    };
    let wrong: Vec<Vec<u8>> = vec![
        table.clone(),
        framed(&Request::Hello { protocol: PROTOCOL + 1 }),
        [hello.clone(), hello.clone()].concat(),
        [hello.clone(), framed(&Request::More)].concat(),
        [hello.clone(), framed(&Request::NextChanges { wait_ms: 1 })].concat(),
        [hello.clone(), rows].concat(),
        [hello.clone(), vec![0; 5]].concat(),
        [hello.clone(), vec![2, 0, 0, 0, 1, 200]].concat(),
        [hello.clone(), (MAX_REQUEST_BYTES as u32 + 2).to_le_bytes().to_vec(), vec![1]].concat(),
        [hello.clone(), vec![1, 0, 0, 0, 77]].concat(),
        [hello.clone(), scan(0, vec![])].concat(),
        [hello.clone(), table.clone(), scan(1, vec![])].concat(),
        [hello.clone(), table.clone(), scan(0, vec![1])].concat(),
        [hello.clone(), table.clone(), scan(u32::MAX, vec![u32::MAX])].concat(),
        [hello, table, framed(&Request::Get { table: 0, key: vec![time], columns: None })].concat(),
    ];
    for (case, bytes) in wrong.iter().enumerate() {
        let mut stream = UnixStream::connect(folder.path().join("readers")).unwrap();
        stream.write_all(bytes).unwrap();
        let sent = sent_to_end(&mut stream);
        assert!(sent.len() < 600, "case {case}: {} bytes", sent.len());
    }
    let mut snapshot = Database::open_reader(folder.path()).unwrap().snapshot().unwrap();
    assert_eq!(snapshot.scan("t").count().unwrap(), 10);
}

/// A process that sends these bytes to the first reader.
fn answering(folder: &Path, bytes: Vec<u8>) -> thread::JoinHandle<()> {
    let _ = std::fs::remove_file(folder.join("readers"));
    let listener = UnixListener::bind(folder.join("readers")).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The reader may have gone at any byte.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    })
}

#[test]
fn a_reader_believes_no_wrong_answer() {
    let folder = tempfile::tempdir().unwrap();
    let hello = framed(&Answer::Hello { protocol: PROTOCOL });
    let table = |definition: &str| {
        let (definition, approximate_rows) = (definition.to_string(), 1);
        framed(&Answer::Table(super::message::TableAnswer { definition, approximate_rows }))
    };
    let right = table(r#"{"name":"t","columns":[{"name":"id","type":"u64"}],"primary_key":[{"column":"id"}]}"#);
    let rows = |bytes: &[u8]| {
        let mut out = Vec::new();
        put_frame(Kind::LastRows, &mut out, |out| out.extend_from_slice(bytes));
        out
    };
    let wrong: Vec<Vec<u8>> = vec![
        vec![],
        framed(&Answer::Hello { protocol: PROTOCOL + 1 }),
        framed(&Answer::Count(1)),
        [&hello[..], &table("{}")].concat(),
        [&hello[..], &table("not json")].concat(),
        [&hello[..], &rows(&[])].concat(),
        [&hello[..], &right, &framed(&Answer::Count(1))].concat(),
        [&hello[..], &right, &rows(&[200])].concat(),
        [&hello[..], &right, &[2, 0, 0, 0, 4, 7]].concat(),
        [&hello[..], &right, &rows(&[1, 0, 1, 0])].concat(),
        [&hello[..], &right, &rows(&[5, 0])].concat(),
        [&hello[..], &right, &[255, 255, 255, 255, 3]].concat(),
        [&hello[..], &right, &[9, 0, 0, 0, 3, 0]].concat(),
    ];
    for (case, bytes) in wrong.into_iter().enumerate() {
        let server = answering(folder.path(), bytes);
        let got = Link::connect(folder.path()).map(super::reader::ReaderSnapshot::of_link);
        let got = got.and_then(|mut snapshot| snapshot.get("t", &values![1u64]));
        assert!(got.is_err(), "case {case}: {got:?}");
        server.join().unwrap();
    }
    let server = answering(folder.path(), [&hello[..], &right, &rows(&[])].concat());
    let mut snapshot = super::reader::ReaderSnapshot::of_link(Link::connect(folder.path()).unwrap());
    assert_eq!(snapshot.get("t", &values![1u64]).unwrap(), None);
    drop(snapshot);
    server.join().unwrap();
}

#[test]
fn a_reader_believes_no_wrong_change() {
    let folder = tempfile::tempdir().unwrap();
    let head = framed(&ChangesHead { position: 9 })[5..].to_vec();
    let form = |columns: Option<&[(&str, &str)]>, row: &[Field<'_>], key: Field<'static>| {
        let named = |columns: &[(&str, &str)]| {
            columns.iter().map(|(name, ty)| ((*name).to_string(), (*ty).to_string())).collect::<Vec<_>>()
        };
        let (columns, row, key) = (columns.map(named), Some(row.to_vec()), vec![key]);
        let (kind, ends_transaction) = (ChangeKind::Insert, true);
        let form = ChangeForm { sequence: 8, unix_us: 5, table: "t", kind, key, columns, row, ends_transaction };
        framed(&form)[5..].to_vec()
    };
    let changes = |bytes: &[&[u8]]| {
        let mut out = Vec::new();
        put_frame(Kind::Changes, &mut out, |out| bytes.iter().for_each(|bytes| out.extend_from_slice(bytes)));
        out
    };
    let (id, one) = ([("id", "u64")], Field::UInt(1));
    let right = form(Some(&id), &[one], one);
    let many: Vec<_> = (0..2000).map(|_| ("id", "u64")).collect();
    let wrong = [
        framed(&Answer::Count(1)),
        changes(&[]),
        changes(&[&head, &[200]]),
        changes(&[&head, &right[..right.len() - 1]]),
        changes(&[&head, &form(None, &[one], one)]),
        changes(&[&head, &form(Some(&id), &[one, one], one)]),
        changes(&[&head, &form(Some(&id), &[Field::Text("1")], one)]),
        changes(&[&head, &form(Some(&[("id", "decimal(99, 1)")]), &[one], one)]),
        changes(&[&head, &form(Some(&[("id", "thing")]), &[one], one)]),
        changes(&[&head, &form(Some(&id), &[Field::Time(u64::MAX)], one)]),
        changes(&[&head, &form(Some(&id), &[one], Field::Time(u64::MAX))]),
        changes(&[&head, &form(Some(&many), &[one; 2000], one)]),
    ];
    let begin = [framed(&Answer::Hello { protocol: PROTOCOL }), framed(&Answer::ChangesBegin)].concat();
    let right = [(changes(&[&head, &right]), true)];
    for (case, (bytes, is_right)) in wrong.into_iter().map(|wrong| (wrong, false)).chain(right).enumerate() {
        let server = answering(folder.path(), [&begin[..], &bytes].concat());
        let mut stream = ReaderChanges::begin(Link::connect(folder.path()).unwrap(), 7).unwrap();
        let first = stream.next().unwrap();
        match is_right {
            true => assert_eq!((first.unwrap().row.unwrap().u64("id"), stream.position()), (1, 9)),
            false => assert!(first.is_err() && stream.next().is_none() && stream.position() == 7, "case {case}"),
        }
        drop(stream);
        server.join().unwrap();
    }
}

/// Any bytes of a row decode as something, as those of a page do.
#[test]
fn rows_of_any_bytes_are_read_without_a_panic() {
    let columns = ["i64", "text(20)?", "decimal(20, 3)", "binary(2000)", "uuid", "time"];
    let mut schema = Schema::new();
    for (at, ty) in columns.iter().enumerate() {
        let (name, is_nullable) = (format!("c{at}"), ty.ends_with('?'));
        let ty: Type = ty.trim_end_matches('?').parse().unwrap();
        schema = if is_nullable { schema.nullable(&name, ty) } else { schema.column(&name, ty) };
    }
    let db = Database::in_memory().unwrap();
    let table = db.create_table("t", schema.primary_key(&["c0"])).unwrap();
    let all: Vec<usize> = (0..columns.len()).collect();
    let layout = std::sync::Arc::new(crate::table::RowLayout::of_columns(&table.definition(), &all).unwrap());
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let bytes = (0..rng.usize(..90)).map(|_| rng.u8(..)).collect();
        crate::Row::of_bytes(&layout, bytes).to_values();
    }
}

#[test]
fn failures_keep_what_a_program_can_tell() {
    let errors = [
        Error::NoSuchTable { table: "t".to_string() },
        Error::NoSuchIndex { table: "t".to_string(), index: "i".to_string() },
        Error::NoSuchColumn { table: "t".to_string(), column: "c".to_string() },
        Error::BadValue { column: "c".to_string(), reason: "r".to_string() },
        Error::TableDropped { table: "t".to_string() },
        Error::TableChanged { table: "t".to_string() },
        Error::corrupt_page(crate::PageNo(7), "r"),
        Error::LockWaitTimeout,
        Error::Closed,
        Error::Usage("u".to_string()),
        Error::ChangesTrimmed { since: 1, trimmed: 2 },
    ];
    for error in errors {
        let text = format!("{error:?}");
        let bytes = framed(&Answer::Failed(Failure::from(error)));
        let Ok(Answer::Failed(failure)) = message::<Answer>(&bytes[5..]) else { panic!("{text}") };
        assert_eq!(format!("{:?}", failure.into_error()), text);
    }
    let other = Failure::from(Error::Poisoned("the disk".to_string())).into_error();
    assert!(matches!(&other, Error::Served(reason) if reason.contains("the disk")), "{other}");
}

proptest! {
    #[test]
    fn frames_of_any_bytes_end_in_an_error_or_a_message(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (mut frame, mut input) = (Vec::new(), &bytes[..]);
        while let Ok(Some(_)) = read_frame(&mut input, &mut frame, 100) {
            let _ = message::<Request<'_>>(&frame);
            let _ = message::<Answer>(&frame);
            let _ = message::<ChangeForm<'_>>(&frame);
            let mut rows = &frame[..];
            while let Some((_, behind)) = first_row(rows) {
                prop_assert!(behind.len() < rows.len());
                rows = behind;
            }
        }
    }

    #[test]
    fn rows_survive_a_round_trip(rows in proptest::collection::vec(any::<Vec<u8>>(), 0..5)) {
        let mut out = Vec::new();
        rows.iter().for_each(|row| put_row(row, &mut out));
        let (mut rest, mut read) = (&out[..], Vec::new());
        while let Some((row, behind)) = first_row(rest) {
            read.push(row.to_vec());
            rest = behind;
        }
        prop_assert_eq!(read, rows);
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn values_survive_a_round_trip(
        int in any::<i64>(),
        float in any::<f64>(),
        text in ".*",
        bytes in any::<Vec<u8>>(),
    ) {
        let values = values![null, int, float, text.as_str(), &bytes[..], int as u64];
        let request = Request::Get { table: 7, key: to_fields(&values), columns: Some(vec![1, 2]) };
        let sent = framed(&request);
        let Ok(Request::Get { key, .. }) = message::<Request<'_>>(&sent[5..]) else { panic!("{request:?}") };
        prop_assert_eq!(format!("{:?}", to_values(&key).unwrap()), format!("{values:?}"));
    }
}
