//! Charts as SVG text: lines with dots over categories, or over numbers.
//!
//! Rules
//! 1. Ticks are round numbers; the vertical axis begins at 0 unless the chart says otherwise.
//! 2. Colours are classes, so that the page's light and dark styles hold. A subject's line and the paper's line of the same name share a colour.
//! 3. Every line and dot names itself in a `<title>`, which browsers show on hovering.

use crate::experiment::{Chart, Line};
use highwater_bench::report::escape;
use std::fmt::Write;

const WIDTH: f64 = 590.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 40.0;
/// More points than these are drawn without dots.
const MAX_DOTS: usize = 40;
const COLOURS: usize = 7;

struct Plot<'c> {
    chart: &'c Chart,
    x: [f64; 2],
    y: [f64; 2],
    out: String,
}

/// The chart in a card.
pub(super) fn html(chart: &Chart) -> String {
    let caption = match chart.caption.as_str() {
        "" => String::new(),
        text => format!("<p class=\"caption\">{}</p>", escape(text)),
    };
    let (title, unit) = (escape(&chart.title), escape(&chart.y_label));
    format!(
        "<section class=\"card chart\"><div class=\"head\"><h2>{title}<span class=\"unit\">{unit}</span></h2></div>{caption}{}{}</section>\n",
        legend(chart),
        svg(chart)
    )
}

/// Which colour each line has: the paper's that of the line of the same name, if there is one.
fn colours(chart: &Chart) -> Vec<usize> {
    let mut names: Vec<&str> = Vec::new();
    let mut colours = Vec::new();
    for line in &chart.lines {
        let name = line.name.as_str();
        let known = names.iter().position(|n| *n == name);
        colours.push(known.unwrap_or(names.len()) % COLOURS);
        if known.is_none() {
            names.push(name);
        }
    }
    colours
}

fn legend(chart: &Chart) -> String {
    let entry = |(line, colour): (&Line, usize)| {
        let (class, note) = if line.paper { (" class=\"paper\"", " (paper)") } else { ("", "") };
        format!("<span class=\"s{colour}\"><i{class}></i>{}{note}</span>", escape(&line.name))
    };
    let entries: String = chart.lines.iter().zip(colours(chart)).map(entry).collect();
    format!("<div class=\"legend\">{entries}</div>")
}

fn svg(chart: &Chart) -> String {
    let points = || chart.lines.iter().flat_map(|line| &line.points).filter(|p| p[0].is_finite() && p[1].is_finite());
    let highest = points().map(|p| p[1]).fold(f64::MIN, f64::max);
    let from = chart.y_from.unwrap_or(0.0);
    let ticks = ticks(from, if highest > from { highest } else { from + 1.0 }, 5);
    let y = [ticks[0], ticks[ticks.len() - 1]];
    let x = match chart.categories.len() {
        0 => [0.0, points().map(|p| p[0]).fold(0.0, f64::max).max(1e-9)],
        n => [-0.5, n as f64 - 0.5],
    };
    let mut plot = Plot { chart, x, y, out: String::new() };
    plot.axes(&ticks);
    for (line, colour) in chart.lines.iter().zip(colours(chart)) {
        plot.line(line, colour);
    }
    let label = escape(&format!("{} ({})", chart.title, chart.y_label));
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">{}</svg>",
        plot.out
    )
}

