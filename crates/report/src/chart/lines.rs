//! Lines, areas and stacks over numbers; over categories, between which there is nothing, bars.

use super::axis::{Axes, Scale, place};
use super::{colour, head};
use crate::numbers::short;
use maud::{Markup, html};

/// Width of the bars of a category, where the next category is 1 away.
const GROUP: f64 = 0.8;

/// Lines of more points than these are drawn without dots.
const MAX_DOTS: usize = 40;

/// Lines over numbers, or groups of bars over categories: then each line is one bar of every group, or with
/// [`Kind::Stack`] one part of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Heading.
    pub title: String,
    /// The caption.
    pub caption: String,
    /// Label of the horizontal axis.
    pub x_label: String,
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Names of the places x = 0, 1, 2 and so on; empty: x are numbers.
    pub categories: Vec<String>,
    /// An axis of numbers goes at least to here.
    pub x_to: f64,
    /// Start of the vertical axis; `None`, and for bars: 0.
    pub y_from: Option<f64>,
    /// A value that the lines stay below, and its name; drawn once they come near it.
    pub limit: Option<(f64, String)>,
    /// The style of the lines.
    pub kind: Kind,
    /// The lines; those without points are left out.
    pub lines: Vec<Line>,
}

/// The style of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// As lines.
    #[default]
    Lines,
    /// As lines with the area below them filled.
    Area,
    /// As areas one above the other; those that are zero throughout are left out. All have the same x.
    Stack,
}

/// A line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y), ascending in x.
    pub points: Vec<[f64; 2]>,
    /// The source document's: drawn dashed.
    pub paper: bool,
}

impl Line {
    /// Its name; for a line of the paper, marked as such.
    fn title(&self) -> String {
        format!("{}{}", self.name, if self.paper { " (paper)" } else { "" })
    }
}

/// A line as it is drawn.
struct Drawn<'c> {
    line: &'c Line,
    colour: String,
    points: Vec<[f64; 2]>,
    /// The lower edge of the area below the line, by point.
    base: Vec<f64>,
}

impl Drawn<'_> {
    fn tops(&self) -> impl Iterator<Item = [f64; 2]> + '_ {
        self.points.iter().zip(&self.base).map(|(point, base)| [point[0], base + point[1]])
    }
}

impl Chart {
    /// The chart in a card.
    pub fn card(&self) -> Markup {
        let drawn = self.drawn();
        let axes = self.axes(&drawn);
        html! {
            section.card.chart data-axis=(axes.name(&self.x_label)) {
                (head(&self.title, &self.y_label, &self.caption))
                div.legend {
                    @for Drawn { line, colour, .. } in &drawn {
                        span class=(colour) { i class=[line.paper.then_some("paper")] {} (line.title()) output {} }
                    }
                }
                @if drawn.is_empty() { p.empty { "There is nothing to draw." } }
                @else { (self.svg(&drawn, &axes)) }
            }
        }
    }

