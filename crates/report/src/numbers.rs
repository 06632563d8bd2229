//! Numbers as text, the same everywhere.
//!
//! Rules
//! 1. Sizes are binary (KiB, MiB), named as such; all other prefixes are decimal (k, M, G).
//! 2. A value that is not a number is a dash.

/// Separates thousands: narrow, and no line breaks there.
const NARROW_SPACE: char = '\u{202f}';
const NOTHING: &str = "–";

/// 1234567 as `1 234 567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(NARROW_SPACE);
        }
        out.push(digit);
    }
    out
}

/// A number of a table: three significant digits, or all of those before the decimal point.
pub fn figure(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    match value.abs() {
        v if !v.is_finite() => NOTHING.into(),
        0.0 => "0".into(),
        v if v >= 100.0 => format!("{sign}{}", thousands(v.round() as u64)),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A number of a chart: as [`figure`], shorter by a decimal prefix and without zeros at the end.
pub fn short(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let scaled =
        |unit: f64, prefix: &str| trimmed(value / unit, if value.abs() / unit >= 100.0 { 0 } else { 2 }) + prefix;
    match value.abs() {
        v if !v.is_finite() => NOTHING.into(),
        v if v >= 1e9 => scaled(1e9, " G"),
        v if v >= 1e6 => scaled(1e6, " M"),
        v if v >= 1e5 => scaled(1e3, " k"),
        v if v >= 100.0 => format!("{sign}{}", thousands(v.round() as u64)),
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

/// Bytes with a binary unit.
pub fn bytes(count: u64) -> String {
    let (amount, unit) = bytes_and_unit(count);
    format!("{amount} {unit}")
}

/// Bytes, and the binary unit they are counted in.
pub fn bytes_and_unit(count: u64) -> (String, &'static str) {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    (if unit == 0 { count.to_string() } else { format!("{value:.1}") }, UNITS[unit])
}

/// Microseconds as milliseconds.
pub fn ms(us: f64) -> String {
    figure(us / 1000.0)
}

/// A part of a whole in percent; 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([12, 1_234_567].map(thousands), ["12", "1\u{202f}234\u{202f}567"]);
    }

    #[test]
    fn figures_have_three_significant_digits() {
        let shown = [0.0, 0.1234, 1.234, 12.34, 1234.5, -1234.4, f64::NAN].map(figure);
        assert_eq!(shown, ["0", "0.123", "1.23", "12.3", "1\u{202f}235", "-1\u{202f}234", "–"]);
    }

    #[test]
    fn numbers_of_charts_are_short() {
        let shown = [0.0, 0.1234, 12.34, 1234.5, 123_456.0, 2_345_678.0].map(short);
        assert_eq!(shown, ["0", "0.123", "12.3", "1\u{202f}235", "123 k", "2.35 M"]);
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!([0, 1023, 1024, 1 << 20, 3 << 40].map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "3.0 TiB"]);
        assert_eq!((percent(1, 4), percent(0, 0), ms(1500.0)), (25.0, 0.0, "1.50".to_string()));
    }
}
