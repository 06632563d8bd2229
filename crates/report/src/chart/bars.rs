//! Bars next to each other, of one or more parts.

use super::axis::{Axes, Scale};
use super::{colour, head};
use crate::numbers::short;
use maud::{Markup, html};

/// Bars next to each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// Heading.
    pub title: String,
    /// Label of the horizontal axis.
    pub x_label: String,
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// The scale of the vertical axis.
    pub scale: Scale,
    /// Names of the parts.
    pub parts: Vec<String>,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Text on hovering.
    pub label: String,
    /// Text below the bar, if any.
    pub tick: Option<String>,
    /// Values from the bottom up, one per part.
    pub parts: Vec<f64>,
    /// The colour of the first part, if it is not the first colour.
    pub colour: usize,
}

impl Bars {
    /// The bars in a card.
    pub fn card(&self) -> Markup {
        html! {
            section.card.chart {
                (head(&self.title, &self.y_label, ""))
                div.legend {
                    @for (n, name) in self.parts.iter().enumerate() { span class=(colour(n)) { i {} (name) } }
                }
                (self.svg())
            }
        }
    }

    fn svg(&self) -> Markup {
        let highest = self.bars.iter().map(|bar| bar.parts.iter().sum()).fold(0.0, f64::max);
        let axes = Axes::new([0.0, self.bars.len().max(1) as f64], [0.0, highest], self.scale);
        let tick = |(n, bar): (usize, &Bar)| bar.tick.clone().map(|text| (n as f64 + 0.5, text));
        let below: Vec<(f64, String)> = self.bars.iter().enumerate().filter_map(tick).collect();
        let inner = html! { @for (n, bar) in self.bars.iter().enumerate() { (self.bar(n as f64, bar, &axes)) } };
        axes.svg(&format!("{} ({})", self.title, self.y_label), &below, &self.x_label, inner)
    }

    fn bar(&self, n: f64, bar: &Bar, axes: &Axes) -> Markup {
        let gap = if self.bars.len() > 64 { 0.0 } else { 0.1 };
        let (from, to) = (axes.x(n + gap), axes.x(n + 1.0 - gap));
        let base = |part: usize| bar.parts[..part].iter().sum::<f64>();
        html! {
            @for (n, part) in bar.parts.iter().enumerate().filter(|(_, part)| part.is_finite()) {
                @let (top, bottom) = (axes.y(base(n) + part), axes.y(base(n)));
                rect class={ "bar " (colour(if n == 0 { bar.colour } else { n })) }
                    x=(format!("{from:.2}")) width=(format!("{:.2}", to - from))
                    y=(format!("{top:.2}")) height=(format!("{:.2}", bottom - top)) {
                    title { (bar.label) ": " (short(*part)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_a_bar_of_its_own() {
        let bar = Bar { label: "a<b".into(), parts: vec![1.0, 2.0, f64::NAN], ..Bar::default() };
        let bars = Bars { parts: vec!["host".into(), "copies".into()], bars: vec![bar], ..Bars::default() };
        let text = bars.card().into_string();
        assert_eq!(text.matches("<rect").count(), 2);
        assert!(text.contains("a&lt;b: 2") && !text.contains("NaN"), "{text}");
        assert!(!Bars::default().card().into_string().contains("NaN"));
    }
}
