//! Processes whose columns have effects: numbers with Gaussian noise.

use super::effects::{Effective, Z95};
use super::joint::NO_JOINT;
use super::{ModelError, ProcessModel};
use crate::Predictor;
use faer::MatRef;
use posterior_data::{Schema, Standardisation};
use posterior_gp::Averages;

impl Effective for ProcessModel {
    fn schema(&self) -> &Schema {
        &self.header.schema
    }

    fn standardisation(&self) -> &Standardisation {
        &self.header.standardisation
    }

    fn seed(&self) -> u64 {
        self.header.seed
    }

    fn predictor(&self) -> &dyn Predictor {
        &*self.predictor
    }

    fn variance_of(&self) -> &'static str {
        match self.header.standardisation.transform {
            None => "the variance of the predicted mean",
            Some(_) => "the variance of the predicted mean of what the target is mapped to",
        }
    }

    fn observed(&self) -> Vec<String> {
        vec![self.header.schema.target.clone()]
    }

    fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Result<Vec<Vec<[f64; 3]>>, ModelError> {
        let found = self.predictor.averages(x, each);
        let Averages { mean, variance } = found.ok_or_else(|| ModelError::Usage(NO_JOINT.into()))??;
        // Back to the target's units in one place: a monotone map takes quantiles to quantiles.
        let back = |z: f64| self.header.standardisation.target_back(z);
        let run = |(g, v): (usize, &f64)| {
            let (centre, half) = (mean[(g, 0)], Z95 * v.sqrt());
            vec![[centre, centre - half, centre + half].map(back)]
        };
        Ok(variance.iter().enumerate().map(run).collect())
    }

    fn beside(&self, rows: usize, runs: usize) -> u64 {
        let each = rows.checked_div(runs).unwrap_or(0) as u64;
        // A solve for each run, and what points of one run are to each other.
        let solved = 2 * self.predictor.support() as u64 * runs as u64;
        8 * (solved + 3 * each * each)
    }
}
