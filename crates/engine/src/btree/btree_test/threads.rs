//! Concurrent readers and writers.

use super::*;

/// Threads insert and remove keys of their own while others scan both ways. Keys that are never removed must be in
/// every scan, and every scan must be in order.
#[test]
fn scans_stay_right_under_concurrent_change() {
    const WRITERS: u32 = 3;
    let fixture = Fixture::new();
    let permanent: Vec<Vec<u8>> = (0..300u32).map(|n| (n * 1000).to_be_bytes().to_vec()).collect();
    permanent.iter().for_each(|key| fixture.put(key, b"permanent").unwrap());
    let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let models: Vec<BTreeMap<Vec<u8>, Vec<u8>>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| {
                scope.spawn({
                    let fixture = &fixture;
                    move || write_own_keys(fixture, n)
                })
            })
            .collect();
        for reader in 0..2 {
            let (fixture, permanent, done, rounds) = (&fixture, &permanent, &done, &rounds);
            scope.spawn(move || {
                while !done.load(Relaxed) || rounds.load(Relaxed) < 4 {
                    let mut pairs = if reader == 0 {
                        forward(fixture.ctx(), &fixture.tree, Seek::First)
                    } else {
                        backward(fixture.ctx(), &fixture.tree, Seek::Last)
                    };
                    if reader == 1 {
                        pairs.reverse();
                    }
                    assert!(pairs.windows(2).all(|pair| pair[0].0 < pair[1].0), "reader {reader}: out of order");
                    let seen = pairs.iter().filter(|(_, value)| value == b"permanent").map(|(key, _)| key);
                    assert!(seen.eq(permanent.iter()), "reader {reader}: lost a permanent key");
                    rounds.fetch_add(1, Relaxed);
                }
            });
        }
        let models = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        done.store(true, Relaxed);
        models
    });
    let mut model: BTreeMap<_, _> = permanent.into_iter().map(|key| (key, b"permanent".to_vec())).collect();
    models.into_iter().for_each(|own| model.extend(own));
    fixture.assert_is(&model);
}

fn write_own_keys(fixture: &Fixture, writer: u32) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rng = Rng::with_seed(u64::from(writer));
    let mut own = BTreeMap::new();
    for round in 0..4 {
        for _ in 0..2500 {
            // Never a multiple of 1000 (those are permanent), and of this writer's residue.
            let number = rng.u32(0..75_000) * 4 + writer + 1;
            let key = if number.is_multiple_of(1000) { continue } else { number.to_be_bytes().to_vec() };
            if rng.f64() < [0.2, 0.9][round % 2] {
                let key = own.range(key..).next().map(|(key, _): (&Vec<u8>, &Vec<u8>)| key.clone());
                if let Some(key) = key {
                    assert!(fixture.delete(&key).unwrap());
                    own.remove(&key);
                }
            } else {
                let value = vec![writer as u8; rng.usize(0..100)];
                fixture.put(&key, &value).unwrap();
                own.insert(key, value);
            }
        }
    }
    own
}

#[test]
fn many_threads_share_a_pool_smaller_than_the_data() {
    let fixture = Fixture::new();
    let fixture = Arc::new(fixture);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let fixture = fixture.clone();
            scope.spawn(move || {
                for n in 0..1500u32 {
                    let key = (n.wrapping_mul(2_654_435_761) ^ thread).to_be_bytes();
                    fixture.put(&[&key[..], &thread.to_be_bytes()].concat(), &[thread as u8; 200]).unwrap();
                }
            });
        }
    });
    let report = fixture.tree.check(fixture.ctx()).unwrap();
    assert_eq!((report.problems, report.records), (vec![], 6000));
    assert!(report.pages.len() > fixture.ctx().pool.frame_count());
}
