//! Processes whose columns have effects: numbers with Gaussian noise.

use super::effects::{Effective, Z95};
use super::{ModelError, ProcessModel, ProcessPosterior};
use faer::{Mat, MatRef};
use posterior_data::{Schema, Standardisation};
use posterior_gp::{Averages, Posterior};

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

    fn training_inputs(&self) -> Option<MatRef<'_, f64>> {
        self.posterior.training().map(|(inputs, _)| inputs)
    }

    fn variance_of(&self) -> &'static str {
        match self.header.standardisation.transform {
            None => "the variance of the predicted mean",
            Some(_) => "the variance of the predicted mean of what the target is mapped to",
        }
    }

    fn means(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, ModelError> {
        Ok(self.posterior.mean_values(x)?)
    }

    fn observed(&self) -> Vec<String> {
        vec![self.header.schema.target.clone()]
    }

    fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Result<Vec<Vec<[f64; 3]>>, ModelError> {
        let Averages { mean, variance } = self.posterior.averages(x, each)?;
        // Back to the target's units in one place: a monotone map takes quantiles to quantiles.
        let back = |z: f64| self.header.standardisation.target_back(z);
        let run = |(g, v): (usize, &f64)| {
            let (centre, half) = (mean[(g, 0)], Z95 * v.sqrt());
            vec![[centre, centre - half, centre + half].map(back)]
        };
        Ok(variance.iter().enumerate().map(run).collect())
    }

    fn work(&self) -> [f64; 2] {
        let (n, d) = (self.support() as f64, self.header.schema.features.len() as f64);
        let row = n * (2.0 * d + 30.0);
        let with_variance = row + self.blocks(1).1;
        match &*self.posterior {
            // One solve for all rows of a run, which are some ten.
            ProcessPosterior::Exact(_) => [row, row + n * n / 16.0],
            ProcessPosterior::Embedded(own) => {
                let row = row + 2.0 * own.embedding().unconstrained().len() as f64;
                [row, row + n * n / 16.0]
            }
            ProcessPosterior::Single(_) | ProcessPosterior::Double(_) => [row, with_variance],
            _ => [with_variance, with_variance],
        }
    }

    fn bytes(&self, rows: usize, runs: usize) -> u64 {
        let each = rows.checked_div(runs).unwrap_or(0) as u64;
        // A solve for each run, and what points of one run are to each other.
        let solved = 2 * self.support() as u64 * runs as u64;
        self.blocks(rows).0.saturating_add(8 * (solved + 3 * each * each))
    }
}
