//! A database that is closed during its check.

use crate::error::Error;
use crate::{Database, Options};
use highwater_storage::StorageSet;

/// Rule 6. (Without purge, for which closing would wait.)
#[test]
fn a_check_of_a_database_that_closes_is_no_report() {
    let storage = StorageSet::memory();
    Database::open_storage(storage.clone(), Options::default()).unwrap().close().unwrap();
    let db = Database::open_storage_idle(storage.clone(), Options::default()).unwrap();
    let mut tells = 0;
    assert!(db.check_with(&mut |_, _| tells += 1).unwrap().is_sound() && tells > 0);
    db.close().unwrap();
    for closes_at in 0..tells {
        let db = Database::open_storage_idle(storage.clone(), Options::default()).unwrap();
        let mut told = 0;
        let report = db.check_with(&mut |_, _| {
            if told == closes_at {
                let other = db.clone();
                std::thread::spawn(move || other.close()).join().unwrap().unwrap();
            }
            told += 1;
        });
        assert!(matches!(report, Err(Error::Closed)), "{report:?}");
    }
}
