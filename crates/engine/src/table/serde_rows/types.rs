//! The engine's value types as serde writes and reads them: as text.

use super::text;
use crate::table::{Date, DateTime, Decimal, Time, Uuid};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

macro_rules! as_text {
    ($($type:ty, $show:expr, $read:expr, $name:literal;)*) => {
        $(
            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(&$show(self))
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                    struct OfText;

                    impl Visitor<'_> for OfText {
                        type Value = $type;

                        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                            f.write_str($name)
                        }

                        fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                            $read(text).map_err(E::custom)
                        }
                    }
                    deserializer.deserialize_str(OfText)
                }
            }
        )*
    };
}

/// A point in time with its offset.
struct Utc<'a>(&'a DateTime);

impl fmt::Display for Utc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", self.0)
    }
}

as_text! {
    Decimal, |number: &Decimal| *number, str::parse::<Decimal>, "a decimal number";
    DateTime, Utc, text::point_in_time, "a point in time";
    Date, |day: &Date| *day, text::day, "a date";
    Time, |time: &Time| *time, text::time_of_day, "a time of day";
    Uuid, |uuid: &Uuid| *uuid, str::parse::<Uuid>, "a UUID";
}
