//! Tests of the database as a whole.

mod fail_stop;
mod file_generations;
mod forked;
mod images;
mod lock_wait;
mod read_only;
mod schedules;
mod shrinking;
mod stale;
mod two_phases;
mod undo_ends;
mod upsert;
