//! What was counted, as a table: contended lines with their ceilings, then the places of what is rarer.
//!
//! Rule: figures are for each transaction.

use super::directory::{Count, Shared};
use super::trace::Trace;
use super::{RARE, TRANSFER_NS, symbols};
use std::collections::HashMap;
use std::path::Path;

const HEAD: &str = "| lines | transfers | visits | ceiling, transactions/s | used by |\n|---|---|---|---|---|";
/// Places named for each line, and places named of rare transfers.
const PLACES_A_LINE: usize = 4;
const RARE_PLACES: usize = 6;

/// Prints the table; returns how many lines are contended.
///
/// # Errors
/// Places in the source cannot be looked up.
pub(super) fn print(program: &Path, workload: &str, cores: u8, trace: Trace) -> Result<usize, String> {
    let transactions = trace.directory.transactions();
    if transactions == 0 {
        return Err(format!("{workload}: no transaction was measured\n{}", trace.messages.join("\n")));
    }
    let shared = trace.directory.shared();
    let mut addresses: Vec<u64> = shared.iter().flat_map(|line| &line.places).map(|(place, _)| *place).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let names = if addresses.is_empty() { HashMap::new() } else { symbols::name(program, &addresses)? };
    let table = Table { workload, cores, transactions, names };
    let (text, contended) = table.text(&shared);
    println!("{text}");
    Ok(contended)
}

struct Table<'a> {
    workload: &'a str,
    cores: u8,
    transactions: u64,
    names: HashMap<u64, String>,
}

impl Table<'_> {
    fn text(&self, shared: &[Shared]) -> (String, usize) {
        let (contended, rare): (Vec<&Shared>, Vec<&Shared>) =
            shared.iter().partition(|line| line.count.transfers * RARE > self.transactions);
        let transfers = |lines: &[&Shared]| self.each(lines.iter().map(|line| line.count.transfers).sum());
        let mut lines = vec![format!(
            "{}, {} cores, {} transactions: {} contended lines, {:.2} transfers of them a transaction; {:.2} of others",
            self.workload,
            self.cores,
            self.transactions,
            contended.len(),
            transfers(&contended),
            transfers(&rare)
        )];
        if !contended.is_empty() {
            lines.push(HEAD.to_string());
            lines.extend(self.rows(&contended));
        }
        let rare = self.rare(&rare);
        lines.extend(
            rare.iter().map(|(name, transfers, many)| {
                format!("  rare: {:.2} on {many} lines at {name}", self.each(*transfers))
            }),
        );
        (lines.join("\n") + "\n", contended.len())
    }

    fn each(&self, count: u64) -> f64 {
        count as f64 / self.transactions as f64
    }

    /// A row for the lines that the same code uses, those with the least ceiling first.
    fn rows(&self, contended: &[&Shared]) -> Vec<String> {
        let mut groups: HashMap<String, Vec<Count>> = HashMap::new();
        for line in contended {
            groups.entry(self.users(line)).or_default().push(line.count);
        }
        let max = |counts: &[Count]| counts.iter().map(|count| count.visits).max().unwrap_or(0).max(1);
        let mut groups: Vec<(String, Vec<Count>)> = groups.into_iter().collect();
        groups.sort_by(|(a, x), (b, y)| max(y).cmp(&max(x)).then_with(|| a.cmp(b)));
        let row = |(users, counts): &(String, Vec<Count>)| {
            let sum = |of: fn(&Count) -> u64| self.each(counts.iter().map(of).sum());
            let ceiling = grouped((1e9 / (self.each(max(counts)) * TRANSFER_NS)) as u64);
            let (transfers, visits) = (sum(|count| count.transfers), sum(|count| count.visits));
            format!("| {} | {transfers:.2} | {visits:.2} | {ceiling} | {users} |", counts.len())
        };
        groups.iter().map(row).collect()
    }

    /// The code that uses a line, in the order of the transfers there.
    fn users(&self, line: &Shared) -> String {
        let mut names: Vec<&str> = Vec::new();
        for (place, _) in &line.places {
            let name = self.name(*place);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = names.len().saturating_sub(PLACES_A_LINE);
        names.truncate(PLACES_A_LINE);
        let more = if more == 0 { String::new() } else { format!("; {more} more places") };
        names.join("; ") + &more
    }

    /// Transfers of lines that are not contended, by place: their sums and numbers of lines, most first.
    fn rare(&self, lines: &[&Shared]) -> Vec<(&str, u64, usize)> {
        let mut places: HashMap<&str, (u64, usize)> = HashMap::new();
        for (place, count) in lines.iter().flat_map(|line| &line.places).filter(|(_, count)| count.transfers > 0) {
            let (sum, lines) = places.entry(self.name(*place)).or_default();
            *sum += count.transfers;
            *lines += 1;
        }
        let mut places: Vec<_> = places.into_iter().map(|(name, (sum, lines))| (name, sum, lines)).collect();
        places.sort_by_key(|(name, sum, _)| (std::cmp::Reverse(*sum), *name));
        places.truncate(RARE_PLACES);
        places
    }

    fn name(&self, place: u64) -> &str {
        self.names.get(&place).map_or("?", String::as_str)
    }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_least_ceiling_comes_first_and_rare_ones_are_summed() {
        let names = HashMap::from([(1, "log.rs:1 append".to_string()), (2, "log.rs:2 reserve".to_string())]);
        let table = Table { workload: "update", cores: 4, transactions: 100, names };
        let count = |transfers, visits| Count { transfers, visits };
        let line = |address, places: &[(u64, Count)]| {
            let sum =
                places.iter().fold(Count::default(), |a, (_, b)| count(a.transfers + b.transfers, a.visits + b.visits));
            Shared { address, count: sum, places: places.to_vec() }
        };
        let shared = [
            line(0, &[(1, count(100, 100))]),
            line(192, &[(1, count(100, 100))]),
            line(64, &[(2, count(90, 100)), (1, count(0, 100))]),
            line(128, &[(2, count(24, 25))]),
        ];
        let (text, contended) = table.text(&shared);
        assert_eq!(contended, 3);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].ends_with("3 contended lines, 2.90 transfers of them a transaction; 0.24 of others"),
            "{text}"
        );
        assert_eq!(lines[3], "| 1 | 0.90 | 2.00 | 5,000,000 | log.rs:2 reserve; log.rs:1 append |");
        assert_eq!(lines[4], "| 2 | 2.00 | 2.00 | 10,000,000 | log.rs:1 append |");
        assert_eq!(lines[5], "  rare: 0.24 on 1 lines at log.rs:2 reserve");
    }
}
