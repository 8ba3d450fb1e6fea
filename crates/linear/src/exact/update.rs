//! More data without starting over.

use super::ExactPosterior;
use super::fit::{Data, factor, whiten};
use crate::dense::{add_gram, column, to_vec};
use crate::noise::Noise;
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::Cholesky;
use posterior_linalg::dense::product;

impl ExactPosterior {
    /// Takes in further examples: afterwards the posterior is that of all data together.
    ///
    /// `features` (rC x d), `targets` (rC) and `noise` describe the new examples alone. Primal: a rank-one update of the factor per row,
    /// `2d²` flops each, or a new factorisation where that is cheaper. Dual: new rows of the factor; the form never changes, so a dual
    /// posterior that has grown beyond d rows is better refitted. On error nothing has changed.
    ///
    /// # Errors
    /// [`LinearError::NoTargets`] around a given mode; otherwise as [`ExactPosterior::new`].
    pub fn update(
        &mut self,
        features: MatRef<'_, f64>,
        targets: &[f64],
        noise: &Noise,
    ) -> Result<(), LinearError> {
        let mut fit = self.fit.ok_or(LinearError::NoTargets { what: "an update with new data" })?;
        check::same("outputs of the new noise", self.outputs, noise.outputs())?;
        self.check_features(features)?;
        check::same("new targets", features.nrows(), targets.len())?;
        check::finite("target", targets)?;
        let examples = features.nrows() / self.outputs;
        noise.check(examples, self.outputs)?;
        if examples == 0 {
            return Ok(());
        }
        let indices: Vec<usize> = (0..examples).collect();
        let q = whiten(features, noise, &indices, &self.deviations);
        let t = to_vec(&noise.whiten(&indices, column(targets)));
        check::finite_matrix("whitened feature", q.as_ref())?;
        check::finite("whitened target", &t)?;
        let log_determinant = match noise.log_determinant(examples) {
            // Examples are counted over all data seen.
            Err(LinearError::SingularNoise { example, .. }) => Err(self.examples() + example),
            other => Ok(other?),
        };
        match &mut self.data {
            Data::Primal { right } => {
                let grown = grow(&self.cholesky, q.as_ref())?;
                let projected = q.transpose() * column(&t);
                let sum: Vec<f64> = right.iter().enumerate().map(|(i, r)| r + projected[(i, 0)]).collect();
                let whitened = grown.solve(column(&sum));
                let mean: Vec<f64> =
                    self.deviations.iter().enumerate().map(|(i, s)| s * whitened[(i, 0)]).collect();
                check::finite("posterior mean of weight", &mean)?;
                // What the old data lose by moving to the new mean, and what the new data leave: a sum of squares, so nothing cancels.
                let step: Vec<f64> =
                    (0..mean.len()).map(|i| (mean[i] - self.mean[i]) / self.deviations[i]).collect();
                let residual = column(targets) - product(features, column(&mean));
                fit.quadratic += squared_factor_norm(&self.cholesky, &step)
                    + noise.whiten(&indices, residual.as_ref()).col(0).squared_norm_l2();
                (*right, self.cholesky, self.mean) = (sum, grown, mean);
            }
            Data::Dual { rows, targets: seen } => {
                let cross = product(q.as_ref(), rows.transpose());
                let mut corner = Mat::identity(q.nrows(), q.nrows());
                add_gram(corner.as_mut(), q.transpose());
                self.cholesky.append(cross.as_ref(), corner.as_ref())?;
                let old = rows.nrows();
                let mut all = Mat::zeros(old + q.nrows(), rows.ncols());
                all.as_mut().subrows_mut(0, old).copy_from(&*rows);
                all.as_mut().subrows_mut(old, q.nrows()).copy_from(&q);
                *rows = all;
                seen.extend_from_slice(&t);
                let mut whitened = column(seen).to_owned();
                self.cholesky.solve_factor_in_place(whitened.as_mut());
                fit.quadratic = whitened.col(0).squared_norm_l2();
                self.mean = self.solve_mean();
            }
        }
        fit.noise_log_determinant = match (fit.noise_log_determinant, log_determinant) {
            (Ok(old), Ok(new)) => Ok(old + new),
            (Err(example), _) | (_, Err(example)) => Err(example),
        };
        self.rows += features.nrows();
        self.fit = Some(fit);
        Ok(())
    }
}

/// The factor of `L L' + Q'Q`.
fn grow(old: &Cholesky, q: MatRef<'_, f64>) -> Result<Cholesky, LinearError> {
    let d = old.dimension();
    // Rank-one updates cost 2d² a row at the speed of memory; anew it is d² a row, L L' and the factor d³/3 each, at the speed of a product.
    if 8 * q.nrows() <= d {
        let mut grown = old.clone();
        for i in 0..q.nrows() {
            let row: Vec<f64> = q.row(i).iter().copied().collect();
            grown.add_rank_one(&row);
        }
        return match (0..d).find(|&i| !grown.factor()[(i, i)].is_finite()) {
            Some(index) => Err(LinearError::NotFinite {
                what: "the updated factor's diagonal entry",
                index,
                value: grown.factor()[(index, index)],
            }),
            None => Ok(grown),
        };
    }
    let upper = Mat::from_fn(d, d, |i, j| if i <= j { old.factor()[(j, i)] } else { 0.0 });
    let mut matrix = Mat::zeros(d, d);
    add_gram(matrix.as_mut(), upper.as_ref());
    add_gram(matrix.as_mut(), q);
    factor(matrix)
}

/// `v' L L' v`.
fn squared_factor_norm(cholesky: &Cholesky, v: &[f64]) -> f64 {
    let factor = cholesky.factor();
    (0..v.len()).map(|j| (j..v.len()).map(|i| factor[(i, j)] * v[i]).sum::<f64>().powi(2)).sum()
}
