//! table. SKELETON
