//! How a fit went.

use posterior_optim::{Reason, Segment};
use serde::{Deserialize, Serialize};

/// What a fit of a process whose mean is the network says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FixedMeanReport {
    /// Steps taken; 0 in closed form.
    pub steps: usize,
    /// Why they ended; None in closed form.
    pub reason: Option<Reason>,
    /// Whether a companion took part in the steps.
    pub companion: bool,
    /// Losses of the process and of its companion, averaged over each pass, with its last step.
    pub losses: Vec<(usize, f64, f64)>,
    /// Scores on validation rows (minus the mean log predictive density, nats) with their steps; in closed form with tried amplitudes in place of steps in `amplitudes`.
    pub scores: Vec<(usize, f64)>,
    /// The same score of the network alone, with the likelihood as it was given; None without validation rows.
    pub plain_score: Option<f64>,
    /// The step whose parameters were kept, where scores chose it.
    pub best_step: Option<usize>,
    /// Prior variances that were tried in closed form, with their scores.
    pub amplitudes: Vec<(f64, f64)>,
    /// The prior variance in front of the kernel.
    pub amplitude: f64,
    /// The kernel's parameters by name.
    pub kernel: Vec<(String, f64)>,
    /// The likelihood's parameters by name.
    pub noise: Vec<(String, f64)>,
    /// The divergence of the posterior from the prior, in nats.
    pub divergence: f64,
    /// The largest amount added to a diagonal, relative to its mean.
    pub jitter: f64,
    /// Variances during the fit that rounding had made negative.
    pub clipped: usize,
    /// The output that each inducing point looks at.
    pub labels: Vec<usize>,
    /// Numbers of the inducing points, point after point, with the step.
    pub trajectory: Vec<(usize, Vec<f64>)>,
    /// Seconds of the steps or the pass.
    pub seconds: f64,
}

impl FixedMeanReport {
    /// The score of what was kept; None without validation rows.
    pub fn score(&self) -> Option<f64> {
        let least = |all: &[(usize, f64)]| all.iter().map(|s| s.1).min_by(f64::total_cmp);
        let closed = self.amplitudes.iter().map(|s| s.1).min_by(f64::total_cmp);
        least(&self.scores).or(closed)
    }
}

/// Values of parameters with their names, as `rbf.lengthscale[2]`.
pub(crate) fn named(segments: Vec<Segment>, values: Vec<f64>) -> Vec<(String, f64)> {
    let names = segments.into_iter().flat_map(|s| {
        let count = s.len();
        (0..count).map(move |i| if count == 1 { s.name.clone() } else { format!("{}[{i}]", s.name) })
    });
    names.zip(values).collect()
}
