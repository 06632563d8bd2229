//! Processor time: of the whole machine and of one process.
//!
//! Rules
//! 1. Times are read from `/proc`; where they cannot be read there are none, never zero.
//! 2. Busy is all that is not idle: time taken by other programs and by the hypervisor is not available to the subject
//!    either.

use std::path::Path;

/// The kernel's unit of time in `/proc`, on every platform of Linux.
const TICKS_PER_S: f64 = 100.0;

/// Processor time of the machine and of a process up to one point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTimes {
    machine: Option<Machine>,
    process_ticks: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Machine {
    busy: u64,
    /// Of that, the time that the hypervisor withheld (`steal`).
    withheld: u64,
    all: u64,
}

/// Processor use between two points in time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuUse {
    /// Utilization of all processors by all programs, in percent.
    pub machine_pct: Option<f64>,
    /// Share of all processors' time that the hypervisor withheld while programs were runnable (`steal`), in percent.
    pub withheld_pct: Option<f64>,
    /// Seconds of processor time of the process.
    pub process_s: Option<f64>,
}

impl CpuTimes {
    /// The processor times until now, of the machine and of the process `pid`.
    pub fn now(pid: u32) -> CpuTimes {
        let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
        CpuTimes {
            machine: machine(&read("/proc/stat")),
            process_ticks: process_ticks(&read(&format!("/proc/{pid}/stat"))),
        }
    }

    /// The processor use since `earlier`.
    pub fn since(&self, earlier: &CpuTimes) -> CpuUse {
        let process = self.process_ticks.zip(earlier.process_ticks);
        let machine = self.machine.zip(earlier.machine);
        CpuUse {
            machine_pct: machine.and_then(|(now, before)| share(now, before, |machine| machine.busy)),
            withheld_pct: machine.and_then(|(now, before)| share(now, before, |machine| machine.withheld)),
            process_s: process.map(|(now, before)| now.saturating_sub(before) as f64 / TICKS_PER_S),
        }
    }
}

fn share(now: Machine, before: Machine, of: impl Fn(&Machine) -> u64) -> Option<f64> {
    let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
    Some(of(&now).saturating_sub(of(&before)) as f64 * 100.0 / all as f64)
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user and nice
/// already.
fn machine(text: &str) -> Option<Machine> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
    let all = ticks.iter().sum::<u64>();
    let idle = ticks.get(3)? + ticks.get(4)?;
    // Kernels before 2.6.11 have no steal.
    Some(Machine { busy: all - idle, withheld: ticks.get(7).copied().unwrap_or(0), all })
}

/// utime and stime of `/proc/PID/stat`. The program's name, in brackets, may hold anything.
fn process_ticks(text: &str) -> Option<u64> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    Some(times.next()? + times.next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let found = machine("cpu  100 5 50 800 40 2 3 10 7 0\ncpu0 1 1 1 1 1 1 1 1\n");
        assert_eq!(found, Some(Machine { busy: 170, withheld: 10, all: 1010 }));
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194304 100 0 0 0 250 75 0 0 20 0 1 0 5 6 7";
        assert_eq!(process_ticks(stat), Some(325));
        for garbage in ["", "cpu", "cpu  1 2 3", "42 (x", "42 (x) S 1 2"] {
            assert_eq!((machine(garbage), process_ticks(garbage)), (None, None), "{garbage}");
        }
    }

    #[test]
    fn use_is_the_difference_and_nothing_without_both_ends() {
        let at = |busy, all, ticks| {
            let machine = Machine { busy, withheld: busy / 10, all };
            CpuTimes { machine: Some(machine), process_ticks: Some(ticks) }
        };
        let used = at(250, 400, 130).since(&at(100, 200, 30));
        assert_eq!(used, CpuUse { machine_pct: Some(75.0), withheld_pct: Some(7.5), process_s: Some(1.0) });
        assert_eq!(at(1, 1, 1).since(&CpuTimes::default()), CpuUse::default());
        assert_eq!(at(1, 1, 1).since(&at(1, 1, 1)).machine_pct, None);
    }

    #[test]
    fn this_process_has_times() {
        let before = CpuTimes::now(std::process::id());
        let started = std::time::Instant::now();
        let mut used = CpuUse::default();
        // Until it has had the processor for a tick of the system's clock.
        while used.process_s <= Some(0.0) || used.machine_pct <= Some(0.0) {
            assert!(started.elapsed() < std::time::Duration::from_secs(60), "{used:?}");
            used = CpuTimes::now(std::process::id()).since(&before);
        }
    }
}