    /// The lines to draw: colours, heights on the stack.
    fn drawn(&self) -> Vec<Drawn<'_>> {
        let mut names: Vec<&str> = Vec::new();
        let mut tops: Vec<f64> = Vec::new();
        let mut drawn = Vec::new();
        for line in &self.lines {
            let known = names.iter().position(|name| *name == line.name);
            let n = known.unwrap_or(names.len());
            if known.is_none() {
                names.push(&line.name);
            }
            let points: Vec<[f64; 2]> =
                line.points.iter().copied().filter(|p| p.iter().all(|v| v.is_finite())).collect();
            if points.is_empty() || self.kind == Kind::Stack && points.iter().all(|p| p[1] == 0.0) {
                continue;
            }
            tops.resize(points.len(), 0.0);
            let base = if self.kind == Kind::Stack { tops.clone() } else { vec![0.0; points.len()] };
            tops.iter_mut().zip(&points).for_each(|(top, point)| *top += point[1]);
            drawn.push(Drawn { line, colour: colour(n), points, base });
        }
        drawn
    }

    fn axes(&self, drawn: &[Drawn<'_>]) -> Axes {
        let highest = drawn.iter().flat_map(Drawn::tops).map(|p| p[1]).fold(f64::MIN, f64::max);
        let limit = self.limit_to_draw(highest).map_or(f64::MIN, |(value, _)| value * 1.05);
        let widest = drawn.iter().flat_map(|d| &d.points).map(|p| p[0]).fold(self.x_to, f64::max);
        let x = match self.categories.len() {
            0 => [0.0, widest.max(1e-9)],
            n => [-0.5, n as f64 - 0.5],
        };
        let y_from = self.y_from.filter(|_| !self.has_bars()).unwrap_or(0.0);
        Axes::new(x, [y_from, highest.max(limit)], Scale::Linear)
    }

    fn has_bars(&self) -> bool {
        !self.categories.is_empty()
    }

    fn limit_to_draw(&self, highest: f64) -> Option<&(f64, String)> {
        self.limit.as_ref().filter(|(value, _)| *value > 0.0 && highest > value * 0.3)
    }

    fn svg(&self, drawn: &[Drawn<'_>], axes: &Axes) -> Markup {
        let below = match self.categories.as_slice() {
            [] => axes.x_ticks(),
            names => names.iter().enumerate().map(|(n, name)| (n as f64, name.clone())).collect(),
        };
        let highest = drawn.iter().flat_map(Drawn::tops).map(|p| p[1]).fold(f64::MIN, f64::max);
        let inner = html! {
            @for (n, line) in drawn.iter().enumerate() {
                @if self.has_bars() { (self.bars(line, [n, drawn.len()], axes)) } @else { (self.line(line, axes)) }
            }
            @if let Some((value, name)) = self.limit_to_draw(highest) { (axes.limit(*value, name)) }
            (axes.cursor())
        };
        axes.svg(&format!("{} ({})", self.title, self.y_label), &below, &self.x_label, inner)
    }

    fn line(&self, line: &Drawn<'_>, axes: &Axes) -> Markup {
        let tops: Vec<[f64; 2]> = line.tops().collect();
        let bottoms: Vec<[f64; 2]> = line.points.iter().zip(&line.base).rev().map(|(p, base)| [p[0], *base]).collect();
        let top = path(&tops, axes);
        let area = (self.kind != Kind::Lines).then(|| format!("{top}L{}Z", &path(&bottoms, axes)[1..]));
        let area_class = if self.kind == Kind::Stack { "stack" } else { "area" };
        let title = line.line.title();
        html! {
            g class=(line.colour) data-points=(self.readings(line, axes)) {
                @if let Some(area) = area { path class=(area_class) d=(area) { title { (title) } } }
                @if self.kind != Kind::Stack {
                    path.line.paper[line.line.paper] d=(top) { title { (title) } }
                    @if tops.len() <= MAX_DOTS {
                        @for top in &tops {
                            circle.dot cx=(place(axes.x(top[0]))) cy=(place(axes.y(top[1]))) r="3" {
                                title { (title) ": " (short(top[1])) }
                            }
                        }
                    }
                    circle.mark r="4" {}
                }
            }
        }
    }

    /// The bars of a line, the `n`th of this many in each group.
    fn bars(&self, line: &Drawn<'_>, [n, lines]: [usize; 2], axes: &Axes) -> Markup {
        let [n, lines] = if self.kind == Kind::Stack { [0, 1] } else { [n, lines] };
        let width = GROUP / lines as f64;
        let from = n as f64 * width - GROUP / 2.0;
        let title = line.line.title();
        html! {
            g class=(line.colour) data-points=(self.readings(line, axes)) {
                @for (top, base) in line.tops().zip(&line.base) {
                    @let [left, right] = [from, from + width].map(|x| axes.x(top[0] + x));
                    @let [upper, lower] = [top[1], *base].map(|y| axes.y(y));
                    rect.bar.paper[line.line.paper]
                        x=(place(left)) width=(place(right - left)) y=(place(upper)) height=(place(lower - upper)) {
                        title { (title) ": " (short(top[1] - base)) }
                    }
                }
            }
        }
    }

    /// For the page's script: of each point the place, and x and y as text.
    fn readings(&self, line: &Drawn<'_>, axes: &Axes) -> String {
        let reading = |(point, top): (&[f64; 2], [f64; 2])| {
            let at = self.categories.get(point[0] as usize).cloned();
            let at = at.unwrap_or_else(|| format!("at {}", short(point[0])));
            format!("{}\t{}\t{at}\t{}", place(axes.x(top[0])), place(axes.y(top[1])), short(point[1]))
        };
        line.points.iter().zip(line.tops()).map(reading).collect::<Vec<_>>().join("\n")
    }
}

fn path(points: &[[f64; 2]], axes: &Axes) -> String {
    let mut path = String::new();
    for (n, point) in points.iter().enumerate() {
        path += if n == 0 { "M" } else { "L" };
        path += &format!("{} {}", place(axes.x(point[0])), place(axes.y(point[1])));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(kind: Kind) -> Chart {
        let line = Line { name: "a<b".into(), points: vec![[0.0, 1.0], [1.0, f64::NAN], [2.0, 3.0]], paper: false };
        let paper = Line { paper: true, ..line.clone() };
        let none = Line { name: "none".into(), points: vec![[0.0, 0.0], [2.0, 0.0]], paper: false };
        Chart { kind, lines: vec![line, paper, none], ..Chart::default() }
    }

    fn with_categories(kind: Kind) -> Chart {
        Chart { categories: vec!["x".into(), "y".into(), "z".into()], y_from: Some(0.9), ..chart(kind) }
    }

    /// The number after `name="` in each bar.
    fn of_bars(text: &str, name: &str) -> Vec<f64> {
        let bars = text.split("<rect").skip(1);
        bars.map(|bar| bar.split(&format!("{name}=\"")).nth(1).and_then(|n| n.split('"').next()?.parse().ok()).unwrap())
            .collect()
    }

    #[test]
    fn over_categories_lines_are_bars_next_to_each_other() {
        let text = with_categories(Kind::Lines).card().into_string();
        assert_eq!((text.matches("<rect").count(), text.matches("bar paper").count()), (6, 2), "{text}");
        assert!(!text.contains("<path") && !text.contains("<circle") && !text.contains("NaN"), "{text}");
        let (left, width, height) = (of_bars(&text, " x"), of_bars(&text, " width"), of_bars(&text, " height"));
        assert!((left[2] - left[0] - width[0]).abs() < 0.2, "ours and the paper's touch: {left:?} {width:?}");
        assert!((height[1] - 3.0 * height[0]).abs() < 0.3, "bars begin at 0: {height:?}");
        assert!(text.contains("\tz\t3"), "the script's texts name the category: {text}");
    }

    #[test]
    fn over_categories_a_stack_is_bars_on_each_other() {
        let text = with_categories(Kind::Stack).card().into_string();
        let (left, top, height) = (of_bars(&text, " x"), of_bars(&text, " y"), of_bars(&text, " height"));
        assert_eq!((left.len(), left[0]), (4, left[2]));
        assert!((top[2] + height[2] - top[0]).abs() < 0.2, "{top:?} {height:?}");
    }

    #[test]
    fn charts_are_whole_and_escape_names() {
        let text = chart(Kind::Lines).card().into_string();
        assert!(text.contains("a&lt;b") && !text.contains("a<b") && !text.contains("NaN"), "{text}");
        assert_eq!(text.matches("class=\"dot\"").count(), 6);
        assert!(Chart::default().card().into_string().contains("nothing to draw"));
    }

    #[test]
    fn a_line_of_the_paper_has_the_colour_of_ours() {
        let chart = chart(Kind::Lines);
        let colours: Vec<String> = chart.drawn().into_iter().map(|d| d.colour).collect();
        assert_eq!(colours, ["s0", "s0", "s1"]);
    }

    #[test]
    fn stacks_stand_on_each_other_and_leave_out_what_is_zero() {
        let chart = chart(Kind::Stack);
        let tops: Vec<Vec<[f64; 2]>> = chart.drawn().iter().map(|d| d.tops().collect()).collect();
        assert_eq!(tops, [[[0.0, 1.0], [2.0, 3.0]], [[0.0, 2.0], [2.0, 6.0]]]);
    }

    #[test]
    fn a_limit_is_drawn_once_the_lines_come_near_it() {
        let near = |value: f64| Chart { limit: Some((value, "limit".into())), ..chart(Kind::Area) };
        assert!(near(5.0).card().into_string().contains("class=\"limit\""));
        assert!(!near(50.0).card().into_string().contains("class=\"limit\""));
    }
}
