//! Blocks of the tangent kernel, `J(x) J(z)^T`, layer by layer.
//!
//! For a fully connected layer `<delta a^T, delta' a'^T> + <delta, delta'> = (delta . delta') (a . a' + 1)`: two small products instead of one of the
//! size of the weights. Other layers contribute the product of their gradients. (An often printed form sums the entries of the
//! sensitivities before multiplying; that is another, wrong kernel.)

use super::Outputs;
use super::features::{Feature, TangentFeatures, tangent_feature_size};
use crate::array::{Array, Matrix, Precision, product};
use crate::graph::{Network, NetworkError, Selection};
use posterior_linalg::parallel;
use posterior_linalg::tiles::pieces;

/// Values of features that are held at one time, of each side.
pub const FEATURES: usize = 1 << 26;

/// Examples of a tile of the kernel on the side of its rows, and rows on the other side: a few hundred kilobytes of sums.
const TILE_EXAMPLES: usize = 16;
const TILE_ROWS: usize = 1024;

impl<T: Precision> Network<T> {
    /// `J(x) J(z)^T` for the given outputs: `[rows of x, rows of z]`, rows example by example. The Jacobian is never held: memory is the kernel and
    /// the features of as many points as fit.
    ///
    /// Cost for a perceptron with layer widths `d_l`: `2 rows_x rows_z sum_l d_l` operations. Other parameters: twice their number for each entry.
    ///
    /// # Errors
    /// When inputs or outputs do not fit, the kernel would pass `memory` bytes, or the network is in training mode.
    pub fn tangent_kernel(
        &self,
        selection: &Selection,
        (x, of_x): (&Array<T>, &Outputs<T>),
        (z, of_z): (&Array<T>, &Outputs<T>),
        memory: u64,
    ) -> Result<Array<T>, NetworkError> {
        self.require_evaluation("tangent kernels")?;
        let shape = self.graph().output_shape();
        let (rows, columns) =
            (of_x.cotangents(x.rows(), shape)?.rows(), of_z.cotangents(z.rows(), shape)?.rows());
        let needed = (rows as u64).saturating_mul(columns as u64).saturating_mul(size_of::<T>() as u64);
        if needed > memory {
            let remedy =
                "take fewer points or outputs at a time, or use a sparse method with inducing points";
            return Err(NetworkError::Memory { what: "the tangent kernel", needed, allowed: memory, remedy });
        }
        let mut out = Array::zeros(vec![rows, columns]);
        if rows == 0 || columns == 0 {
            return Ok(out);
        }
        let (width_x, width_z) = (rows / x.rows(), columns / z.rows());
        let size = tangent_feature_size(self.graph(), selection).max(1);
        let each = |width: usize| (FEATURES / (size * width)).min(self.examples_at_once() / width).max(1);
        let same = x == z && of_x == of_z;
        let features = |points: &Array<T>, outputs: &Outputs<T>, range: std::ops::Range<usize>| {
            self.tangent_features(
                &points.slice_rows(range.clone()),
                selection,
                &outputs.of_examples(range, points.rows()),
            )
        };
        for range_x in pieces(x.rows(), each(width_x)) {
            let left = features(x, of_x, range_x.clone())?;
            for range_z in pieces(z.rows(), each(width_z)) {
                let right = if same && range_x == range_z {
                    left.turned()
                } else {
                    features(z, of_z, range_z.clone())?.turned()
                };
                left.kernel_into(
                    &right,
                    out.values_mut(),
                    columns,
                    range_x.start * width_x,
                    range_z.start * width_z,
                );
            }
        }
        Ok(out)
    }

