//! The loop of a replay.

use super::Progress;
use super::options::{Pace, ReplayOptions};
use super::plan::Plan;
use super::result::{GroupResult, ReplayResult, Speed, TimingResult, Totals, streams_of};
use super::sampler::Sampler;
use crate::error::{DeviceError, Result};
use crate::histogram::Latencies;
use crate::model::{BlockModel, Op, Request};
use crate::preset::DeviceConfig;
use crate::ssd::counters::Counters;
use crate::ssd::geometry::BLOCK_BYTES;
use crate::ssd::table::table;
use crate::trace::{Event, Trace};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Events between two calls of `progress`.
const PROGRESS_EVERY: usize = 1 << 16;
/// Maximum device time of a replay, far below the overflow of nanoseconds.
const TIME_NS_MAX: u64 = 100 * 366 * 86_400 * 1_000_000_000;
const HEAT_STRETCHES: u32 = 512;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// The counts of one pass.
struct PassState {
    start: Counters,
    started_ns: u64,
    first_event_ns: Option<u64>,
    end_ns: u64,
    read: Latencies,
    write: Latencies,
    flush: Latencies,
    heat: Vec<u64>,
    written: Box<[u64]>,
    group_written: Vec<u64>,
    group_read: Vec<u64>,
}

/// A replay under way.
pub(super) struct Run<'a> {
    model: Box<dyn BlockModel>,
    plan: &'a Plan,
    options: &'a ReplayOptions,
    config: &'a DeviceConfig,
    sampler: Sampler,
    host_blocks: u64,
    /// Requests of the pass.
    requests: u64,
    /// Completion times of the outstanding requests ([`Pace::QueueDepth`]).
    outstanding: BinaryHeap<Reverse<u64>>,
    now_ns: u64,
    state: PassState,
    passes: Vec<Totals>,
}

impl<'a> Run<'a> {
    /// Ready for the first pass on an aged device.
    pub(super) fn new(
        model: Box<dyn BlockModel>,
        plan: &'a Plan,
        options: &'a ReplayOptions,
        config: &'a DeviceConfig,
    ) -> Result<Run<'a>> {
        let every = options.sample_bytes.map_or(u64::from(model.capacity_blocks()) / 10, |bytes| bytes / BLOCK);
        let start = model.counters();
        Ok(Run {
            sampler: Sampler::new(every, start),
            state: PassState::new(start, 0, plan, model.capacity_blocks())?,
            model,
            plan,
            options,
            config,
            host_blocks: 0,
            requests: 0,
            outstanding: BinaryHeap::new(),
            now_ns: 0,
            passes: Vec::new(),
        })
    }

    /// Runs the trace once.
    pub(super) fn pass(&mut self, trace: &Trace, pass: u32, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        self.now_ns = self.now_ns.max(self.state.end_ns);
        self.outstanding.clear();
        self.state = PassState::new(self.model.counters(), self.now_ns, self.plan, self.model.capacity_blocks())?;
        let mut events = trace.events()?;
        let mut number = 0;
        while let Some(event) = events.next() {
            let event = event?;
            self.event(&event).map_err(|e| at_event(e, trace, number))?;
            number += 1;
            if number.is_multiple_of(PROGRESS_EVERY) {
                progress(Progress { pass, share: events.share(), host_blocks: self.host_blocks });
            }
            if self.sampler.is_due(self.host_blocks) {
                let since = event.time_ns.saturating_sub(self.state.first_event_ns.unwrap_or(0));
                self.sampler.take(pass, since, self.model.counters());
            }
        }
        self.requests = number as u64;
        self.passes.push(Totals::of(&self.model.counters().since(&self.state.start)));
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<()> {
        let capacity_blocks = u64::from(self.model.capacity_blocks());
        if event.lba.saturating_add(event.blocks) > capacity_blocks {
            return Err(DeviceError::OutOfRange { lba: event.lba, blocks: event.blocks, capacity_blocks });
        }
        let (lba, blocks) = (event.lba as u32, event.blocks as u32);
        let arrival = self.arrival(event.time_ns);
        if arrival > TIME_NS_MAX {
            let what = "the passes together take more than a hundred years of device time; use fewer --passes";
            return Err(DeviceError::Config(what.into()));
        }
        let mut done = arrival;
        let (model, state) = (&mut self.model, &mut self.state);
        match event.op {
            Op::Write => {
                self.plan.labels.split(lba, blocks, |lba, blocks, label| {
                    state.group_written[usize::from(label.group)] += u64::from(blocks);
                    done = done.max(model.submit(arrival, &Request::write(lba, blocks, label.stream))?);
                    Ok::<(), DeviceError>(())
                })?;
                state.count_written(lba, blocks, capacity_blocks);
                self.host_blocks += u64::from(blocks);
            }
            Op::Read => {
                self.plan.labels.split(lba, blocks, |_, blocks, label| {
                    state.group_read[usize::from(label.group)] += u64::from(blocks);
                    Ok::<(), DeviceError>(())
                })?;
                done = model.submit(arrival, &Request::read(lba, blocks))?;
            }
            op => done = model.submit(arrival, &Request { op, lba, blocks, stream: 0 })?,
        }
        self.complete(event.op, arrival, done);
        Ok(())
    }

    /// Time at which the request arrives at the device.
    fn arrival(&mut self, recorded_ns: u64) -> u64 {
        let first = *self.state.first_event_ns.get_or_insert(recorded_ns);
        match self.options.pace {
            Pace::Untimed => 0,
            Pace::AsRecorded => {
                self.now_ns = self.now_ns.max(self.state.started_ns.saturating_add(recorded_ns.saturating_sub(first)));
                self.now_ns
            }
            Pace::QueueDepth(depth) => {
                while self.outstanding.len() >= depth.max(1) as usize {
                    let Reverse(earliest) = self.outstanding.pop().unwrap_or_default();
                    self.now_ns = self.now_ns.max(earliest);
                }
                self.now_ns
            }
        }
    }

    #[inline]
    fn complete(&mut self, op: Op, arrival: u64, done: u64) {
        if !self.options.pace.is_timed() {
            return;
        }
        self.state.end_ns = self.state.end_ns.max(done);
        if matches!(self.options.pace, Pace::QueueDepth(_)) {
            self.outstanding.push(Reverse(done));
        }
        match op {
            Op::Read => self.state.read.record(done - arrival),
            Op::Write => self.state.write.record(done - arrival),
            Op::Flush => self.state.flush.record(done - arrival),
            Op::Discard => {}
        }
    }

    /// The result. `wall` is the time of ageing and all passes, `passes_wall` that of the passes.
    pub(super) fn finish(self, trace: &Trace, aged: Counters, wall: Duration, passes_wall: Duration) -> ReplayResult {
        let last = self.model.counters().since(&self.state.start);
        let capacity = self.model.capacity_blocks();
        ReplayResult {
            trace: trace.path().display().to_string(),
            device: self.config.clone(),
            capacity_bytes: u64::from(capacity) * BLOCK,
            age: self.options.age,
            pace: self.options.pace,
            ranges: self.plan.ranges.clone(),
            journal_found: self.plan.journal_found,
            requests: self.requests,
            totals: Totals::of(&last),
            age_totals: Totals::of(&aged),
            passes: self.passes,
            streams: streams_of(&last),
            groups: self.state.groups(self.plan, capacity),
            timing: self.options.pace.is_timed().then(|| self.state.timing()),
            heat_written_blocks: self.state.heat,
            samples: self.sampler.finish(),
            wear: self.model.wear(),
            speed: Speed {
                wall_s: wall.as_secs_f64(),
                host_blocks_per_s: self.host_blocks as f64 / passes_wall.as_secs_f64().max(1e-9),
            },
        }
    }
}

