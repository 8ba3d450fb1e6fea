//! What a sample of a posterior is made of: a function of the prior, what the points take back of it, and the mean.

use super::cases::{farthest, weights};
use super::variational::{Family, Precisions, WeightBound};
use super::{Settings, column, spaced};
use crate::covariance::normals;
use crate::kinds::prelude::*;
use posterior_gp::GpError;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};

/// Samples by their parts.
#[derive(Deserialize)]
pub(super) struct Pathwise {
    /// Of which case.
    pub(super) case: String,
    /// How many samples are shown.
    pub(super) samples: usize,
}

/// Parts of functions over the grid (m x draws each; the mean has one column).
struct Parts {
    prior: Mat<f64>,
    taken: Mat<f64>,
    mean: Mat<f64>,
}

impl Parts {
    /// Functions `f` of the prior with features `Φ` at the points (n x d) and `Φ*` on the grid (m x d):
    ///
    /// ```text
    /// f(·) - k(·, X) (K + I/b)⁻¹ (f(X) + e) + k(·, X) (K + I/b)⁻¹ y,   K = Φ Φ'/a,  e ~ N(0, I/b)
    /// ```
    fn of(
        (phi, test): (&Mat<f64>, &Mat<f64>),
        targets: &[f64],
        at: Precisions,
        count: usize,
        streams: Streams,
    ) -> Result<Self> {
        let (n, d) = phi.shape();
        let isotropic = Mat::from_fn(d, d, |i, j| if i == j { at.prior.recip() } else { 0.0 });
        let drawn = weights((&vec![0.0; d], &isotropic), count, streams.child("pathwise", 0))?;
        let noise = normals(n, count, streams, "experiment/pathwise noise");
        let seen = phi * &drawn;
        let seen = Mat::from_fn(n, count, |i, k| seen[(i, k)] + noise[(i, k)] / at.noise.sqrt());
        let kernel = phi * phi.transpose();
        let noisy = Mat::from_fn(n, n, |i, j| {
            kernel[(i, j)] / at.prior + if i == j { at.noise.recip() } else { 0.0 }
        });
        let factor = Cholesky::of(noisy.as_ref(), JitterPolicy::default()).map_err(GpError::from)?;
        let cross = test * phi.transpose();
        let carried = |values: &Mat<f64>, sign: f64| {
            let moved = &cross * factor.solve(values.as_ref());
            Mat::from_fn(moved.nrows(), moved.ncols(), |i, k| sign * moved[(i, k)] / at.prior)
        };
        Ok(Self { prior: test * &drawn, taken: carried(&seen, -1.0), mean: carried(&column(targets), 1.0) })
    }

    /// The samples.
    fn sums(&self) -> Mat<f64> {
        let of = |i, k| self.prior[(i, k)] + self.taken[(i, k)] + self.mean[(i, 0)];
        Mat::from_fn(self.prior.nrows(), self.prior.ncols(), of)
    }
}

/// Samples by their parts, held against the posterior over weights.
pub(super) fn pathwise(settings: &Settings, streams: Streams) -> Result<(Value, Vec<Item>)> {
    let asked = &settings.pathwise;
    let case = settings.case("pathwise", &asked.case)?;
    let grid = spaced(-settings.reach, settings.reach, settings.grid);
    let own = streams.child(&case.name, 0);
    let (phi, test) = (case.at(&settings.inputs, own)?, case.at(&grid, own)?);
    let at = Precisions { prior: case.prior_precision, noise: settings.noise_precision };
    let parts = Parts::of((&phi, &test), &settings.targets, at, settings.draws, streams)?;
    let sums = parts.sums();
    let q = WeightBound::new(phi, settings.targets.clone())?.best(Family::Full, at)?;
    let (mean, spread) = (&test * column(q.mean()), &test * q.covariance());
    let variance = |i: usize| (0..test.ncols()).map(|j| spread[(i, j)] * test[(i, j)]).sum::<f64>();
    let means_apart = (0..grid.len()).map(|i| (mean[(i, 0)] - parts.mean[(i, 0)]).abs()).fold(0.0, f64::max);
    let deviation = |values: &Mat<f64>, i: usize| {
        (values.row(i).iter().map(|v| v * v).sum::<f64>() / values.ncols() as f64).sqrt()
    };
    // Where the grid is farthest from every point.
    let apart = |i: usize| settings.inputs.iter().map(|x| (x - grid[i]).abs()).fold(f64::INFINITY, f64::min);
    let far = (0..grid.len()).max_by(|&i, &j| apart(i).total_cmp(&apart(j))).unwrap_or(0);
    let near = (0..grid.len()).min_by(|&i, &j| apart(i).total_cmp(&apart(j))).unwrap_or(0);
    let share = |i: usize| deviation(&parts.taken, i) / deviation(&parts.prior, i);
    let numbers = json!({
        "draws_off": farthest(&sums, |i| mean[(i, 0)], variance),
        "means_apart": means_apart,
        "taken_back": {"near": share(near), "far": share(far)},
    });
    let line = |name: &str, of: &Mat<f64>, k: usize| {
        Line::new(name, grid.clone(), of.col(k).iter().copied().collect())
    };
    let figure = |k: usize| {
        let points = settings.inputs.iter().copied().zip(settings.targets.iter().copied()).collect();
        let lines = vec![
            line("of the prior", &parts.prior, k),
            line("what the points take back", &parts.taken, k),
            line("the mean", &parts.mean, 0),
            Line { reference: points, ..line("their sum: a sample", &sums, k) },
        ];
        Curves::new(format!("What a sample is made of: {}", k + 1), "x", "f(x)", lines)
            .captioned("Far from the points nothing is taken back: the sample is that of the prior.")
            .with_rings("the points")
            .into()
    };
    Ok((numbers, (0..asked.samples).map(figure).collect()))
}
