//! The crate `uuid`.
//!
//! ```
//! use highwater::{Database, Schema, Type, values};
//! use uuid::Uuid;
//!
//! let db = Database::in_memory()?;
//! let schema = Schema::new().column("id", Type::Uuid).nullable("parent", Type::Uuid).primary_key(&["id"]);
//! let nodes = db.create_table("nodes", schema)?;
//! let id = Uuid::from_u128(0x67e55044_10b1_426f_9247_bb680e5fe0c8);
//! let mut txn = db.begin()?;
//! txn.insert(&nodes, &values![id, None::<Uuid>])?;
//! let row = txn.get(&nodes, &values![id])?.unwrap();
//! assert_eq!((row.try_get::<Uuid>("id")?, row.try_get::<Option<Uuid>>("parent")?), (id, None));
//! # Ok::<(), highwater::Error>(())
//! ```

use super::{read_by, values_from};
use crate::table::Uuid;
use ::uuid::Uuid as Foreign;

impl From<Foreign> for Uuid {
    fn from(uuid: Foreign) -> Uuid {
        Uuid::from_bytes(uuid.into_bytes())
    }
}

impl From<Uuid> for Foreign {
    fn from(uuid: Uuid) -> Foreign {
        Foreign::from_bytes(*uuid.as_bytes())
    }
}

values_from! {
    Foreign => Uuid;
}

read_by! {
    Foreign, Uuid;
}
