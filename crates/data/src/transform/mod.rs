//! Images under shift: rotated, and corrupted at five severities, to see how predictions hold up away from the training data.
//!
//! Images are arrays of shape N x H x W, or with channels, N x C x H x W or N x H x W x C ([`ChannelOrder`]). Every element type is
//! taken and kept. Work is shared out over threads by images; what comes out does not depend on their number, and an image is
//! treated alike whichever images are beside it, its random numbers depending on the seed and its own index.
//!
//! | module | idea |
//! |---|---|
//! | `format` | how pixels are laid out, and the value of white: [`ImageFormat`] |
//! | `pixels` | images one by one in double precision, in any element type |
//! | `rotation` | [`rotate`], nearest neighbour or bilinear |
//! | `corruption` | [`Corruption`] with its severities, and [`corrupt`] |
//! | `apply` | what each corruption does to one image |
//!
//! ```
//! use posterior_data::transform::{ChannelOrder, Interpolation, rotate};
//! use posterior_data::{ArrayValues, NumericArray};
//! let image = NumericArray::new(vec![1, 2, 2], ArrayValues::U8(vec![1, 2, 3, 4])).unwrap();
//! let turned = rotate(&image, ChannelOrder::First, 90.0, Interpolation::Nearest).unwrap();
//! assert_eq!(turned.values(), &ArrayValues::U8(vec![2, 4, 1, 3]));
//! ```

mod apply;
mod corruption;
mod format;
mod pixels;
mod rotation;

pub use corruption::{Corruption, SEVERITIES, corrupt};
pub use format::{ChannelOrder, ImageFormat};
use format::{Geometry, require_pixels};
pub use rotation::{Interpolation, rotate};
