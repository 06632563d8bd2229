//! Real mounts, where the host allows them (root, FUSE, loop devices). Elsewhere only the refusal is tested: it must
//! say what is missing.

use super::*;
use crate::disk::DiskOptions;
use crate::error::DeviceError;
use crate::preset::DeviceConfig;
use crate::promises::Promises;
use crate::ssd::config::SsdConfig;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

const CAPACITY: u32 = 64 * 256;

fn options(mountpoint: &Path) -> MountOptions {
    let config = SsdConfig { streams: 2, ..SsdConfig::simple(CAPACITY, 0.2, 64) };
    let disk = DiskOptions { crashes: true, ..DiskOptions::new(DeviceConfig::Ssd(config)) };
    let journal_bytes = Some(4 << 20);
    let file_system = FileSystemKind::Ext4 { journal_mode: JournalMode::Data, journal_bytes };
    MountOptions {
        file_system,
        threads: 4,
        rules: vec!["1=journal".parse().unwrap()],
        ..MountOptions::new(disk, mountpoint)
    }
}

/// Whether this host can mount. Where HIGHWATER_TEST_MOUNTS is set it must.
fn able() -> bool {
    let able = host::check(&["losetup", "mount", "umount", "mkfs.ext4"]);
    assert!(able.is_ok() || std::env::var_os("HIGHWATER_TEST_MOUNTS").is_none(), "{able:?}");
    able.is_ok()
}

/// Mounts, or checks that the host's refusal is clear and gives nothing.
fn mounted(options: &MountOptions) -> Option<Mount> {
    match Mount::new(options) {
        Ok(mount) => Some(mount),
        Err(error) => {
            assert!(!able(), "{error}");
            assert!(matches!(error, DeviceError::Host(_)), "{error}");
            None
        }
    }
}

fn write_synced(path: &Path, data: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(data)?;
    file.sync_all()
}

#[test]
fn a_mounted_disk_tags_its_journal_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut mount) = mounted(&options(folder.path())) else { return };
    let journal: u32 = mount.journal().iter().map(|r| r.blocks).sum();
    assert_eq!(journal, 1024, "4 MiB");
    for i in 0..20 {
        write_synced(&folder.path().join(format!("f{i}")), &[i; 65536]).unwrap();
    }
    let page = pages::tests::page(17855, 3, 1, 99);
    write_synced(&folder.path().join("page"), &page).unwrap();
    let sample = mount.sample();
    let by = |s: &str| sample.streams.iter().find(|r| r.stream == s).map_or(0, |r| r.host_written_bytes);
    assert!(by("1") > 20 * 65536, "data journaling writes all data to the journal: {sample:?}");
    assert_eq!(sample.pages.iter().filter(|p| p.region == "journal").map(|p| p.written_bytes).sum::<u64>(), by("1"));
    assert!(sample.pages.iter().any(|p| p.kind == "INDEX" && p.writes >= 1), "{:?}", sample.pages);
    let access = mount.access();
    let written: u64 = access.groups.iter().map(|g| g.written_bytes).sum();
    assert!(written >= sample.totals.host_written_bytes, "{access:?}");
    assert!(access.groups[1].writes_per_written_block >= 1.0);
    assert!(sample.totals.flushes > 20 && sample.interval.written_blocks_per_s > 0.0);
    let (device, run_folder) = (mount.device().to_string(), mount.stack.folder.clone());
    mount.unmount().unwrap();
    assert!(!run_folder.exists());
    let name = device.trim_start_matches("/dev/");
    let backing = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).unwrap_or_default();
    assert!(!backing.contains(run_folder.to_str().unwrap()));
    assert!(!folder.path().join("page").exists());
}

/// The second would hide the first, whose clean-up would then unmount the second.
#[test]
fn a_second_mount_at_the_same_place_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let Some(mut mount) = mounted(&options) else { return };
    let error = Mount::new(&options).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("is in use"), "{error}");
    write_synced(&folder.path().join("still there"), b"x").unwrap();
    mount.unmount().unwrap();
    assert!(!folder.path().join("still there").exists());
}

