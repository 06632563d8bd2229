//! Reports: one offline page with a summary, charts, tables and the result as JSON.
//!
//! | module | owns |
//! |---|---|
//! | [`numbers`] | every number as text: bytes, SI prefixes, thousands, shares |
//! | [`page`] | the page, its tiles and cards, the style |
//! | [`table`] | tables |
//! | [`chart`] | lines, areas, stacks and bars as SVG |
//!
//! Rules
//! 1. A page holds everything: style, charts, script and data. It loads nothing from anywhere.
//! 2. Markup is made by [`html!`](maud::html) only, which escapes every text. In the JSON every `<` is written as
//!    `\u003c`, so that no text can end its element.
//! 3. A page says everything without its script. The script only reads values off the charts.

pub mod chart;
pub mod numbers;
pub mod page;
pub mod table;

pub use chart::{Bar, Bars, Chart, Kind, Line, Scale};
pub use maud::Markup;
pub use page::{Page, Tile, Tone, Width, bar, card, folded, mark, pairs};
pub use table::Table;
