//! The models of the engine's concurrency (`crates/engine/src/models`), a test each.

use highwater_models::models::{commit, locks, pages, sessions};

/// A test for each model.
macro_rules! models {
    ($($file:ident: $($model:ident),+;)+) => {
        $($(
            #[test]
            fn $model() {
                $file::$model();
            }
        )+)+
    };
}

models! {
    commit: commits_that_share_a_sync_survive_a_power_cut, a_failed_sync_wakes_all_that_wait_for_it;
    locks: granted_and_timed_out_at_once, a_row_is_taken_while_its_front_wakes,
        a_victim_is_chosen_while_locks_are_granted, an_implicit_lock_ends_while_it_becomes_explicit,
        inserts_wait_for_ranges_that_go, stopping_wakes_every_waiter, sessions_come_and_go,
        an_interruption_comes_at_any_moment, an_interruption_is_not_missed;
    pages: a_reader_whose_frame_moves, a_page_that_becomes_dirty_stays, a_page_is_read_by_one_of_those_who_miss_it;
    sessions: transfers_concurrently_with_readers_and_background_steps;
}
