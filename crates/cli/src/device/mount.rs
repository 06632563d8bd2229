//! `highwater device mount MOUNTPOINT`: an emulated device under a real file system, until Ctrl-C.
//!
//! Rules
//! 1. SIGINT, SIGTERM and SIGHUP unmount. While the file system is in use, unmounting is retried; after a second signal
//!    the clean-up shell of the device crate does it.
//! 2. A backing file with contents is overwritten only with `--overwrite`.
//! 3. On a terminal the counters are one view that is drawn again; elsewhere a line every interval.

use super::parsed;
use super::target::device_config;
use crate::engine_options::size;
use crate::failure::Failure;
use crate::output::{Json, Lines, while_read};
use crate::progress::Progress;
use crate::signals::{self, Asked};
use clap::{Args, ValueEnum};
use highwater_device::age::Age;
use highwater_device::disk::{DiskOptions, TimeMode};
use highwater_device::mount::{self, Event, FileSystemKind, JournalMode, Mount, MountOptions, MountSample, host};
use highwater_device::report;
use highwater_device::trace::ranges::{self, StreamRule};
use highwater_storage::OutputFile;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  highwater device mount /mnt/emulated
  highwater device mount /mnt/emulated --journal-mode data --journal-size 64M --stream 1=journal --capacity 4G
  highwater device mount /mnt/emulated --device wd10ezex-1tb --capacity 20G --clock real --backing /srv/disk.img
  highwater device mount /mnt/emulated --journal-mode data --stream 1=journal --record tpcc.csv.zst --json samples.jsonl

Needs root, FUSE, loop devices and mkfs.ext4. Ctrl-C unmounts. The command removes everything that
it created, even if it is killed.

