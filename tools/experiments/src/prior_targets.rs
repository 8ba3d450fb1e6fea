//! What posterior samples of descent on inducing points are fitted to.

use super::error::{Result, refused};
use super::gaussian::{Covariance, Job, normals};
use faer::{Mat, MatRef};
use posterior_gp::GpError;
use posterior_gp::inducing::DEFAULT_JITTER;
use posterior_gp::iterative::{
    InducingDescentOptions, InducingProblem, KernelFeatures, PathwiseModel, PathwisePosterior,
    PathwiseSettings, SolveObserver, Start, StoredTargets, Support, solve_inducing,
};
use posterior_kernels::{cross, gram};
use posterior_linalg::Real;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linalg::random::Streams;
use posterior_linalg::tiles::pieces;
use serde::Deserialize;

/// Rows of a block when all rows are passed over.
const BLOCK: usize = 512;

/// Most inducing points whose covariance matrix is factored.
const MOST_FACTORED: usize = 8000;

/// The function part of a posterior sample's targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PriorTargets {
    /// The prior function f(X): never less uncertain than the exact posterior.
    #[default]
    Approximate,
    /// Its interpolation `K_XZ K_ZZ⁻¹ f(Z)` from the inducing points: the law of the collapsed posterior, for a factorisation of `K_ZZ`.
    Exact,
}

/// Descent on inducing points whose samples' targets are interpolated from them.
pub(crate) fn condition<T: Real>(
    model: PathwiseModel<T>,
    job: &Job<'_>,
    (points, options): (Mat<f64>, InducingDescentOptions),
    settings: PathwiseSettings,
    observer: &mut SolveObserver<'_, T>,
) -> Result<PathwisePosterior<T>> {
    let function = interpolated(job.covariance, job.data.inputs(), points.as_ref(), &settings)?;
    let (n, s) = (job.data.rows(), settings.samples);
    let white = normals(n, s, Streams::new(job.seed), "experiment/sample-noise");
    let deviation = job.noise_variance.sqrt();
    let y = job.data.targets();
    // The data first, which have no noise to be told from their function.
    let targets = Mat::from_fn(n, s + 1, |i, j| match j.checked_sub(1) {
        Some(j) => T::from_f64(function[(i, j)]),
        None => T::from_f64(y[(i, 0)]),
    });
    let noise = Mat::from_fn(n, s + 1, |i, j| match j.checked_sub(1) {
        Some(j) => T::from_f64(deviation * white[(i, j)]),
        None => T::ZERO,
    });
    let narrow = |m: MatRef<'_, f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| T::from_f64(m[(i, j)]));
    let (x, z) = (narrow(job.data.inputs()), narrow(points.as_ref()));
    let variances = vec![T::from_f64(job.noise_variance); n];
    let targets = StoredTargets::new(targets.as_ref(), Some(noise.as_ref()))?;
    let features = KernelFeatures { kernel: &*model.kernel, points: z.as_ref(), settings: settings.features };
    let problem =
        InducingProblem::new(&*model.kernel, x.as_ref(), z.as_ref(), &variances, &targets, Some(&features))?;
    let solution = solve_inducing(&options, &problem, Start::Zero, &settings.budget, observer)?;
    let support = Support::Inducing(points, options);
    Ok(PathwisePosterior::from_parts(model, job.data.clone(), support, settings, solution)?)
}

/// `K_XZ K_ZZ⁻¹ f(Z)` (n x s) of the prior functions that the settings' seed stands for.
fn interpolated(
    covariance: &Covariance,
    x: MatRef<'_, f64>,
    z: MatRef<'_, f64>,
    settings: &PathwiseSettings,
) -> Result<Mat<f64>> {
    let m = z.nrows();
    if m > MOST_FACTORED {
        return refused(format!(
            "exact prior targets factor the covariance of the inducing points, at most {MOST_FACTORED}; there are {m}"
        ));
    }
    let kernel = covariance.kernel::<f64>()?;
    let draws =
        covariance.draw::<f64>(settings.samples, settings.features.count, Streams::new(settings.seed))?;
    // As the collapsed posterior does: points that lie close make the matrix singular to rounding.
    let mut square = gram(&*kernel, z);
    let jitter = DEFAULT_JITTER * (0..m).map(|i| square[(i, i)]).sum::<f64>() / m as f64;
    (0..m).for_each(|i| square[(i, i)] += jitter);
    let factor = Cholesky::of(square.as_ref(), JitterPolicy::default()).map_err(GpError::from)?;
    let weights = factor.solve(draws.values(z).as_ref());
    let mut out = Mat::zeros(x.nrows(), settings.samples);
    for rows in pieces(x.nrows(), BLOCK) {
        let block = product(cross(&*kernel, x.subrows(rows.start, rows.len()), z).as_ref(), weights.as_ref());
        out.as_mut().subrows_mut(rows.start, rows.len()).copy_from(&block);
    }
    Ok(out)
}
