//! db. SKELETON