/// What lies over our file system is not unmounted in its place; what somebody else unmounted is not missed.
#[test]
fn only_our_own_file_system_is_unmounted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut mount) = mounted(&options(folder.path())) else { return };
    let place = folder.path().to_str().unwrap();
    host::run("mount", &["-t", "tmpfs", "none", place]).unwrap();
    let error = mount.unmount().unwrap_err().to_string();
    host::run("umount", &[place]).unwrap();
    assert!(error.contains("another file system is mounted over"), "{error}");
    host::run("umount", &[place]).unwrap();
    mount.unmount().unwrap();
}

/// FUSE must not end under a loop device that somebody still uses.
#[test]
fn a_loop_device_in_use_is_kept_until_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut mount) = mounted(&options(folder.path())) else { return };
    let used = std::fs::File::open(mount.device()).unwrap();
    for _ in 0..2 {
        assert!(mount.unmount().unwrap_err().to_string().contains("in use"));
        assert!(mount.stack.is_served() && !mount.device().is_empty());
    }
    drop(used);
    mount.unmount().unwrap();
}

/// Synced files survive power cuts of an honest device, mount after mount.
#[test]
fn synced_files_survive_power_cuts() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.disk.config.set_promises(Promises::default());
    let Some(mut mount) = mounted(&options) else { return };
    for seed in 0..3u8 {
        let kept = folder.path().join(format!("kept{seed}"));
        write_synced(&kept, &[seed + 1; 40_000]).unwrap();
        std::fs::File::open(folder.path()).unwrap().sync_all().unwrap();
        std::fs::write(folder.path().join("lost"), [9; 100_000]).unwrap();
        mount.power_cut(u64::from(seed)).unwrap();
        assert!(write_synced(&folder.path().join("fails"), &[1; 4096]).is_err());
        mount.power_cycle().unwrap();
        for earlier in 0..=seed {
            let data = std::fs::read(folder.path().join(format!("kept{earlier}"))).unwrap();
            assert!(data == [earlier + 1; 40_000], "file {earlier} after cut {seed}");
        }
    }
    mount.unmount().unwrap();
}

/// An image brings a file system back, after writes and after a power cut.
#[test]
fn an_image_is_mounted_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut mount) = mounted(&options(folder.path())) else { return };
    write_synced(&folder.path().join("f"), b"first").unwrap();
    let image = mount.image().unwrap();
    write_synced(&folder.path().join("f"), b"second").unwrap();
    mount.power_cut(1).unwrap();
    mount.restore(&image).unwrap();
    assert_eq!(std::fs::read(folder.path().join("f")).unwrap(), b"first");
    assert!(!mount.journal().is_empty());
    mount.unmount().unwrap();
}

#[test]
fn a_backing_file_keeps_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("mnt");
    let mut options = options(&place);
    options.disk.backing = Some(folder.path().join("backing"));
    let Some(mut mount) = mounted(&options) else { return };
    write_synced(&place.join("f"), b"kept").unwrap();
    let mut other = options.clone();
    other.mountpoint = folder.path().join("other");
    let error = Mount::new(&other).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("in use by another mount"), "{error}");
    mount.unmount().unwrap();
    drop(mount);
    options.format = false;
    let mut again = Mount::new(&options).unwrap();
    assert_eq!(std::fs::read(place.join("f")).unwrap(), b"kept");
    again.unmount().unwrap();
}

#[test]
fn what_cannot_be_mounted_is_explained_and_undone() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.rules = vec!["5=journal".parse().unwrap()];
    if !able() {
        return;
    }
    let error = Mount::new(&options).err().unwrap().to_string();
    assert!(error.contains("stream 5"), "{error}");
    options.rules.clear();
    options.format = false;
    let error = Mount::new(&options).err().unwrap().to_string();
    assert!(error.contains("no ext4"), "{error}");
}

