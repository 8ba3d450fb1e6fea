//! Images of any element type, one by one.

use crate::arrays::same_type;
use crate::limits::check_memory;
use crate::{ArrayValues, DataError, NumericArray};
use posterior_linalg::parallel;

/// A value of a pixel. Whole numbers are rounded to the nearest and kept within their range.
pub(super) trait Pixel: Copy + Default + Send + Sync {
    fn read(self) -> f64;
    fn write(value: f64) -> Self;
}

macro_rules! pixel {
    ($type:ty, $value:ident => $rounded:expr) => {
        impl Pixel for $type {
            fn read(self) -> f64 {
                self as f64
            }
            fn write($value: f64) -> Self {
                $rounded as $type
            }
        }
    };
}
pixel!(f32, value => value);
pixel!(f64, value => value);
pixel!(i64, value => value.round());
pixel!(u8, value => value.round());

/// Copies pixels: value k of each image comes from the place `sources[k]` of the same image, or is 0.
pub(super) fn gather(images: &NumericArray, sources: &[Option<usize>]) -> ArrayValues {
    fn copy<T: Pixel>(values: &[T], sources: &[Option<usize>]) -> Vec<T> {
        let mut out = vec![T::default(); values.len()];
        let size = sources.len();
        parallel::chunks(&mut out, size, 2, |index, out| {
            let image = &values[index * size..][..out.len()];
            out.iter_mut().zip(sources).for_each(|(o, at)| *o = at.map_or(T::default(), |at| image[at]));
        });
        out
    }
    same_type!(images.values(), values => copy(values, sources))
}

/// Changes each image, of `size` values, in double precision; `change` has its index, its values and scratch memory of the same
/// size, which holds anything. `size` is positive.
///
/// # Errors
/// [`DataError::Oversized`] if even one image in double precision, twice, is beyond the limit.
pub(super) fn change_each(
    images: &NumericArray,
    size: usize,
    change: impl Fn(usize, &mut Vec<f64>, &mut Vec<f64>) + Sync,
) -> Result<ArrayValues, DataError> {
    fn run<T: Pixel>(
        values: &[T],
        size: usize,
        change: impl Fn(usize, &mut Vec<f64>, &mut Vec<f64>) + Sync,
    ) -> Vec<T> {
        let mut out = vec![T::default(); values.len()];
        let room = || (Vec::with_capacity(size), vec![0.0; size]);
        parallel::chunks_with(&mut out, size, 1, room, |(pixels, scratch), index, out| {
            pixels.clear();
            pixels.extend(values[index * size..][..out.len()].iter().map(|v| v.read()));
            change(index, pixels, scratch);
            out.iter_mut().zip(pixels.iter()).for_each(|(o, v)| *o = T::write(*v));
        });
        out
    }
    check_memory("working copy of an image", &[size, 2], 8)?;
    Ok(same_type!(images.values(), values => run(values, size, change)))
}
