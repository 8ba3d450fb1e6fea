//! Where batches come from.

use crate::array::{Array, Precision, batch_shape};
use posterior_linalg::parallel;
use posterior_linalg::random::ChaCha8Rng;
use rand::RngExt;

/// What a network should return.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets<T> {
    /// Numbers, `[examples, outputs]`.
    Values(Array<T>),
    /// Class numbers from 0.
    Classes(Vec<u32>),
}

impl<T: Precision> Targets<T> {
    /// Number of examples.
    pub fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.rows(),
            Self::Classes(classes) => classes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(never)]
    fn select(&self, indices: &[usize]) -> Self {
        match self {
            Self::Values(values) => Self::Values(select(values, indices)),
            Self::Classes(classes) => Self::Classes(indices.iter().map(|&i| classes[i]).collect()),
        }
    }
}

/// Rows by number.
#[inline(never)]
fn select<T: Precision>(x: &Array<T>, indices: &[usize]) -> Array<T> {
    let mut values = Vec::with_capacity(indices.len() * x.row_len());
    indices.iter().for_each(|&i| values.extend_from_slice(x.row(i)));
    Array::new(batch_shape(indices.len(), &x.shape()[1..]), values)
}

/// Examples that can be asked for by number.
pub trait Examples<T>: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shape of one input.
    fn input_shape(&self) -> &[usize];

    /// The examples with these numbers; with a random stream they may be augmented, without they are as they are.
    fn batch(&self, indices: &[usize], augment: Option<&mut ChaCha8Rng>) -> (Array<T>, Targets<T>);
}

/// Inputs and targets in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tabular<T> {
    inputs: Array<T>,
    targets: Targets<T>,
}

impl<T: Precision> Tabular<T> {
    /// `inputs` are `[examples, ...]`.
    ///
    /// # Panics
    /// When there are more inputs than targets or fewer.
    #[inline(never)]
    pub fn new(inputs: Array<T>, targets: Targets<T>) -> Self {
        assert_eq!(inputs.rows(), targets.len(), "one target for each input");
        Self { inputs, targets }
    }
}

impl<T: Precision> Examples<T> for Tabular<T> {
    fn len(&self) -> usize {
        self.inputs.rows()
    }

    fn input_shape(&self) -> &[usize] {
        &self.inputs.shape()[1..]
    }

    #[inline(never)]
    fn batch(&self, indices: &[usize], _: Option<&mut ChaCha8Rng>) -> (Array<T>, Targets<T>) {
        (select(&self.inputs, indices), self.targets.select(indices))
    }
}

/// Random changes of images that keep their class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Augmentation {
    /// Mirror left and right, with probability one half.
    pub flip: bool,
    /// Shift by up to so many pixels in each direction (uniformly); black comes in from outside.
    pub shift: usize,
}

/// Images kept as bytes; each becomes `(byte / 255 - mean) / deviation` by channel when a batch is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Images<T> {
    shape: [usize; 3],
    bytes: Vec<u8>,
    targets: Targets<T>,
    /// The number of each byte, by channel.
    table: Vec<[T; 256]>,
    augmentation: Augmentation,
    input: Vec<usize>,
}

impl<T: Precision> Images<T> {
    /// `bytes` are `[examples, channels, height, width]`; `mean` and `deviation` have one entry for each channel, in units of 0 to 1. Inputs have the shape
    /// `input`, usually `[channels, height, width]`, or `[pixels]` for networks that take them flat.
    ///
    /// # Panics
    /// When sizes do not fit each other.
    #[inline(never)]
    pub fn new(
        shape: [usize; 3],
        bytes: Vec<u8>,
        targets: Targets<T>,
        mean: &[f64],
        deviation: &[f64],
        augmentation: Augmentation,
        input: Vec<usize>,
    ) -> Self {
        let pixels: usize = shape.iter().product();
        assert_eq!(bytes.len(), targets.len() * pixels, "one target for each image");
        assert!(
            mean.len() == shape[0] && deviation.len() == shape[0],
            "one mean and deviation for each channel"
        );
        assert_eq!(input.iter().product::<usize>(), pixels, "inputs hold the pixels");
        let table = mean
            .iter()
            .zip(deviation)
            .map(|(m, d)| std::array::from_fn(|byte| T::from_f64((byte as f64 / 255.0 - m) / d)))
            .collect();
        Self { shape, bytes, targets, table, augmentation, input }
    }
}

