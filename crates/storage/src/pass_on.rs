//! What a device that wraps another passes on: everything that is said of the device below, so that no wrapper hides a
//! promise of it.

/// In an `impl Device` of a wrapper whose field `inner` is the device below: every method that does no I/O. The wrapper
/// itself writes those that do.
#[macro_export]
macro_rules! pass_on {
    () => {
        fn name(&self) -> String {
            self.inner.name()
        }

        fn len_bytes(&self) -> $crate::Result<u64> {
            self.inner.len_bytes()
        }

        fn discard_keeps_room(&self) -> bool {
            self.inner.discard_keeps_room()
        }

        fn has_fixed_len(&self) -> bool {
            self.inner.has_fixed_len()
        }

        fn atomic_write_bytes(&self) -> usize {
            self.inner.atomic_write_bytes()
        }

        fn write_untorn(&self, bytes: usize) -> ::std::result::Result<(), String> {
            self.inner.write_untorn(bytes)
        }

        fn wants_discards(&self) -> bool {
            self.inner.wants_discards()
        }

        fn alignment_bytes(&self) -> usize {
            self.inner.alignment_bytes()
        }

        fn identity(&self) -> Option<String> {
            self.inner.identity()
        }

        fn set_write_depth(&self, writes: u32) {
            self.inner.set_write_depth(writes);
        }

        fn io_counts(&self) -> $crate::IoCounts {
            self.inner.io_counts()
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{Counted, Device, Faults, Limited, Placement, Result};
    use std::sync::Arc;

    /// A device that promises what memory does not.
    struct Promising;

    impl Device for Promising {
        fn name(&self) -> String {
            "promising".into()
        }

        fn len_bytes(&self) -> Result<u64> {
            Ok(77)
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

        fn discard_keeps_room(&self) -> bool {
            true
        }

        fn has_fixed_len(&self) -> bool {
            true
        }

        fn write_untorn(&self, bytes: usize) -> std::result::Result<(), String> {
            if bytes <= 16384 { Ok(()) } else { Err("too large".into()) }
        }

        fn wants_discards(&self) -> bool {
            true
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
        let wrapped: [Arc<dyn Device>; 3] =
            [Counted::new(below.clone()), Limited::new(below.clone(), 100), Faults::new().wrap(below)];
        for device in wrapped {
            assert_eq!((device.name(), device.len_bytes().unwrap()), ("promising".into(), 77));
            assert!(device.discard_keeps_room() && device.has_fixed_len() && device.wants_discards());
            assert_eq!((device.write_untorn(16384).is_ok(), device.write_untorn(32768).is_ok()), (true, false));
            assert_eq!((device.alignment_bytes(), device.identity()), (512, Some("the device below".into())));
        }
    }
}
