//! The crate `rust_decimal`. Its numbers have 28 digits after the point and 96 bits, so each of them is a
//! [`Decimal`](crate::Decimal), and not the reverse.
//!
//! ```
//! use highwater::{Database, Schema, Type, values};
//! use rust_decimal::Decimal;
//!
//! let db = Database::in_memory()?;
//! let schema = Schema::new().column("id", Type::U64).column("price", Type::Decimal(12, 2)).primary_key(&["id"]);
//! let articles = db.create_table("articles", schema)?;
//! let price: Decimal = "19.95".parse().unwrap();
//! let mut txn = db.begin()?;
//! txn.insert(&articles, &values![1u64, price])?;
//! assert_eq!(txn.get(&articles, &values![1u64])?.unwrap().try_get::<Decimal>("price")?, price);
//! # Ok::<(), highwater::Error>(())
//! ```

use super::{outside, read_by, values_from};
use crate::error::Error;
use crate::table::Decimal;
use ::rust_decimal::Decimal as Foreign;

impl From<Foreign> for Decimal {
    /// The same number with as many digits after the point; `-0` is `0`.
    fn from(number: Foreign) -> Decimal {
        // A scale is 28 at most.
        Decimal::new(number.mantissa(), number.scale() as u8)
    }
}

impl TryFrom<Decimal> for Foreign {
    type Error = Error;

    /// Fails if the number needs more than 28 digits after the point or more than 96 bits. Zeros at its end are left
    /// out as needed.
    fn try_from(number: Decimal) -> Result<Foreign, Error> {
        let (mut unscaled, mut scale) = (number.unscaled(), u32::from(number.scale()));
        loop {
            match Foreign::try_from_i128_with_scale(unscaled, scale) {
                Ok(made) => return Ok(made),
                Err(_) if scale > 0 && unscaled % 10 == 0 => (unscaled, scale) = (unscaled / 10, scale - 1),
                Err(_) => return Err(outside(number, "rust_decimal::Decimal")),
            }
        }
    }
}

values_from! {
    Foreign => Decimal;
}

read_by! {
    Foreign, Decimal;
}
