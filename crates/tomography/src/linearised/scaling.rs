//! The scales of the g-prior.

use super::measured::MeasuredTangent;
use crate::TomographyError;
use faer::Mat;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::Streams;
use posterior_networks::Precision;
use posterior_optim::Signal;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// Least root of a sum of squares, relative to the largest: weights that move no measurement would have scales beyond all numbers, and with them the prior no covariance.
const LEAST: f64 = 1e-6;

/// How the sum over measurements is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleEstimate {
    /// One product back for each measurement.
    Exact,
    /// From so many vectors of noise: relative error of a sum about `sqrt(2 / draws)`.
    Sampled {
        /// Vectors.
        draws: usize,
        /// Their seed.
        seed: u64,
    },
}

/// `s`, such that every column of `T phi diag(s)` has length one, and weights that were kept from growing.
#[derive(Clone, Debug, PartialEq)]
pub struct Scales {
    /// One for each weight (d).
    pub values: Vec<f64>,
    /// Weights whose sum of squares was below the least one and was raised to it.
    pub raised: usize,
}

/// `s = (sum_i (T_i phi)²)^(-1/2)`: under an isotropic prior over scaled weights predictions do not depend on the scale of normalised weights.
///
/// Cost: c products back, or as many as there are draws. Source: Antorán (2024), equations 6.12 and 6.13; spec `tomography`, section 7.1.
///
/// # Errors
/// [`TomographyError::Interrupted`]; [`TomographyError::Option`] without draws; [`TomographyError::Diverged`] where nothing moves the measurements.
pub fn scales<T: Precision>(
    measured: &MeasuredTangent<'_, T>,
    estimate: ScaleEstimate,
    observer: &mut dyn FnMut(usize, usize) -> Signal,
) -> Result<Scales, TomographyError> {
    let c = measured.measurements();
    let (count, share) = match estimate {
        ScaleEstimate::Exact => (c, 1.0),
        ScaleEstimate::Sampled { draws: 0, .. } => {
            let expected = "at least one draw";
            return Err(TomographyError::Option { name: "draws", value: 0.0, expected });
        }
        ScaleEstimate::Sampled { draws, .. } => (draws, 1.0 / draws as f64),
    };
    let d = measured.tangent().shape().1;
    let mut sums = vec![0.0; d];
    let at_once = measured.tangent().at_once();
    for start in (0..count).step_by(at_once) {
        let width = at_once.min(count - start);
        let directions = match estimate {
            ScaleEstimate::Exact => Mat::from_fn(c, width, |i, j| f64::from(u8::from(i == start + j))),
            ScaleEstimate::Sampled { seed, .. } => {
                let mut out = Mat::zeros(c, width);
                for j in 0..width {
                    let streams = Streams::new(seed).child("tomography/scales", (start + j) as u64);
                    let mut rng = streams.stream("noise");
                    out.col_as_slice_mut(j).iter_mut().for_each(|v| *v = StandardNormal.sample(&mut rng));
                }
                out
            }
        };
        let pulled =
            measured.tangent().rows(measured.projector().multiply_transpose(directions.as_ref()).as_ref());
        for j in 0..width {
            let own = pulled.col_as_slice(j);
            sums.iter_mut().zip(own).for_each(|(s, v)| *s += share * v.to_f64().powi(2));
        }
        if observer(start + width, count) == Signal::Stop {
            return Err(TomographyError::Interrupted);
        }
    }
    let largest = sums.iter().copied().fold(0.0, f64::max);
    if !(largest > 0.0 && largest.is_finite()) {
        return Err(TomographyError::Diverged { what: "the scales of the weights", step: 0 });
    }
    let least = largest * LEAST * LEAST;
    let raised = sums.iter().filter(|s| **s < least).count();
    Ok(Scales { values: sums.into_iter().map(|s| s.max(least).sqrt().recip()).collect(), raised })
}
