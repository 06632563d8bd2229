//! Repairs from the journal that are cut themselves.

use super::*;

#[test]
fn a_repair_that_is_cut_can_be_repeated() {
    let mut cut_repairs = 0;
    for seed in 0..30 {
        let mut world = World::new();
        life(&mut world, JOURNAL, 25 + seed * 2, seed);
        for changes in 0.. {
            let (again, faults) = (world.storage.cut(changes), Faults::new());
            faults.power_off_after(changes);
            let whole = world.open(&again.map(|device| faults.wrap(device)), Protection::Doublewrite).is_ok();
            let after = again.cut(seed);
            let store = world.open(&after, Protection::Doublewrite).unwrap();
            world.assert_whole(&*store, &format!("seed {seed}, {changes} changes of the repair"));
            if whole {
                break;
            }
            cut_repairs += 1;
        }
    }
    assert!(cut_repairs > 100, "{cut_repairs} repairs were cut");
}

/// The images from which it repairs may be lost themselves: a killed process has written them, and not synced.
#[test]
fn a_repair_from_images_that_are_not_durable_can_be_repeated() {
    let mut cut_repairs = 0;
    for seed in (0..30).step_by(3) {
        for changes in 0.. {
            let (mut world, faults) = (World::new(), Faults::new());
            life(&mut world, JOURNAL, 25 + seed * 2, seed);
            faults.power_off_after(changes);
            let repaired = world.storage.map(|device| faults.wrap(device));
            let whole = world.open(&repaired, Protection::Doublewrite).is_ok();
            let after = world.storage.cut(seed + changes);
            let store = world.open(&after, Protection::Doublewrite).unwrap();
            world.assert_whole(&*store, &format!("seed {seed}, {changes} changes of the repair"));
            if whole {
                break;
            }
            cut_repairs += 1;
        }
    }
    assert!(cut_repairs > 30, "{cut_repairs} repairs were cut");
}