Exit status: 0 mounted and unmounted; 1 mounting or unmounting failed; 2 the command line is wrong,
the user is not root, or FUSE is missing.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Clock {
    /// Requests take no time: only wear is counted
    None,
    /// Each request takes the time that the model computes
    Real,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FileSystem {
    /// Create an ext4 file system and mount it
    Ext4,
    /// Create no file system; print the name of the block device
    None,
}

/// Mount a device with a real file system that any program can use
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct MountArgs {
    /// Where to mount the file system; a folder that does not exist is created and removed at the end. Not allowed with
    /// --fs none
    mountpoint: Option<PathBuf>,
    /// The preset of the device (`highwater device list`), or a file as `highwater device list PRESET --config`
    /// prints it
    #[arg(long, default_value = "samsung-pm953-960gb", value_name = "PRESET|FILE")]
    device: String,
    /// Scale the device to this capacity, with the same ratios [default: the preset's capacity, at most 4G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    capacity: Option<u64>,
    /// What to create on the device
    #[arg(long, default_value = "ext4", value_name = "WHAT")]
    fs: FileSystem,
    /// Journal mode of ext4: ordered, data or writeback [default: ordered]
    #[arg(long, value_name = "MODE", value_parser = parsed::<JournalMode>)]
    journal_mode: Option<JournalMode>,
    /// Size of ext4's journal [default: what mkfs.ext4 chooses]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    journal_size: Option<u64>,
    /// A rule that maps data to a stream, for example 1=journal or 1=FIRST+COUNT (blocks of 4 KiB); may be repeated, a
    /// later rule overrides earlier ones
    #[arg(long, value_name = "STREAM=WHAT", value_parser = parsed::<StreamRule>)]
    stream: Vec<StreamRule>,
    /// A file with such rules; --stream overrides them
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// What the flash holds at the start: none (empty), fill (written once), or random:N (written once, then N times
    /// the capacity overwritten at random)
    #[arg(long, default_value = "fill", value_parser = parsed::<Age>)]
    age: Age,
    /// Which clock times the requests
    #[arg(long, default_value = "none")]
    clock: Clock,
    /// File that stores the contents of the device [default: memory]
    #[arg(long, value_name = "FILE")]
    backing: Option<PathBuf>,
    /// Mount the file system that an earlier mount left in the backing file
    #[arg(long, requires = "backing")]
    keep: bool,
    /// Create a new file system even if the backing file is not empty
    #[arg(long, requires = "backing", conflicts_with = "keep")]
    overwrite: bool,
    /// Mount with discard: the file system discards the blocks that it frees. Without it, an aged device stays aged
    #[arg(long)]
    discard: bool,
    /// Record every request into a trace for `highwater device replay`
    #[arg(long, value_name = "NAME.csv.zst")]
    record: Option<PathBuf>,
    /// Logical sector size of the block device
    #[arg(long, default_value_t = 512, value_name = "BYTES")]
    sector_size: u32,
    /// Threads that serve requests [default: 8, or 32 with a real clock]
    #[arg(long)]
    threads: Option<usize>,
    /// Seconds between samples
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    interval: f64,
    /// Write one line of JSON to FILE after every interval and at the end; with -, write only the JSON to stdout
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
}

impl MountArgs {
    fn options(&self) -> Result<MountOptions, Failure> {
        let mut rules = match &self.rules {
            Some(path) => ranges::read_rules(path)?,
            None => Vec::new(),
        };
        rules.extend(self.stream.iter().cloned());
        let (mountpoint, file_system) = self.file_system()?;
        let mut options = MountOptions::new(self.disk()?, mountpoint);
        options.file_system = file_system;
        options.threads = self.threads.unwrap_or(options.threads);
        options.format = !self.keep;
        options.rules = rules;
        options.discard = self.discard;
        options.record = self.record.clone();
        options.sector_bytes = self.sector_size;
        options.validate()?;
        Ok(options)
    }

    /// The mount point and the kind of file system. ext4 needs a mount point; without a file system there must be none.
    fn file_system(&self) -> Result<(PathBuf, FileSystemKind), Failure> {
        let refuse = |what: &str| Err(Failure::Usage(what.into()));
        match (self.fs, &self.mountpoint) {
            (FileSystem::Ext4, Some(place)) => {
                let journal_mode = self.journal_mode.unwrap_or(JournalMode::Ordered);
                let journal_bytes = self.journal_size;
                Ok((place.clone(), FileSystemKind::Ext4 { journal_mode, journal_bytes }))
            }
            (FileSystem::Ext4, None) => refuse("name a MOUNTPOINT for the file system, or give --fs none"),
            (FileSystem::None, Some(_)) => refuse("--fs none mounts nothing: leave out the MOUNTPOINT"),
            (FileSystem::None, None) if self.journal_mode.is_some() || self.journal_size.is_some() => {
                refuse("--journal-mode and --journal-size are ext4's: they do not go with --fs none")
            }
            (FileSystem::None, None) => Ok((PathBuf::new(), FileSystemKind::None)),
        }
    }

    fn disk(&self) -> Result<DiskOptions, Failure> {
        let config = device_config(&self.device, self.capacity)?;
        let time = match self.clock {
            Clock::None => TimeMode::Off,
            Clock::Real => TimeMode::Real,
        };
        Ok(DiskOptions { time, backing: self.backing.clone(), age: self.age, ..DiskOptions::new(config) })
    }

    /// Rule 2.
    fn check_backing(&self) -> Result<(), Failure> {
        let Some(path) = &self.backing else { return Ok(()) };
        if path.is_dir() {
            return Err(Failure::Usage(format!("--backing {} is a folder; name a file", path.display())));
        }
        let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
        match (bytes > 0, self.keep, self.overwrite) {
            (true, false, false) => {
                let what = "holds something; --keep mounts the file system in it, --overwrite makes a new one";
                Err(Failure::Usage(format!("{} {what}", path.display())))
            }
            (false, true, _) => Err(Failure::Usage(format!("{} holds nothing to keep", path.display()))),
            _ => self.check_size(path, bytes),
        }
    }

    fn check_size(&self, path: &Path, bytes: u64) -> Result<(), Failure> {
        let capacity = u64::from(self.disk()?.config.capacity_blocks()) * 4096;
        if self.keep && bytes != capacity {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "{path} has {bytes} bytes, the device {capacity}: give --capacity {bytes}"
            )));
        }
        Ok(())
    }

    fn interval(&self) -> Result<Duration, Failure> {
        let seconds = Some(self.interval).filter(|s| (0.05..=86_400.0).contains(s));
        let seconds = seconds.ok_or_else(|| Failure::Usage("--interval must be 0.05 to 86400 seconds".into()))?;
        Ok(Duration::from_secs_f64(seconds))
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] says why and with which exit status.
pub(super) fn run(args: &MountArgs) -> Result<(), Failure> {
    let (options, interval) = (args.options()?, args.interval()?);
    args.check_backing()?;
    host::check(&["losetup", "mount", "umount", "mkfs.ext4"]).map_err(|e| Failure::Usage(e.to_string()))?;
    let mut view = View::new(args.json.as_ref())?;
    let (stop, give_up) = stop_requests()?;
    mount::run(&options, interval, &stop, &give_up, &mut |event| view.show(event))?;
    view.end()
}

