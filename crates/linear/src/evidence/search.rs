//! The searches for the largest evidence. Neither ends below its start.

use super::{DataFit, EvidenceError, EvidenceOptions, EvidenceStep, EvidenceValue, LaplaceEvidence};
use posterior_optim::{Lbfgs, LoopOptions, Objective, ObjectiveError, Optimiser, Reason, Signal, minimise};

/// The next precision of a fixed-point search: MacKay's `gamma / |w|^2` (Antorán 2024, equation 6.4), for a group of weights.
pub fn precision_update(effective_dimensions: f64, squared_norm: f64) -> f64 {
    effective_dimensions.max(1e-300) / squared_norm
}

/// Share of the observed numbers beyond which a linear model that was fitted to them has no residuals left to tell the noise by.
pub const MOST_FITTED: f64 = 0.9;

/// The next noise variance of a fixed-point search: MacKay's `RSS / (n - gamma)` for `n` observed numbers. Exact effective dimensions are fewer than `n`; those of approximate curvatures need not be, and then
/// there is nothing left to estimate noise from: the step of expectation maximisation, `(RSS + sigma^2 gamma) / n`, which has the same fixed point and always moves up the evidence's slope, leads back to
/// noise at which they are fewer.
pub fn noise_update(residual_sum: f64, values: usize, effective_dimensions: f64, noise: f64) -> f64 {
    let freedom = values as f64 - effective_dimensions;
    if freedom >= 1.0 {
        return residual_sum / freedom;
    }
    (residual_sum + noise * effective_dimensions) / (values as f64).max(1.0)
}

/// The largest difference of the logarithms.
fn largest_move(from: &[f64], to: &[f64]) -> f64 {
    from.iter().zip(to).map(|(a, b)| (b / a).ln().abs()).fold(0.0, f64::max)
}

