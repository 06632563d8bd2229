//! Delegation in device wrappers: the properties of a wrapper are those of the device below, so no wrapper hides a
//! promise of it.

/// For the `impl Device` of a wrapper whose field `inner` is the device below: delegates every method that transfers no
/// bytes. The wrapper implements the methods that do. With `pass_on!(all but sizes)` it also implements length and
/// alignment, with `pass_on!(all but steered)` the promises that a [`TestDevice`](crate::TestDevice) may override.
#[macro_export]
macro_rules! pass_on {
    () => {
        $crate::pass_on!(all but sizes);
        $crate::pass_on!(sizes);
    };
    (sizes) => {
        fn len_bytes(&self) -> $crate::Result<u64> {
            self.inner.len_bytes()
        }

        fn alignment_bytes(&self) -> usize {
            self.inner.alignment_bytes()
        }
    };
    (all but sizes) => {
        $crate::pass_on!(untouched);

        fn begin_write_back(&self, offset: u64, len: u64) -> $crate::Result<()> {
            self.inner.begin_write_back(offset, len)
        }

        fn discard_keeps_room(&self) -> bool {
            self.inner.discard_keeps_room()
        }

        fn has_fixed_len(&self) -> bool {
            self.inner.has_fixed_len()
        }

        fn prefers_discards(&self) -> bool {
            self.inner.prefers_discards()
        }

        fn identity(&self) -> Option<String> {
            self.inner.identity()
        }
    };
    (all but steered) => {
        $crate::pass_on!(untouched);
        $crate::pass_on!(sizes);
    };
    (untouched) => {
        fn name(&self) -> String {
            self.inner.name()
        }

        fn atomic_write_bytes(&self) -> usize {
            self.inner.atomic_write_bytes()
        }

        fn write_untorn(&self, bytes: usize) -> ::std::result::Result<(), String> {
            self.inner.write_untorn(bytes)
        }

        fn supports_batch_reads(&self) -> bool {
            self.inner.supports_batch_reads()
        }

        fn lifetime_streams(&self) -> usize {
            self.inner.lifetime_streams()
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
#[path = "pass_on_test.rs"]
mod tests;