fn at_event(error: DeviceError, trace: &Trace, number: usize) -> DeviceError {
    DeviceError::Request { path: trace.path().into(), number: number as u64 + 1, source: Box::new(error) }
}

impl PassState {
    fn new(start: Counters, started_ns: u64, plan: &Plan, capacity: u32) -> Result<PassState> {
        Ok(PassState {
            start,
            started_ns,
            first_event_ns: None,
            end_ns: started_ns,
            read: Latencies::default(),
            write: Latencies::default(),
            flush: Latencies::default(),
            heat: vec![0; HEAT_STRETCHES.min(capacity) as usize],
            written: table((capacity as usize).div_ceil(64), 0)?,
            group_written: vec![0; plan.groups.len()],
            group_read: vec![0; plan.groups.len()],
        })
    }

    /// Counts a write under the stretches it touches and marks its blocks.
    fn count_written(&mut self, lba: u32, blocks: u32, capacity: u64) {
        let stretches = self.heat.len() as u64;
        let stretch = |lba: u32| (u64::from(lba) * stretches / capacity) as usize;
        let (first, last) = (stretch(lba), stretch(lba + blocks - 1));
        if first == last {
            self.heat[first] += u64::from(blocks);
        } else {
            (lba..lba + blocks).for_each(|lba| self.heat[stretch(lba)] += 1);
        }
        for lba in lba..lba + blocks {
            self.written[(lba / 64) as usize] |= 1 << (lba % 64);
        }
    }

    fn groups(&self, plan: &Plan, capacity: u32) -> Vec<GroupResult> {
        let (mut touched, written) = (vec![0u64; plan.groups.len()], &self.written);
        let _: std::result::Result<(), ()> = plan.labels.split(0, capacity, |first, blocks, label| {
            let marked = (first..first + blocks).filter(|lba| written[(lba / 64) as usize] >> (lba % 64) & 1 == 1);
            touched[usize::from(label.group)] += marked.count() as u64;
            Ok(())
        });
        let sizes = plan.group_blocks(capacity);
        let per = |writes: u64, blocks: u64| if blocks == 0 { 0.0 } else { writes as f64 / blocks as f64 };
        let group = |(i, name): (usize, &String)| GroupResult {
            name: name.clone(),
            bytes: u64::from(sizes[i]) * BLOCK,
            written_bytes: self.group_written[i] * BLOCK,
            read_bytes: self.group_read[i] * BLOCK,
            writes_per_block: per(self.group_written[i], sizes[i].into()),
            writes_per_written_block: per(self.group_written[i], touched[i]),
        };
        plan.groups.iter().enumerate().map(group).collect()
    }

    fn timing(&self) -> TimingResult {
        TimingResult {
            device_s: (self.end_ns - self.started_ns) as f64 / 1e9,
            read: self.read.summary(),
            write: self.write.summary(),
            flush: self.flush.summary(),
        }
    }
}
