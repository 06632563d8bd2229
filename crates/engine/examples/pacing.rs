//! Plots the flush policy: how fast the flush list's tail moves and how fast users may write, over the checkpoint age,
//! and a modelled load that outruns its device, with and without pacing.
//!
//! `cargo run -p highwater --example pacing -- pacing.svg` writes the picture; without a name it prints the numbers.

use highwater::Options;
use highwater::internals::{Limits, Load, Sample, run, speed};
use std::fmt::Write;

const SECONDS: usize = 120;
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 220.0;

fn main() -> std::io::Result<()> {
    let limits = Limits::new(&Options::default());
    let load = Load { device_pages_per_s: 4_000.0, ..Load::default() };
    let paced = run(&load, limits, SECONDS);
    let unpaced = run(&Load { pacing: false, ..load }, limits, SECONDS);
    match std::env::args().nth(1) {
        Some(name) => std::fs::write(name, picture(&limits, &paced, &unpaced)),
        None => {
            print!("{}", numbers(&limits, &paced, &unpaced));
            Ok(())
        }
    }
}

fn numbers(limits: &Limits, paced: &[Sample], unpaced: &[Sample]) -> String {
    let mut out = String::from("age_pct,speed_of_redo_rate\n");
    for age in (0..=limits.async_pct as u32).step_by(5) {
        let _ = writeln!(out, "{age},{:.3}", speed(f64::from(age), limits));
    }
    out.push_str("\nsecond,redo_mb_per_s,age_pct,flushed_per_s,without_pacing_redo_mb_per_s,without_pacing_age_pct\n");
    for (second, (with, without)) in paced.iter().zip(unpaced).enumerate() {
        let (rate, age) = (with.redo_bytes_per_s / 1e6, with.age_pct);
        let (other, other_age) = (without.redo_bytes_per_s / 1e6, without.age_pct);
        let _ = writeln!(out, "{second},{rate:.2},{age:.1},{:.0},{other:.2},{other_age:.1}", with.flushed_per_s);
    }
    out
}

fn picture(limits: &Limits, paced: &[Sample], unpaced: &[Sample]) -> String {
    let curve = (0..=100).map(|age| (f64::from(age), speed(f64::from(age), limits).min(3.0)));
    let rates = |samples: &[Sample]| per_second(samples, |s| s.redo_bytes_per_s / 1e6);
    let ages = |samples: &[Sample]| per_second(samples, |s| s.age_pct);
    let charts = [
        chart("Flushing in units of the redo rate, over the checkpoint age in % of the log", 3.0, &[curve.collect()]),
        chart("Redo of users, MB/s, by second: paced (blue), not paced (red)", 20.0, &[rates(paced), rates(unpaced)]),
        chart(
            "Checkpoint age, % of the log, by second: paced (blue), not paced (red)",
            100.0,
            &[ages(paced), ages(unpaced)],
        ),
    ];
    let all = (HEIGHT + 60.0) * charts.len() as f64;
    let mut svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{all}\">\n", WIDTH + 80.0);
    for (row, chart) in charts.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate(50,{})\">{chart}</g>", row as f64 * (HEIGHT + 60.0) + 30.0);
    }
    svg + "</svg>\n"
}

fn per_second(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    samples.iter().enumerate().map(|(second, sample)| (second as f64, value(sample))).collect()
}

fn chart(title: &str, top: f64, lines: &[Vec<(f64, f64)>]) -> String {
    let right = lines.iter().flatten().map(|(x, _)| *x).fold(1.0, f64::max);
    let mut out = format!("<text y=\"-8\" font-family=\"sans-serif\" font-size=\"13\">{title}</text>");
    let _ = write!(out, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>");
    for (share, anchor) in [(0.0, HEIGHT), (0.5, HEIGHT / 2.0), (1.0, 0.0)] {
        let y = anchor + 4.0;
        let _ = write!(out, "<text x=\"-8\" y=\"{y}\" text-anchor=\"end\" font-size=\"11\">{}</text>", top * share);
        let x = WIDTH * share;
        let _ = write!(out, "<text x=\"{x}\" y=\"{}\" font-size=\"11\">{:.0}</text>", HEIGHT + 14.0, right * share);
    }
    for (line, color) in lines.iter().zip(["#2563eb", "#dc2626"]) {
        let place = |(x, y): &(f64, f64)| format!("{:.1},{:.1}", x / right * WIDTH, HEIGHT * (1.0 - y.min(top) / top));
        let points: Vec<String> = line.iter().map(place).collect();
        let _ = write!(out, "<polyline fill=\"none\" stroke=\"{color}\" points=\"{}\"/>", points.join(" "));
    }
    out
}
