//! Metrics as text, for Prometheus.
//!
//! Rules
//! 1. Every counter of the table by its name there: `highwater_NAME_total`, gauges `highwater_NAME`. The help of each
//!    names InnoDB's counter, where there is one.
//! 2. Base units: seconds and bytes. A counter of microseconds (`..._us`) is shown in seconds (`..._seconds`).
//! 3. The two formats differ in the line that names a counter's type (OpenMetrics has it without `_total`) and in the
//!    end.

use super::{CounterRow, LatencySnapshot};
use std::fmt::{Display, Write};

/// Upper bounds of the latency histograms, in microseconds.
const BOUNDS_US: [u64; 14] =
    [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 100_000, 1_000_000, 10_000_000];

/// In which format metrics are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsFormat {
    /// Prometheus' text format, version 0.0.4.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl MetricsFormat {
    /// The value of the HTTP header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The format that the value of an HTTP header `Accept` asks for.
    ///
    /// ```
    /// use highwater::stats::MetricsFormat;
    /// let asked = MetricsFormat::accepted("application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
    /// assert_eq!(asked, MetricsFormat::OpenMetrics);
    /// assert_eq!(MetricsFormat::accepted("*/*"), MetricsFormat::Prometheus);
    /// ```
    pub fn accepted(accept: &str) -> MetricsFormat {
        match accept.contains("application/openmetrics-text") {
            true => MetricsFormat::OpenMetrics,
            false => MetricsFormat::Prometheus,
        }
    }
}

/// Metrics being written.
pub(crate) struct MetricsText {
    out: String,
    format: MetricsFormat,
}

/// Microseconds, shown as seconds to the last digit.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl MetricsText {
    pub(crate) fn new(format: MetricsFormat) -> MetricsText {
        let mut text = MetricsText { out: String::new(), format };
        text.head("highwater_build_info", "gauge", "The version of the engine.");
        text.sample(format_args!("highwater_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), 1);
        text
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        debug_assert!(name.bytes().all(is_allowed), "{name} is no name of a metric");
        let family = match self.format {
            MetricsFormat::Prometheus => name,
            MetricsFormat::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        };
        let help = help.replace('\\', "\\\\").replace('\n', " ").replace('"', "'");
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "# HELP {family} {help}\n# TYPE {family} {kind}");
    }

    fn sample(&mut self, name: impl Display, value: impl Display) {
        let _ = writeln!(self.out, "{name} {value}");
    }

    /// A counter of the table, or a gauge.
    pub(crate) fn row(&mut self, row: &CounterRow) {
        let (kind, help) = match row.doc.strip_prefix("Gauge: ") {
            Some(help) => ("gauge", help),
            None => ("counter", row.doc),
        };
        let (name, is_us) = match (row.name.strip_suffix("_us"), row.name.strip_suffix("_s")) {
            (Some(name), _) => (format!("{name}_seconds"), true),
            (None, Some(name)) if !name.ends_with("_per") => (format!("{name}_seconds"), false),
            (None, Some(name)) => (format!("{name}_second"), false),
            (None, None) => (row.name.to_string(), false),
        };
        let total = if kind == "counter" { "_total" } else { "" };
        let name = format!("highwater_{name}{total}");
        let help = if is_us {
            help.replace("Microseconds", "Seconds").replace("microseconds", "seconds")
        } else {
            help.into()
        };
        let innodb = row.innodb.map(|name| format!(" InnoDB: {name}.")).unwrap_or_default();
        self.head(&name, kind, &format!("{help}{innodb}"));
        if is_us { self.sample(name, Seconds(row.value)) } else { self.sample(name, row.value) }
    }

    /// A gauge that is not in the table.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: u64) {
        let name = format!("highwater_{name}");
        self.head(&name, "gauge", help);
        self.sample(name, value);
    }

    pub(crate) fn latency(&mut self, name: &str, help: &str, found: &LatencySnapshot) {
        let name = format!("highwater_{name}_seconds");
        self.head(&name, "histogram", help);
        for bound in BOUNDS_US {
            let le = bound as f64 / 1e6;
            self.sample(format_args!("{name}_bucket{{le=\"{le:?}\"}}"), found.count_within_us(bound));
        }
        let (count, sum) = (found.count(), found.sum_us());
        self.sample(format_args!("{name}_bucket{{le=\"+Inf\"}}"), count);
        self.sample(format_args!("{name}_sum"), Seconds(sum));
        self.sample(format_args!("{name}_count"), count);
    }

    pub(crate) fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Histogram;
    use std::time::Duration;

    #[test]
    fn units_are_seconds_and_bytes() {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        let row = |name, doc, value| CounterRow { name, doc, innodb: Some("its_name"), value };
        text.row(&row("log_sync_us", "Microseconds spent in those syncs.", 2_500_007));
        text.row(&row("oldest_view_age_s", "Gauge: age of the oldest open snapshot, in seconds.", 3));
        text.row(&row("redo_bytes_per_s", "Gauge: redo generated per second.", 4));
        let histogram = Histogram::default();
        histogram.record(Duration::from_millis(20));
        text.latency("page_read", "How long.", &histogram.snapshot());
        let text = text.finish();
        for line in [
            concat!("highwater_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
            "# HELP highwater_log_sync_seconds_total Seconds spent in those syncs. InnoDB: its_name.",
            "# TYPE highwater_log_sync_seconds_total counter",
            "highwater_log_sync_seconds_total 2.500007",
            "highwater_oldest_view_age_seconds 3",
            "highwater_redo_bytes_per_second 4",
            "highwater_page_read_seconds_bucket{le=\"1e-5\"} 0",
            "highwater_page_read_seconds_bucket{le=\"0.025\"} 1",
            "highwater_page_read_seconds_sum 0.020000",
            "highwater_page_read_seconds_count 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn open_metrics_name_families_without_total_and_end() {
        let mut text = MetricsText::new(MetricsFormat::OpenMetrics);
        text.row(&CounterRow { name: "checkpoints", doc: "Checkpoints written.", innodb: None, value: 7 });
        let text = text.finish();
        assert!(text.contains("# TYPE highwater_checkpoints counter\nhighwater_checkpoints_total 7\n"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
