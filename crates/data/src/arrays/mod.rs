//! Numeric arrays of any rank and image files: what networks are trained on and applied to.
//!
//! | module | idea |
//! |---|---|
//! | `array` | [`NumericArray`]: shape and row-major values |
//! | `element` | element types of files, decoded as they stream in |
//! | `source` | a file, gzipped or not, whose declared sizes are checked before memory is taken |
//! | `npy`, `npz` | NumPy's formats, [`read_array`] and [`read_arrays`] |
//! | `write` | [`write_npy`] and [`write_npz`], atomic |
//! | `idx` | the format of MNIST, [`read_idx`] |
//! | `cifar` | the binary format of CIFAR-10 and CIFAR-100, [`read_cifar`] |
//! | `images` | any of these by its content, [`read_images`] |
//! | `picture` | grey pictures and volumes as NPY, TIFF or PNG, [`read_picture`], [`write_picture`] |
//! | `image_set` | images with their labels, [`ImageSet`] |
//!
//! Gzip is recognised by its first two bytes, whatever the name of the file.

mod array;
mod cifar;
mod element;
mod idx;
mod image_set;
mod images;
mod npy;
mod npz;
mod picture;
mod source;
mod write;

pub(crate) use array::same_type;
pub use array::{ArrayValues, NonFinite, NumericArray};
pub use cifar::{CifarImages, CifarLabels, read_cifar};
pub use idx::read_idx;
pub use image_set::ImageSet;
pub use images::read_images;
pub use npz::{read_array, read_arrays};
pub use picture::{PictureFormat, read_picture, write_picture};
pub use write::{write_npy, write_npz};
