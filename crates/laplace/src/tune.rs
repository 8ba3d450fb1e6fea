//! **Hyperparameters by held-out data**: the negative log predictive density of examples that the curvature has not seen, under the very predictive that will be used.
//!
//! All prior precisions are multiplied by one factor, tried on a logarithmic grid around a start (the evidence's optimum); under Gaussian noise the noise is then tried likewise. A grid whose
//! best point is its edge is moved until it is not, five times at most, and what was found is told either way.

use crate::accumulate::FitSums;
use crate::fit::{Curvature, scaled_noise};
use crate::predict::{Latent, Wanted, displaced};
use crate::{LaplaceError, Predictor, Stage};
use posterior_likelihoods::{Integration, OutputLikelihood, PredictiveRule, PredictiveWorkspace};
use posterior_linear::Prior;
use posterior_linear::evidence::DataFit;
use posterior_networks::train::Examples;
use posterior_networks::{Network, Precision, Selection};
use posterior_optim::Signal;
use posterior_tangent::{Batch, doubles, ranges};
use serde::{Deserialize, Serialize};

/// How prior precisions and noise are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tune {
    /// By the evidence, with gradients.
    #[default]
    Evidence,
    /// By the evidence, with MacKay's fixed points.
    Mackay,
    /// By held-out examples.
    Validation,
    /// By leaving out one part of the training examples after another.
    CrossValidation {
        /// Parts.
        folds: usize,
    },
    /// Not at all.
    None,
}

/// One point that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GridPoint {
    /// Factor on the starting precisions.
    pub precision_factor: f64,
    /// Noise variance, relative to the likelihood's own.
    pub noise_variance: f64,
    /// Mean negative log predictive density; not finite where the predictive failed.
    #[serde(with = "posterior_store::any_number")]
    pub nll: f64,
}

/// What held-out data said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldOutReport {
    /// Examples that were scored.
    pub examples: usize,
    /// Every point tried, in order.
    pub grid: Vec<GridPoint>,
    /// The best of them.
    pub best: GridPoint,
    /// The plain network's score on the same examples.
    pub plain_nll: f64,
    /// The best point is still at the edge of the grid.
    pub at_edge: bool,
    /// Points without a finite score.
    pub not_finite: usize,
}

impl HeldOutReport {
    /// What a reader should know, where the examples may be ones that the network has `seen`.
    pub(crate) fn notes(&self, seen: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if self.at_edge {
            notes.push("the best hyperparameters on held-out data lie at the edge of the grid".into());
        }
        if self.not_finite > 0 {
            notes.push(format!("{} points of the grid had no finite score", self.not_finite));
        }
        if seen {
            notes.push(
                "WARNING: hyperparameters were chosen on rows that the network was trained on. It fits them better than any new row, so that their score favours no error bars at all: \
                 neither it nor the choice says anything about new data"
                    .into(),
            );
        } else if self.best.nll >= self.plain_nll {
            notes.push(format!(
                "on {} held-out examples nothing beats the plain network: NLL {:.4} against {:.4}",
                self.examples, self.best.nll, self.plain_nll
            ));
        }
        notes
    }
}

/// Held-out examples, each set with the curvature of the others.
pub(crate) struct HeldOut<'a, T> {
    pub(crate) network: &'a Network<T>,
    pub(crate) selection: &'a Selection,
    pub(crate) likelihood: &'a OutputLikelihood,
    pub(crate) integration: Integration,
    pub(crate) sets: Vec<(Curvature<T>, &'a dyn Examples<T>)>,
    pub(crate) memory: u64,
    /// What predictions count beside the posterior ([`crate::fit::ModeSummary::displacement`]).
    pub(crate) displacement: Option<Vec<T>>,
}

/// Which entries of the covariance an integration uses.
pub fn wanted(integration: Integration, likelihood: &OutputLikelihood) -> Wanted {
    match (integration, likelihood) {
        (Integration::PlugIn | Integration::Probit, OutputLikelihood::FullGaussian(_)) => Wanted::Full,
        (Integration::PlugIn | Integration::Probit, OutputLikelihood::Gaussian(_)) => Wanted::Full,
        (Integration::PlugIn | Integration::Probit, _) => Wanted::Diagonal,
        _ => Wanted::Full,
    }
}

/// The sum of negative log predictive densities of a batch.
pub(crate) fn batch_nll<T: Precision>(
    rule: &PredictiveRule,
    latent: &Latent,
    batch: &Batch<T>,
) -> Result<f64, LaplaceError> {
    let mut workspace = PredictiveWorkspace::default();
    let mut sum = 0.0;
    for i in 0..batch.range.len() {
        sum -= rule.log_predictive_density_with(batch.target(i), latent.example(i), &mut workspace)?;
    }
    Ok(sum)
}

