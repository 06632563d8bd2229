//! Two kinds of chart as SVG text: lines over a number, and bars.
//!
//! Rules
//! 1. Values axes begin at 0 unless told otherwise; ticks are round numbers.
//! 2. Colours are CSS classes `c0` to `c5`, so that the page's light and dark styles hold.
//! 3. Every bar and line names itself in a `<title>`, which browsers show on hovering.

use super::escape;
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// One line of a chart.
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points, ascending in x.
    pub points: Vec<(f64, f64)>,
}

/// One bar: a label and its stacked parts.
pub struct Bar {
    /// Text on hovering.
    pub label: String,
    /// Text below the bar, if any.
    pub tick: Option<String>,
    /// Values from the bottom up, one per series.
    pub parts: Vec<f64>,
    /// Replaces the colour of the first part.
    pub class: Option<usize>,
}

/// How values become heights.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// In proportion.
    Linear,
    /// By the logarithm of 1 + value: small values stay visible beside large ones.
    Logarithmic,
}

struct Frame {
    x_max: f64,
    y_max: f64,
    scale: Scale,
    out: String,
}

impl Frame {
    fn new(x_max: f64, y_max: f64, scale: Scale, y_label: &str) -> Frame {
        let ticks = if scale == Scale::Linear { linear_ticks(y_max) } else { decades(y_max) };
        let y_max = ticks.last().copied().unwrap_or(1.0);
        let mut frame = Frame { x_max: if x_max > 0.0 { x_max } else { 1.0 }, y_max, scale, out: String::new() };
        let label = escape(y_label);
        let _ = write!(frame.out, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">");
        for tick in ticks {
            let (y, text, right) = (frame.y(tick), number(tick), WIDTH - RIGHT);
            let (text_x, text_y) = (LEFT - 6.0, y + 4.0);
            let _ = write!(
                frame.out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{text_x}\" y=\"{text_y:.1}\" text-anchor=\"end\">{text}</text>"
            );
        }
        frame
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + value / self.x_max * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => value / self.y_max,
            Scale::Logarithmic => (1.0 + value).ln() / (1.0 + self.y_max).ln(),
        };
        HEIGHT - BOTTOM - share.min(1.0) * (HEIGHT - TOP - BOTTOM)
    }

    fn x_ticks(&mut self) {
        let (step, _) = nice(self.x_max);
        let mut tick = 0.0;
        while tick <= self.x_max {
            self.text_below(self.x(tick), &number(tick));
            tick += step;
        }
    }

    fn text_below(&mut self, x: f64, text: &str) {
        let _ = write!(
            self.out,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM + 16.0,
            escape(text)
        );
    }

    fn finish(mut self, x_label: &str) -> String {
        let _ = write!(
            self.out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text></svg>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 6.0,
            escape(x_label)
        );
        self.out
    }
}

/// Lines over a common x axis from 0.
pub fn lines(lines: &[Line], x_label: &str, y_label: &str) -> String {
    let points = || lines.iter().flat_map(|l| &l.points);
    let x_max = points().fold(0.0, |max: f64, p| max.max(p.0));
    let y_max = points().fold(0.0, |max: f64, p| max.max(p.1));
    let mut frame = Frame::new(x_max, y_max, Scale::Linear, y_label);
    frame.x_ticks();
    for (i, line) in lines.iter().enumerate() {
        let mut path = String::new();
        for (n, (x, y)) in line.points.iter().enumerate() {
            let _ = write!(path, "{}{:.1} {:.1}", if n == 0 { "M" } else { "L" }, frame.x(*x), frame.y(*y));
        }
        let name = escape(&line.name);
        let _ = write!(frame.out, "<path class=\"line c{}\" d=\"{path}\"><title>{name}</title></path>", i % 6);
    }
    let names: Vec<&str> = lines.iter().map(|l| l.name.as_str()).collect();
    legend(&names) + &frame.finish(x_label)
}

