//! Random histories against a model.

use super::*;

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Flush,
    Write,
    Checkpoint(usize),
    /// Power cut with this seed, then recovery and a new generation.
    Cut(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop_oneof![1usize..300, 3000usize..9000].prop_map(Step::Append),
        2 => Just(Step::Flush),
        1 => Just(Step::Write),
        1 => (0usize..20).prop_map(Step::Checkpoint),
        2 => any::<u64>().prop_map(Step::Cut),
    ]
}

/// Groups after the checkpoint, by start LSN.
#[derive(Default)]
struct Model {
    groups: Vec<(Lsn, Lsn, Vec<u8>)>,
    number: u64,
}

impl Model {
    fn append(&mut self, log: &Log, len: usize) {
        if log.end_lsn().0 - log.checkpoint_lsn().0 + len as u64 + 8 > log.capacity_bytes() {
            log.checkpoint(log.end_lsn()).unwrap();
            self.groups.clear();
        }
        self.number += 1;
        let (bytes, mut start) = (payload(self.number, len), Lsn(0));
        let end = log.append(log.reserve(len as u64).unwrap(), &bytes, |from, _| start = from);
        self.groups.push((start, end, bytes));
    }

    fn checkpoint(&mut self, log: &Log, keep: usize) {
        let drop = self.groups.len().saturating_sub(keep);
        let lsn = self.groups.get(drop).map_or(log.end_lsn(), |g| g.0);
        log.checkpoint(lsn).unwrap();
        self.groups.drain(..drop);
    }

    /// What is found is a prefix of what was appended, and holds all that was durable.
    fn check(&self, scan: &Found, checkpoint: Lsn, durable: Lsn) {
        assert_eq!(scan.checkpoint_lsn, checkpoint);
        assert!(scan.end_lsn >= durable);
        assert!(scan.groups.len() <= self.groups.len());
        for ((end, bytes), (_, want_end, want)) in scan.groups.iter().zip(&self.groups) {
            assert_eq!((end, bytes), (want_end, want));
        }
        assert_eq!(scan.groups.last().map_or(checkpoint, |g| g.0), scan.end_lsn);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_acknowledged_group_survives_every_cut(
        steps in prop::collection::vec(step(), 1..120),
        discards: bool,
    ) {
        let open = if discards { open_preferring_discards } else { open };
        let mut device = new_device();
        let (mut log, scan) = open(&device);
        log.start(scan.end_lsn).unwrap();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Append(len) => model.append(&log, len),
                Step::Flush => log.flush_to(log.end_lsn()).unwrap(),
                Step::Write => log.write_to(log.end_lsn()).unwrap(),
                Step::Checkpoint(keep) => model.checkpoint(&log, keep),
                Step::Cut(seed) => {
                    let (checkpoint, durable) = (log.checkpoint_lsn(), log.durable_lsn());
                    device = device.cut(seed);
                    let (next, scan) = open(&device);
                    model.check(&scan, checkpoint, durable);
                    next.start(scan.end_lsn).unwrap();
                    model.groups.clear();
                    log = next;
                }
            }
        }
    }

    #[test]
    fn garbage_in_the_ring_is_never_taken_for_a_group(
        bytes in prop::collection::vec(any::<u8>(), 1..5000),
        groups in 0u64..10,
        at in 0usize..60_000,
    ) {
        let device = new_device();
        let log = started(&device);
        let ends: Vec<Lsn> = (0..groups).map(|n| append(&log, n, 700)).collect();
        log.flush_to(log.end_lsn()).unwrap();
        let whole = device.image();
        device.damage(|image| {
            let at = 8192 + at % (image.len() - 8192 - bytes.len());
            image[at..at + bytes.len()].copy_from_slice(&bytes);
        });
        let image = device.image();
        let (_, scan) = open(&device);
        for (n, (end, bytes)) in scan.groups.iter().enumerate() {
            prop_assert_eq!((*end, &bytes[..]), (ends[n], &payload(n as u64, 700)[..]));
        }
        prop_assert!(image != whole || scan.groups.len() as u64 == groups);
    }

    #[test]
    fn any_bytes_at_all_open_or_are_refused(
        image in prop::collection::vec(any::<u8>(), 0..100_000),
        keep_headers: bool,
    ) {
        let good = new_device().image();
        let mut image = image;
        if keep_headers {
            image.resize(good.len(), 0xFF);
            image[..8192].copy_from_slice(&good[..8192]);
        }
        let result = open_as(Arc::new(MemoryDevice::holding(image)), FlushLog::Sync);
        prop_assert_eq!(result.is_ok(), keep_headers);
    }
}
