//! **Variational means** `m_Q`, which need no relation to the variational kernel.
//!
//! | mean | `m_Q(x)` | trained |
//! |---|---|---|
//! | prior | `m_P(x)` | nothing |
//! | constant | `c`, one for each function | c |
//! | inducing | `m_P(x) + φ(x)ᵀ β` | β, M x C |
//! | embedding | a learned map (a network) with C outputs | its parameters |
//!
//! Source: spec `generalised_variational_inference`, section 8 (erratum E27: the mean of inducing points reads `k(x, Z)`).

use crate::GpError;
use faer::{Mat, MatRef};
use posterior_linear::embedding::{EmbeddedAt, Embedding};
use posterior_optim::{Parameters, Segment, Transform};

/// The mean of C functions.
#[derive(Debug)]
pub enum VariationalMean {
    /// That of the prior.
    Prior,
    /// One number for each function.
    Constant(Vec<f64>),
    /// That of the prior and weights (M x C) of inducing points.
    Inducing(Mat<f64>),
    /// A learned map with one output for each function.
    Embedding(Box<dyn Embedding>),
}

impl Clone for VariationalMean {
    fn clone(&self) -> Self {
        match self {
            Self::Prior => Self::Prior,
            Self::Constant(values) => Self::Constant(values.clone()),
            Self::Inducing(weights) => Self::Inducing(weights.clone()),
            Self::Embedding(map) => Self::Embedding(map.clone_box()),
        }
    }
}

/// Means at some rows, with the way back.
pub(super) struct MeanAt<'a> {
    /// b x C.
    pub(super) values: Mat<f64>,
    behind: Option<Box<dyn EmbeddedAt + 'a>>,
}

impl VariationalMean {
    /// Its name in messages and files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Prior => "the prior's mean",
            Self::Constant(_) => "a constant mean",
            Self::Inducing(_) => "a mean of inducing points",
            Self::Embedding(_) => "a network as mean",
        }
    }

    /// Values alone: `prior` are those of `m_P` (b x C), `features` those of each function.
    pub(super) fn means<'f>(
        &self,
        x: MatRef<'_, f64>,
        prior: Mat<f64>,
        features: impl Fn(usize) -> &'f Mat<f64>,
    ) -> Result<Mat<f64>, GpError> {
        Ok(match self {
            Self::Prior => prior,
            Self::Constant(values) => Mat::from_fn(x.nrows(), values.len(), |_, c| values[c]),
            Self::Inducing(weights) => {
                let mut out = prior;
                for c in 0..weights.ncols() {
                    let (features, weights) = (features(c), weights.col_as_slice(c));
                    for (i, out) in out.col_as_slice_mut(c).iter_mut().enumerate() {
                        let pairs = features.col_as_slice(i).iter().zip(weights);
                        *out += pairs.map(|(f, w)| f * w).sum::<f64>();
                    }
                }
                out
            }
            Self::Embedding(map) => map.embedded(x)?,
        })
    }

    /// Values with the way back.
    pub(super) fn at<'a, 'f>(
        &'a self,
        x: MatRef<'_, f64>,
        prior: Mat<f64>,
        features: impl Fn(usize) -> &'f Mat<f64>,
    ) -> Result<MeanAt<'a>, GpError> {
        if let Self::Embedding(map) = self {
            let behind = map.at(x)?;
            return Ok(MeanAt { values: behind.embedded().to_owned(), behind: Some(behind) });
        }
        Ok(MeanAt { values: self.means(x, prior, features)?, behind: None })
    }

    /// Adds to `gradient` what slopes in the values (b x C) say.
    pub(super) fn pull_back<'f>(
        &self,
        at: &MeanAt<'_>,
        slopes: &Mat<f64>,
        features: impl Fn(usize) -> &'f Mat<f64>,
        gradient: &mut [f64],
    ) -> Result<(), GpError> {
        match (self, &at.behind) {
            (Self::Constant(_), _) => {
                for (c, g) in gradient.iter_mut().enumerate() {
                    *g += slopes.col_as_slice(c).iter().sum::<f64>();
                }
            }
            (Self::Inducing(weights), _) => {
                let m = weights.nrows();
                for c in 0..weights.ncols() {
                    let (features, own) = (features(c), &mut gradient[c * m..(c + 1) * m]);
                    for (i, slope) in slopes.col_as_slice(c).iter().enumerate() {
                        own.iter_mut().zip(features.col_as_slice(i)).for_each(|(g, f)| *g += slope * f);
                    }
                }
            }
            (Self::Embedding(_), Some(behind)) => behind.pull_back(slopes.as_ref(), gradient)?,
            (Self::Prior | Self::Embedding(_), _) => {}
        }
        Ok(())
    }
}

impl Parameters for VariationalMean {
    fn segments(&self) -> Vec<Segment> {
        let segment =
            |name: &str, shape| vec![Segment { name: name.into(), shape, transform: Transform::Identity }];
        match self {
            Self::Prior => Vec::new(),
            Self::Constant(values) => segment("mean.constant", vec![values.len()]),
            Self::Inducing(weights) => segment("mean.weights", vec![weights.nrows(), weights.ncols()]),
            Self::Embedding(map) => segment("mean.network", vec![map.unconstrained().len()]),
        }
    }

    fn values(&self) -> Vec<f64> {
        match self {
            Self::Prior => Vec::new(),
            Self::Constant(values) => values.clone(),
            Self::Inducing(weights) => {
                (0..weights.ncols()).flat_map(|c| weights.col_as_slice(c).iter().copied()).collect()
            }
            Self::Embedding(map) => map.unconstrained(),
        }
    }

    fn set_values(&mut self, values: &[f64]) {
        match self {
            Self::Prior => assert!(values.is_empty(), "this mean has no parameters"),
            Self::Constant(own) => own.copy_from_slice(values),
            Self::Inducing(weights) => {
                let (m, c) = weights.shape();
                weights.copy_from(MatRef::from_column_major_slice(values, m, c));
            }
            Self::Embedding(map) => map.set_unconstrained(values),
        }
    }
}
