//! Measuring: where a subject's files lie, and what a measurement works with.
//!
//! | file | what |
//! |---|---|
//! | `device_choice` | this machine's disk or an emulated device, by name |
//! | `workspace` | work folder, kept templates, and the [`Watch`] that is shown what happens |
//! | `ram_disk` | a file system in memory |
//! | `fitted` | an emulated SSD made to measure: fill, spare flash, streams |
//! | `template` | loaded data, to be copied |
//! | `place` | the files of one measurement, made from a template and removed afterwards |

mod device_choice;
mod fitted;
mod place;
mod ram_disk;
mod template;
mod workspace;

pub use device_choice::DeviceChoice;
pub use fitted::{Fitted, Streams};
pub(crate) use place::IN_MEMORY_BYTES;
pub use place::{Place, Want};
pub use workspace::{Quiet, Watch, Workspace};
