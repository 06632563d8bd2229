//! Undo streams are shared, kept few, freed when idle, and skipped when damaged.

use super::purging::undo_pages;
use super::*;
use crate::lock::Holder;
use crate::undo::UndoSpace;
use highwater_storage::{FaultKind, Faults, Operation};

#[test]
fn streams_are_shared_and_kept_few() {
    let db = Db::new();
    let mut sessions: Vec<_> = (0..20).map(|_| db.begin()).collect();
    for round in 0..3 {
        for (i, session) in sessions.iter_mut().enumerate() {
            session.insert(&format!("{round}-{i}"), &row("a", "", "")).unwrap();
        }
    }
    sessions
        .into_iter()
        .enumerate()
        .for_each(|(i, session)| if i % 3 == 0 { session.rollback() } else { session.commit() });
    for i in 0..100 {
        db.fill(&[(&format!("x{i}"), row("a", "", ""))]);
    }
    assert_eq!(undo_pages(&db), 21);
    db.purge_all();
    assert_eq!(db.check(true).len(), 139);
}

#[test]
fn more_writers_than_a_directory_page_has_room_for() {
    let db = Db::new();
    let mut sessions: Vec<_> = (0..300).map(|_| db.begin()).collect();
    for (i, session) in sessions.iter_mut().enumerate() {
        session.insert(&format!("k{i:03}"), &row("a", "", "")).unwrap();
    }
    let (committed, open) = (sessions.split_off(150), sessions);
    committed.into_iter().for_each(Session::commit);
    let db = {
        let next = db.after_power_cut(1);
        open.into_iter().for_each(std::mem::forget);
        next
    };
    assert_eq!(db.check(false).len(), 150);
    db.purge_all();
    assert_eq!(undo_pages(&db), 302);
    assert_eq!(db.system.undo_pages().unwrap().len(), 302);
    let mut session = db.begin();
    session.insert("k000", &row("b", "", "")).unwrap();
    session.commit();
    assert_eq!(db.check(true).len(), 151);
}

/// The limit of ids is raised early; where that fails once, the id that was given is used, and none stays active.
#[test]
fn an_id_is_used_though_the_limit_cannot_be_raised() {
    let faults = Faults::new();
    let made = Db::new();
    made.fill(&[("k", row("a", "", ""))]);
    let db = made.reopened(|device| faults.wrap(device));
    let holder = Arc::new(Holder::default());
    let enter_and_leave = || {
        let id = db.system.activate(&holder, 0).unwrap();
        db.system.deactivate(id, 0);
    };
    enter_and_leave();
    db.parts.ctx.pool.flush_all().unwrap();
    db.parts.ctx.pool.evict_all_clean();
    faults.fail(Operation::Read, 1, FaultKind::ErrorOnce);
    let limit = db.system.limit_of_ids();
    while faults.failures() == 0 {
        assert_eq!(db.system.limit_of_ids(), limit);
        enter_and_leave();
    }
    assert_eq!((db.system.limit_of_ids(), db.system.active_count()), (limit, 0));
    enter_and_leave();
    assert!(db.system.limit_of_ids() > limit);
}

/// Streams that a peak of writers made are freed, with their pages; places in the directory are used again.
#[test]
fn idle_streams_are_freed() {
    let mut db = Db::new();
    for round in 0..3u64 {
        let mut sessions: Vec<_> = (0..300).map(|_| db.begin()).collect();
        for (i, session) in sessions.iter_mut().enumerate() {
            session.insert(&format!("{round}-{i:03}"), &row("a", "", "")).unwrap();
        }
        sessions.into_iter().for_each(Session::commit);
        let give_back = || db.system.undo.free_idle(|error| panic!("{error}")).unwrap();
        assert_eq!(give_back() + give_back(), 0, "nothing is purged");
        let busy = undo_pages(&db);
        assert!((302..=303).contains(&busy), "{busy} pages in round {round}");
        db.purge_all();
        assert_eq!(give_back(), 292, "all but the few that are kept");
        assert_eq!(give_back(), 0);
        assert_eq!((undo_pages(&db), db.system.undo_pages().unwrap().len()), (10, 10));
        db.fill(&[(&format!("after {round}"), row("a", "", ""))]);
        db = db.after_power_cut(round);
        db.purge_all();
        assert_eq!((undo_pages(&db), db.check(true).len()), (10, 301 * (round as usize + 1)));
    }
}

/// `n` free streams that are purged and were unused since.
fn with_idle_streams(n: usize) -> Db {
    let db = Db::new();
    let mut sessions: Vec<_> = (0..n).map(|_| db.begin()).collect();
    for (i, session) in sessions.iter_mut().enumerate() {
        session.insert(&format!("{i:05}"), &row("a", "", "")).unwrap();
    }
    sessions.into_iter().for_each(Session::commit);
    assert_eq!(db.system.undo.free_idle(|_| {}).unwrap(), 0);
    db.purge_all();
    db
}