    /// The blocks `J(x_n) J(x_n)^T` of each point with itself: `[examples, width, width]`.
    ///
    /// # Errors
    /// As [`Self::tangent_kernel`].
    pub fn tangent_kernel_diagonal(
        &self,
        selection: &Selection,
        x: &Array<T>,
        outputs: &Outputs<T>,
    ) -> Result<Array<T>, NetworkError> {
        self.require_evaluation("tangent kernels")?;
        let rows = outputs.cotangents(x.rows(), self.graph().output_shape())?.rows();
        let width = rows / x.rows().max(1);
        let mut out = Array::zeros(vec![x.rows(), width, width]);
        let size = tangent_feature_size(self.graph(), selection).max(1) * width.max(1);
        let each = (FEATURES / size).min(self.examples_at_once() / width.max(1)).max(1);
        for range in pieces(x.rows(), each) {
            let own = outputs.of_examples(range.clone(), x.rows());
            let features = self.tangent_features(&x.slice_rows(range.clone()), selection, &own)?;
            let block = width * width;
            features.diagonal_into(&mut out.values_mut()[range.start * block..range.end * block]);
        }
        Ok(out)
    }
}

impl<T: Precision> TangentFeatures<T> {
    /// The kernel between these rows and others': `[rows, other rows]`.
    pub fn kernel(&self, other: &Self) -> Array<T> {
        self.kernel_turned(&other.turned())
    }

    /// The same where the others were turned before, once for many products.
    pub fn kernel_turned(&self, other: &TurnedFeatures<T>) -> Array<T> {
        let mut out = Array::zeros(vec![self.rows(), other.rows()]);
        self.kernel_into(other, out.values_mut(), other.rows(), 0, 0);
        out
    }

    /// The rows as right factors of a kernel, in another precision if need be: turned, so that no product has to.
    pub fn turned<U: Precision>(&self) -> TurnedFeatures<U> {
        let strip = (TILE_ROWS / self.width).max(1);
        let strips = pieces(self.examples, strip).map(|examples| {
            let rows = examples.start * self.width..examples.end * self.width;
            let turned = parallel::map(self.features.len(), 1, |i| match &self.features[i] {
                Feature::Dense { inputs, sensitivities, .. } => {
                    Turned { rows: turn(sensitivities, rows.clone()), inputs: turn(inputs, examples.clone()) }
                }
                Feature::Rows(values) => Turned { rows: turn(values, rows.clone()), inputs: Vec::new() },
            });
            (examples.clone(), turned)
        });
        TurnedFeatures { strips: strips.collect(), examples: self.examples, width: self.width }
    }

    /// Writes the kernel into a larger row-major matrix with `columns` columns, from (row, column) on.
    fn kernel_into(
        &self,
        other: &TurnedFeatures<T>,
        out: &mut [T],
        columns: usize,
        row: usize,
        column: usize,
    ) {
        let (width, other_width) = (self.width, other.width);
        let tile_rows = TILE_EXAMPLES.div_ceil(width) * width;
        let out = &mut out[row * columns..(row + self.rows()) * columns];
        parallel::chunks(out, tile_rows * columns, 1, |tile, out| {
            let rows = tile * tile_rows..(tile * tile_rows + out.len() / columns);
            let examples = rows.start / width..rows.end / width;
            for (others, turned) in &other.strips {
                let other_rows = others.start * other_width..others.end * other_width;
                let mut sums = vec![T::ZERO; rows.len() * other_rows.len()];
                let mut products = vec![T::ZERO; sums.len()];
                let mut along = vec![T::ZERO; examples.len() * others.len()];
                for (left, right) in self.features.iter().zip(turned) {
                    match left {
                        Feature::Dense { inputs, sensitivities, bias } => {
                            slice_product(&mut products, false, sensitivities, rows.clone(), &right.rows);
                            slice_product(&mut along, false, inputs, examples.clone(), &right.inputs);
                            combine(&mut sums, &products, &along, width, other_width, others.len(), *bias);
                        }
                        Feature::Rows(left) => {
                            slice_product(&mut sums, true, left, rows.clone(), &right.rows)
                        }
                    }
                }
                for (out, sums) in out.chunks_exact_mut(columns).zip(sums.chunks_exact(other_rows.len())) {
                    out[column + other_rows.start..column + other_rows.end].copy_from_slice(sums);
                }
            }
        });
    }

    /// The block of each example with itself, `[examples, width, width]`.
    pub fn diagonal(&self) -> Vec<T> {
        let mut out = vec![T::ZERO; self.examples * self.width * self.width];
        self.diagonal_into(&mut out);
        out
    }

