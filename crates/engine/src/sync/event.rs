//! Events for a program's log, through the crate `tracing`: openings, recoveries, checkpoints, failures.
//!
//! Rules
//! 1. Without the feature `tracing` an event has no effect; its values are still computed, so they must be cheap.
//! 2. Events are rare: no row operation emits one. Their target is `highwater`. Frequent events are counted instead
//!    (`stats`).

/// Emits an event: its level of `tracing`, values by name (shown by `Display`), the message.
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
