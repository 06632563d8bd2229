//! The resolved names and rules of a replay: the stream of each block, and the named range that counts it.

use super::options::ReplayOptions;
use crate::error::{DeviceError, Result};
use crate::labels::Labels;
use crate::preset::DeviceConfig;
use crate::trace::Trace;
use crate::trace::ranges::{self, NamedRange, StreamRule};

/// The label of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The stream its writes go to.
    pub stream: u8,
    /// Index into [`Plan::groups`].
    pub group: u8,
}

/// A resolved replay.
pub struct Plan {
    /// The label of each block.
    pub labels: Labels<Label>,
    /// Names of the counted groups; the first has all unnamed blocks.
    pub groups: Vec<String>,
    /// The named ranges.
    pub ranges: Vec<NamedRange>,
    /// Whether the journal's range was derived from the trace.
    pub journal_found: bool,
}

impl Plan {
    /// Reads the file map, finds journal and doublewrite buffer, resolves the rules.
    pub fn new(options: &ReplayOptions, trace: &Trace, config: &DeviceConfig) -> Result<Plan> {
        let found = ranges::file_map_of(trace.path());
        let files = match options.files.as_ref().or(found.as_ref()) {
            Some(path) => ranges::read_files(path)?,
            None => Vec::new(),
        };
        let mut named = options.ranges.clone();
        named.extend(ranges::doublewrite(&files));
        if named.iter().all(|r| r.name != "journal") {
            named.extend(files.iter().filter(|f| f.name == "journal").cloned());
        }
        let asked = options.rules.iter().any(|r| r.what == "journal");
        let journal_found = named.iter().all(|r| r.name != "journal") && (asked || !files.is_empty());
        let capacity = config.capacity_blocks();
        let found = if journal_found { ranges::find_journal(trace, &files, capacity)? } else { None };
        let journal_found = found.is_some();
        named.extend(found);
        Plan::resolve(&options.rules, named, files, capacity).map(|plan| Plan { journal_found, ..plan })
    }

    /// Labels the blocks of files and rules. Groups are the named ranges and the ranges in rules.
    fn resolve(rules: &[StreamRule], named: Vec<NamedRange>, files: Vec<NamedRange>, capacity: u32) -> Result<Plan> {
        let mut plan = Plan {
            labels: Labels::all(Label { stream: 0, group: 0 }),
            groups: vec!["other".into()],
            ranges: named.clone(),
            journal_found: false,
        };
        for range in &named {
            plan.paint(range, None, &range.name, capacity)?;
        }
        let all: Vec<NamedRange> = named.iter().chain(&files).cloned().collect();
        for rule in rules {
            for range in rule.resolve(&all)? {
                plan.paint(&range, Some(rule.stream), &rule.what, capacity)?;
            }
        }
        Ok(plan)
    }

    fn paint(&mut self, range: &NamedRange, stream: Option<u8>, group: &str, capacity: u32) -> Result<()> {
        range.check(capacity)?;
        let group = self.group(group)?;
        let mut pieces = Vec::new();
        let _: std::result::Result<(), ()> =
            self.labels.split(range.first_lba, range.blocks, |first, blocks, label| {
                pieces.push((first, blocks, label));
                Ok(())
            });
        for (first, blocks, old) in pieces {
            // A rule that covers named ranges does not merge their counts.
            let group = if stream.is_some() && old.group != 0 { old.group } else { group };
            self.labels.paint(first, blocks, Label { stream: stream.unwrap_or(old.stream), group });
        }
        Ok(())
    }

    fn group(&mut self, name: &str) -> Result<u8> {
        if let Some(at) = self.groups.iter().position(|g| g == name) {
            return Ok(at as u8);
        }
        if self.groups.len() > 250 {
            let what = "more than 250 different names".into();
            return Err(DeviceError::Rule { rule: name.into(), what });
        }
        self.groups.push(name.into());
        Ok(self.groups.len() as u8 - 1)
    }

    /// Blocks of each group on a device of `capacity` blocks.
    pub fn group_blocks(&self, capacity: u32) -> Vec<u32> {
        let mut blocks = vec![0; self.groups.len()];
        let _: std::result::Result<(), ()> = self.labels.split(0, capacity, |_, n, label| {
            blocks[usize::from(label.group)] += n;
            Ok(())
        });
        blocks
    }
}
