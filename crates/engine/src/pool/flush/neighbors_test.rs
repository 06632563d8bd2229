//! Which pages go with a page, option by option.

use super::*;

#[test]
fn as_the_option_says() {
    let dirty = [60, 63, 64, 65, 67, 70, 71, 72, 74, 126, 127, 128];
    let cases: [(FlushNeighbors, u32, &[u32]); 14] = [
        (FlushNeighbors::Off, 71, &[]),
        (FlushNeighbors::Auto, 71, &[]),
        (FlushNeighbors::Contiguous, 71, &[70, 72]),
        (FlushNeighbors::Contiguous, 70, &[71, 72]),
        (FlushNeighbors::Contiguous, 74, &[]),
        (FlushNeighbors::Contiguous, 64, &[65]),
        (FlushNeighbors::Contiguous, 63, &[]),
        (FlushNeighbors::Contiguous, 127, &[126]),
        (FlushNeighbors::Contiguous, 66, &[64, 65, 67]),
        (FlushNeighbors::Contiguous, 0, &[]),
        (FlushNeighbors::Extent, 71, &[64, 65, 67, 70, 72, 74, 126, 127]),
        (FlushNeighbors::Extent, 63, &[60]),
        (FlushNeighbors::Extent, 128, &[]),
        (FlushNeighbors::Extent, 100, &[64, 65, 67, 70, 71, 72, 74, 126, 127]),
    ];
    for (mode, page, expected) in cases {
        let mut out = Vec::new();
        add(mode, PageNo(page), |p| dirty.contains(&p.0), &mut out);
        assert_eq!(out.iter().map(|p| p.0).collect::<Vec<_>>(), expected, "{mode:?} around {page}");
    }
}

#[test]
fn the_last_extent_does_not_overflow() {
    let mut out = Vec::new();
    add(FlushNeighbors::Extent, PageNo(u32::MAX - 1), |p| p.0 % 2 == 0, &mut out);
    assert_eq!(out.len(), 31);
}