/// Damage in many idle streams: what is left is freed, or kept.
#[test]
fn idle_streams_that_are_skipped_are_not_freed() {
    let db = with_idle_streams(20);
    (0..15).for_each(|number| db.system.undo.mark_unusable(number));
    let released = db.system.undo.free_idle(|error| panic!("{error}")).unwrap();
    assert!(released <= 5, "{released}");
    db.fill(&[("after", row("a", "", ""))]);
}

/// Streams that cannot be freed for now are bound and purged as before, and freed later.
#[test]
fn streams_that_could_not_be_freed_are_purged_again() {
    let db = with_idle_streams(30);
    let pool = &db.parts.ctx.pool;
    pool.flush_all().unwrap();
    pool.set_free_frame_timeout_ms(20);
    let mut frames = Vec::new();
    while pool.take_frames(1, &mut frames).is_ok() {}
    let failed = db.system.undo.free_idle(|error| panic!("{error}"));
    assert!(matches!(failed, Err(Error::PoolExhausted { .. })), "{failed:?}");
    pool.release_frames(frames);
    let mut sessions: Vec<_> = (0..30).map(|_| db.begin()).collect();
    for (i, session) in sessions.iter_mut().enumerate() {
        session.delete(&format!("{i:05}")).unwrap();
    }
    sessions.into_iter().for_each(Session::commit);
    assert_eq!(undo_pages(&db), 31, "no stream was lost");
    db.purge_all();
    assert!(db.check(true).is_empty());
    assert_eq!((db.system.history_list_length(), db.system.purge_state().skipped), (0, 0));
    let give_back = || db.system.undo.free_idle(|error| panic!("{error}")).unwrap();
    assert_eq!((give_back(), give_back()), (0, 22));
}

/// Idle streams of which one is damaged: that one is skipped, the others are freed.
#[test]
fn a_damaged_idle_stream_is_skipped_alone() {
    let db = with_idle_streams(30);
    let stream = {
        let mut streams: Vec<_> = (0..30).map(|_| db.system.undo.bind().unwrap()).collect();
        streams.reverse();
        let number = streams[0].number;
        streams.into_iter().for_each(|stream| db.system.undo.release(stream));
        assert_eq!(db.system.undo.free_idle(|_| {}).unwrap(), 0);
        number
    };
    let mut front = db.system.undo.take_front(stream).unwrap();
    // No undo page.
    front.first = PageNo(0);
    db.system.undo.put_front(front);
    let mut damage = Vec::new();
    assert_eq!(db.system.undo.free_idle(|error| damage.push(error.to_string())).unwrap(), 21);
    assert!(matches!(&damage[..], [error] if error.starts_with("page 0 ")), "{damage:?}");
    assert_eq!(undo_pages(&db), 10);
    let mut sessions: Vec<_> = (0..30).map(|_| db.begin()).collect();
    for (i, session) in sessions.iter_mut().enumerate() {
        session.delete(&format!("{i:05}")).unwrap();
    }
    sessions.into_iter().for_each(Session::commit);
    db.purge_all();
    assert!(db.check(true).is_empty());
}

/// Overwrites a field of a page through the pool, so that its checksum is right.
fn overwrite(db: &Db, page: PageNo, offset: usize, bytes: &[u8]) {
    let mut mtr = db.parts.ctx.mtr().unwrap();
    let latched = mtr.fix_x(page).unwrap();
    crate::undo::write(&mut mtr, latched, offset, bytes);
    mtr.commit();
}

/// A database whose only stream has several pages, those of the directory and the stream.
fn with_a_long_stream() -> (Db, Vec<PageNo>) {
    let db = Db::new();
    let mut session = db.begin();
    for i in 0..1200 {
        session.insert(&format!("{i:05}"), &row("a", "", "some text")).unwrap();
    }
    session.commit();
    let pages = db.system.undo_pages().unwrap();
    assert!(pages.len() > 4, "{pages:?}");
    (db, pages)
}

/// A page of a stream that names an earlier one as the next, and a directory that names another first page: purge
/// says so and frees no page of the stream.
#[test]
fn a_stream_that_goes_back_or_begins_elsewhere_is_damage() {
    for (damaged, offset, says) in [(3, 36, "goes back"), (0, 64, "an old version")] {
        let (db, pages) = with_a_long_stream();
        let number = db.system.undo.bind().map(|stream| (stream.number, db.system.undo.release(stream)).0).unwrap();
        let mut front = db.system.undo.take_front(number).unwrap();
        front.at.page = pages[pages.len() - 1];
        overwrite(&db, pages[damaged], offset, &pages[2].0.to_le_bytes());
        let error = db.system.undo.free_front(&mut front).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains(says), "{error}");
        assert!(error.to_string().contains(&format!("page {} ", pages[damaged])), "{error}");
        assert_eq!((front.first, undo_pages(&db)), (pages[1], pages.len()));
    }
}

