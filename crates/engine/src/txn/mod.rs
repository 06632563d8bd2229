//! txn. SKELETON
