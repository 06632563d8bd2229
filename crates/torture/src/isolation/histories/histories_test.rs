//! Random histories on Highwater, at every level of isolation: none shows what its level forbids, and the anomalies
//! that a level allows are seen, so that the checker is not blind.

use super::*;
use highwater::Options;
use highwater::config::PageSize;
use highwater_storage::StorageSet;

const HISTORIES: u64 = 6;
const SEED: u64 = 14;

#[test]
fn no_history_shows_what_its_level_forbids() {
    let options = Options {
        page_size: PageSize::Bytes(4096),
        buffer_pool_size: 2 << 20,
        log_file_size: 4 << 20,
        ..Options::default()
    };
    let db = Database::open_storage(StorageSet::memory(), options).unwrap();
    let mut rng = Rng::with_seed(SEED);
    let mut tallies = Vec::new();
    for setting in Setting::ALL {
        let mut tally = Tally::default();
        for _ in 0..HISTORIES {
            let sizes = Sizes { threads: 6, transactions: 60, keys: rng.u64(2..=16) };
            tally.add(&db, setting, &sizes, &mut rng).unwrap();
        }
        println!("{}: {tally:?}", setting.name());
        tallies.push(tally);
    }
    let seen = |setting: Setting, anomaly| tallies[setting as usize].anomalies.get(&anomaly).copied().unwrap_or(0);
    assert!(seen(Setting::ReadUncommitted, Anomaly::G1a) > 0);
    assert!(seen(Setting::ReadCommitted, Anomaly::GSingle) > 0);
    assert!(seen(Setting::RepeatableRead, Anomaly::P4) > 0);
    assert!(seen(Setting::FirstCommitterWins, Anomaly::G2) > 0);
    assert!(db.check().unwrap().findings.is_empty());
    db.close().unwrap();
}