impl<T: Precision> Examples<T> for Images<T> {
    fn len(&self) -> usize {
        self.targets.len()
    }

    fn input_shape(&self) -> &[usize] {
        &self.input
    }

    #[inline(never)]
    fn batch(&self, indices: &[usize], mut augment: Option<&mut ChaCha8Rng>) -> (Array<T>, Targets<T>) {
        let [channels, height, width] = self.shape;
        let pixels = channels * height * width;
        let mut values = vec![T::ZERO; indices.len() * pixels];
        // Random changes are drawn first, in order; then every image is made on its own.
        let moves: Vec<(usize, bool, isize, isize)> = indices
            .iter()
            .map(|&i| {
                let (mut flip, mut down, mut right) = (false, 0isize, 0isize);
                if let Some(rng) = augment.as_deref_mut() {
                    let reach = self.augmentation.shift.min(1 << 20) as i64;
                    flip = self.augmentation.flip && rng.random::<bool>();
                    if reach > 0 {
                        down = rng.random_range(-reach..=reach) as isize;
                        right = rng.random_range(-reach..=reach) as isize;
                    }
                }
                (i, flip, down, right)
            })
            .collect();
        let make = |(out, &(i, flip, down, right)): (&mut [T], &(usize, bool, isize, isize))| {
            let bytes = &self.bytes[i * pixels..(i + 1) * pixels];
            let table = |channel: usize, byte: u8| self.table[channel][usize::from(byte)];
            if !flip && down == 0 && right == 0 {
                for (channel, (out, bytes)) in
                    out.chunks_exact_mut(height * width).zip(bytes.chunks_exact(height * width)).enumerate()
                {
                    let own = &self.table[channel];
                    out.iter_mut().zip(bytes).for_each(|(o, &b)| *o = own[usize::from(b)]);
                }
                return;
            }
            for (row, out) in out.chunks_exact_mut(width).enumerate() {
                let (channel, y) = (row / height, (row % height) as isize - down);
                if !(0..height as isize).contains(&y) {
                    out.fill(table(channel, 0));
                    continue;
                }
                let from = &bytes[(channel * height + y as usize) * width..][..width];
                for (x, o) in out.iter_mut().enumerate() {
                    let x = if flip { width - 1 - x } else { x } as isize - right;
                    *o = table(channel, if (0..width as isize).contains(&x) { from[x as usize] } else { 0 });
                }
            }
        };
        parallel::chunks(&mut values, pixels.max(1), 16, |i, out| make((out, &moves[i])));
        (Array::new(batch_shape(indices.len(), &self.input), values), self.targets.select(indices))
    }
}

/// Some of the examples of a set.
pub struct Subset<T> {
    whole: std::sync::Arc<dyn Examples<T> + Send>,
    indices: Vec<usize>,
}

impl<T> Subset<T> {
    /// The examples with these numbers, in this order.
    ///
    /// # Panics
    /// When a number is beyond the set.
    #[inline(never)]
    pub fn new(whole: std::sync::Arc<dyn Examples<T> + Send>, indices: Vec<usize>) -> Self {
        assert!(indices.iter().all(|&i| i < whole.len()), "indices stay within the set");
        Self { whole, indices }
    }
}

impl<T: Precision> Examples<T> for Subset<T> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn input_shape(&self) -> &[usize] {
        self.whole.input_shape()
    }

    #[inline(never)]
    fn batch(&self, indices: &[usize], augment: Option<&mut ChaCha8Rng>) -> (Array<T>, Targets<T>) {
        let own: Vec<usize> = indices.iter().map(|&i| self.indices[i]).collect();
        self.whole.batch(&own, augment)
    }
}