/// An undo directory that is older than a transaction that has not ended: its ids would be reused.
#[test]
fn an_older_limit_of_ids_is_damage() {
    let db = Db::new();
    let mut session = db.begin();
    session.insert("a", &row("a", "", "")).unwrap();
    let directory = db.system.undo_pages().unwrap()[0];
    for (limit, says) in [(1_u64, "has ids below 1"), (1 << 60, "is no limit")] {
        overwrite(&db, directory, 40, &limit.to_le_bytes());
        let opened = UndoSpace::open(Arc::clone(&db.parts.ctx), Arc::clone(&db.parts.space));
        let error = opened.err().expect("an old limit is found");
        assert!(error.is_damage() && error.to_string().contains(says), "{error}");
    }
    session.rollback();
}

/// A transaction that has written nothing leaves a stream whose last page is damaged, and binds another; the stream is
/// known to have no transaction, also when it is noted later.
#[test]
fn a_stream_whose_last_page_is_damaged_is_left() {
    for is_full in [false, true] {
        let db = Db::new();
        db.fill(&[("a", row("a", "", ""))]);
        db.purge_all();
        let mut stream = db.system.undo.bind().unwrap();
        if is_full {
            // As if a record had filled the page.
            stream.tail.offset = stream.page_bytes;
        }
        let (number, tail, page) = (stream.number, stream.tail, stream.tail.page);
        db.system.undo.release(stream);
        db.parts.ctx.pool.flush_all().unwrap();
        db.parts.ctx.pool.evict_all_clean();
        let data = &db.parts.storage().memory_devices().unwrap()[0];
        data.damage(|bytes| bytes[page.0 as usize * 4096 + 100] ^= 1);
        for key in ["b", "c"] {
            db.fill(&[(key, row("a", "", ""))]);
        }
        let state = db.system.purge_state();
        assert_eq!(state.skipped, 1, "{state:?}");
        assert!(state.damage[0].contains(&format!("page {page} ")), "{state:?}");
        db.system.undo.note_ended_streams().unwrap();
        let (entries, ..) = crate::undo::read_directories(&db.parts.ctx, &db.parts.space).unwrap();
        assert_eq!(entries[number].ended_at, tail.offset);
        assert_eq!(db.check(false).len(), 3);
    }
}

/// A stream that purge has lost sight of is skipped, and purge continues.
#[test]
fn a_stream_unknown_to_purge_holds_up_no_thread() {
    let db = Db::new();
    let mut sessions = [db.begin(), db.begin()];
    sessions[0].insert("a", &row("a", "", "")).unwrap();
    sessions[1].insert("b", &row("a", "", "")).unwrap();
    let mut lost = None;
    for session in sessions {
        session.commit();
        lost = lost.or_else(|| db.system.ended.first());
    }
    drop(db.system.undo.take_front(lost.unwrap()).unwrap());
    db.purge_all();
    assert_eq!(db.system.history_list_length(), 0);
    assert_eq!(db.parts.ctx.stats.purge_streams_skipped.get(), 1);
}

/// Idle streams are looked for while there is always something to purge, and those that are not purged stay below the
/// others.
#[test]
fn idle_streams_are_freed_under_load() {
    let db = with_idle_streams(30);
    let mut session = db.begin();
    (0..30).for_each(|i| assert!(session.delete(&format!("{i:05}")).unwrap()));
    session.commit();
    let pages = undo_pages(&db);
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(20);
    // Once a second, counted from the opening.
    while db.system.now_ms() < 1000 && std::time::Instant::now() < give_up {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(db.system.purge_round(1, false).unwrap(), 1);
    assert_eq!(undo_pages(&db), pages, "other threads leave them alone");
    assert_eq!(db.system.purge_round(1, true).unwrap(), 1);
    assert!(undo_pages(&db) <= pages - 20, "{} of {pages} pages", undo_pages(&db));
    db.purge_all();
    assert!(db.check(true).is_empty());
}

/// Streams with a history are no reason to bind them rather than others.
#[test]
fn idle_streams_that_are_not_purged_stay_at_the_bottom() {
    let db = Db::new();
    let mut old = db.begin();
    old.open_view();
    let mut sessions: Vec<_> = (0..20).map(|_| db.begin()).collect();
    for (i, session) in sessions.iter_mut().enumerate() {
        session.insert(&format!("{i:05}"), &row("a", "", "")).unwrap();
    }
    sessions.into_iter().for_each(Session::commit);
    let next = || {
        let stream = db.system.undo.bind().unwrap();
        let number = stream.number;
        db.system.undo.release(stream);
        number
    };
    let before = next();
    for _ in 0..3 {
        assert_eq!(db.system.undo.free_idle(|_| {}).unwrap(), 0);
        assert_eq!(next(), before);
    }
}
