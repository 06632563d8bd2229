//! Measurements: the places of a subject's files, and the environment of a measurement.
//!
//! | file | what |
//! |---|---|
//! | `device_choice` | this machine's disk or an emulated device, by name |
//! | `workspace` | work folder, kept templates, and the [`Watch`] that is shown what happens |
//! | `ram_disk` | a file system in memory |
//! | `sized_device` | an emulated SSD made to measure: fill, spare flash, streams |
//! | `template` | loaded data, to be copied |
//! | `place` | the files of one measurement, made from a template and removed afterwards |

mod device_choice;
mod place;
mod ram_disk;
mod sized_device;
mod template;
mod workspace;

pub use device_choice::DeviceChoice;
pub(crate) use place::IN_MEMORY_BYTES;
pub use place::{PlaceSpec, Testbed};
pub use sized_device::{SizedDevice, Streams};
pub use workspace::{Quiet, Watch, Workspace};
