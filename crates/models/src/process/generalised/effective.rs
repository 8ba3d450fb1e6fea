//! Processes whose columns have effects: classes, counts, numbers with outliers.

use super::{GeneralisedModel, Target};
use crate::process::effects::Effective;
use crate::{ModelError, Predictor};
use faer::MatRef;
use posterior_data::{Schema, Standardisation};
use posterior_likelihoods::OutputLikelihood;

/// Functions drawn for the average of what is no linear function of them, where a method keeps as many.
const DRAWS: usize = 400;

/// Classes whose probabilities have curves.
const MOST_CLASSES: usize = 8;

/// The quantile of sorted numbers at a level, between the two next to it.
fn quantile(sorted: &[f64], level: f64) -> f64 {
    let place = level * (sorted.len() - 1) as f64;
    let (low, share) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + share * (sorted[high] - sorted[low])
}

impl GeneralisedModel {
    /// Of two classes of one function the second, of several the first eight.
    fn shown_classes(&self) -> Vec<usize> {
        match (&self.header.target, &self.header.likelihood) {
            (Target::Classes { .. }, OutputLikelihood::Bernoulli(_)) => vec![1],
            (Target::Classes { names }, _) => (0..names.count().min(MOST_CLASSES)).collect(),
            _ => Vec::new(),
        }
    }

    /// What is expected of latent values that are known: probabilities of the shown classes, a count for each unit of exposure, a number.
    fn expected(&self, classes: &[usize], f: &[f64]) -> Vec<f64> {
        match (&self.header.target, &self.header.likelihood) {
            // All classes from one sum; otherwise there would be one for each.
            (Target::Classes { .. }, OutputLikelihood::Categorical(_)) => {
                let peak = f.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = f.iter().map(|value| (value - peak).exp()).sum();
                classes.iter().map(|k| (f[*k] - peak).exp() / total).collect()
            }
            (Target::Classes { .. }, likelihood) => {
                classes.iter().map(|k| likelihood.log_density(&[*k as f64], f).exp()).collect()
            }
            (Target::Counts { rate }, _) => vec![rate * f[0].exp()],
            (Target::Events { .. }, _) => vec![f[0].exp()],
            (Target::Numbers { mean, scale }, _) => vec![mean + scale * f[0]],
        }
    }

    /// Draws that all of its posteriors have.
    fn draws(&self) -> usize {
        self.predictor.stored_samples().map_or(DRAWS, |kept| kept.min(DRAWS))
    }
}

impl Effective for GeneralisedModel {
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
        match &self.header.target {
            Target::Classes { .. } => {
                "the variance of the mean of the latent functions (log-odds), all classes together"
            }
            Target::Counts { .. } => "the variance of the mean logarithm of the rate",
            Target::Events { .. } => "the variance of the mean logarithm of the intensity",
            Target::Numbers { .. } => "the variance of the predicted mean",
        }
    }

    fn observed(&self) -> Vec<String> {
        let target = &self.header.schema.target;
        match &self.header.target {
            Target::Classes { names } => {
                let shown = self.shown_classes().into_iter();
                shown.map(|k| format!("probability of {}", names.names()[k])).collect()
            }
            Target::Counts { .. } if self.header.schema.exposure.is_some() => {
                vec![format!("{target} for each unit of exposure")]
            }
            Target::Events { .. } => vec!["intensity".into()],
            _ => vec![target.clone()],
        }
    }

    /// Of as many draws as there are: each is averaged after it went through what the likelihood expects, so that the average of probabilities is one. All runs have the same random numbers, so that chance does not roughen a curve.
    fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Result<Vec<Vec<[f64; 3]>>, ModelError> {
        let (classes, count) = (self.shown_classes(), self.draws());
        let outputs = self.observed().len();
        let mut out = Vec::with_capacity(x.nrows() / each.max(1));
        for start in (0..x.nrows()).step_by(each.max(1)) {
            let rows = x.subrows(start, each.min(x.nrows() - start));
            let drawn = self.drawn(rows, count, self.header.seed)?;
            let mut averages = vec![vec![0.0; count]; outputs];
            for s in 0..count {
                for i in 0..rows.nrows() {
                    let f: Vec<f64> = drawn.iter().map(|function| function[(i, s)]).collect();
                    let expected = self.expected(&classes, &f);
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

    fn drawn_flops(&self) -> f64 {
        let c = self.header.likelihood.outputs() as f64;
        (self.draws() as f64) * c * (2.0 * 64.0 + 30.0 * c)
    }

    fn beside(&self, rows: usize, runs: usize) -> u64 {
        let (m, c) = (rows as u64, self.header.likelihood.outputs() as u64);
        // Means and covariances of all rows, and the draws of one run.
        let each = rows.checked_div(runs).unwrap_or(0);
        let drawn = if runs == 0 { 0 } else { self.draw_bytes(each, self.draws()) };
        (32 << 20) + 8 * m * (2 * c + c * c) + drawn
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
