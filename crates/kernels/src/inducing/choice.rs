//! How inducing points are chosen, as a setting.

use super::{KMeansSettings, cover, greedy_variance, k_means, prune_neighbours, pruning_threshold};
use crate::Kernel;
use crate::features::FeatureRecipe;
use crate::matrix::KernelMatrix;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use serde::{Deserialize, Serialize};

/// A way to choose inducing points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum InducingChoice {
    /// Rows by chance.
    Random,
    /// Centres of clusters, in units of lengthscales.
    #[default]
    KMeans,
    /// Rows that the chosen ones predict worst.
    GreedyVariance,
    /// Rows such that every row is within so many lengthscales of one. Where that takes more than were asked for, the radius grows until it does not.
    Cover {
        /// The radius in lengthscales.
        radius: f64,
    },
    /// Rows that are left when those with close neighbours are thinned out, as in the thesis: [`prune_neighbours`] at [`pruning_threshold`]. Where more
    /// than were asked for are left, they are thinned out again, at thresholds that grow.
    Pruned {
        /// How many nearest rows of each are looked at; the thesis' code has 100.
        #[serde(default = "hundred")]
        neighbours: usize,
        /// The larger the more rows are kept; the thesis has 0.5, 1 and 2.
        ratio: f64,
    },
}

fn hundred() -> usize {
    100
}

/// Points, and how close they may be.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenPoints<T: Real> {
    /// The inducing points, m x D.
    pub points: Mat<T>,
    /// The radius (in lengthscales) of a cover, or the threshold (in units of the inputs) of pruning, at which there were few enough.
    pub radius: Option<f64>,
}

/// By so much a radius grows while too many rows are left.
const GROWTH: f64 = 1.25;

/// Why no points can be chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InducingError {
    /// No rows.
    #[error("there are no rows to choose inducing points from")]
    NoRows,
    /// No points.
    #[error("0 inducing points were asked for; ask for 1 or more")]
    NoPoints,
    /// A number that is none.
    #[error(
        "row {row}, column {column}: {value} has no distance from anything; inducing points need finite inputs"
    )]
    NotFinite {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// The number.
        value: f64,
    },
    /// A pruning ratio out of range.
    #[error("{ratio} is no pruning ratio; it is between 1e-6 and 1e6, such as 1")]
    Ratio {
        /// The number.
        ratio: f64,
    },
    /// A radius that is none.
    #[error("{radius} is no radius; it is a positive number, for covers of a table at least 1e-6")]
    Radius {
        /// The number.
        radius: f64,
    },
}

impl InducingChoice {
    /// At most `count` inducing points for `kernel` among or between the rows of x (n x D), m x D. Fewer come back when there are fewer rows,
    /// when clusters stay empty, or when further rows are predicted already.
    ///
    /// # Errors
    /// [`InducingError`].
    pub fn points<T: Real>(
        self,
        kernel: &dyn Kernel<T>,
        x: MatRef<'_, T>,
        count: usize,
        streams: Streams,
    ) -> Result<Mat<T>, InducingError> {
        Ok(self.choose(kernel, x, count, streams)?.points)
    }

    /// As [`Self::points`], with the radius that covers and pruning ended at.
    ///
    /// # Errors
    /// [`InducingError`].
    pub fn choose<T: Real>(
        self,
        kernel: &dyn Kernel<T>,
        x: MatRef<'_, T>,
        count: usize,
        streams: Streams,
    ) -> Result<ChosenPoints<T>, InducingError> {
        check(x, count)?;
        let mut reached = None;
        let rows = match self {
            Self::Random => random_rows(x.nrows(), count, streams),
            Self::KMeans => {
                let lengthscales = lengthscales(kernel, x.ncols());
                let centres =
                    k_means(scaled(x, &lengthscales).as_ref(), count, KMeansSettings::default(), streams)?;
                let inverse: Vec<f64> = lengthscales.iter().map(|l| 1.0 / l).collect();
                return Ok(ChosenPoints { points: scaled(centres.as_ref(), &inverse), radius: None });
            }
            Self::GreedyVariance => {
                // Rows whose values are known to rounding add nothing but trouble.
                let tolerance = 100.0 * T::EPSILON.to_f64();
                greedy_variance(&KernelMatrix::new(kernel, x), count, tolerance).rows
            }
            Self::Cover { mut radius } => {
                if radius < 1e-6 {
                    return Err(InducingError::Radius { radius });
                }
                let scaled = scaled(x, &lengthscales(kernel, x.ncols()));
                let rows = loop {
                    // One more than enough is all there is to know about too many.
                    let rows = cover(scaled.as_ref(), radius, count.saturating_add(1))?;
                    if rows.len() <= count {
                        break rows;
                    }
                    radius *= GROWTH;
                };
                reached = Some(radius);
                rows
            }
            Self::Pruned { neighbours, ratio } => {
                // Beyond, thresholds would grow for ever.
                if !(1e-6..=1e6).contains(&ratio) {
                    return Err(InducingError::Ratio { ratio });
                }
                let mut threshold = pruning_threshold(&lengthscales(kernel, x.ncols()), ratio);
                let mut rows = prune_neighbours(x, threshold, neighbours)?;
                while rows.len() > count {
                    threshold *= GROWTH;
                    let left = prune_neighbours(at(x, &rows).as_ref(), threshold, neighbours)?;
                    rows = left.into_iter().map(|i| rows[i]).collect();
                }
                reached = Some(threshold);
                rows
            }
        };
        Ok(ChosenPoints { points: at(x, &rows), radius: reached })
    }
}

