//! The page: heading, summary tiles, cards, footer, and the result as JSON.

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("cursor.js");
/// The closing text of every page.
const CLOSING: &str = "This page holds the whole result as JSON and loads nothing from elsewhere.";
/// Three waves.
const LOGO: &str = "M2 8c2.5 0 2.5 2 5 2s2.5-2 5-2 2.5 2 5 2 2.5-2 5-2\
                    M2 13.5c2.5 0 2.5 2 5 2s2.5-2 5-2 2.5 2 5 2 2.5-2 5-2\
                    M2 19c2.5 0 2.5 2 5 2s2.5-2 5-2 2.5 2 5 2 2.5-2 5-2";

/// The contents of a page.
#[derive(Default)]
pub struct Page<'p> {
    /// The window's title.
    pub title: &'p str,
    /// Above the heading: which part of Highwater made it.
    pub brand: &'p str,
    /// The heading.
    pub heading: &'p str,
    /// The workload and the subject.
    pub lead: &'p str,
    /// The summary.
    pub tiles: Vec<Tile>,
    /// Groups of cards, two in a row.
    pub groups: Vec<Vec<Markup>>,
    /// At the end.
    pub footer: &'p str,
    /// The whole result.
    pub json: &'p str,
}

impl Page<'_> {
    /// The page as text.
    pub fn html(&self) -> String {
        let json = PreEscaped(self.json.replace('<', "\\u003c"));
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    main {
                        header {
                            p.brand { svg viewBox="0 0 24 24" aria-hidden="true" { path d=(LOGO); } (self.brand) }
                            h1 { (self.heading) }
                            p.lead { (self.lead) }
                        }
                        section.tiles aria-label="Summary" { @for tile in &self.tiles { (tile) } }
                        @for group in &self.groups { section.cards { @for card in group { (card) } } }
                        footer { (self.footer) " " (CLOSING) }
                    }
                    script type="application/json" id="result" { (json) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }
}

/// The tone of a tile: good, bad or neutral.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
}

impl Tone {
    /// Good if `holds`, else bad.
    pub fn of(holds: bool) -> Tone {
        if holds { Tone::Good } else { Tone::Bad }
    }

    fn class(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Good => "good",
            Tone::Bad => "bad",
        }
    }
}

/// One figure of the summary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tile {
    name: String,
    value: String,
    unit: String,
    note: String,
    tone: Tone,
}

impl Tile {
    /// A figure with its unit (or none).
    pub fn new(name: &str, value: impl Into<String>, unit: &str) -> Tile {
        Tile { name: name.into(), value: value.into(), unit: unit.into(), ..Tile::default() }
    }

    /// With a note below.
    pub fn note(mut self, note: impl Into<String>) -> Tile {
        self.note = note.into();
        self
    }

    /// As good or bad news.
    pub fn tone(mut self, tone: Tone) -> Tile {
        self.tone = tone;
        self
    }
}

impl Render for Tile {
    fn render(&self) -> Markup {
        html! {
            div class={ "tile " (self.tone.class()) } {
                div.name { (self.name) }
                div.value { (self.value) @if !self.unit.is_empty() { small { (self.unit) } } }
                div.note { (self.note) }
            }
        }
    }
}

/// The width of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Half, if the window is wide enough.
    Half,
    /// All of it.
    Full,
}

/// A card with a heading.
pub fn card(title: &str, width: Width, body: Markup) -> Markup {
    let wide = width == Width::Full;
    html! { section.card.wide[wide] { h2 { (title) } (body) } }
}

/// A card of the full width that opens with a click.
pub fn folded(title: &str, open: bool, body: Markup) -> Markup {
    html! { section.card.wide { details open[open] { summary { h2 { (title) } } (body) } } }
}

/// Names and values in two columns.
pub fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Markup {
    html! {
        div.columns { table { @for (name, value) in pairs { tr { td.k { (name) } td.v { (value) } } } } }
    }
}

/// A word that says whether something holds: good, bad, or neither.
pub fn mark(tone: Tone, word: &str) -> Markup {
    html! { span.mark.bad[tone == Tone::Bad].plain[tone == Tone::Plain] { (word) } }
}

/// A bar of a share, for a cell.
pub fn bar(percent: f64) -> Markup {
    html! { span.bar style=(format!("width:{percent:.1}%")) {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_offline_and_whole() {
        let page = Page { title: "t", ..Page::default() }.html();
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    }

    #[test]
    fn no_text_becomes_markup() {
        let bad = "</script><b>&";
        let json = format!("{{\"a\":\"{bad}\"}}");
        let tile = Tile::new(bad, bad, bad).note(bad).tone(Tone::of(false));
        let cards = vec![
            card(bad, Width::Half, html! { (bad) }),
            folded(bad, true, pairs([(bad, bad)])),
            mark(Tone::Good, bad),
        ];
        let (tiles, groups) = (vec![tile], vec![cards]);
        let page =
            Page { title: bad, brand: bad, heading: bad, lead: bad, tiles, groups, footer: bad, json: &json }.html();
        assert_eq!((page.matches("<b>").count(), page.matches("</script>").count()), (0, 2));
        assert!(page.contains(r#"{"a":"\u003c/script>\u003cb>&"}"#));
    }
}
