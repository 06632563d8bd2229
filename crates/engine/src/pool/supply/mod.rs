//! Free frames: how a thread gets them, and how many of all frames are in use.
//!
//! | file | what |
//! |---|---|
//! | `frame_supply` | [`FrameSupply`]: from the free list, by evicting a clean page, by the victim policy |
//! | `resize` | withdrawing frames, and returning them |

mod frame_supply;
mod resize;

pub(super) use frame_supply::FrameSupply;
pub(crate) use resize::MIN_FRAMES;
