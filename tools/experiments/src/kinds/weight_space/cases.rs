//! What a linear model says before and after a few points.

use super::variational::{Family, Precisions, WeightBound};
use super::{Settings, column, spaced};
use crate::covariance::normals;
use crate::gaussian::Covariance;
use crate::kinds::prelude::*;
use crate::toy::panel;
use posterior_gp::GpError;
use posterior_kernels::features::{FeatureSettings, RandomFeatures};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_report::PosteriorPanel;

/// A linear model.
#[derive(Deserialize)]
pub(super) struct Case {
    pub(super) name: String,
    /// The kernel whose random features these are; without one, a constant and the input.
    pub(super) kernel: Option<String>,
    /// How many.
    #[serde(default)]
    pub(super) features: usize,
    /// Precision of the prior of each weight.
    pub(super) prior_precision: f64,
}

impl Case {
    /// Features at some inputs (m x d), those of the same seed the same functions.
    pub(super) fn at(&self, inputs: &[f64], streams: Streams) -> Result<Mat<f64>> {
        let Some(kernel) = &self.kernel else {
            return Ok(Mat::from_fn(inputs.len(), 2, |i, j| if j == 0 { 1.0 } else { inputs[i] }));
        };
        let kernel = Covariance::parse(kernel, 1)?.kernel::<f64>()?;
        let settings = FeatureSettings { count: self.features, ..FeatureSettings::default() };
        let map = RandomFeatures::new(&*kernel, 1, settings, streams).map_err(GpError::from)?;
        Ok(map.evaluate(column(inputs).as_ref()))
    }
}

/// Draws of a Gaussian over weights (d x count).
pub(super) fn weights(
    (mean, covariance): (&[f64], &Mat<f64>),
    count: usize,
    streams: Streams,
) -> Result<Mat<f64>> {
    let factor = Cholesky::of(covariance.as_ref(), JitterPolicy::default()).map_err(GpError::from)?;
    let moved = factor.multiply_factor(normals(mean.len(), count, streams, "experiment/weights").as_ref());
    Ok(Mat::from_fn(mean.len(), count, |j, k| mean[j] + moved[(j, k)]))
}

/// How far the variances of drawn functions (m x draws) about a mean are from those of a closed form, at every tenth place, since neighbours say nearly the same: the most, in standard errors.
pub(super) fn farthest(
    drawn: &Mat<f64>,
    mean: impl Fn(usize) -> f64,
    variance: impl Fn(usize) -> f64,
) -> f64 {
    let draws = drawn.ncols() as f64;
    let off = |i: usize| {
        let square = drawn.row(i).iter().map(|f| (f - mean(i)).powi(2)).sum::<f64>() / draws;
        (square / variance(i).max(f64::MIN_POSITIVE) - 1.0).abs() / (2.0 / draws).sqrt()
    };
    (0..drawn.nrows()).step_by(10).map(off).fold(0.0, f64::max)
}

/// What a case says before and after the points.
pub(super) struct CaseResult {
    pub(super) prior: Curves,
    /// Prior covariance with the function at 0.
    pub(super) covariance: Line,
    pub(super) posterior: PosteriorPanel,
    pub(super) numbers: Value,
}

pub(super) fn of_case(settings: &Settings, case: &Case, streams: Streams) -> Result<CaseResult> {
    let grid = spaced(-settings.reach, settings.reach, settings.grid);
    let streams = streams.child(&case.name, 0);
    let (phi, test) = (case.at(&settings.inputs, streams)?, case.at(&grid, streams)?);
    let zero = case.at(&[0.0], streams)?;
    let (d, a) = (phi.ncols(), case.prior_precision);
    let own = WeightBound::new(phi, settings.targets.clone())?;
    let at = Precisions { prior: a, noise: settings.noise_precision };
    let q = own.best(Family::Full, at)?;
    let isotropic = Mat::from_fn(d, d, |i, j| if i == j { a.recip() } else { 0.0 });
    let before = &test * weights((&vec![0.0; d], &isotropic), settings.draws, streams.child("prior", 0))?;
    let of_weights =
        weights((q.mean(), &q.covariance().to_owned()), settings.draws, streams.child("posterior", 0))?;
    let after = &test * of_weights;
    // Closed forms, and what draws say of the same moments, in standard errors.
    let mean_after: Vec<f64> = (&test * column(q.mean())).col(0).iter().copied().collect();
    let spread = &test * q.covariance();
    let variance = |i: usize, from: &Mat<f64>| (0..d).map(|j| from[(i, j)] * test[(i, j)]).sum::<f64>();
    let scaled = &test * &isotropic;
    let off_prior = farthest(&before, |_| 0.0, |i| variance(i, &scaled));
    let off_posterior = farthest(&after, |i| mean_after[i], |i| variance(i, &spread));
    let deviations: Vec<f64> = (0..grid.len()).map(|i| variance(i, &spread).max(0.0).sqrt()).collect();
    let line = |drawn: &Mat<f64>, k: usize| -> Vec<f64> { drawn.col(k).iter().copied().collect() };
    let covariance: Vec<f64> = (&scaled * zero.transpose()).col(0).iter().copied().collect();
    let at_points = deviations_at(&grid, &deviations, &settings.inputs);
    let numbers = json!({
        "evidence": own.evidence(at)?,
        "mean_field_bound": own.value(&own.best(Family::Diagonal, at)?, at)?,
        "deviation_at_points": at_points,
        "deviation_at_ends": 0.5 * (deviations[0] + deviations[deviations.len() - 1]),
        "prior_deviation_at_ends": 0.5 * (variance(0, &scaled).sqrt() + variance(grid.len() - 1, &scaled).sqrt()),
        "draws_off": {"prior": off_prior, "posterior": off_posterior},
    });
    Ok(CaseResult {
        prior: Curves::new(
            format!("Functions of the prior: {}", case.name),
            "x",
            "f(x)",
            (0..settings.shown)
                .map(|k| Line::new(format!("{}", k + 1), grid.clone(), line(&before, k)))
                .collect(),
        ),
        covariance: Line::new(case.name.clone(), grid.clone(), covariance),
        posterior: PosteriorPanel {
            samples: (0..settings.shown).map(|k| line(&after, k)).collect(),
            ..panel(
                &grid,
                mean_after,
                deviations.iter().map(|s| s * s),
                settings.noise_precision.recip(),
                (settings.inputs.clone(), settings.targets.clone()),
            )
        },
        numbers,
    })
}

/// The mean deviation on the grid where it is nearest to the points.
fn deviations_at(grid: &[f64], deviations: &[f64], inputs: &[f64]) -> f64 {
    let nearest = |x: f64| {
        let apart = |i: &usize| (grid[*i] - x).abs();
        (0..grid.len()).min_by(|i, j| apart(i).total_cmp(&apart(j))).map_or(f64::NAN, |i| deviations[i])
    };
    mean(inputs.iter().map(|&x| nearest(x)))
}