impl Plot<'_> {
    fn at(&self, point: [f64; 2]) -> (f64, f64) {
        let share = |value: f64, [from, to]: [f64; 2]| (value - from) / (to - from);
        let (x, y) = (share(point[0], self.x), share(point[1], self.y));
        (LEFT + x * (WIDTH - LEFT - RIGHT), TOP + (1.0 - y) * (HEIGHT - TOP - BOTTOM))
    }

    // Writing to a String cannot fail.
    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let text = escape(text);
        let _ = write!(self.out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    }

    fn axes(&mut self, y_ticks: &[f64]) {
        for (n, tick) in y_ticks.iter().enumerate() {
            let (_, y) = self.at([self.x[0], *tick]);
            let (class, right) = (if n == 0 { "base" } else { "grid" }, WIDTH - RIGHT);
            let _ =
                write!(self.out, "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
            self.text(LEFT - 7.0, y + 4.0, "end", &number(*tick));
        }
        let places: Vec<(f64, String)> = match self.chart.categories.as_slice() {
            [] => ticks(0.0, self.x[1], 6).into_iter().filter(|t| *t <= self.x[1]).map(|t| (t, number(t))).collect(),
            names => names.iter().enumerate().map(|(n, name)| (n as f64, name.clone())).collect(),
        };
        for (place, name) in places {
            let (x, _) = self.at([place, self.y[0]]);
            self.text(x, HEIGHT - BOTTOM + 17.0, "middle", &name);
        }
        self.text((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 5.0, "middle", &self.chart.x_label);
    }

    fn line(&mut self, line: &Line, colour: usize) {
        let points: Vec<[f64; 2]> =
            line.points.iter().copied().filter(|p| p[0].is_finite() && p[1].is_finite()).collect();
        let path: String = points
            .iter()
            .enumerate()
            .map(|(n, point)| {
                let (x, y) = self.at(*point);
                format!("{}{x:.1} {y:.1}", if n == 0 { "M" } else { "L" })
            })
            .collect();
        let (paper, note) = if line.paper { (" paper", " (paper)") } else { ("", "") };
        let name = escape(&line.name);
        let _ = write!(
            self.out,
            "<g class=\"s{colour}\"><path class=\"line{paper}\" d=\"{path}\"><title>{name}{note}</title></path>"
        );
        if points.len() <= MAX_DOTS {
            for point in &points {
                let (x, y) = self.at(*point);
                let value = number(point[1]);
                let _ = write!(
                    self.out,
                    "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{name}{note}: {value}</title></circle>"
                );
            }
        }
        self.out += "</g>";
    }
}

/// Round numbers about `count` apart, from the last one at or below `from` to the first at or above `to`.
fn ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    let raw = (to - from) / count as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= raw * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((from / step + 1e-9).floor() as i64, (to / step - 1e-9).ceil() as i64);
    (first..=last.max(first + 1)).map(|n| n as f64 * step).collect()
}

/// A number with as many digits as a reader wants.
pub(super) fn number(value: f64) -> String {
    let scaled = |unit: f64, name: &str| trimmed(value / unit, if value.abs() / unit >= 100.0 { 0 } else { 2 }) + name;
    match value.abs() {
        v if !v.is_finite() => "–".into(),
        v if v >= 1e9 => scaled(1e9, " G"),
        v if v >= 1e6 => scaled(1e6, " M"),
        v if v >= 1e5 => scaled(1e3, " k"),
        v if v >= 100.0 => trimmed(value, 0),
        v if v >= 10.0 => trimmed(value, 1),
        v if v >= 1.0 => trimmed(value, 2),
        _ => trimmed(value, 3),
    }
}

fn trimmed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_round() {
        assert_eq!(ticks(0.0, 2.57, 5), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let around_one = ticks(0.98, 1.3, 5);
        assert!(
            around_one[0] <= 0.98 && around_one[around_one.len() - 1] >= 1.3 && around_one[0] > 0.8,
            "{around_one:?}"
        );
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.1234, 12.34, 1234.5, 123_456.0, 2_345_678.0].map(number);
        assert_eq!(shown, ["0", "0.123", "12.3", "1234", "123 k", "2.35 M"]);
    }

    #[test]
    fn charts_are_whole_and_escape_names() {
        let line = Line { name: "a<b".into(), points: vec![[0.0, 1.0], [1.0, f64::NAN], [2.0, 3.0]], paper: false };
        let paper = Line { paper: true, ..line.clone() };
        let chart =
            Chart { title: "t".into(), categories: vec!["x".into(); 3], lines: vec![line, paper], ..Chart::default() };
        let text = html(&chart);
        assert!(text.contains("a&lt;b") && !text.contains("a<b") && !text.contains("NaN"), "{text}");
        assert_eq!(text.matches("<circle").count(), 4);
        assert_eq!(colours(&chart), [0, 0]);
        assert!(!html(&Chart::default()).contains("NaN"));
    }
}
