//! Live counters of a mount as text.

use crate::mount::MountSample;
use highwater_report::numbers::bytes;
use std::fmt::Write;

/// One line: the rates since the previous sample.
pub fn mount_line(sample: &MountSample) -> String {
    let (interval, totals) = (&sample.interval, &sample.totals);
    format!(
        "{:>7.0} s  write {:>8.1} MiB/s  read {:>8.1} MiB/s  {:>7.0} flushes/s  WAF {:>6.3} (so far {:.3})",
        sample.elapsed_s,
        interval.written_blocks_per_s / 256.0,
        interval.read_blocks_per_s / 256.0,
        interval.flushes_per_s,
        interval.write_amplification,
        totals.write_amplification
    )
}

/// Everything since the counters began, as tables.
pub fn mount_table(sample: &MountSample) -> String {
    let (mut out, totals) = (String::new(), &sample.totals);
    for (name, value) in [
        ("write amplification", format!("{:.3}", totals.write_amplification)),
        ("host written (hbmw)", bytes(totals.host_written_bytes)),
        ("media written (mbmw)", bytes(totals.media_written_bytes)),
        ("media erased (mbe)", bytes(totals.media_erased_bytes)),
        ("absorbed in the buffer", bytes(totals.absorbed_bytes)),
        ("waiting in the buffer", bytes(totals.waiting_bytes)),
        ("host read", bytes(totals.host_read_bytes)),
        ("flushes", totals.flushes.to_string()),
        ("data stored", bytes(sample.stored_bytes)),
    ] {
        let _ = writeln!(out, "  {name:<22} {value:>12}");
    }
    let _ = writeln!(out, "\n{:>8} {:>12} {:>12} {:>8}", "stream", "host", "copied", "WAF");
    for s in &sample.streams {
        let (host, copied) = (bytes(s.host_written_bytes), bytes(s.copied_bytes));
        let _ = writeln!(out, "{:>8} {host:>12} {copied:>12} {:>8.3}", s.stream, s.write_amplification);
    }
    if !sample.pages.is_empty() {
        let heads = ["region", "page type", "reads", "read", "writes", "written"];
        let [region, kind, reads, read, writes, written] = heads;
        let _ = writeln!(out, "\n{region:<8} {kind:<12} {reads:>10} {read:>12} {writes:>10} {written:>12}");
    }
    for p in &sample.pages {
        let (read, written) = (bytes(p.read_bytes), bytes(p.written_bytes));
        let _ =
            writeln!(out, "{:<8} {:<12} {:>10} {read:>12} {:>10} {written:>12}", p.region, p.kind, p.reads, p.writes);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount::sample::Interval;
    use crate::mount::traffic::PageCount;
    use crate::replay::result::Totals;

    #[test]
    fn live_counters_are_readable() {
        let interval = Interval {
            seconds: 1.0,
            written_blocks_per_s: 256.0,
            read_blocks_per_s: 0.0,
            flushes_per_s: 3.0,
            write_amplification: 1.25,
        };
        let page = PageCount {
            region: "journal".into(),
            kind: "INDEX".into(),
            reads: 0,
            read_bytes: 0,
            writes: 2,
            written_bytes: 32768,
        };
        let totals = Totals { host_written_bytes: 1 << 20, flushes: 3, write_amplification: 1.5, ..Totals::default() };
        let (streams, pages, wear) = (vec![], vec![page], None);
        let sample = MountSample { elapsed_s: 12.0, totals, streams, pages, interval, wear, stored_bytes: 0 };
        let line = mount_line(&sample);
        assert!(line.contains("1.0 MiB/s") && line.contains("1.250") && line.contains("1.500"), "{line}");
        let table = mount_table(&sample);
        assert!(table.contains("journal  INDEX") && table.contains("32.0 KiB"), "{table}");
    }
}
