//! One term of a sum of kernels, as features.

use super::FeatureSettings;
use super::recipe::{FeatureError, FeatureRecipe};
use super::waves::Waves;
use crate::tanimoto::Hashes;
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;

#[derive(Clone, Debug)]
pub(super) enum Term<T> {
    Waves(Waves<T>),
    /// Columns with the roots of their variances.
    Linear(Vec<(usize, T)>),
    /// The root of the variance.
    Constant(T),
    Hashes {
        root: T,
        columns: Vec<usize>,
        hashes: Hashes,
    },
}

impl<T: Real> Term<T> {
    pub(super) fn new(
        root: f64,
        recipe: &FeatureRecipe,
        settings: &FeatureSettings,
        streams: Streams,
    ) -> Result<Self, FeatureError> {
        Ok(match recipe {
            FeatureRecipe::Waves(spectra) => Self::Waves(Waves::new(root, spectra, settings, streams)),
            FeatureRecipe::Linear { columns, variances } => Self::Linear(linear(root, columns, variances)),
            FeatureRecipe::Constant => Self::Constant(T::from_f64(root)),
            FeatureRecipe::Hashes { columns } => Self::Hashes {
                root: hash_root(root, settings.count),
                columns: columns.clone(),
                hashes: Hashes::new(columns.len(), settings.count, streams),
            },
            FeatureRecipe::Sum(_) | FeatureRecipe::Scaled(..) => return Err(FeatureError::Structure),
        })
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Waves(waves) => waves.count(),
            Self::Linear(columns) => columns.len(),
            Self::Constant(_) => 1,
            Self::Hashes { hashes, .. } => hashes.count(),
        }
    }

    pub(super) fn is_differentiable(&self) -> bool {
        !matches!(self, Self::Hashes { .. })
    }

    /// `out <- φ(x)`, one row for each point.
    pub(super) fn evaluate(&self, x: MatRef<'_, T>, mut out: MatMut<'_, T>) {
        match self {
            Self::Waves(waves) => waves.evaluate(x, out),
            Self::Linear(columns) => {
                for (j, &(c, root)) in columns.iter().enumerate() {
                    out.as_mut().col_mut(j).iter_mut().zip(x.col(c).iter()).for_each(|(o, &v)| *o = root * v);
                }
            }
            Self::Constant(root) => out.fill(*root),
            Self::Hashes { root, columns, hashes } => {
                for i in 0..x.nrows() {
                    let counts = columns.iter().enumerate().map(|(d, &c)| (d, x[(i, c)].to_f64()));
                    hashes.signs(counts, |l, sign| out[(i, l)] = *root * T::from_f64(sign));
                }
            }
        }
    }

    /// `out_id += Σ_l slopes_il ∂φ_l(x_i)/∂x_id`; nothing where there is no derivative.
    pub(super) fn pullback(&self, x: MatRef<'_, T>, slopes: MatRef<'_, T>, mut out: MatMut<'_, T>) {
        match self {
            Self::Waves(waves) => waves.pullback(x, slopes, out),
            Self::Linear(columns) => {
                for (j, &(c, root)) in columns.iter().enumerate() {
                    let slopes = slopes.col(j).iter();
                    out.as_mut().col_mut(c).iter_mut().zip(slopes).for_each(|(o, &s)| *o += root * s);
                }
            }
            Self::Constant(_) | Self::Hashes { .. } => {}
        }
    }
}

fn linear<T: Real>(root: f64, columns: &[usize], variances: &[f64]) -> Vec<(usize, T)> {
    columns.iter().zip(variances).map(|(&c, v)| (c, T::from_f64(root * v.sqrt()))).collect()
}

fn hash_root<T: Real>(root: f64, count: usize) -> T {
    T::from_f64(root / (count as f64).sqrt())
}