/// The flags that the first and the second signal set.
fn stop_requests() -> Result<(Arc<AtomicBool>, Arc<AtomicBool>), Failure> {
    let (stop, give_up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (stops, gives_up) = (stop.clone(), give_up.clone());
    signals::listen(move |asked| match asked {
        Asked::First => stops.store(true, Ordering::SeqCst),
        Asked::Again => gives_up.store(true, Ordering::SeqCst),
    })?;
    Ok((stop, give_up))
}

/// The output of the counters.
struct View {
    lines: Lines,
    /// One view that is drawn again.
    redraws: bool,
    json: Option<Box<dyn Write>>,
    head: String,
    last: Option<MountSample>,
    /// While the device is aged.
    bar: Option<Progress>,
    failed: Option<std::io::Error>,
}

impl View {
    fn new(json: Option<&Json>) -> Result<View, Failure> {
        let json: Option<Box<dyn Write>> = match json {
            None => None,
            Some(Json::Stdout) => Some(Box::new(std::io::stdout())),
            Some(Json::File(path)) => {
                // Samples are read while they come.
                let made = OutputFile::stream(path).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))?;
                Some(Box::new(made))
            }
        };
        let redraws = json.is_none() && std::io::stdout().is_terminal();
        let lines = Lines { stdout_taken: json.is_some() };
        Ok(View { lines, redraws, json, head: String::new(), last: None, bar: None, failed: None })
    }

    fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Ageing(share) => {
                let bar = self.bar.get_or_insert_with(|| Progress::new("ageing", 1000).counting("thousandths"));
                let done = (share * 1000.0) as u64;
                bar.at(done, done);
            }
            Event::Mounted(mount) => self.mounted(mount),
            Event::Sample(sample) => self.sample(sample),
            Event::Busy(error) => self.lines.write(&format!(
                "the file system is still in use ({error}); press Ctrl-C again to stop without unmounting"
            )),
        }
    }

    fn mounted(&mut self, mount: &Mount) {
        self.bar = None;
        let (name, device, place) = (mount.disk().name(), mount.device(), mount.mountpoint());
        self.head = match place.as_os_str().is_empty() {
            true => format!("{name} as {device}; Ctrl-C detaches it"),
            false => format!("{name} as {device} on {}; Ctrl-C unmounts", place.display()),
        };
        for range in mount.journal() {
            let (first, last) = (range.first_lba, range.first_lba + range.blocks - 1);
            self.head += &format!("\njournal at blocks {first} to {last}");
        }
        self.lines.write(&self.head);
    }

    fn sample(&mut self, sample: &MountSample) {
        if let Some(out) = &mut self.json {
            let text = serde_json::to_string(sample).unwrap_or_default();
            let written = writeln!(out, "{text}").and_then(|()| out.flush());
            self.failed = self.failed.take().or(written.err());
        } else if self.redraws {
            let view = format!(
                "\x1b[H\x1b[2J{}\n\n{}\n\n{}",
                self.head,
                report::mount_line(sample),
                report::mount_table(sample)
            );
            self.lines.write(&view);
        } else {
            self.lines.write(&report::mount_line(sample));
        }
        self.last = Some(sample.clone());
    }

    /// The table at the end, where it has not been shown already.
    fn end(self) -> Result<(), Failure> {
        if let (Some(sample), false) = (&self.last, self.redraws) {
            self.lines.write(&format!("\n{}", report::mount_table(sample).trim_end()));
        }
        let written = while_read(self.failed.map_or(Ok(()), Err));
        written.map(drop).map_err(|error| Failure::Failed(format!("writing samples: {error}")))
    }
}