impl LaplaceEvidence<'_> {
    /// MacKay's updates of precisions and of the noise in turn, each shortened in the logarithms until the evidence does not fall.
    ///
    /// A full update moves every logarithm in the direction of its slope, `log(gamma / a |u|^2)` having the sign of `gamma - a |u|^2`, but nothing keeps it from passing the maximum, and under an
    /// approximate curvature from running away: diagonal and Kronecker structures may count more effective dimensions than there are targets, which leave no residual to estimate noise from.
    pub(super) fn mackay(
        &self,
        learn_noise: bool,
        options: &EvidenceOptions,
        steps: &mut Vec<EvidenceStep>,
    ) -> Result<bool, EvidenceError> {
        let last = &steps[steps.len() - 1];
        let (mut precisions, mut noise) = (last.precisions.clone(), last.noise_variance);
        let mut value = self.at(&precisions, noise)?;
        for _ in 0..options.steps {
            let (low, high) = options.precisions;
            let wanted: Vec<f64> = value
                .effective_dimensions
                .iter()
                .zip(&self.squared_norms)
                .map(|(gamma, norm)| precision_update(*gamma, *norm).clamp(low, high))
                .collect();
            let mut change = largest_move(&precisions, &wanted);
            let moved = self.shortened((&precisions, noise), (&wanted, noise), &value)?;
            if let Some((next, _, found)) = moved {
                (precisions, value) = (next, found);
            }
            if let (true, DataFit::Gaussian { residual_sum, values, .. }) = (learn_noise, self.fit) {
                let gamma: f64 = value.effective_dimensions.iter().sum();
                let (low, high) = options.noise_variances;
                let wanted = noise_update(residual_sum, values, gamma, noise).clamp(low, high);
                change = change.max(largest_move(&[noise], &[wanted]));
                let moved = self.shortened((&precisions, noise), (&precisions, wanted), &value)?;
                if let Some((_, next, found)) = moved {
                    (noise, value) = (next, found);
                }
            }
            steps.push(EvidenceStep {
                precisions: precisions.clone(),
                noise_variance: noise,
                log_evidence: value.log_evidence,
            });
            if change <= options.tolerance {
                return Ok(true);
            }
            // Where no length helps, slopes vanish up to rounding.
            let before = steps[steps.len() - 2].clone();
            if before.precisions == precisions && before.noise_variance == noise {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// The point on the way (in the logarithms) to an update at which the evidence is no less than here: the update itself, or half the way, and so on; None where there is none.
    fn shortened(
        &self,
        (precisions, noise): (&[f64], f64),
        (wanted, wanted_noise): (&[f64], f64),
        here: &EvidenceValue,
    ) -> Result<Option<(Vec<f64>, f64, EvidenceValue)>, EvidenceError> {
        // What rounding does to a sum of this size is no fall.
        let least = here.log_evidence - 1e-12 * here.log_evidence.abs().max(1.0);
        let between = |a: f64, b: f64, length: f64| if length == 1.0 { b } else { a * (b / a).powf(length) };
        let mut length = 1.0;
        while length > 1e-9 {
            let trial: Vec<f64> =
                precisions.iter().zip(wanted).map(|(a, b)| between(*a, *b, length)).collect();
            let trial_noise = between(noise, wanted_noise, length);
            let found = self.at(&trial, trial_noise)?;
            if found.log_evidence >= least {
                return Ok(Some((trial, trial_noise, found)));
            }
            length *= 0.5;
        }
        Ok(None)
    }

    pub(super) fn gradient(
        &self,
        learn_noise: bool,
        options: &EvidenceOptions,
        steps: &mut Vec<EvidenceStep>,
    ) -> Result<bool, EvidenceError> {
        let start = steps[0].clone();
        let mut theta: Vec<f64> = start.precisions.iter().map(|p| p.ln()).collect();
        if learn_noise {
            theta.push(start.noise_variance.ln());
        }
        let effective: f64 =
            self.at(&start.precisions, start.noise_variance)?.effective_dimensions.iter().sum();
        let settings = LoopOptions {
            steps: options.steps,
            // Slopes are counted in effective weights.
            gradient_tolerance: options.tolerance * effective.max(1.0),
            value_tolerance: 1e-13,
            ..LoopOptions::default()
        };
        let noise = start.noise_variance;
        let mut objective = Search { evidence: self, learn_noise, noise, options, steps };
        let optimiser = Optimiser::Lbfgs(Lbfgs::default());
        let outcome = minimise(&mut objective, &theta, optimiser, &settings, &mut |_, _| Signal::Continue)?;
        let (precisions, noise_variance) = objective_point(&outcome.theta, learn_noise, noise, options);
        steps.push(EvidenceStep { precisions, noise_variance, log_evidence: -outcome.value });
        Ok(matches!(outcome.reason, Reason::Gradient | Reason::Value))
    }
}

/// The point that a vector of logarithms stands for, kept within the bounds.
fn objective_point(
    theta: &[f64],
    learn_noise: bool,
    noise: f64,
    options: &EvidenceOptions,
) -> (Vec<f64>, f64) {
    let groups = theta.len() - usize::from(learn_noise);
    let (low, high) = options.precisions;
    let precisions = theta[..groups].iter().map(|t| t.exp().clamp(low, high)).collect();
    let noise = if learn_noise {
        theta[groups].exp().clamp(options.noise_variances.0, options.noise_variances.1)
    } else {
        noise
    };
    (precisions, noise)
}

/// Minus the evidence as a function of logarithms, flat beyond the bounds.
struct Search<'a, 'b> {
    evidence: &'a LaplaceEvidence<'b>,
    learn_noise: bool,
    noise: f64,
    options: &'a EvidenceOptions,
    steps: &'a mut Vec<EvidenceStep>,
}

impl Objective for Search<'_, '_> {
    fn dimension(&self) -> usize {
        self.evidence.squared_norms.len() + usize::from(self.learn_noise)
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        let (precisions, noise) = objective_point(theta, self.learn_noise, self.noise, self.options);
        let value =
            self.evidence.at(&precisions, noise).map_err(|error| ObjectiveError(error.to_string()))?;
        self.steps.push(EvidenceStep {
            precisions: precisions.clone(),
            noise_variance: noise,
            log_evidence: value.log_evidence,
        });
        for (l, g) in gradient.iter_mut().enumerate() {
            let (inside, slope) = match precisions.get(l) {
                Some(a) => ((a.ln() - theta[l]).abs() < 1e-9, value.slopes[l]),
                None => ((noise.ln() - theta[l]).abs() < 1e-9, value.noise_slope),
            };
            *g = if inside { -slope } else { 0.0 };
        }
        Ok(-value.log_evidence)
    }

    fn parameter_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.evidence.prior.names().iter().map(|n| format!("log precision of {n}")).collect();
        if self.learn_noise {
            names.push("log noise variance".into());
        }
        names
    }
}