/// Bars side by side. `series` names the stacked parts.
pub fn bars(bars: &[Bar], series: &[&str], scale: Scale, x_label: &str, y_label: &str) -> String {
    let y_max = bars.iter().map(|b| b.parts.iter().sum()).fold(0.0, f64::max);
    let mut frame = Frame::new(bars.len() as f64, y_max, scale, y_label);
    let gap = if bars.len() > 64 { 0.0 } else { 0.1 };
    for (i, bar) in bars.iter().enumerate() {
        let (from, to) = (frame.x(i as f64 + gap), frame.x(i as f64 + 1.0 - gap));
        let mut base = 0.0;
        for (n, part) in bar.parts.iter().enumerate() {
            let (top, bottom) = (frame.y(base + part), frame.y(base));
            base += part;
            let class = if n == 0 { bar.class.unwrap_or(0) } else { n };
            let _ = write!(
                frame.out,
                "<rect class=\"fill c{class}\" x=\"{from:.2}\" width=\"{:.2}\" y=\"{top:.2}\" height=\"{:.2}\"><title>{}: {}</title></rect>",
                to - from,
                bottom - top,
                escape(&bar.label),
                number(*part)
            );
        }
        if let Some(tick) = &bar.tick {
            frame.text_below((from + to) / 2.0, tick);
        }
    }
    legend(series) + &frame.finish(x_label)
}

fn legend(names: &[&str]) -> String {
    let entry = |(i, name): (usize, &&str)| format!("<span><i class=\"back c{}\"></i>{}</span>", i % 6, escape(name));
    format!("<div class=\"legend\">{}</div>", names.iter().enumerate().map(entry).collect::<String>())
}

/// A round step that divides an axis into 4 to 10 parts, and the axis' end: the first multiple at or above `max`.
fn nice(max: f64) -> (f64, f64) {
    if !max.is_finite() || max <= 0.0 {
        return (0.5, 1.0);
    }
    let power = 10f64.powf((max / 5.0).log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| max / s <= 6.0).unwrap_or(power * 10.0);
    (step, (max / step - 1e-9).ceil() * step)
}

/// Round numbers from 0 to the first at or above `max`.
fn linear_ticks(max: f64) -> Vec<f64> {
    let (step, end) = nice(max);
    (0..=(end / step).round() as u32).map(|i| f64::from(i) * step).collect()
}

/// 0, 1, 10, 100 and so on to the first at or above `max`.
fn decades(max: f64) -> Vec<f64> {
    let mut ticks = vec![0.0, 1.0];
    while max.is_finite() && ticks.last().is_some_and(|t| *t < max) {
        ticks.push(ticks.last().map_or(1.0, |t| t * 10.0));
    }
    ticks
}

/// A number with as many digits as a reader wants.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{:.1} G", value / 1e9),
        v if v >= 1e6 => format!("{:.1} M", value / 1e6),
        v if v >= 1e4 => format!("{:.0} k", value / 1e3),
        v if v >= 100.0 || v.fract() == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (max, step, end) in
            [(2.57, 0.5, 3.0), (100.0, 20.0, 100.0), (0.0, 0.5, 1.0), (7.0, 2.0, 8.0), (61.0, 20.0, 80.0)]
        {
            assert_eq!(nice(max), (step, end), "{max}");
        }
        assert_eq!(nice(f64::NAN), (0.5, 1.0));
        assert_eq!(linear_ticks(2.57), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!(decades(120.0), [0.0, 1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(decades(f64::NAN), [0.0, 1.0]);
    }

    #[test]
    fn charts_are_well_formed_and_escape_names() {
        let line = Line { name: "a<b".into(), points: vec![(0.0, 1.0), (2.0, 3.0)] };
        let chart = lines(&[line], "x", "y");
        assert!(chart.contains("a&lt;b") && !chart.contains("a<b"));
        assert_eq!(chart.matches("<svg").count(), chart.matches("</svg>").count());
        let bar = Bar { label: "s0".into(), tick: None, parts: vec![1.0, 2.0], class: None };
        let chart = bars(&[bar], &["host", "copies"], Scale::Logarithmic, "", "GiB");
        assert_eq!(chart.matches("<rect").count(), 2);
        assert!(!chart.contains("NaN") && !lines(&[], "", "").contains("NaN"));
    }
}
