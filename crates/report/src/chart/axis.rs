//! Axes: round ticks, and the positions of values.

use crate::numbers::short;
use maud::{Markup, html};

pub(super) const WIDTH: f64 = 590.0;
pub(super) const HEIGHT: f64 = 240.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 38.0;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// In proportion.
    #[default]
    Linear,
    /// By the logarithm of 1 + value: small values stay visible next to large ones.
    Logarithmic,
}

/// Both axes.
pub(super) struct Axes {
    x: [f64; 2],
    y: [f64; 2],
    scale: Scale,
    y_ticks: Vec<f64>,
}

impl Axes {
    /// From `x[0]` to `x[1]`, and from about `y[0]` to at least `y[1]`.
    pub(super) fn new(x: [f64; 2], y: [f64; 2], scale: Scale) -> Axes {
        let highest = if y[1].is_finite() && y[1] > y[0] { y[1] } else { y[0] + 1.0 };
        let y_ticks = if scale == Scale::Linear { ticks(y[0], highest, 5) } else { decades(highest) };
        Axes { x, y: [y_ticks[0], y_ticks[y_ticks.len() - 1]], scale, y_ticks }
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.y[0]) / (self.y[1] - self.y[0]),
            Scale::Logarithmic => (1.0 + value).ln() / (1.0 + self.y[1]).ln(),
        };
        HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }

    /// A name that is equal for charts with the same horizontal axis.
    pub(super) fn name(&self, label: &str) -> String {
        format!("{label} {} {}", self.x[0], self.x[1])
    }

    /// Ticks of a horizontal axis of numbers.
    pub(super) fn x_ticks(&self) -> Vec<(f64, String)> {
        ticks(self.x[0], self.x[1], 6).into_iter().filter(|t| *t <= self.x[1]).map(|t| (t, short(t))).collect()
    }

    /// A chart: grid, texts below, and `inner`.
    pub(super) fn svg(&self, label: &str, below: &[(f64, String)], x_label: &str, inner: Markup) -> Markup {
        let right = WIDTH - RIGHT;
        html! {
            svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
                @for (n, tick) in self.y_ticks.iter().enumerate() {
                    @let (class, y) = (if n == 0 { "base" } else { "grid" }, place(self.y(*tick)));
                    line class=(class) x1=(LEFT) x2=(right) y1=(y) y2=(y) {}
                    (text(LEFT - 8.0, self.y(*tick) + 4.0, "end", &short(*tick)))
                }
                @for (at, name) in below { (text(self.x(*at), HEIGHT - BOTTOM + 17.0, "middle", name)) }
                (text((LEFT + right) / 2.0, HEIGHT - 4.0, "middle", x_label))
                (inner)
            }
        }
    }

    /// A dashed line across, with its name above it.
    pub(super) fn limit(&self, value: f64, name: &str) -> Markup {
        let (y, right) = (self.y(value), WIDTH - RIGHT);
        html! {
            line.limit x1=(LEFT) x2=(right) y1=(place(y)) y2=(place(y)) {}
            (text(right, y - 6.0, "end", name))
        }
    }

    /// The line that the page's script moves.
    pub(super) fn cursor(&self) -> Markup {
        html! { line.cursor y1=(TOP) y2=(HEIGHT - BOTTOM) {} }
    }
}

/// A coordinate.
pub(super) fn place(value: f64) -> String {
    format!("{value:.1}")
}

pub(super) fn text(x: f64, y: f64, anchor: &str, text: &str) -> Markup {
    html! { text x=(place(x)) y=(place(y)) text-anchor=(anchor) { (text) } }
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

/// 0, 1, 10, 100 and so on to the first at or above `max`.
fn decades(max: f64) -> Vec<f64> {
    let mut ticks = vec![0.0, 1.0];
    while ticks[ticks.len() - 1] < max {
        ticks.push(ticks[ticks.len() - 1] * 10.0);
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_round() {
        assert_eq!(ticks(0.0, 2.57, 5), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let around_one = ticks(0.98, 1.3, 5);
        let (first, last) = (around_one[0], around_one[around_one.len() - 1]);
        assert!(first <= 0.98 && last >= 1.3 && first > 0.8, "{around_one:?}");
        assert_eq!(decades(120.0), [0.0, 1.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn an_axis_without_values_goes_to_one() {
        for (y, scale) in [([0.0, f64::NAN], Scale::Linear), ([0.0, f64::INFINITY], Scale::Logarithmic)] {
            let axes = Axes::new([0.0, 1.0], y, scale);
            assert_eq!((axes.y(0.0), axes.y(1.0)), (HEIGHT - BOTTOM, TOP));
        }
    }
}
