//! Bringing pages in: from the store, or as frames for new pages.
//!
//! | file | what |
//! |---|---|
//! | `loader` | [`PageLoader`]: what a read needs; what is pending for pages; pages that recovery changes |
//! | `load_page`, `load_runs` | reading pages: one, or many at once |
//! | `lose` | overwriting a page that cannot be read |

mod load_page;
mod load_runs;
mod loader;
mod lose;

pub(super) use loader::PageLoader;