/// Some rows of x.
fn at<T: Real>(x: MatRef<'_, T>, rows: &[usize]) -> Mat<T> {
    Mat::from_fn(rows.len(), x.ncols(), |i, d| x[(rows[i], d)])
}

/// Whether points can be chosen at all.
pub(super) fn check<T: Real>(x: MatRef<'_, T>, count: usize) -> Result<(), InducingError> {
    if x.nrows() == 0 {
        return Err(InducingError::NoRows);
    }
    if count == 0 {
        return Err(InducingError::NoPoints);
    }
    for column in 0..x.ncols() {
        if let Some(row) = x.col(column).iter().position(|v| !v.is_finite()) {
            return Err(InducingError::NotFinite { row, column, value: x[(row, column)].to_f64() });
        }
    }
    Ok(())
}

/// Different rows by chance, ascending: all when there are no more than `count`.
pub fn random_rows(rows: usize, count: usize, streams: Streams) -> Vec<usize> {
    let mut rng = streams.stream("kernels/random-rows");
    let mut chosen = rand::seq::index::sample(&mut rng, rows, count.min(rows)).into_vec();
    chosen.sort_unstable();
    chosen
}

/// The lengthscale of each column: the shortest that any stationary part of the kernel has for it, 1 for columns at which none looks or when
/// there is no such part (finite and positive whatever the kernel's parameters are).
pub fn lengthscales<T: Real>(kernel: &dyn Kernel<T>, dimension: usize) -> Vec<f64> {
    fn visit(recipe: &FeatureRecipe, out: &mut [Option<f64>]) {
        match recipe {
            FeatureRecipe::Waves { spectra, .. } => {
                for spectrum in spectra {
                    for (&c, &length) in spectrum.columns.iter().zip(&spectrum.lengthscales) {
                        if let Some(slot) = out.get_mut(c).filter(|_| length.is_finite() && length > 0.0) {
                            *slot = Some(slot.map_or(length, |old| old.min(length)));
                        }
                    }
                }
            }
            FeatureRecipe::Sum(parts) => parts.iter().for_each(|p| visit(p, out)),
            FeatureRecipe::Scaled(_, inner) | FeatureRecipe::Warped(_, inner) => visit(inner, out),
            FeatureRecipe::Linear { .. }
            | FeatureRecipe::Constant
            | FeatureRecipe::Hashes { .. }
            | FeatureRecipe::Categories(_) => {}
        }
    }
    let mut out = vec![None; dimension];
    if let Ok(recipe) = kernel.features() {
        visit(&recipe, &mut out);
    }
    out.into_iter().map(|length| length.unwrap_or(1.0)).collect()
}

/// Column d divided by `lengthscales[d]`.
///
/// # Panics
/// When there is not one for each column.
pub fn scaled<T: Real>(x: MatRef<'_, T>, lengthscales: &[f64]) -> Mat<T> {
    assert_eq!(lengthscales.len(), x.ncols(), "one lengthscale for each column");
    let factors: Vec<T> = lengthscales.iter().map(|l| T::from_f64(1.0 / l)).collect();
    Mat::from_fn(x.nrows(), x.ncols(), |i, d| x[(i, d)] * factors[d])
}
