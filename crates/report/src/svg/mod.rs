//! A small plotting kit: ranges and scales (`scale`), round ticks (`ticks`), the drawing surface (`surface`), and the
//! frame of axes around a plot (`frame`). Colours come from CSS classes, so that light and dark need no second drawing.

mod frame;
mod scale;
mod surface;
mod ticks;

pub(crate) use frame::{Axis, Frame};
pub(crate) use scale::{Range, Scale};
pub(crate) use surface::{Anchor, Surface};
