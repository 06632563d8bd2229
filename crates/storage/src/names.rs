//! Enums with named values, for command lines, results and messages.

/// Gives a type `ALL` (its values), `name` (the name of one), `named` (the value of a name) and `names` (all names, for
/// messages). A value without a name does not compile.
#[macro_export]
macro_rules! names {
    ($type:ident { $($value:ident => $name:literal),+ $(,)? }) => {
        #[allow(unreachable_pub, reason = "as visible as the type, which may be private")]
        impl $type {
            /// Every value, in order.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$value),+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)+
                }
            }

            /// The value of that name.
            #[allow(dead_code)]
            pub fn named(name: &str) -> Option<$type> {
                $type::ALL.into_iter().find(|value| value.name() == name)
            }

            /// All names, for a message: `a, b, c`.
            #[allow(dead_code)]
            pub fn names() -> String {
                $type::ALL.map($type::name).join(", ")
            }
        }
    };
}

/// Shows a type that has [`names!`](crate::names) by the names of its values.
#[macro_export]
macro_rules! shown_by_name {
    ($type:ident) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// Reads a type that has [`names!`](crate::names) by the names of its values; capital and small letters are the same.
#[macro_export]
macro_rules! read_by_name {
    ($type:ident) => {
        impl std::str::FromStr for $type {
            type Err = String;

            /// Reads a name, in capital or small letters; the error has all names.
            fn from_str(text: &str) -> std::result::Result<$type, String> {
                let found = $type::ALL.into_iter().find(|value| value.name().eq_ignore_ascii_case(text));
                found.ok_or_else(|| format!("{text:?} is not one of {}", $type::names()))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Colour {
        Red,
        Green,
    }

    names!(Colour { Red => "red", Green => "green" });
    shown_by_name!(Colour);
    read_by_name!(Colour);

    #[test]
    fn values_are_read_as_they_are_shown() {
        assert_eq!((format!("{:>6}", Colour::Red), "GREEN".parse()), ("   red".to_string(), Ok(Colour::Green)));
        assert_eq!("blue".parse::<Colour>().unwrap_err(), "\"blue\" is not one of red, green");
    }

    #[test]
    fn names_lead_back_to_their_values() {
        for colour in Colour::ALL {
            assert_eq!(Colour::named(colour.name()), Some(colour));
        }
        assert_eq!((Colour::named("blue"), Colour::names().as_str()), (None, "red, green"));
    }
}
