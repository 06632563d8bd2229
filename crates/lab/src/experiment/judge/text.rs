//! Numbers as text, for claims, notes and tables.

pub(in crate::experiment) use highwater_report::numbers::figure as number;

/// Numbers in a row: `1, 2, 3`.
pub(in crate::experiment) fn list(values: &[f64]) -> String {
    values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", ")
}

/// A number with `digits` after the point; a dash for `None`.
pub(in crate::experiment) fn table_number(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".into(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(list(&[1.234, 12.34, 12_345.6, f64::NAN]), "1.23, 12.3, 12\u{202f}346, –");
        assert_eq!((table_number(Some(1.2345), 3), table_number(None, 3)), ("1.234".into(), "–".into()));
    }
}