/// What was recorded from a mount can be replayed, with the journal known by name.
#[test]
fn a_recorded_mount_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.csv.zst");
    let mut options = options(&folder.path().join("mnt"));
    options.record = Some(trace.clone());
    let Some(mut mount) = mounted(&options) else { return };
    write_synced(&mount.mountpoint().join("f"), &[1; 300_000]).unwrap();
    mount.unmount().unwrap();
    let mut replayed = crate::replay::ReplayOptions::new(&trace, options.disk.config.clone());
    replayed.rules = vec!["1=journal".parse().unwrap()];
    let result = crate::replay::run(&replayed, &mut |_| {}).unwrap();
    assert!(!result.journal_found, "it was named");
    assert_eq!(result.streams.len(), 2);
}

#[test]
fn a_mount_can_be_stopped_while_its_device_is_aged() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(&folder.path().join("mnt"));
    options.disk.config = DeviceConfig::Ssd(SsdConfig::simple(1 << 20, 0.2, 1024));
    options.disk.age = "random:1000".parse().unwrap();
    options.rules.clear();
    if !able() {
        return;
    }
    let (stop, give_up) = (AtomicBool::new(false), AtomicBool::new(false));
    run(&options, Duration::from_secs(1), &stop, &give_up, &mut |event| match event {
        Event::Ageing(_) => stop.store(true, Ordering::Relaxed),
        _ => panic!("it never gets as far"),
    })
    .unwrap();
    assert!(!options.mountpoint.exists());
}

/// The first failure to unmount is reported at once. A folder that was made for the mount is removed with it.
#[test]
fn a_path_in_use_is_reported_at_once() {
    use std::sync::atomic::AtomicBool;
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder.path().join("mnt"));
    if !able() {
        return;
    }
    let (stop, give_up) = (AtomicBool::new(true), AtomicBool::new(false));
    let (mut holder, mut asked) = (None, std::time::Instant::now());
    let mut told = Vec::new();
    run(&options, Duration::from_secs(1), &stop, &give_up, &mut |event| match event {
        Event::Mounted(mount) => {
            holder = std::fs::File::create(mount.mountpoint().join("f")).ok();
            asked = std::time::Instant::now();
        }
        Event::Busy(_) => {
            told.push(asked.elapsed());
            holder = None;
        }
        Event::Ageing(_) | Event::Sample(_) => {}
    })
    .unwrap();
    assert!(told.first().is_some_and(|after| *after < Duration::from_secs(2)), "{told:?}");
    assert!(!options.mountpoint.exists());
}

#[test]
fn a_mount_runs_until_told_to_stop() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let (stop, give_up) = (AtomicBool::new(false), AtomicBool::new(true));
    let (mut mounts, mut samples, mut written) = (0, 0, 0);
    let file = folder.path().join("f");
    let result = run(&options(folder.path()), Duration::from_millis(60), &stop, &give_up, &mut |event| match event {
        Event::Mounted(mount) => {
            mounts += usize::from(mount.mountpoint() == folder.path());
            std::fs::write(&file, vec![1; 5_000_000]).unwrap();
        }
        Event::Sample(sample) => {
            samples += 1;
            stop.store(samples >= 2, Ordering::Relaxed);
            assert!(sample.elapsed_s > 0.0);
            written = sample.totals.host_written_bytes;
        }
        Event::Ageing(share) => assert!((0.0..=1.0).contains(&share)),
        Event::Busy(error) => panic!("{error}"),
    });
    if able() {
        result.unwrap();
        assert_eq!((mounts, samples), (1, 3));
        assert!(written >= 5_000_000, "the last sample has what unmounting wrote back: {written}");
    } else {
        assert!(matches!(result, Err(DeviceError::Host(_))));
    }
}
