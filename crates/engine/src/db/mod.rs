//! db. SKELETON
pub mod background;
pub mod core;
