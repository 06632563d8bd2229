//! Every order in which a thread that changes a page and one that writes it can take their steps (loom).

mod sync {
    pub(crate) mod atomic {
        pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    }
}
#[path = "../frames/dirty.rs"]
mod dirty;

use dirty::DirtyMarks;
use loom::sync::{Arc, Mutex};

/// A page that is its number of changes, its latch, the flush-list mutex, and what is in the data file; and where its
/// last format is in the log.
struct Page {
    marks: DirtyMarks,
    flush_list: Mutex<()>,
    latched: Mutex<u64>,
    in_file: Mutex<u64>,
    formatted_at: Mutex<u64>,
}

impl Page {
    fn new() -> Arc<Page> {
        Arc::new(Page {
            marks: DirtyMarks::default(),
            flush_list: Mutex::new(()),
            latched: Mutex::new(0),
            in_file: Mutex::new(0),
            formatted_at: Mutex::new(0),
        })
    }

    fn change(&self, lsn: u64) {
        self.change_and(lsn, || ());
    }

    fn recreate(&self, lsn: u64) {
        self.change_and(lsn, || {
            *self.formatted_at.lock().unwrap() = lsn;
            self.marks.note_recreated_by_redo();
        });
    }

    fn change_and(&self, lsn: u64, then: impl FnOnce()) {
        let mut changes = self.latched.lock().unwrap();
        *changes += 1;
        if !self.marks.is_noted() {
            let _list = self.flush_list.lock().unwrap();
            self.marks.note(lsn);
        }
        then();
    }

    fn write(&self) {
        let copy = {
            let changes = self.latched.lock().unwrap();
            let _list = self.flush_list.lock().unwrap();
            if !self.marks.begin_write() {
                return;
            }
            let redo_makes_it = self.marks.oldest() <= *self.formatted_at.lock().unwrap();
            assert!(
                redo_makes_it || !self.marks.is_recreated_by_redo(),
                "a page without a copy that redo does not recreate"
            );
            *changes
        };
        *self.in_file.lock().unwrap() = copy;
        let _list = self.flush_list.lock().unwrap();
        self.marks.end_write();
    }
}

/// A page whose last change is not in the data file is dirty, in any order of the steps.
#[test]
fn no_change_is_taken_for_written_that_is_not() {
    loom::model(|| {
        let page = Page::new();
        page.change(10);
        let writer = {
            let page = page.clone();
            loom::thread::spawn(move || page.write())
        };
        page.change(20);
        page.change(30);
        writer.join().unwrap();
        let (changes, in_file) = (*page.latched.lock().unwrap(), *page.in_file.lock().unwrap());
        assert!(changes == in_file || page.marks.oldest() != 0, "{changes} changes, {in_file} in the data file, clean");
        assert!(!page.marks.is_flushing());
        assert!(
            page.marks.oldest() <= 10 * (in_file + 1),
            "recovery would begin after a change that is not in the file"
        );
        page.write();
        assert!(page.marks.oldest() == 0 && *page.in_file.lock().unwrap() == 3);
    });
}

/// A page goes to its place without a copy only if redo from its oldest change on recreates it, in any order of the
/// steps.
#[test]
fn a_page_without_a_copy_is_recreated_by_redo_by_redo() {
    loom::model(|| {
        let page = Page::new();
        page.recreate(10);
        assert!(page.marks.is_recreated_by_redo());
        let writer = {
            let page = page.clone();
            loom::thread::spawn(move || page.write())
        };
        page.change(20);
        page.recreate(30);
        writer.join().unwrap();
        page.write();
        page.change(40);
        page.write();
    });
}
