//! Processes whose columns have effects.

use super::joint::no_joint;
use crate::effects::Z95;
use crate::{LikelihoodOutput, ModelError, Output, Process, Target};
use faer::{Mat, MatRef};
use posterior_data::Schema;
use posterior_gp::Averages;

/// Functions drawn for the average of what is no linear function of them, where a method keeps as many.
const DRAWS: usize = 400;

/// The quantile of sorted numbers at a level, between the two next to it.
fn quantile(sorted: &[f64], level: f64) -> f64 {
    let place = level * (sorted.len() - 1) as f64;
    let (low, share) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + share * (sorted[high] - sorted[low])
}

impl Process<'_> {
    /// Draws that all of its posteriors have.
    fn draws(&self) -> usize {
        self.predictor.stored_samples().map_or(DRAWS, |kept| kept.min(DRAWS))
    }

    /// In closed form, of numbers with Gaussian noise.
    fn averages_of_numbers(&self, x: MatRef<'_, f64>, each: usize) -> Result<Vec<Vec<[f64; 3]>>, ModelError> {
        let found = self.predictor.averages(x, each);
        let Averages { mean, variance } = found.ok_or_else(no_joint)??;
        // Back to the target's units in one place: a monotone map takes quantiles to quantiles.
        let back = |z: f64| self.inputs.standardisation.target_back(z);
        let run = |(g, v): (usize, &f64)| {
            let (centre, half) = (mean[(g, 0)], Z95 * v.sqrt());
            vec![[centre, centre - half, centre + half].map(back)]
        };
        Ok(variance.iter().enumerate().map(run).collect())
    }

    /// Of as many draws as there are: each is averaged after it went through what the likelihood expects, so that the average of probabilities is one. All runs have the same random numbers, so that chance does not roughen a curve.
    fn averages_of_draws(
        &self,
        output: &LikelihoodOutput,
        x: MatRef<'_, f64>,
        each: usize,
    ) -> Result<Vec<Vec<[f64; 3]>>, ModelError> {
        let (classes, count) = (output.shown_classes(), self.draws());
        let outputs = self.observed().len();
        let mut out = Vec::with_capacity(x.nrows() / each.max(1));
        for start in (0..x.nrows()).step_by(each.max(1)) {
            let rows = x.subrows(start, each.min(x.nrows() - start));
            let drawn = self.drawn(rows, count, self.record.seed)?;
            let mut averages = vec![vec![0.0; count]; outputs];
            for s in 0..count {
                for i in 0..rows.nrows() {
                    let f: Vec<f64> = drawn.iter().map(|function| function[(i, s)]).collect();
                    let expected = output.expected(&classes, &f);
                    averages.iter_mut().zip(expected).for_each(|(a, v)| a[s] += v / rows.nrows() as f64);
                }
            }
            let summarised = averages.into_iter().map(|mut all| {
                let mean = all.iter().sum::<f64>() / count as f64;
                all.sort_unstable_by(f64::total_cmp);
                [mean, quantile(&all, 0.025), quantile(&all, 0.975)]
            });
            out.push(summarised.collect());
        }
        Ok(out)
    }

    /// What the shares of importance are shares of.
    pub(crate) fn variance_of(&self) -> &'static str {
        match self.output.target() {
            None if self.inputs.standardisation.transform.is_some() => {
                "the variance of the predicted mean of what the target is mapped to"
            }
            Some(Target::Classes { .. }) => {
                "the variance of the mean of the latent functions (log-odds), all classes together"
            }
            Some(Target::Counts { .. }) => "the variance of the mean logarithm of the rate",
            Some(Target::Events { .. }) => "the variance of the mean logarithm of the intensity",
            None | Some(Target::Numbers { .. }) => "the variance of the predicted mean",
        }
    }

    /// What is observed of the functions: a name for each number.
    pub(crate) fn observed(&self) -> Vec<String> {
        let Schema { target, exposure, .. } = &self.inputs.schema;
        match &self.output {
            Output::Likelihood(output) => match &output.target {
                Target::Classes { names } => {
                    let shown = output.shown_classes().into_iter();
                    shown.map(|k| format!("probability of {}", names.names()[k])).collect()
                }
                Target::Counts { .. } if exposure.is_some() => {
                    vec![format!("{target} for each unit of exposure")]
                }
                Target::Events { .. } => vec!["intensity".into()],
                _ => vec![target.clone()],
            },
            Output::Gaussian(_) => vec![target.clone()],
        }
    }

    /// Averages of these, without noise, over each run of `each` rows of x, in units that people use: for each run and each number its centre and the ends of a central 95 % interval.
    ///
    /// # Errors
    /// As predictions.
    pub(crate) fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Result<Vec<Vec<[f64; 3]>>, ModelError> {
        match &self.output {
            Output::Gaussian(_) => self.averages_of_numbers(x, each),
            Output::Likelihood(output) => self.averages_of_draws(output, x, each),
        }
    }

    /// Means of the functions at the rows of x (m x D), m x C. Of several functions the mean over all is subtracted, which changes no probability.
    ///
    /// # Errors
    /// As predictions.
    pub(crate) fn centred_means(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, ModelError> {
        let mut means = self.predictor.means(x)?;
        if means.ncols() > 1 {
            for i in 0..means.nrows() {
                let common = means.row(i).iter().sum::<f64>() / means.ncols() as f64;
                means.row_mut(i).iter_mut().for_each(|m| *m -= common);
            }
        }
        Ok(means)
    }

    /// Floating-point operations of the mean at one row, and of one row of an average, about.
    pub(crate) fn work_of_effects(&self) -> [f64; 2] {
        let [mean, average] = self.predictor.effort(self.inputs.schema.features.len());
        let drawn = self.output.likelihood().map_or(0.0, |output| {
            let c = output.likelihood.outputs() as f64;
            (self.draws() as f64) * c * (2.0 * 64.0 + 30.0 * c)
        });
        [mean, average + drawn]
    }

    /// Bytes that so many rows take at a time, those of averages over runs of so many rows included.
    pub(crate) fn bytes_of_effects(&self, rows: usize, runs: usize) -> u64 {
        self.predictor.cost(rows).bytes.saturating_add(self.beside(rows, runs))
    }

    /// Bytes that so many rows at a time and averages over so many runs of them take beside the predictor's blocks.
    fn beside(&self, rows: usize, runs: usize) -> u64 {
        let each = rows.checked_div(runs).unwrap_or(0);
        match &self.output {
            Output::Gaussian(_) => {
                // A solve for each run, and what points of one run are to each other.
                let (each, solved) = (each as u64, 2 * self.predictor.support() as u64 * runs as u64);
                8 * (solved + 3 * each * each)
            }
            Output::Likelihood(output) => {
                let (m, c) = (rows as u64, output.likelihood.outputs() as u64);
                // Means and covariances of all rows, and the draws of one run.
                let drawn = if runs == 0 { 0 } else { self.draw_bytes(each, self.draws()) };
                (32 << 20) + 8 * m * (2 * c + c * c) + drawn
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let sorted = [1.0, 2.0, 4.0];
        for (level, expected) in [(0.0, 1.0), (0.25, 1.5), (0.5, 2.0), (0.75, 3.0), (1.0, 4.0)] {
            assert_eq!(quantile(&sorted, level), expected);
        }
        assert_eq!(quantile(&[3.0], 0.975), 3.0);
    }
}
