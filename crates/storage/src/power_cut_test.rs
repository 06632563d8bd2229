//! Tests of `power_cut`.

use super::*;

const BLOCK: u64 = BLOCK_BYTES;

fn atomic(atomic_write_bytes: u32) -> Guarantees {
    Guarantees { atomic_write_bytes, ..Guarantees::SECTORS }
}

fn fates(guarantees: &Guarantees, writes: &[PendingWrite], seed: u64) -> Vec<WriteOutcome> {
    choose_fates(guarantees, writes, &mut Rng::with_seed(seed))
}

fn kept(fate: &WriteOutcome) -> u64 {
    fate.iter().map(|r| r.end - r.start).sum()
}

#[test]
fn pieces_are_atomic_units_or_sectors() {
    assert_eq!(pieces(&(0..8192), &atomic(4096)), [0..4096, 4096..8192]);
    assert_eq!(pieces(&(3584..9216), &atomic(4096)), [3584..4096, 4096..8192, 8192..8704, 8704..9216]);
    assert_eq!(pieces(&(0..32768), &atomic(16384)), [0..16384, 16384..32768]);
    assert_eq!(pieces(&(4096..8192), &atomic(16384)).len(), 8, "a part of a unit tears at sectors");
}

#[test]
fn short_writes_may_be_atomic_anywhere() {
    let anywhere = Guarantees { atomic_anywhere: true, ..atomic(16384) };
    assert_eq!(pieces(&(4096..20480), &anywhere).len(), 1);
    assert_eq!(pieces(&(4096..20480), &atomic(16384)).len(), 32);
    assert_eq!(pieces(&(0..20480), &anywhere).len(), 9, "longer ones are not");
}

/// A page that one request writes whole never tears on a device with 16 KiB atomic writes, and does with less.
#[test]
fn atomic_writes_do_not_tear() {
    let torn = |unit: u32| {
        let writes = [PendingWrite::completed(0..16384), PendingWrite::completed(16384..32768)];
        let cuts = (0..300).flat_map(|seed| fates(&atomic(unit), &writes, seed));
        cuts.filter(|f| kept(f) > 0 && kept(f) < 16384).count()
    };
    assert_eq!(torn(16384), 0);
    assert!(torn(4096) > 50 && torn(512) > 50);
}

/// Without guaranteed order a later write may survive an earlier one; with it never.
#[test]
fn order_is_a_guarantee() {
    let out_of_order = |ordered: bool| {
        let guarantees = Guarantees { ordered, ..atomic(4096) };
        let writes: Vec<_> = (0..16).map(|i| PendingWrite::completed(i * BLOCK..(i + 1) * BLOCK)).collect();
        let cuts = (0..200).map(|seed| fates(&guarantees, &writes, seed));
        cuts.filter(|fates| fates.windows(2).any(|w| w[0].is_empty() && !w[1].is_empty())).count()
    };
    assert_eq!(out_of_order(true), 0);
    assert!(out_of_order(false) > 50);
}

/// A write under way when power failed does not overtake completed ones on a device that guarantees order, and is never
/// certain.
#[test]
fn a_write_under_way_keeps_the_order() {
    let guarantees = Guarantees { ordered: true, ..atomic(4096) };
    let mut writes: Vec<_> = (0..8).map(|i| PendingWrite::completed(i * 16384..(i + 1) * 16384)).collect();
    (writes[3].under_way, writes[7].under_way) = (true, true);
    // The two under way last: the rest in order of completion.
    let in_order = |f: Vec<WriteOutcome>| [&f[..3], &f[4..7], &[f[3].clone(), f[7].clone()]].concat();
    let cuts: Vec<_> = (0..300).map(|seed| in_order(fates(&guarantees, &writes, seed))).collect();
    let overtakes = |fates: &&Vec<WriteOutcome>| {
        fates[6..].iter().any(|f| kept(f) > 0) && fates[..6].iter().any(|f| kept(f) < 16384)
    };
    assert_eq!(cuts.iter().filter(overtakes).count(), 0);
    let whole_before = |fates: &&Vec<WriteOutcome>| fates[..6].iter().all(|f| kept(f) == 16384);
    assert!(cuts.iter().filter(whole_before).any(|fates| kept(&fates[7]) == 0));
    assert!(cuts.iter().any(|fates| kept(&fates[7]) > 0));
}

#[test]
fn order_is_that_of_completion() {
    let guarantees = Guarantees { ordered: true, ..atomic(4096) };
    // The second write completed first.
    let at = |range, done_ns| PendingWrite { done_ns, ..PendingWrite::completed(range) };
    let writes = [at(0..4096, 100), at(4096..8192, 60)];
    let survive = |seed| {
        let fates = fates(&guarantees, &writes, seed);
        [0, 1].map(|n| fates[n] == [writes[n].range.clone()])
    };
    let seen: std::collections::BTreeSet<_> = (0..200).map(survive).collect();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [[false, false], [false, true], [true, true]]);
}

#[test]
fn a_shorn_block_keeps_its_beginning() {
    let fate = shear(std::iter::once(0..BLOCK).collect(), &mut Rng::with_seed(3));
    assert!(fate.len() == 1 && fate[0].start == 0 && [1536, 3584].contains(&fate[0].end), "{fate:?}");
    assert_eq!(shear(WriteOutcome::new(), &mut Rng::with_seed(3)), WriteOutcome::new());
}
