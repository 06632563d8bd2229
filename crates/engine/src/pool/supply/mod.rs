//! Free frames: their supply to threads, and the number of frames in use.
//!
//! | file | what |
//! |---|---|
//! | `frame_supply` | [`FrameSupply`]: from the free list, by evicting a clean page, by the victim policy |
//! | `resize` | withdrawing frames, and returning them |

mod frame_supply;
mod resize;

pub(super) use frame_supply::FrameSupply;
pub(crate) use resize::MIN_FRAMES;
