//! The directions of the weights that matter most at some examples.

use super::{BatchSource, FeatureMap};
use crate::curvature::Roots;
use crate::{LinearError, check};
use faer::{Accum, Mat};
use posterior_linalg::Real;
use posterior_linalg::dense::{Eigen, eigen, multiply_into};
use posterior_linalg::random::Streams;
use posterior_linalg::tiles::pieces;
use posterior_optim::Signal;
use rand::seq::SliceRandom;

/// Numbers of the landmarks' rows that are held at one time, in doubles.
const HELD: usize = 1 << 25;

/// The leading eigenvectors of `sum_m j_m' j_m` over landmarks `m`, `j_m` a row of the features along one output: `V = J_E' U / sqrt(lambda)` for the eigenpairs `(lambda, U)` of the
/// landmarks' kernel `J_E J_E'`.
#[derive(Clone, Debug)]
pub struct LandmarkBasis<T> {
    /// `V`, d x K, with orthonormal columns.
    pub basis: Mat<T>,
    /// The K eigenvalues, the largest first.
    pub eigenvalues: Vec<f64>,
    /// Eigenvalues among the leading ones that were asked for which rounding cannot tell from zero: their directions are left out.
    pub dropped: usize,
}

impl<T: Real> LandmarkBasis<T> {
    /// The `rank` leading directions of landmarks: numbers of examples (ascending, each once) and one output of each.
    ///
    /// Cost: rows of the landmarks, once for every 2^25 / M weights, `M² d` flops for their kernel, `9 M³` for its eigenvectors, M products back with K vectors. Memory: the kernel three times and 256 MB of
    /// rows; never all rows.
    ///
    /// # Errors
    /// [`LinearError::Empty`] without landmarks, or where no direction is left; [`LinearError::Shape`] when there are not as many outputs; [`LinearError::Option`] for a rank of 0; those of the features;
    /// [`LinearError::Interrupted`].
    pub fn of<F: FeatureMap<T>>(
        features: &F,
        source: &dyn BatchSource<F::Inputs>,
        (examples, outputs): (&[usize], &[usize]),
        rank: usize,
        observer: &mut dyn FnMut(usize, usize) -> Signal,
    ) -> Result<Self, LinearError> {
        let (d, c, count) = (features.dimension(), features.outputs(), examples.len());
        check::same("outputs of the landmarks", count, outputs.len())?;
        if count == 0 {
            return Err(LinearError::Empty { what: "landmarks" });
        }
        if rank == 0 {
            let expected = "at least one feature is needed";
            return Err(LinearError::Option { name: "features", value: 0.0, expected });
        }
        if let Some(&output) = outputs.iter().find(|o| **o >= c) {
            return Err(LinearError::Shape { what: "outputs, at most", expected: c, found: output + 1 });
        }
        let output_of = |example: usize| outputs[examples.partition_point(|e| *e < example)];
        let at_once = features.examples_at_once(1);
        // The kernel, over some weights after others.
        let mut kernel = Mat::<f64>::zeros(count, count);
        for weights in pieces(d, (HELD / count).max(1)) {
            let mut all = Mat::<f64>::zeros(count, weights.len());
            let mut start = 0;
            source.picked(examples, at_once, &mut |numbers, inputs, _| {
                let mut values = vec![T::ZERO; numbers.len() * c];
                numbers.iter().enumerate().for_each(|(i, n)| values[i * c + output_of(*n)] = T::ONE);
                let along = Roots { width: 1, values };
                features.at(inputs)?.rows(Some(&along), weights.clone(), &mut |own, rows| {
                    for j in 0..rows.ncols() {
                        for i in 0..rows.nrows() {
                            all[(start + own.start + i, j)] = rows[(i, j)].to_f64();
                        }
                    }
                })?;
                start += numbers.len();
                Ok(())
            })?;
            multiply_into(kernel.as_mut(), Accum::Add, all.as_ref(), all.transpose(), 1.0);
            if observer(weights.end, 2 * d) == Signal::Stop {
                return Err(LinearError::Interrupted);
            }
        }
        let failed = || LinearError::Eigen { dimension: count };
        if !kernel.is_all_finite() {
            return Err(failed());
        }
        let Eigen { values, vectors } = eigen(kernel.as_ref()).map_err(|_| failed())?;
        let largest = values[count - 1];
        // What rounding of the rows leaves of a zero.
        let least = largest.max(0.0) * count as f64 * T::EPSILON.to_f64();
        let wanted = rank.min(count);
        let kept = (0..wanted).take_while(|k| values[count - 1 - k] > least).count();
        if kept == 0 {
            return Err(LinearError::Empty { what: "weights that move an output at a landmark" });
        }
        let eigenvalues: Vec<f64> = (0..kept).map(|k| values[count - 1 - k]).collect();
        let mut sum = Mat::<f64>::zeros(d, kept);
        let mut start = 0;
        source.picked(examples, features.examples_at_once(kept), &mut |numbers, inputs, _| {
            let mut cotangents = Mat::<T>::zeros(numbers.len() * c, kept);
            for (i, n) in numbers.iter().enumerate() {
                for k in 0..kept {
                    let own = vectors[(start + i, count - 1 - k)] / eigenvalues[k].sqrt();
                    cotangents[(i * c + output_of(*n), k)] = T::from_f64(own);
                }
            }
            let back = features.at(inputs)?.apply_transpose(cotangents.as_ref())?;
            for k in 0..kept {
                sum.col_mut(k).iter_mut().zip(back.col(k).iter()).for_each(|(s, v)| *s += v.to_f64());
            }
            start += numbers.len();
            if observer(d + d * start / count, 2 * d) == Signal::Stop {
                return Err(LinearError::Interrupted);
            }
            Ok(())
        })?;
        let basis = Mat::from_fn(d, kept, |i, k| T::from_f64(sum[(i, k)]));
        Ok(Self { basis, eigenvalues, dropped: wanted - kept })
    }
}

/// Numbers of `wanted` examples drawn at random without replacement, ascending; where the class of each example is known, as many of each class as there are or as needed for equal shares.
pub fn balanced_landmarks(
    examples: usize,
    classes: Option<&[usize]>,
    wanted: usize,
    seed: u64,
) -> Vec<usize> {
    let mut rng = Streams::new(seed).stream("linear/landmarks");
    let mut order: Vec<usize> = (0..examples).collect();
    order.shuffle(&mut rng);
    if let Some(classes) = classes {
        // The first of each class come before the second of any.
        let mut seen = vec![0usize; classes.iter().max().map_or(0, |c| c + 1)];
        let mut ranked: Vec<(usize, usize)> = order
            .into_iter()
            .map(|i| {
                let rank = seen[classes[i]];
                seen[classes[i]] += 1;
                (rank, i)
            })
            .collect();
        ranked.sort_by_key(|r| r.0);
        order = ranked.into_iter().map(|r| r.1).collect();
    }
    order.truncate(wanted.min(examples));
    order.sort_unstable();
    order
}
