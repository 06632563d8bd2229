//! Tests of the database as a whole.

mod fail_stop;
mod forked;
mod images;
mod lock_wait;
mod pairing;
mod read_only;
mod shrinking;
mod stale;
