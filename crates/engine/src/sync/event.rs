//! Events for a program's log: the main happenings of a database, for the crate `tracing`.
//!
//! Rules
//! 1. Without the feature `tracing` an event is nothing; its values are still computed, and must be at hand.
//! 2. Events are rare: none is in the way of a row. Their target is `highwater`; what happens all the time is counted
//!    instead (`stats`).

/// Tells of a happening: a level of `tracing`, values by name (shown by `Display`), the words.
#[cfg(feature = "tracing")]
macro_rules! event {
    ($level:ident, $($name:ident = $value:expr,)* $what:literal) => {
        tracing::event!(
            target: "highwater",
            tracing::Level::$level,
            $($name = tracing::field::display(&$value),)*
            $what
        )
    };
}

#[cfg(not(feature = "tracing"))]
macro_rules! event {
    ($level:ident, $($name:ident = $value:expr,)* $what:literal) => {{
        $(let _ = &$value;)*
    }};
}

pub(crate) use event;