impl<T: Precision> HeldOut<'_, T> {
    fn examples(&self) -> usize {
        self.sets.iter().map(|s| s.1.len()).sum()
    }

    /// Mean scores of several settings (prior, noise variance).
    fn scores(
        &self,
        settings: &[(Prior, f64)],
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Vec<f64>, LaplaceError> {
        let wanted = wanted(self.integration, self.likelihood);
        let rules: Vec<PredictiveRule> = settings
            .iter()
            .map(|s| Ok(PredictiveRule::new(scaled_noise(self.likelihood, s.1)?, self.integration)?))
            .collect::<Result<_, LaplaceError>>()?;
        let mut sums = vec![0.0; settings.len()];
        let (total, mut done) = (self.examples() * settings.len(), 0);
        for (curvature, examples) in &self.sets {
            // As many posteriors at a time as memory allows.
            let each = (self.memory / 4 / curvature.posterior_bytes().max(1)).clamp(1, settings.len() as u64)
                as usize;
            for start in (0..settings.len()).step_by(each) {
                let group = start..(start + each).min(settings.len());
                let mut predict = curvature.predictors(
                    self.network,
                    self.selection,
                    self.likelihood,
                    &settings[group.clone()],
                )?;
                for range in ranges(0, examples.len(), 512) {
                    let batch = Batch::read(*examples, range, self.likelihood)?;
                    let mut latents = predict(&batch.x, wanted)?;
                    if let Some(displacement) = &self.displacement {
                        let moved = displaced(self.network, self.selection, &batch.x, displacement)?;
                        latents.iter_mut().for_each(|l| l.add_squares(&moved));
                    }
                    for (k, latent) in group.clone().zip(&latents) {
                        // A setting whose predictive fails is out of the race, not the whole run.
                        sums[k] += batch_nll(&rules[k], latent, &batch).unwrap_or(f64::NAN);
                    }
                    done += batch.range.len() * group.len();
                    if observer(Stage::Validation, done, total) == Signal::Stop {
                        return Err(LaplaceError::Interrupted);
                    }
                }
            }
        }
        let count = self.examples() as f64;
        Ok(sums.into_iter().map(|s| s / count).collect())
    }

    /// The network's own score.
    fn plain(&self, noise_variance: f64) -> Result<f64, LaplaceError> {
        plain_nll(
            self.network,
            &self.sets.iter().map(|s| s.1).collect::<Vec<_>>(),
            &scaled_noise(self.likelihood, noise_variance)?,
        )
    }

    /// The search.
    pub(crate) fn search(
        &self,
        start: &Prior,
        noise_variance: f64,
        learn_noise: bool,
        plain_noise: f64,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<HeldOutReport, LaplaceError> {
        if self.examples() == 0 {
            return Err(LaplaceError::Request("there are no held-out examples to tune on".into()));
        }
        let mut scores = |settings: &[(Prior, f64)]| self.scores(settings, observer);
        let (grid, best, at_edge) = tried(start, noise_variance, learn_noise, &mut scores)?;
        let not_finite = grid.iter().filter(|p| !p.nll.is_finite()).count();
        let plain_nll = self.plain(plain_noise)?;
        Ok(HeldOutReport { examples: self.examples(), grid, best, plain_nll, at_edge, not_finite })
    }
}

/// Scores of several settings (prior, noise variance).
type Scores<'a> = &'a mut dyn FnMut(&[(Prior, f64)]) -> Result<Vec<f64>, LaplaceError>;

/// Every point that the search tries, the best of them, and whether that is still at the edge.
fn tried(
    start: &Prior,
    noise_variance: f64,
    learn_noise: bool,
    scores: Scores<'_>,
) -> Result<(Vec<GridPoint>, GridPoint, bool), LaplaceError> {
    let mut grid: Vec<GridPoint> = Vec::new();
    let mut best = GridPoint { precision_factor: 1.0, noise_variance, nll: f64::INFINITY };
    let mut at_edge = false;
    // Precisions, then noise, then precisions again where noise moved.
    let rounds: &[bool] = if learn_noise { &[false, true, false] } else { &[false] };
    for &noise_round in rounds {
        let (mut low, mut high) = if noise_round { (-8, 8) } else { (-12, 12) };
        let step = if noise_round { 10f64.powf(0.125) } else { 10f64.powf(0.25) };
        let centre = best;
        let mut todo: Vec<i32> = (low..=high).collect();
        let mut own: Vec<(i32, GridPoint)> = Vec::new();
        for _ in 0..6 {
            let point = |k: &i32| {
                let factor = step.powi(*k);
                match noise_round {
                    true => (centre.precision_factor, centre.noise_variance * factor),
                    false => (centre.precision_factor * factor, centre.noise_variance),
                }
            };
            let points: Vec<(f64, f64)> = todo.iter().map(point).collect();
            let settings: Vec<(Prior, f64)> = points
                .iter()
                .map(|(factor, noise)| Ok((scaled(start, *factor)?, *noise)))
                .collect::<Result<_, LaplaceError>>()?;
            for ((k, point), nll) in todo.iter().zip(&points).zip(scores(&settings)?) {
                let point = GridPoint { precision_factor: point.0, noise_variance: point.1, nll };
                grid.push(point);
                own.push((*k, point));
                if nll < best.nll {
                    best = point;
                }
            }
            let at = own.iter().filter(|p| p.1.nll.is_finite()).min_by(|a, b| a.1.nll.total_cmp(&b.1.nll));
            let Some((k, _)) = at else { break };
            at_edge = *k == low || *k == high;
            if !at_edge {
                break;
            }
            todo = if *k == low { (low - 6..low).collect() } else { (high + 1..=high + 6).collect() };
            (low, high) = (low.min(todo[0]), high.max(todo[todo.len() - 1]));
        }
    }
    if !best.nll.is_finite() {
        return Err(LaplaceError::Request(
            "no prior precision gave a finite score on the held-out examples; check their targets".into(),
        ));
    }
    Ok((grid, best, at_edge))
}

/// The mean negative log density that the network alone gives to examples.
///
/// # Errors
/// Bad targets or inputs.
pub fn plain_nll<T: Precision>(
    network: &Network<T>,
    sets: &[&dyn Examples<T>],
    likelihood: &OutputLikelihood,
) -> Result<f64, LaplaceError> {
    let (mut sum, mut count) = (0.0, 0);
    for examples in sets {
        for range in ranges(0, examples.len(), 512) {
            let batch = Batch::read(*examples, range, likelihood)?;
            let f = network.forward(&batch.x)?;
            let mut fit = FitSums::default();
            fit.add_batch(likelihood, &batch.targets, &doubles(f.values()));
            sum -= fit.log_likelihood;
            count += fit.examples;
        }
    }
    Ok(sum / count.max(1) as f64)
}

/// Noise variance of the network alone, relative to the likelihood's own: what its mean squared residual says, where noise is learned; 1 elsewhere.
pub(crate) fn plain_noise(fit: &FitSums, likelihood: &OutputLikelihood, learned: bool) -> f64 {
    match fit.data_fit(likelihood) {
        DataFit::Gaussian { residual_sum, values, .. } if learned => {
            (residual_sum / values.max(1) as f64).max(1e-12)
        }
        _ => 1.0,
    }
}

/// All precisions times a factor.
pub(crate) fn scaled(prior: &Prior, factor: f64) -> Result<Prior, LaplaceError> {
    let precisions: Vec<f64> = prior.precisions().iter().map(|p| p * factor).collect();
    Ok(prior.with_precisions(&precisions)?)
}

/// A function from inputs to latent predictions under several posteriors.
pub(crate) type Predict<'a, T> =
    Box<dyn FnMut(&posterior_networks::Array<T>, Wanted) -> Result<Vec<Latent>, LaplaceError> + 'a>;

impl<T: Precision> Curvature<T> {
    /// Bytes that one conditioned posterior takes.
    pub(crate) fn posterior_bytes(&self) -> u64 {
        match self {
            Self::Structure { structure, .. } => structure
                .blocks()
                .iter()
                .map(|b| {
                    let n = b.range.len() as u64;
                    match b.matrix {
                        posterior_linear::structure::BlockMatrix::Dense(_) => n * n * 8,
                        _ => n * 16,
                    }
                })
                .sum(),
            Self::FunctionSpace(points) => {
                let rows = points.rows() as u64;
                rows * rows * 16
            }
            Self::Ella(ella, _) => (ella.basis().ncols() as u64).pow(2) * 16,
        }
    }

    /// Latent predictions under several settings at once.
    pub(crate) fn predictors<'a>(
        &self,
        network: &'a Network<T>,
        selection: &Selection,
        likelihood: &OutputLikelihood,
        settings: &[(Prior, f64)],
    ) -> Result<Predict<'a, T>, LaplaceError> {
        let strength =
            |noise: f64| if posterior_linear::curvature::is_gaussian(likelihood) { 1.0 / noise } else { 1.0 };
        match self {
            Self::Structure { structure, .. } => {
                let posteriors = settings
                    .iter()
                    .map(|(prior, noise)| Ok(structure.condition(prior, strength(*noise))?))
                    .collect::<Result<Vec<_>, LaplaceError>>()?;
                let predictor = Predictor::new(network, selection, posteriors)?;
                Ok(Box::new(move |x, wanted| predictor.latent(network, x, wanted)))
            }
            Self::Ella(ella, _) => {
                let settings: Vec<(f64, f64)> =
                    settings.iter().map(|(prior, noise)| (prior.precisions()[0], strength(*noise))).collect();
                let posteriors = ella.condition_all(&settings)?;
                Ok(Box::new(move |x, wanted| posteriors.latents(network, x, wanted)))
            }
            Self::FunctionSpace(points) => {
                let posteriors = settings
                    .iter()
                    .map(|(prior, noise)| points.condition(prior.precisions()[0], strength(*noise)))
                    .collect::<Result<Vec<_>, LaplaceError>>()?;
                Ok(Box::new(move |x, wanted| {
                    posteriors.iter().map(|p| p.latent(network, x, wanted)).collect()
                }))
            }
        }
    }
}
