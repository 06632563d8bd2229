//! What a struct writes it reads; what does not fit is an error that names the column.

use crate::table::testing::{same, table_and_rows};
use crate::table::{Date, DateTime, Decimal, Row, RowLayout, Schema, Table, Time, Type, Uuid, Value};
use crate::{Database, Error, Upserted, values};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A table with a column of each kind, none of which has to be there but the first.
fn every_type(db: &Database) -> Table {
    let schema = Schema::new().column("id", Type::I64).nullable("small", Type::U8).nullable("float", Type::F64);
    let schema = schema.nullable("narrow", Type::F32).nullable("price", Type::Decimal(38, 4));
    let schema = schema.nullable("name", Type::Text(100)).nullable("data", Type::Binary(100));
    let schema = schema.nullable("fixed", Type::Fixed(3)).nullable("at", Type::DateTime).nullable("day", Type::Date);
    let schema = schema.nullable("time", Type::Time).nullable("uuid", Type::Uuid).nullable("flag", Type::Bool);
    let schema = schema.nullable("json", Type::Json(1000));
    db.create_table("every_type", schema.primary_key(&["id"])).unwrap()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Everything {
    id: i64,
    small: Option<u8>,
    float: Option<f64>,
    narrow: Option<f32>,
    price: Option<Decimal>,
    name: Option<String>,
    data: Option<Vec<u8>>,
    fixed: Option<[u8; 3]>,
    at: Option<DateTime>,
    day: Option<Date>,
    time: Option<Time>,
    uuid: Option<Uuid>,
    flag: Option<bool>,
    json: Option<serde_json::Value>,
}

/// The row that a struct is inserted as.
fn inserted<T: Serialize>(db: &Database, table: &Table, id: i64, row: &T) -> Row {
    let mut txn = db.begin().unwrap();
    txn.insert_from(table, row).unwrap();
    txn.get(table, &values![id]).unwrap().unwrap()
}

fn everything() -> impl Strategy<Value = Everything> {
    let numbers = (any::<i64>(), any::<Option<u8>>(), proptest::option::of(-1e300..1e300), any::<Option<i16>>());
    let price = proptest::option::of((-10i128.pow(34)..10i128.pow(34), 0u8..=4));
    let texts = (any::<Option<String>>(), any::<Option<Vec<u8>>>(), any::<Option<[u8; 3]>>());
    let times = (any::<Option<i64>>(), any::<Option<i32>>(), proptest::option::of(0..86_400_000_000u64));
    (numbers, price, texts, times, any::<Option<[u8; 16]>>(), any::<Option<bool>>(), json()).prop_map(
        |((id, small, float, narrow), price, (name, data, fixed), (at, day, time), uuid, flag, json)| Everything {
            id,
            small,
            float,
            narrow: narrow.map(f32::from),
            price: price.map(|(unscaled, scale)| Decimal::new(unscaled, scale)),
            name: name.map(|name| name.chars().take(25).collect()),
            data: data.map(|data| data.into_iter().take(100).collect()),
            fixed,
            at: at.map(DateTime::from_unix_us),
            day: day.map(Date::from_unix_days),
            time: time.and_then(Time::from_us),
            uuid: uuid.map(Uuid::from_bytes),
            flag,
            json,
        },
    )
}

fn json() -> impl Strategy<Value = Option<serde_json::Value>> {
    let lists = any::<Vec<(bool, i64, String)>>().prop_map(|items| {
        let item = |(flag, number, text): &(bool, i64, String)| serde_json::json!({"flag": flag, text: [number, null]});
        serde_json::Value::from(items.iter().take(4).map(item).collect::<Vec<_>>())
    });
    let fits = |json: &Option<serde_json::Value>| json.as_ref().is_none_or(|json| json.to_string().len() <= 1000);
    let texts = any::<String>().prop_map(|text| serde_json::json!(text));
    proptest::option::of(prop_oneof![lists, texts]).prop_filter("too long", fits)
}

#[test]
fn a_struct_reads_as_it_was_inserted() {
    let db = Database::in_memory().unwrap();
    let table = every_type(&db);
    proptest!(|(row in everything())| {
        prop_assert_eq!(&inserted(&db, &table, row.id, &row).to::<Everything>().unwrap(), &row);
        // JSON has another form for nothing of it.
        let json = serde_json::to_string(&row).unwrap();
        prop_assert_eq!(serde_json::from_str::<Everything>(&json).unwrap(), row);
    });
    let nothing = Everything::default();
    assert_eq!(inserted(&db, &table, 0, &nothing).to::<Everything>().unwrap(), nothing);
}

proptest! {
    #[test]
    fn every_row_reads_as_a_map_of_json((table, rows) in table_and_rows(1)) {
        let layout = Arc::new(RowLayout::new(&table));
        let mut bytes = Vec::new();
        layout.encode(&crate::table::testing::refs(&rows[0]), None, &mut bytes).unwrap();
        let row = Row::of_bytes(&layout, bytes);
        let read: BTreeMap<&str, Option<Anything>> = row.to().unwrap();
        prop_assert_eq!(read.len(), table.columns.len());
        for (i, column) in table.columns.iter().enumerate() {
            let found = &read[column.name.as_str()];
            // `null` is a value of JSON, and read as nothing too.
            prop_assert!(found.is_none() == row.is_null(i) || matches!(column.ty, Type::Json(_)));
            let Some(Anything(value)) = found else { continue };
            match column.ty {
                // Written as text.
                Type::Decimal(..) | Type::Date | Type::Time | Type::Uuid => {
                    prop_assert_eq!(value, &Value::Text(row.get(i).to_string()));
                }
                Type::DateTime => prop_assert_eq!(value, &Value::Text(format!("{}Z", row.get(i)))),
                // As what it describes.
                Type::Json(_) => {}
                ty => prop_assert!(same(ty, value.as_ref(), row.get(i)), "{value:?}"),
            }
        }
    }
}

/// What a column shows of itself.
#[derive(Debug)]
struct Anything(Value);

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Anything, D::Error> {
        struct Any;
        macro_rules! visit {
            ($($method:ident: $type:ty;)*) => {
                $(fn $method<E>(self, value: $type) -> Result<Anything, E> { Ok(Anything(Value::from(value))) })*
            };
        }
        impl<'de> serde::de::Visitor<'de> for Any {
            type Value = Anything;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("anything")
            }

            visit! { visit_bool: bool; visit_i64: i64; visit_u64: u64; visit_f64: f64; visit_string: String; }

            fn visit_str<E>(self, text: &str) -> Result<Anything, E> {
                Ok(Anything(Value::Text(text.to_string())))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Anything, A::Error> {
                while items.next_element::<Option<Anything>>()?.is_some() {}
                Ok(Anything(Value::Null))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Anything, A::Error> {
                while members.next_entry::<String, Option<Anything>>()?.is_some() {}
                Ok(Anything(Value::Null))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Anything, E> {
                Ok(Anything(Value::Bytes(bytes.to_vec())))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A table of three columns, with a default and an auto-increment number.
fn people(db: &Database) -> Table {
    let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(8)).nullable("born", Type::U16);
    let schema = schema.column("role", Type::Text(20)).default_value("role", "guest").auto_increment("id");
    db.create_table("people", schema.primary_key(&["id"]).unique_index("by_name", &["name"])).unwrap()
}

#[test]
fn a_column_without_a_field_gets_its_default() {
    #[derive(Serialize)]
    struct Named {
        name: &'static str,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    struct Person<'a> {
        role: &'a str,
        id: u64,
        born: Option<u16>,
        #[serde(default)]
        shoe_size: u8,
        nick_name: Option<String>,
    }
    let db = Database::in_memory().unwrap();
    let people = people(&db);
    let mut txn = db.begin().unwrap();
    assert_eq!(txn.insert_from(&people, &Named { name: "Ada" }).unwrap().auto_increment, Some(1));
    let row = txn.get(&people, &values![1]).unwrap().unwrap();
    let person = Person { role: "guest", id: 1, born: None, shoe_size: 0, nick_name: None };
    assert_eq!(row.to::<Person<'_>>().unwrap(), person);
    let missing = txn.insert_from(&people, &HashMap::from([("born", 1815)])).unwrap_err();
    let message = "column name: there is no field of this name, and no default (its type is text(8))";
    assert_eq!(missing.to_string(), message);
}

#[test]
fn forms_of_structs() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Role {
        Guest,
        Host,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Id(u64);
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Life {
        born: Option<u16>,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Person {
        role: Role,
        #[serde(flatten)]
        life: Life,
        id: Id,
        name: char,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Wrapped(Person);
    let db = Database::in_memory().unwrap();
    let people = people(&db);
    let mut txn = db.begin().unwrap();
    for (id, role) in [(1, Role::Host), (2, Role::Guest)] {
        let name = if id == 1 { 'a' } else { 'b' };
        let person = Wrapped(Person { role, life: Life { born: Some(1815) }, id: Id(id), name });
        txn.insert_from(&people, &Some(&person)).unwrap();
        assert_eq!(txn.get(&people, &values![id]).unwrap().unwrap().to::<Option<Wrapped>>().unwrap(), Some(person));
    }
}

#[test]
fn a_refusal_names_the_column() {
    let db = Database::in_memory().unwrap();
    let people = people(&db);
    let mut txn = db.begin().unwrap();
    let mut refusal = |row: &dyn Fn(&Table) -> crate::Result<Vec<Value>>| match row(&people) {
        Ok(values) => {
            let refs: Vec<_> = values.iter().map(Value::as_ref).collect();
            txn.insert(&people, &refs).unwrap_err().to_string()
        }
        Err(error) => error.to_string(),
    };
    let mut of = |row: serde_json::Value| refusal(&|people| people.values_of(&row));
    assert_eq!(of(serde_json::json!({"name": "Ada", "age": 3})), "table people has no column age");
    assert_eq!(of(serde_json::json!({"name": 3})), "column name: an integer does not go into a column of type text(8)");
    assert_eq!(of(serde_json::json!({"name": "much too long"})), "column name: 13 bytes are longer than the 8 allowed");
    assert_eq!(of(serde_json::json!({"name": "A", "born": -1})), "column born: -1 does not fit type u16");
    assert_eq!(
        of(serde_json::json!({"name": ["A"]})),
        "column name: a sequence does not go into a column of type text(8) (its type is text(8))"
    );
    assert!(of(serde_json::json!({"name": null})).starts_with("column name:"));
    assert_eq!(of(serde_json::json!([1])), "a row is made of a struct or a map, not of a sequence");
    assert_eq!(of(serde_json::json!("x")), "a row is made of a struct or a map, not of text");
    drop(txn);
    let table = every_type(&db);
    let of = |row: serde_json::Value| table.values_of(&row).unwrap_err().to_string();
    assert!(of(serde_json::json!({"id": 1, "at": "yesterday"})).starts_with("column at: \"yesterday\" is not a point"));
    assert!(of(serde_json::json!({"id": 1, "day": "2026-02-30"})).contains("(its type is date)"));
    assert!(of(serde_json::json!({"id": 1, "uuid": "x"})).starts_with("column uuid: \"x\" is not a UUID"));
    assert!(of(serde_json::json!({"id": 1, "price": "1e3"})).starts_with("column price: \"1e3\" is not a decimal"));
    let no_byte = of(serde_json::json!({"id": 1, "data": [1, 256]}));
    assert_eq!(no_byte, "column data: 256 is not a byte (its type is binary(100))");
    assert!(matches!(table.values_of(&HashMap::from([(1, 2)])), Err(Error::Conversion(_))));
    let big = HashMap::from([("id", i128::MAX)]);
    assert!(table.values_of(&big).unwrap_err().to_string().contains("does not fit type i64"));
}

#[test]
fn a_read_names_the_column_and_its_type() {
    #[derive(Deserialize, Debug)]
    struct Small {
        #[expect(dead_code, reason = "is not read")]
        id: u8,
    }
    #[derive(Deserialize, Debug)]
    struct Tall {
        #[expect(dead_code, reason = "is not read")]
        height: u8,
    }
    #[derive(Deserialize, Debug)]
    struct Narrow {
        float: f32,
    }
    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct OnlyId {
        #[expect(dead_code, reason = "is not read")]
        id: i64,
    }
    let db = Database::in_memory().unwrap();
    let table = every_type(&db);
    let wide = Everything { id: 300, float: Some(0.1), data: Some(vec![1; 4]), ..Everything::default() };
    let row = inserted(&db, &table, 300, &wide);
    let refusal = row.to::<Small>().unwrap_err();
    assert!(matches!(&refusal, Error::BadValue { column, .. } if column == "id"));
    assert_eq!(refusal.to_string(), "column id: invalid value: integer `300`, expected u8 (its type is i64)");
    assert_eq!(row.to::<Narrow>().unwrap_err().to_string(), "column float: 0.1 does not fit f32 (its type is f64)");
    let tall = row.to::<Tall>().unwrap_err().to_string();
    assert!(tall.starts_with("a row is read as ") && tall.ends_with("Tall: missing field `height`"), "{tall}");
    assert!(row.to::<OnlyId>().unwrap_err().to_string().contains("unknown field `small`"));
    assert!(row.to::<HashMap<String, [u8; 3]>>().unwrap_err().to_string().starts_with("column id: "));
    assert!(row.to::<(i64,)>().unwrap_err().to_string().contains("invalid type: map"));
    let null = row.to::<HashMap<&str, Value16>>().unwrap_err().to_string();
    assert!(null.starts_with("column small: invalid type: unit value"), "{null}");
    let half = Everything { id: 1, float: Some(0.5), ..Everything::default() };
    assert_eq!(inserted(&db, &table, 1, &half).to::<Narrow>().unwrap().float, 0.5);
}

/// A number, or nothing else.
#[derive(Deserialize, Debug)]
struct Value16(#[expect(dead_code, reason = "is not read")] i16);

#[test]
fn json_columns_have_what_they_describe() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    enum Shape {
        Point,
        Circle { radius: f64 },
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Shapes<'a> {
        id: i64,
        #[serde(borrow)]
        json: Option<Vec<(&'a str, Shape)>>,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Word {
        id: i64,
        json: String,
    }
    let db = Database::in_memory().unwrap();
    let table = every_type(&db);
    let shapes = Shapes { id: 1, json: Some(vec![("a", Shape::Point), ("b", Shape::Circle { radius: 0.5 })]) };
    let row = inserted(&db, &table, 1, &shapes);
    assert_eq!(row.str("json"), "[[\"a\",\"Point\"],[\"b\",{\"Circle\":{\"radius\":0.5}}]]");
    assert_eq!(row.to::<Shapes<'_>>().unwrap(), shapes);
    let row = inserted(&db, &table, 2, &Shapes { id: 2, json: None });
    assert!(row.is_null("json") && row.to::<Shapes<'_>>().unwrap().json.is_none());
    // Text is a value of JSON too, and not the JSON itself.
    let word = Word { id: 3, json: "[1]".to_string() };
    let row = inserted(&db, &table, 3, &word);
    assert_eq!((row.str("json"), row.to::<Word>().unwrap()), ("\"[1]\"", word));
    let refusal = row.to::<Shapes<'_>>().unwrap_err().to_string();
    let expected =
        "column json: invalid type: string \"[1]\", expected a sequence at line 1 column 5 (its type is json(1000))";
    assert_eq!(refusal, expected);
    let mut txn = db.begin().unwrap();
    txn.insert_from(&table, &serde_json::json!({"id": 4, "json": null, "small": 4})).unwrap();
    assert!(txn.get(&table, &values![4]).unwrap().unwrap().is_null("json"));
    txn.update(&table, &values![4], &[("json", "null".into())]).unwrap();
    assert_eq!(txn.get(&table, &values![4]).unwrap().unwrap().to::<Shapes<'_>>().unwrap().json, None);
    let deep = (0..200).fold(serde_json::json!(1), |json, _| serde_json::json!([json]));
    let refusal = txn.insert_from(&table, &serde_json::json!({"id": 5, "json": deep})).unwrap_err().to_string();
    assert!(refusal.starts_with("column json: lists and objects are nested more than 100 deep"), "{refusal}");
}

#[test]
fn an_upsert_sets_the_columns_of_the_struct() {
    #[derive(Serialize)]
    struct Birth {
        id: Option<u64>,
        name: &'static str,
        born: u16,
    }
    let db = Database::in_memory().unwrap();
    let people = people(&db);
    let mut txn = db.begin().unwrap();
    txn.insert(&people, &values![1u64, "Ada", null, "host"]).unwrap();
    let upserted = txn.upsert_from(&people, &Birth { id: None, name: "Ada", born: 1815 }).unwrap();
    assert_eq!(upserted, Upserted::Changed);
    let row = txn.get(&people, &values![1]).unwrap().unwrap();
    assert_eq!((row.u64("born"), row.str("role"), row.u64("id")), (1815, "host", 1));
    let upserted = txn.upsert_from(&people, &Birth { id: Some(7), name: "Grace", born: 1906 }).unwrap();
    assert!(matches!(upserted, Upserted::Inserted(_)));
    // The primary key of the row that is found stays.
    txn.upsert_from(&people, &Birth { id: Some(9), name: "Grace", born: 1907 }).unwrap();
    assert_eq!(txn.get(&people, &values![7]).unwrap().unwrap().u64("born"), 1907);
    assert_eq!(txn.get(&people, &values![9]).unwrap(), None);
}

#[cfg(all(feature = "chrono", feature = "jiff", feature = "rust_decimal", feature = "uuid"))]
#[test]
fn types_of_other_crates() {
    #[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
    struct Foreign<At, Day, Clock> {
        id: i64,
        price: rust_decimal::Decimal,
        at: At,
        day: Option<Day>,
        time: Clock,
        uuid: uuid::Uuid,
    }
    let db = Database::in_memory().unwrap();
    let table = every_type(&db);
    let (price, uuid) = ("19.95".parse().unwrap(), uuid::Uuid::from_u128(7));
    let at: chrono::DateTime<chrono::Utc> = "2026-01-31T12:00:00.123456Z".parse().unwrap();
    let (day, time) = (Some(at.date_naive()), at.time());
    let of_chrono = Foreign { id: 1, price, at, day, time, uuid };
    assert_eq!(inserted(&db, &table, 1, &of_chrono).to::<Foreign<_, _, _>>().unwrap(), of_chrono);
    let at: jiff::Timestamp = "2026-01-31T12:00:00.123456Z".parse().unwrap();
    let local = jiff::tz::TimeZone::UTC.to_datetime(at);
    let of_jiff = Foreign { id: 2, price, at, day: Some(local.date()), time: local.time(), uuid };
    let row = inserted(&db, &table, 2, &of_jiff);
    assert_eq!(row.to::<Foreign<_, _, _>>().unwrap(), of_jiff);
    assert_eq!(row.get("uuid").to_string(), uuid.to_string());
    // Nanoseconds are truncated; a time with an offset is the same point in time.
    let fine: jiff::Timestamp = "2026-01-31T12:00:00.123456789Z".parse().unwrap();
    let row = inserted(&db, &table, 3, &Foreign { id: 3, at: fine, ..of_jiff });
    assert_eq!(row.datetime("at"), DateTime::from(at));
    let offset: chrono::DateTime<chrono::FixedOffset> = "2026-01-31T14:00:00.123456+02:00".parse().unwrap();
    let row = inserted(&db, &table, 4, &Foreign { id: 4, at: offset, price, day, time, uuid });
    assert_eq!(row.datetime("at"), DateTime::from(at));
    // Without an offset it is written, and read by `try_get` alone.
    let local = Foreign { id: 5, at: at_naive(), price, day, time, uuid };
    let row = inserted(&db, &table, 5, &local);
    assert_eq!(row.try_get::<chrono::NaiveDateTime>("at").unwrap(), local.at);
}

#[cfg(feature = "chrono")]
fn at_naive() -> chrono::NaiveDateTime {
    "2026-01-31T12:00:00.5".parse().unwrap()
}
