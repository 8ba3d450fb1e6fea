//! One term of a sum of kernels, as features.

use super::FeatureSettings;
use super::categories::Outer;
use super::recipe::{FeatureError, FeatureRecipe};
use super::waves::Waves;
use crate::Warp;
use crate::tanimoto::Hashes;
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;

#[derive(Clone, Debug)]
pub(super) enum Term<T> {
    Waves(Waves<T>),
    Categories(Outer<T>),
    /// Columns with the roots of their variances.
    Linear(Vec<(usize, T)>),
    /// The root of the variance.
    Constant(T),
    Hashes {
        root: T,
        columns: Vec<usize>,
        hashes: Hashes,
    },
    /// Of warped points.
    Warped(Warp, Box<Term<T>>),
}

impl<T: Real> Term<T> {
    pub(super) fn new(
        (root, warps): (f64, Vec<&Warp>),
        recipe: &FeatureRecipe,
        settings: &FeatureSettings,
        streams: Streams,
    ) -> Result<Self, FeatureError> {
        let plain = match recipe {
            FeatureRecipe::Waves { spectra, categories } => {
                Self::Waves(Waves::new(root, spectra, categories, settings, streams))
            }
            FeatureRecipe::Categories(categories) => Self::Categories(Outer::new(root, categories)?),
            FeatureRecipe::Linear { columns, variances } => Self::Linear(linear(root, columns, variances)),
            FeatureRecipe::Constant => Self::Constant(T::from_f64(root)),
            FeatureRecipe::Hashes { columns } => Self::Hashes {
                root: hash_root(root, settings.count),
                columns: columns.clone(),
                hashes: Hashes::new(columns.len(), settings.count, streams),
            },
            FeatureRecipe::Sum(_) | FeatureRecipe::Scaled(..) | FeatureRecipe::Warped(..) => {
                return Err(FeatureError::Structure);
            }
        };
        let behind = |inner, warp: &Warp| Self::Warped(warp.clone(), Box::new(inner));
        Ok(warps.into_iter().rev().fold(plain, behind))
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Waves(waves) => waves.count(),
            Self::Categories(outer) => outer.count(),
            Self::Linear(columns) => columns.len(),
            Self::Constant(_) => 1,
            Self::Hashes { hashes, .. } => hashes.count(),
            Self::Warped(_, inner) => inner.count(),
        }
    }

    pub(super) fn is_differentiable(&self) -> bool {
        match self {
            Self::Hashes { .. } => false,
            Self::Warped(_, inner) => inner.is_differentiable(),
            _ => true,
        }
    }

    /// `out <- φ(x)`, one row for each point.
    pub(super) fn evaluate(&self, x: MatRef<'_, T>, mut out: MatMut<'_, T>) {
        match self {
            Self::Waves(waves) => waves.evaluate(x, out),
            Self::Categories(outer) => outer.evaluate(x, out),
            Self::Linear(columns) => {
                for (j, &(c, root)) in columns.iter().enumerate() {
                    out.as_mut().col_mut(j).iter_mut().zip(x.col(c).iter()).for_each(|(o, &v)| *o = root * v);
                }
            }
            Self::Constant(root) => out.fill(*root),
            Self::Warped(warp, inner) => inner.evaluate(warp.apply(x).as_ref(), out),
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
            Self::Categories(outer) => outer.pullback(x, slopes, out),
            Self::Linear(columns) => {
                for (j, &(c, root)) in columns.iter().enumerate() {
                    let slopes = slopes.col(j).iter();
                    out.as_mut().col_mut(c).iter_mut().zip(slopes).for_each(|(o, &s)| *o += root * s);
                }
            }
            Self::Constant(_) | Self::Hashes { .. } => {}
            Self::Warped(warp, inner) => {
                let mut toward = Mat::zeros(x.nrows(), x.ncols());
                inner.pullback(warp.apply(x).as_ref(), slopes, toward.as_mut());
                warp.pull(x, &mut toward, &mut []);
                out += toward;
            }
        }
    }
}

fn linear<T: Real>(root: f64, columns: &[usize], variances: &[f64]) -> Vec<(usize, T)> {
    columns.iter().zip(variances).map(|(&c, v)| (c, T::from_f64(root * v.sqrt()))).collect()
}

fn hash_root<T: Real>(root: f64, count: usize) -> T {
    T::from_f64(root / (count as f64).sqrt())
}
