//! Regularisers of the distributions of inducing values.

use super::{Regularisation, WeightSlopes};
use crate::GpError;
use crate::generalised::divergence::Divergence;
use crate::generalised::mean::VariationalMean;
use crate::generalised::model::GeneralisedGp;
use crate::generalised::variational::Coordinates;
use faer::{Mat, MatRef};
use posterior_linalg::dense::{qr, solve_upper};

/// Of inducing values, whitened: there the prior is `N(0, I)`.
pub(in crate::generalised) fn inducing(
    divergence: Divergence,
    model: &GeneralisedGp,
) -> Result<Regularisation, GpError> {
    let mut out = Regularisation::default();
    let mut slopes = WeightSlopes { mean: Vec::new(), roots: Vec::new() };
    for c in 0..model.functions() {
        let reference = model.reference(c);
        let m = reference.rank();
        let factor = lower(reference.whitening().cholesky.factor());
        let whiten = |matrix: Mat<f64>| match model.coordinates() {
            Coordinates::Whitened => matrix,
            // Weights w of k(Z, x) are Lᵀ w of L⁻¹ k(Z, x).
            Coordinates::Kernel => factor.transpose() * matrix,
        };
        let back = |matrix: Mat<f64>| match model.coordinates() {
            Coordinates::Whitened => matrix,
            Coordinates::Kernel => &factor * matrix,
        };
        let mean = match model.mean() {
            VariationalMean::Inducing(weights) => weights.col(c).as_mat().to_owned(),
            _ => Mat::zeros(m, 1),
        };
        let root = model.kernels()[c].weight_root().unwrap_or_else(|| Mat::zeros(m, m));
        let (mean, root) = (whiten(mean), Root::new(whiten(root)));
        let own = divergence.of_whitened(&vec![0.0; m], mean.col_as_slice(0), root.lower.as_ref())?;
        out.value += own.value;
        if matches!(model.mean(), VariationalMean::Inducing(_)) {
            let of_mean = back(Mat::from_fn(m, 1, |i, _| own.mean[i]));
            slopes.mean.push(of_mean.col_as_slice(0).to_vec());
        }
        slopes.roots.push(back(root.pull_back(own.root)));
    }
    out.weights = Some(slopes);
    Ok(out)
}

/// A root of a covariance, and the lower-triangular one of the same: `G = V Qᵀ`.
struct Root {
    /// V; its diagonal may have either sign.
    lower: Mat<f64>,
    /// Q, where G is not triangular itself.
    turn: Option<Mat<f64>>,
}

impl Root {
    /// Cost `4m³/3` flops where G is not triangular.
    fn new(root: Mat<f64>) -> Self {
        let m = root.nrows();
        if (0..m).all(|j| (0..j).all(|i| root[(i, j)] == 0.0)) {
            return Self { lower: root, turn: None };
        }
        let (turn, upper) = qr(root.transpose());
        Self { lower: upper.transpose().to_owned(), turn: Some(turn) }
    }

    /// Slopes in G from those in the lower triangle of V: through the covariance, as a Cholesky factor goes back (`½ V⁻ᵀ (P + Pᵀ) V⁻¹`, P the lower triangle of `Vᵀ V̄` with half its diagonal).
    fn pull_back(&self, slopes: Mat<f64>) -> Mat<f64> {
        let Some(turn) = &self.turn else { return slopes };
        let m = slopes.nrows();
        let inner = self.lower.transpose() * &slopes;
        let mut both = Mat::from_fn(m, m, |i, j| if i >= j { inner[(i, j)] } else { inner[(j, i)] });
        solve_upper(self.lower.transpose(), both.as_mut());
        both * turn.transpose()
    }
}

fn lower(factor: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(factor.nrows(), factor.nrows(), |i, j| if i >= j { factor[(i, j)] } else { 0.0 })
}
