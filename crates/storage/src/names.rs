//! Enums whose values have names: on command lines, in results, in messages.

/// Gives a type `ALL` (its values), `name` (the name of one), `named` (the value of a name) and `names` (all names, for
/// messages). A value without a name does not compile.
#[macro_export]
macro_rules! names {
    ($type:ident { $($value:ident => $name:literal),+ $(,)? }) => {
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

#[cfg(test)]
mod tests {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Colour {
        Red,
        Green,
    }

    names!(Colour { Red => "red", Green => "green" });

    #[test]
    fn names_lead_back_to_their_values() {
        for colour in Colour::ALL {
            assert_eq!(Colour::named(colour.name()), Some(colour));
        }
        assert_eq!((Colour::named("blue"), Colour::names().as_str()), (None, "red, green"));
    }
}
