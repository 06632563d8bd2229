//! No wrapper hides a promise of the device below.

use crate::{Counted, DataKeys, Device, Faults, Limited, Placement, Result, SetFile, TestDevice};
use std::sync::Arc;

/// A device that promises what memory does not.
struct Promising;

impl Device for Promising {
    fn name(&self) -> String {
        "promising".into()
    }

    fn len_bytes(&self) -> Result<u64> {
        Ok(1024)
    }

    fn set_len_bytes(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8], _: Placement) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn begin_write_back(&self, offset: u64, len: u64) -> Result<()> {
        let source = std::io::Error::other("no cache");
        Err(crate::StorageError { operation: "write back", device: self.name(), offset, len, source })
    }

    fn discard_keeps_room(&self) -> bool {
        true
    }

    fn has_fixed_len(&self) -> bool {
        true
    }

    fn write_untorn(&self, bytes: usize) -> std::result::Result<(), String> {
        if bytes <= 16384 { Ok(()) } else { Err("too large".into()) }
    }

    fn prefers_discards(&self) -> bool {
        true
    }

    fn lifetime_streams(&self) -> usize {
        3
    }

    fn alignment_bytes(&self) -> usize {
        512
    }

    fn identity(&self) -> Option<String> {
        Some("the device below".into())
    }
}

#[test]
fn no_wrapper_hides_a_promise() {
    let below: Arc<dyn Device> = Arc::new(Promising);
    let wrapped: [Arc<dyn Device>; 5] = [
        Counted::new(below.clone()),
        Limited::new(below.clone(), 100),
        Faults::new().wrap(below.clone()),
        Arc::new(TestDevice::over(below.clone())),
        DataKeys::random().unwrap().wrap(SetFile::Data, below),
    ];
    for device in wrapped {
        assert_eq!((device.name(), device.len_bytes().unwrap()), ("promising".into(), 1024));
        assert!(device.discard_keeps_room() && device.has_fixed_len() && device.prefers_discards());
        assert_eq!((device.write_untorn(16384).is_ok(), device.write_untorn(32768).is_ok()), (true, false));
        assert_eq!((device.lifetime_streams(), device.alignment_bytes()), (3, 512));
        assert_eq!(device.identity(), Some("the device below".into()));
        assert!(device.begin_write_back(0, 4096).is_err());
    }
}
