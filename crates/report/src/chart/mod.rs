//! Charts as SVG: lines, areas and stacks over numbers, groups of bars over categories ([`Chart`]), bars ([`Bars`]).
//!
//! Rules
//! 1. Ticks are round numbers; the vertical axis begins at 0 unless the chart says otherwise.
//! 2. Colours are the classes `s0` to `s6`, so that the page's light and dark styles hold. They differ in lightness
//!    too, for readers who do not tell all hues apart. A line of the source document has the colour of our line of the
//!    same name.
//! 3. Lines, dots and bars have a `<title>`, which browsers show on hovering. Values that are not numbers are left out.
//! 4. The points of a line carry their place and their text (`data-points`): the page's script shows them and computes
//!    nothing.

mod axis;
mod bars;
mod lines;

pub use axis::Scale;
pub use bars::{Bar, Bars};
pub use lines::{Chart, Kind, Line};

use maud::{Markup, html};

const COLOURS: usize = 7;

/// The class of the `n`th colour.
fn colour(n: usize) -> String {
    format!("s{}", n % COLOURS)
}

/// The head of a chart's card: title, unit, and where the cursor is.
fn head(title: &str, unit: &str, caption: &str) -> Markup {
    html! {
        div.head { h2 { (title) span.unit { (unit) } } span.at {} }
        @if !caption.is_empty() { p.caption { (caption) } }
    }
}
