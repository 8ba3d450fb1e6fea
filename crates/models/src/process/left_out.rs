//! Training rows, each predicted from all others: what an exact process knows in closed form.

use super::{ModelError, Predictions, ProcessModel};
use posterior_data::{DataError, Table, row_fingerprint};
use posterior_gp::{Observations, Prediction};
use std::collections::HashMap;

/// Why a model has no such predictions, and the way out.
pub(crate) const NO_LEAVE_ONE_OUT: &str = "--leave-one-out is in closed form for exact Gaussian processes of numbers alone: for this model leave rows out of the fit (fit gp --folds 10, --test-fraction 0.2) and score them";

impl ProcessModel {
    /// Training rows, each predicted from all other training rows under the model's hyperparameters, units and recalibration; which of them is told by their numbers. Targets and known noise are looked at, and kept where `truth` is
    /// wanted. Rows that the schema drops have no prediction, as they had no part in the fit.
    ///
    /// Cost `n³/3` flops for n training rows, whatever the number of rows that are asked about.
    ///
    /// # Errors
    /// [`ModelError::Usage`] for all but exact processes; [`ModelError::Data`] naming the first row that the model was not trained on, and as [`ProcessModel::predict`].
    pub fn leave_one_out(
        &self,
        table: &Table,
        rows: &[usize],
        truth: bool,
    ) -> Result<Predictions, ModelError> {
        let posterior = self.exact().ok_or_else(|| ModelError::Usage(NO_LEAVE_ONE_OUT.into()))?;
        let mut extracted = self.extract(table, rows, true)?;
        let (asked, _) = self.observations(&extracted)?;
        let places = places(posterior.data(), &asked, self.noise.is_none()).map_err(|stranger| {
            let row = extracted.rows[stranger] + 1;
            DataError::NotTrainedOn { path: table.source.clone(), row }.in_table(table)
        })?;
        let found = posterior.leave_one_out();
        let prediction = Prediction {
            mean: faer::Mat::from_fn(places.len(), 1, |i, _| found.mean[(places[i], 0)]),
            latent_variance: places.iter().map(|&i| found.latent_variance[i]).collect(),
            noise_variance: posterior.model().noise().noise_variance(),
            clipped: found.clipped,
        };
        if !truth {
            extracted.y = None;
        }
        self.in_units(&extracted, asked.inputs(), prediction)
    }
}

/// Where each of the rows stands among those that are known, by their inputs, targets and, where it is of the table, noise: equal rows are predicted alike, whichever of them it is. Else the first row that is none of them.
fn places(known: &Observations, asked: &Observations, noise: bool) -> Result<Vec<usize>, usize> {
    let numbers = |data: &Observations, i: usize| -> Vec<f64> {
        let noise = data.noise_variances().filter(|_| noise).map(|v| v[i]);
        data.inputs().row(i).iter().copied().chain([data.targets()[(i, 0)]]).chain(noise).collect()
    };
    let mut by_print: HashMap<u64, Vec<usize>> = HashMap::with_capacity(known.rows());
    for i in 0..known.rows() {
        by_print.entry(row_fingerprint(numbers(known, i))).or_default().push(i);
    }
    let place = |i: usize| {
        let candidates = by_print.get(&row_fingerprint(numbers(asked, i)));
        // Fingerprints may be equal by chance, numbers are not.
        let equal = |k: &&usize| numbers(known, **k) == numbers(asked, i);
        candidates.and_then(|all| all.iter().find(equal)).copied().ok_or(i)
    };
    (0..asked.rows()).map(place).collect()
}
