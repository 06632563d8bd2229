//! Cycles of a power cut: load, cut, power on, recovery, check.
//!
//! Rules
//! 1. Each cut is at a write that the seed chooses, while the load runs; then the server is killed, because a loss of
//!    power ends it.
//! 2. The server determines the result: it must start, its check of every table must find nothing, and every
//!    acknowledged commit must survive. Pages are examined before its start only to count torn pages.
//! 3. A sound database is used for the next cut. After a damaged one the loaded image is restored.

use super::pages;
use super::plan::{ATOMIC, MODE};
use crate::experiment::journaled::Mode;
use crate::experiment::{Cell, Plan, Workspace};
use crate::subject::{Files, Installed, Load, Running, Settings, SubjectKind};
use highwater_bench::run::RunOptions;
use highwater_bench::workload::tpcc::{self, Tpcc};
use highwater_bench::{Error, Result};
use highwater_device::disk::{Disk, DiskOptions};
use highwater_device::image::Image;
use highwater_device::mount::Mount;
use highwater_device::preset;
use highwater_device::promises::Promises;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const CLIENTS: usize = 4;
const CAPACITY_BYTES: u64 = 1 << 30;
const JOURNAL_BYTES: u64 = 16 << 20;
const MIB: u64 = 1 << 20;
/// Shortest and longest load before a cut.
const LOAD_MS: std::ops::Range<u64> = 300..1200;
/// Maximum time of recovery, and of the check.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of writes between that moment and the cut.
const WRITES: u64 = 64;

/// The state after a cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Aftermath {
    /// Pages torn before recovery.
    pub torn_pages: u64,
    /// The damage; `None` if the server finds the database sound.
    pub damage: Option<String>,
    /// Acknowledged commits that are missing, a line a client.
    pub lost: Vec<String>,
}

impl Aftermath {
    /// The first problem, if there is one.
    pub(super) fn finding(&self) -> Option<&String> {
        self.damage.as_ref().or(self.lost.first())
    }
}

/// A server ends before the file system under it goes: fields are dropped in this order.
pub(super) struct Site {
    running: Option<Running>,
    mode: Mode,
    installed: Installed,
    mount: Mount,
    image: Image,
    place: PathBuf,
    acknowledgements: PathBuf,
}

/// A drive with a volatile cache that keeps what it has flushed, promises no order, and writes `atomic_bytes`
/// atomically.
fn disk(device: &str, atomic_bytes: u32) -> Result<DiskOptions> {
    let mut config = preset::find(device)?.config().scaled_to((CAPACITY_BYTES / 4096) as u32);
    config.set_promises(Promises {
        atomic_write_bytes: atomic_bytes,
        // A page need not be at a multiple of its size on the device.
        atomic_anywhere: atomic_bytes > 4096,
        ..Promises::default()
    });
    Ok(DiskOptions { crashes: true, ..DiskOptions::new(config) })
}

fn settings(mode: Mode) -> Settings {
    // A server that prints its own stack trace while it dies may hang in that.
    let extra = [("innodb_checksum_algorithm", "crc32"), ("skip_stack_trace", "")];
    let extra: BTreeMap<String, String> = extra.map(|(name, value)| (name.to_string(), value.to_string())).into();
    Settings {
        // Small, so that pages are written all the time.
        buffer_pool_bytes: 16 * MIB,
        log_bytes: 8 * MIB,
        doublewrite: mode.doublewrite(),
        extra,
        ..Settings::default()
    }
}

