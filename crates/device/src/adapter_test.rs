//! Tests of `adapter`.

use super::*;
use crate::preset::DeviceConfig;
use crate::ssd::config::SsdConfig;

fn options(crashes: bool) -> EngineDiskOptions {
    let config = SsdConfig { streams: 8, ..SsdConfig::simple(8192, 0.4, 64) };
    let disk = DiskOptions { crashes, ..DiskOptions::new(DeviceConfig::Ssd(config)) };
    EngineDiskOptions { redo_bytes: 4 << 20, doublewrite_bytes: 1 << 20, ..EngineDiskOptions::new(disk) }
}

fn read(device: &dyn Device, offset: u64, len: usize) -> Vec<u8> {
    let mut buf = vec![0xEE; len];
    device.read_at(offset, &mut buf).unwrap();
    buf
}

#[test]
fn files_are_apart_and_grow_with_zeros() {
    let disk = EngineDisk::new(&options(false)).unwrap();
    let set = disk.set();
    for (device, byte) in [(&set.data, 1), (&set.redo, 2), (&set.doublewrite, 3)] {
        assert_eq!(device.len_bytes().unwrap(), 0);
        device.set_len_bytes(1 << 20).unwrap();
        device.write_at(4096, &[byte; 4096], Placement::Other).unwrap();
    }
    for (device, byte) in [(&set.data, 1), (&set.redo, 2), (&set.doublewrite, 3)] {
        assert_eq!(read(&**device, 4096, 4096), [byte; 4096]);
        assert_eq!(read(&**device, 0, 4096), [0; 4096]);
    }
    set.data.set_len_bytes(4096).unwrap();
    set.data.set_len_bytes(8192).unwrap();
    assert_eq!(read(&*set.data, 4096, 4096), [0; 4096], "what was cut off is gone");
}

#[test]
fn placements_become_streams() {
    let disk = EngineDisk::new(&options(false)).unwrap();
    let data = disk.set().data;
    data.set_len_bytes(1 << 20).unwrap();
    let page = [5; 4096];
    let writes: Vec<_> = Placement::ALL
        .iter()
        .enumerate()
        .map(|(i, placement)| Write { offset: i as u64 * 4096, data: &page, placement: *placement })
        .collect();
    data.write_batch(&writes).unwrap();
    let counters = disk.disk().counters();
    let by_stream: Vec<u64> = counters.streams.iter().map(|s| s.host_blocks).collect();
    let expected = [7, 1, 2, 1, 1, 1, 1, 1];
    let what =
        "leaves, the rest, the table and what eight streams do not reach in stream 0; the journal with doublewrite";
    assert_eq!(by_stream[..8], expected, "{what}");
}

#[test]
fn lengths_and_bytes_survive_a_power_cut_after_sync() {
    for seed in 0..20 {
        let options = options(true);
        let disk = EngineDisk::new(&options).unwrap();
        let data = disk.set().data;
        data.set_len_bytes(65536).unwrap();
        data.write_at(0, &[7; 8192], Placement::IndexLeaf).unwrap();
        data.sync().unwrap();
        data.set_len_bytes(131_072).unwrap();
        disk.disk().power_cut(seed).unwrap();
        let error = data.sync().unwrap_err();
        assert_eq!(error.source.kind(), ErrorKind::NotConnected);
        disk.disk().power_on().unwrap();
        let again = EngineDisk::on(disk.disk().clone(), &options).unwrap().set().data;
        assert!([65536, 131_072].contains(&again.len_bytes().unwrap()));
        assert_eq!(read(&*again, 0, 8192), [7; 8192]);
    }
}

/// A cut may undo the discard of a shorter file and keep its length.
#[test]
fn a_file_that_grows_is_zeros_there_after_a_power_cut_too() {
    let mut shortened = 0;
    for seed in 0..40 {
        let options = options(true);
        let disk = EngineDisk::new(&options).unwrap();
        let data = disk.set().data;
        data.set_len_bytes(131_072).unwrap();
        data.write_at(65536, &[7; 65536], Placement::IndexLeaf).unwrap();
        data.sync().unwrap();
        data.set_len_bytes(65536).unwrap();
        disk.disk().power_cut(seed).unwrap();
        disk.disk().power_on().unwrap();
        let again = EngineDisk::on(disk.disk().clone(), &options).unwrap().set().data;
        shortened += u32::from(again.len_bytes().unwrap() == 65536);
        if again.len_bytes().unwrap() == 65536 {
            again.set_len_bytes(131_072).unwrap();
            assert_eq!(read(&*again, 65536, 65536), [0; 65536], "seed {seed}");
        }
    }
    assert!(shortened > 0);
}

#[test]
fn wrong_use_is_an_error() {
    let disk = EngineDisk::new(&options(false)).unwrap();
    let data = disk.set().data;
    data.set_len_bytes(8192).unwrap();
    let past = data.read_at(4096, &mut [0; 8192]).unwrap_err();
    assert_eq!(past.source.kind(), ErrorKind::UnexpectedEof);
    assert!(data.write_at(8192, &[0; 512], Placement::Other).is_err());
    assert!(data.write_at(100, &[0; 512], Placement::Other).is_err());
    assert!(data.set_len_bytes(1 << 40).unwrap_err().is_full());
    assert!(data.name().contains("data on simple"));
}

#[test]
fn foreign_disks_and_impossible_layouts_are_refused() {
    let options = options(false);
    let disk = Arc::new(Disk::new(&options.disk).unwrap());
    disk.write(0, &[9; 512], 0).unwrap();
    assert!(EngineDisk::on(disk, &options).err().unwrap().to_string().contains("no database files"));
    let tight = EngineDiskOptions { redo_bytes: 1 << 30, ..options.clone() };
    assert!(EngineDisk::new(&tight).err().unwrap().to_string().contains("no room for data"));
    let streams = EngineDiskOptions { streams: "redo=8".parse().unwrap(), ..options };
    assert!(EngineDisk::new(&streams).err().unwrap().to_string().contains("stream 8"));
}

#[test]
fn stream_maps_are_read_from_text() {
    let map: PlacementStreams = "redo=1, doublewrite=2".parse().unwrap();
    assert_eq!((map.of(Placement::Redo), map.of(Placement::Doublewrite), map.of(Placement::Undo)), (1, 2, 0));
    assert_eq!(PlacementStreams::spread(3).highest(), 2);
    assert_eq!("spread".parse::<PlacementStreams>().unwrap().highest(), 10);
    for bad in ["redo", "log=1", "redo=x"] {
        assert!(bad.parse::<PlacementStreams>().is_err(), "{bad}");
    }
}
