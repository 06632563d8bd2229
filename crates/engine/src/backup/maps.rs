//! The number of pages that the extent maps in a chain of backups describe: the restored file has no page after them.

use crate::space::layout::SpaceLayout;
use crate::types::PageNo;
use std::collections::BTreeSet;

/// The groups of extents whose extent map is among some pages.
#[derive(Debug, Default)]
pub(super) struct Maps {
    /// `None`: nothing is noted.
    layout: Option<SpaceLayout>,
    groups: BTreeSet<u32>,
}

impl Maps {
    /// For a file of this layout.
    pub(super) fn of(layout: SpaceLayout) -> Maps {
        Maps { layout: Some(layout), groups: BTreeSet::new() }
    }

    pub(super) fn note(&mut self, page: PageNo) {
        self.groups.extend(self.layout.and_then(|layout| layout.group_mapped_by(page)));
    }

    /// Pages up to the first group that has no map.
    pub(super) fn pages(&self) -> u32 {
        let groups = self.groups.iter().zip(0..).take_while(|(group, n)| *group == n).count();
        self.layout.map_or(0, |layout| layout.group_pages().saturating_mul(groups as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that names a page far beyond the end of the file does not make the file longer.
    #[test]
    fn pages_count_up_to_the_first_group_without_a_map() {
        let layout = SpaceLayout::new(4096);
        let mut maps = Maps::of(layout);
        assert_eq!(maps.pages(), 0);
        maps.note(PageNo(0));
        maps.note(layout.map_page(1));
        assert_eq!(maps.pages(), 0);
        maps.note(layout.map_page(0));
        assert_eq!(maps.pages(), 2 * layout.group_pages());
        maps.note(layout.map_page(3));
        assert_eq!(maps.pages(), 2 * layout.group_pages());
    }
}
