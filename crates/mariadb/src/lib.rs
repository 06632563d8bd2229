//! Highwater as a storage engine of MariaDB: the half that is Rust, called through the C functions of
//! `include/highwater_server.h`.
//!
//! Rules
//! 1. Nothing here knows the server: columns, keys and names are bytes, the rest is numbers. The half that is C++
//!    (`cpp/`) translates. So this crate is built and tested without a server.
//! 2. Each function is [`guarded`](failure::guarded): a panic becomes an error of the call.
//! 3. References in the functions' parameters are pointers of the header, whose rules the caller keeps: valid, not
//!    null, and to a session or a table from one thread at a time.

pub mod abi;
#[cfg(test)]
mod abi_test;
pub mod cursor;
pub mod database;
pub mod definition;
pub mod failure;
pub mod information;
#[cfg(test)]
mod mariadb_test;
mod row_count;
pub mod rows;
pub mod session;
pub mod table;
mod temporary;
pub mod two_phases;