    /// The same, added to what is there.
    fn diagonal_into(&self, out: &mut [T]) {
        let width = self.width;
        parallel::chunks(out, (width * width).max(1), 2, |n, out| {
            let rows = n * width..(n + 1) * width;
            let mut products = vec![T::ZERO; width * width];
            for feature in &self.features {
                match feature {
                    Feature::Dense { inputs, sensitivities, bias } => {
                        let turned = turn(sensitivities, rows.clone());
                        slice_product(&mut products, false, sensitivities, rows.clone(), &turned);
                        let mut along = *bias;
                        inputs.row(n).iter().for_each(|&v| along += v * v);
                        out.iter_mut().zip(&products).for_each(|(o, &p)| *o += p * along);
                    }
                    Feature::Rows(values) => {
                        slice_product(out, true, values, rows.clone(), &turn(values, rows.clone()));
                    }
                }
            }
        });
    }
}

/// The rows of some points as right factors of a kernel: [`TangentFeatures::turned`].
#[derive(Clone, Debug)]
pub struct TurnedFeatures<T> {
    /// Examples, and their numbers in each group.
    strips: Vec<(std::ops::Range<usize>, Vec<Turned<T>>)>,
    examples: usize,
    width: usize,
}

impl<T> TurnedFeatures<T> {
    /// Number of rows: examples times outputs asked for.
    pub fn rows(&self) -> usize {
        self.examples * self.width
    }
}

/// The numbers of one group of some rows, `[entries, rows]`.
#[derive(Clone, Debug)]
struct Turned<T> {
    rows: Vec<T>,
    inputs: Vec<T>,
}

/// Rows and entries that are turned at one time: what is read and what is written stay in the first-level cache.
const TURNED: usize = 16;

/// Some rows of `[rows, entries]` as `[entries, rows]`.
#[inline(never)]
pub(super) fn turn<T: Precision, U: Precision>(x: &Array<T>, rows: std::ops::Range<usize>) -> Vec<U> {
    let (entries, count) = (x.row_len(), rows.len());
    let values = &x.values()[rows.start * entries..rows.end * entries];
    let mut out = vec![U::ZERO; values.len()];
    for those in pieces(count, TURNED) {
        for these in pieces(entries, TURNED) {
            for i in these {
                let target = &mut out[i * count..][those.clone()];
                target
                    .iter_mut()
                    .zip(those.clone())
                    .for_each(|(t, r)| *t = U::from_f64(values[r * entries + i].to_f64()));
            }
        }
    }
    out
}

/// `out (+)= a[rows] b`, with `b` `[entries, columns]`.
fn slice_product<T: Precision>(
    out: &mut [T],
    accumulate: bool,
    a: &Array<T>,
    rows: std::ops::Range<usize>,
    b: &[T],
) {
    let length = a.row_len();
    if length == 0 {
        return;
    }
    let a = Matrix::new(&a.values()[rows.start * length..rows.end * length], rows.len(), length);
    product(out, accumulate, a, Matrix::new(b, length, b.len() / length));
}

/// `sums[(n, i), (m, j)] += products[(n, i), (m, j)] (along[n, m] + bias)`.
fn combine<T: Precision>(
    sums: &mut [T],
    products: &[T],
    along: &[T],
    width: usize,
    other_width: usize,
    others: usize,
    bias: T,
) {
    let columns = others * other_width;
    posterior_linalg::vectorised::dispatch(
        #[inline(always)]
        || {
            let mut factors = vec![T::ZERO; columns];
            for (r, (sums, products)) in
                sums.chunks_exact_mut(columns).zip(products.chunks_exact(columns)).enumerate()
            {
                if r % width == 0 {
                    let along = &along[r / width * others..][..others];
                    for (factors, &a) in factors.chunks_exact_mut(other_width).zip(along) {
                        factors.fill(a + bias);
                    }
                }
                for ((s, &p), &f) in sums.iter_mut().zip(products).zip(&factors) {
                    *s = p.mul_add(f, *s);
                }
            }
        },
    );
}