impl Site {
    /// A mounted disk with the loaded database.
    pub(super) fn new(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Site> {
        let installed = SubjectKind::Mysql.find().map_err(|missing| Error::Usage(missing.to_string()))?;
        let atomic = cell.get(ATOMIC).parse().map_err(|_| Error::Usage("atomic_bytes is not a number".into()))?;
        let mode = Mode::of(cell.get(MODE))?;
        let (place, acknowledgements) = (workspace.work_dir().join("mnt"), workspace.work_dir().join("acknowledged"));
        let mount = mode.mount(disk(plan.device.name(), atomic)?, JOURNAL_BYTES, &place)?;
        let image = mount.disk().image()?;
        let mut site = Site { mode, installed, mount, image, place, acknowledgements, running: None };
        site.image = site.loaded(workspace)?;
        Ok(site)
    }

    fn files(&self) -> Files {
        Files::in_folder(self.place.join("mysql"))
    }

    fn load(&self, seed: u64) -> tpcc::Config {
        tpcc::Config { seed, acknowledgements: Some(self.acknowledgements.clone()), ..tpcc::Config::default() }
    }

    /// The image with the loaded database; the first cell makes it.
    fn loaded(&mut self, workspace: &mut Workspace<'_>) -> Result<Image> {
        let path = workspace.work_dir().join("loaded.img");
        if path.is_file() {
            return Ok(Image::read_from(&path)?);
        }
        workspace.step("loading the database")?;
        let settings = Settings { flush_log_at_trx_commit: 0, buffer_pool_bytes: 256 * MIB, ..settings(self.mode) };
        let running = Running::start(&self.installed, &self.files(), &settings)?;
        let load = Load::Tpcc(tpcc::Config::default());
        let progress = workspace.load(load.units());
        let loaded = running.load(&load, 2, &*progress).and_then(|()| match &running {
            Running::Server(server) => {
                Tpcc::new(tpcc::Config::default()).prepare_acknowledgements(server.store(), CLIENTS)
            }
            Running::Highwater(store) => Tpcc::new(tpcc::Config::default()).prepare_acknowledgements(store, CLIENTS),
        });
        let stopped = running.stop();
        loaded?;
        stopped?;
        let image = self.mount.image()?;
        image.write_to(&path)?;
        Ok(image)
    }

    /// Everything as it was loaded.
    fn begin_again(&mut self) -> Result<()> {
        if let Some(running) = self.running.take() {
            running.kill();
        }
        if self.acknowledgements.exists() {
            std::fs::remove_dir_all(&self.acknowledgements).map_err(|e| Error::file(&self.acknowledgements, e))?;
        }
        std::fs::create_dir_all(&self.acknowledgements).map_err(|e| Error::file(&self.acknowledgements, e))?;
        Ok(self.mount.restore(&self.image)?)
    }

    /// Runs the load, cuts the power, and sees what is left.
    pub(super) fn cut(&mut self, seed: u64) -> Result<Aftermath> {
        let running = match self.running.take() {
            Some(running) => running,
            None => {
                self.begin_again()?;
                Running::start(&self.installed, &self.files(), &settings(self.mode))?
            }
        };
        load_until_cut(&running, self.mount.disk(), &Load::Tpcc(self.load(seed)), seed)?;
        running.kill();
        let aftermath = self.look();
        let bad = aftermath.as_ref().is_ok_and(|a| a.finding().is_some());
        if let Some(running) = self.running.take_if(|_| bad) {
            running.kill();
        }
        aftermath
    }

    /// Power is back: the file system, the pages, the server.
    fn look(&mut self) -> Result<Aftermath> {
        let mut found = Aftermath::default();
        self.mount.power_on()?;
        if let Err(error) = self.mount.mount_file_system() {
            found.damage = Some(format!("the file system cannot be mounted: {error}"));
            return Ok(found);
        }
        found.torn_pages = pages::torn(&self.place.join("mysql/db"))?;
        let started = self.watched(|| Running::start(&self.installed, &self.files(), &settings(self.mode)));
        match started {
            Err(error) => found.damage = Some(format!("the server does not start: {}", first_line(&error))),
            Ok(running) => {
                self.watched(|| self.ask(&running, &mut found))?;
                self.running = Some(running);
            }
        }
        Ok(found)
    }

    /// Runs `act` with the server, which is killed when that takes too long.
    fn watched<T>(&self, act: impl FnOnce() -> T) -> T {
        let (done, waits) = std::sync::mpsc::channel::<()>();
        let file = self.files().data.join("my.cnf");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if waits.recv_timeout(TIMEOUT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    // The call in which it hangs then fails; that is the finding.
                    let _ = servers_of(&file).into_iter().try_for_each(kill);
                }
            });
            let result = act();
            drop(done);
            result
        })
    }

    fn ask(&self, running: &Running, found: &mut Aftermath) -> Result<()> {
        match running.check_tables() {
            Err(error) => found.damage = Some(format!("the server fails at its check: {}", first_line(&error))),
            Ok(problems) => found.damage = problems.into_iter().next(),
        }
        let Running::Server(server) = running else { return Ok(()) };
        if found.damage.is_none() {
            found.lost = tpcc::verify(server.store(), &self.acknowledgements, CLIENTS as u64)?.problems;
        }
        Ok(())
    }

    pub(super) fn close(mut self) -> Result<()> {
        if let Some(running) = self.running.take() {
            running.kill();
        }
        Ok(self.mount.unmount()?)
    }
}

/// Processes that were started with this configuration file.
fn servers_of(file: &Path) -> Vec<u32> {
    let wanted = format!("--defaults-file={}", file.display());
    let fits = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|b| *b == 0).any(|a| a == wanted.as_bytes()))
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(fits).collect()
}

fn first_line(error: &Error) -> String {
    let text = error.to_string();
    let says = |what: &str| text.lines().find(|line| line.contains(what));
    let telling = ["corruption on disk", "ssertion failure", "corrupt"].into_iter().find_map(says);
    telling.or(text.lines().next()).unwrap_or_default().trim().to_string()
}

/// Runs the load until the power cut ends its server.
fn load_until_cut(running: &Running, disk: &Disk, load: &Load, seed: u64) -> Result<()> {
    let pid = running.pid().ok_or_else(|| Error::Usage("only a server can be cut off".into()))?;
    let mut random = fastrand::Rng::with_seed(seed);
    let (load_ms, writes) = (random.u64(LOAD_MS), random.u64(1..=WRITES));
    std::thread::scope(|scope| {
        let cutter = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(load_ms));
            cut_at_write(disk, writes, seed)?;
            kill(pid)
        });
        let options = RunOptions { threads: CLIENTS, seconds: 0.0, ..RunOptions::default() };
        let ended = running.run(load, &options, &mut |_| {});
        let cut = cutter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        cut?;
        match ended {
            // Its server died, as it should.
            Err(Error::Server(_) | Error::Engine(_)) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(Error::Server("the load ended before the power was cut".into())),
        }
    })
}

/// Cuts the power at a write, or after a while if fewer writes come.
fn cut_at_write(disk: &Disk, writes: u64, seed: u64) -> Result<()> {
    disk.power_cut_at_write(writes, seed);
    let deadline = Instant::now() + Duration::from_secs(2);
    while disk.is_powered() {
        if Instant::now() >= deadline {
            disk.power_cut(seed)?;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn kill(pid: u32) -> Result<()> {
    let shell = Path::new("/bin/sh");
    // The server may have ended when its disk failed.
    Command::new(shell)
        .args(["-c", &format!("kill -KILL {pid} 2>/dev/null")])
        .status()
        .map_err(|e| Error::file(shell, e))?;
    Ok(())
}
