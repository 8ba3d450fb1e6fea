//! A table's training rows, each predicted from all others.

use crate::rows::no_leave_one_out;
use crate::{Latent, ModelError, Predictions, Process};
use posterior_data::{DataError, Table, row_fingerprint};
use posterior_gp::Observations;
use std::collections::HashMap;

impl Process<'_> {
    /// Training rows, each predicted from all other training rows under the model's hyperparameters, units and recalibration; which of them is told by their numbers. Targets and known noise are looked at, and kept where `truth` is
    /// wanted. Rows that the schema drops have no prediction, as they had no part in the fit.
    ///
    /// Cost `n³/3` flops for n training rows, whatever the number of rows that are asked about.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where the predictor cannot ([`crate::Predictor::leave_one_out`]); [`ModelError::Data`] naming the first row that the model was not trained on, and as [`Process::predict`].
    pub fn leave_one_out(
        &self,
        table: &Table,
        rows: &[usize],
        truth: bool,
    ) -> Result<Predictions, ModelError> {
        let (Some(predict), Some(known)) = (self.predictor.leave_one_out(), self.predictor.training()) else {
            return Err(no_leave_one_out());
        };
        let mut extracted = self.extract(table, rows, true)?;
        let (asked, _) = self.observations(&extracted)?;
        let places = places(known, &asked, self.heteroscedastic_noise().is_none()).map_err(|stranger| {
            let row = extracted.rows[stranger] + 1;
            DataError::NotTrainedOn { path: table.source.clone(), row }.in_table(table)
        })?;
        let found = predict();
        let mean = places.iter().map(|&i| found.mean[(i, 0)]).collect();
        let variance = places.iter().map(|&i| found.latent_variance[i]).collect();
        let latent = Latent { clipped: found.clipped, ..Latent::new(mean, variance, 1) };
        if !truth {
            extracted.y = None;
        }
        self.in_units(&extracted, asked.inputs(), latent)
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
