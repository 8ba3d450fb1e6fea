//! **One fit**: a network and a variational kernel by the predictive risk and a regulariser (Algorithm 3), then tempered on the rows held back, and scored.
//!
//! Source: spec `generalised_variational_inference`, sections 9, 12 and 13; errata E10, E11, E32.

use super::configuration::{Configuration, Named};
use super::mean::MeanNetwork;
use super::prior::UNITS;
use super::problem::Problem;
use crate::kinds::prelude::*;
use posterior_gp::generalised::{
    Breakdown, Coordinates, Family, GeneralisedData, GeneralisedFit, GeneralisedGp, GeneralisedObjective,
    GeneralisedOptions, Reduction, ReferenceProcess, Risk, Tempered, TemperingMethod, VariationalMean,
    fit_generalised,
};
use posterior_gp::{GpError, Observations, Posterior};
use posterior_likelihoods::{CloneLikelihood, Gaussian};
use posterior_linear::low_rank::ValidationScore;
use posterior_linear::training::Patience;
use posterior_metrics::{Gaussians, RegressionScores};
use posterior_optim::{Reason, Signal, UpdateRule};
use std::collections::BTreeMap;
use std::time::Instant;

/// Rows that a regulariser of matrices looks at together.
const TOGETHER: usize = 128;

/// The table `[training]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrainingSettings {
    /// What is asked of the data.
    pub(crate) risk: Risk,
    /// How rows are put together.
    pub(crate) reduction: Reduction,
    /// The weight of the regulariser.
    pub(crate) weight: f64,
    /// The noise variance of the likelihood over the variance of the training targets.
    pub(crate) least_variance: f64,
    /// What features of inducing points are.
    pub(crate) coordinates: Coordinates,
    /// What a step computes.
    pub(crate) rule: UpdateRule,
    /// Steps at most.
    pub(crate) steps: usize,
    /// Steps between looks at the rows held back.
    pub(crate) check_every: usize,
    /// Steps without a better look that end a fit; without it, all steps are taken and the last parameters kept.
    pub(crate) patience: Option<usize>,
    /// Most seconds of a fit, as steps of [`Self::milliseconds`] each: by a clock, results would depend on what else runs.
    pub(crate) seconds: Option<f64>,
    /// What a step takes by variational kernel, measured.
    #[serde(default)]
    pub(crate) milliseconds: BTreeMap<String, f64>,
}

impl TrainingSettings {
    /// Refuses numbers without a meaning.
    pub(crate) fn check(&self) -> Result<()> {
        if !positive(self.weight) || !positive(self.least_variance) {
            return refused("[training]: `weight` and `least_variance` are positive");
        }
        if self.steps == 0 || self.check_every == 0 || self.patience == Some(0) {
            return refused("[training]: `steps`, `check_every` and `patience` are at least 1");
        }
        if self.seconds.is_some_and(|s| !positive(s)) || self.milliseconds.values().any(|m| !positive(*m)) {
            return refused("[training]: `seconds` and `milliseconds` are positive");
        }
        if self.seconds.is_none() != self.milliseconds.is_empty() {
            return refused(
                "[training]: `seconds` are counted in steps of [training.milliseconds], and these mean nothing without: give both or neither",
            );
        }
        let families = Family::ALL.map(|family| Named(family).to_string());
        match self.milliseconds.keys().find(|key| !families.contains(key)) {
            Some(key) => refused(format!(
                "[training.milliseconds]: `{key}` is no variational kernel; there are {}",
                families.join(", ")
            )),
            None => Ok(()),
        }
    }

    /// Steps that a fit of this kernel may take.
    pub(crate) fn steps_of(&self, family: Family) -> usize {
        let each = self.milliseconds.get(&Named(family).to_string());
        let most = self.seconds.zip(each).map(|(seconds, each)| (1000.0 * seconds / each) as usize);
        most.map_or(self.steps, |most| most.clamp(1, self.steps))
    }

    fn options(&self, configuration: &Configuration) -> GeneralisedOptions {
        GeneralisedOptions {
            objective: GeneralisedObjective {
                risk: self.risk,
                reduction: self.reduction,
                regulariser: configuration.regulariser,
                weight: self.weight,
                rows_together: TOGETHER,
            },
            steps: self.steps_of(configuration.kernel),
            batch: usize::MAX,
            patience: Patience {
                rule: self.rule.rule(),
                learning_rate: configuration.rate,
                check_every: self.check_every,
                patience: self.patience.unwrap_or(usize::MAX / 2),
                rate_drops: 0,
                settles: false,
            },
            time: None,
            // Batches are all rows, in their order.
            seed: 0,
            kept_bytes: 1 << 28,
        }
    }
}

/// A fit with what happened on the way.
#[derive(Debug)]
pub(crate) struct Trained {
    /// Before tempering.
    pub(crate) before: GeneralisedGp,
    /// After it.
    pub(crate) after: GeneralisedGp,
    /// What it did.
    pub(crate) tempered: Tempered,
    /// The objective at looks.
    pub(crate) history: Vec<Breakdown>,
    /// Looks at the rows held back, before tempering.
    pub(crate) validation_scores: Vec<ValidationScore>,
    /// Steps that were taken.
    pub(crate) steps: usize,
    /// Largest share of variances that were raised to their floor.
    pub(crate) floored: f64,
    seconds: f64,
}

/// Numbers of a fit, as a journal keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scores {
    /// Mean negative log predictive density of the training rows, tempered.
    pub(crate) train: f64,
    /// Of the rows held back; optimistic, since tempering was chosen by it.
    pub(crate) validation: f64,
    /// Of the rows within the blocks.
    pub(crate) test: f64,
    /// Of the rows held back, before tempering.
    pub(crate) untempered: f64,
    /// Root mean squared error within the blocks.
    pub(crate) rmse: f64,
    /// Share of the rows within the blocks that lie in their central 90 % interval.
    pub(crate) coverage_90: f64,
    /// The tempering factor.
    pub(crate) alpha: f64,
    /// Mean risk at the last step that was looked at.
    pub(crate) risk: f64,
    /// The regulariser there.
    pub(crate) regularisation: f64,
    /// Inducing points.
    pub(crate) points: usize,
    /// Steps.
    pub(crate) steps: usize,
    /// Largest share of variances that were raised to their floor.
    pub(crate) floored: f64,
    /// Seconds, which alone are not the same in another run.
    pub(crate) seconds: f64,
}

/// Scores of the tempered process on some rows.
pub(crate) fn scored(model: &GeneralisedGp, rows: &Observations) -> Result<RegressionScores> {
    let found = model.predict(rows.inputs())?;
    let truths: Vec<f64> = rows.targets().col(0).iter().copied().collect();
    let means: Vec<f64> = found.mean.col_as_slice(0).to_vec();
    Ok(Gaussians::new(&means, &found.observed_variance(), &truths)?.scores(1.0)?)
}

impl Trained {
    /// Trains and tempers; nothing if it is told to stop.
    ///
    /// # Errors
    /// What goes wrong in the fit: an objective that is no number, matrices that cannot be factored, a regulariser that the kernel does not admit.
    pub(crate) fn new(
        problem: &Problem,
        reference: ReferenceProcess,
        training: &TrainingSettings,
        configuration: &Configuration,
        streams: Streams,
        observer: &mut dyn FnMut() -> Signal,
    ) -> Result<Option<Self>> {
        let clock = Instant::now();
        let noise = training.least_variance * problem.target_variance();
        let mean = VariationalMean::Embedding(Box::new(MeanNetwork::drawn(UNITS, streams)));
        let parts = (configuration.kernel, training.coordinates);
        let likelihood = Gaussian::new(noise, 0.0).clone_box();
        let mut begun =
            GeneralisedGp::begin(vec![reference], parts, mean, likelihood, problem.train.inputs())?;
        begun.learn_likelihood = false;
        let rows = GeneralisedData { observations: &problem.train, given: None };
        let held = GeneralisedData { observations: &problem.validation, given: None };
        let options = training.options(configuration);
        let judges = training.patience.map(|_| held);
        let GeneralisedFit { model, reason, steps, state, .. } =
            fit_generalised(begun, rows, judges, &options, None, &mut |_, _| observer())?;
        if reason == Reason::Interrupted {
            return Ok(None);
        }
        let (after, tempered) = model.clone().temper(&held, &TemperingMethod::Best)?;
        let (history, validation_scores, floored) =
            (state.history, state.training.validation_scores, state.irregularities.floored);
        let seconds = clock.elapsed().as_secs_f64();
        Ok(Some(Self { before: model, after, tempered, history, validation_scores, steps, floored, seconds }))
    }

    /// Its numbers.
    ///
    /// # Errors
    /// Predictions that are no numbers.
    pub(crate) fn scores(&self, problem: &Problem) -> Result<Scores> {
        let test = scored(&self.after, &problem.test)?;
        let last = self.history.last();
        Ok(Scores {
            train: scored(&self.after, &problem.train)?.nll,
            validation: scored(&self.after, &problem.validation)?.nll,
            test: test.nll,
            untempered: self.tempered.before,
            rmse: test.rmse,
            coverage_90: test.coverage_90,
            alpha: self.tempered.factors[0],
            risk: last.map_or(0.0, |last| last.risk),
            regularisation: last.map_or(0.0, |last| last.regularisation),
            points: self.after.reference(0).rank(),
            steps: self.steps,
            floored: self.floored,
            seconds: self.seconds,
        })
    }
}

/// A process on a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Band {
    /// Its mean.
    pub(crate) mean: Vec<f64>,
    /// Standard deviations of the function.
    pub(crate) latent: Vec<f64>,
    /// Those of a new observation.
    pub(crate) observed: Vec<f64>,
}

impl Band {
    /// A posterior at some inputs.
    ///
    /// # Errors
    /// Predictions that are no numbers.
    pub(crate) fn of(posterior: &dyn Posterior, grid: &[f64]) -> Result<Self, GpError> {
        let found = posterior.predict(Mat::from_fn(grid.len(), 1, |i, _| grid[i]).as_ref())?;
        let roots = |variances: Vec<f64>| variances.into_iter().map(|v| v.max(0.0).sqrt()).collect();
        Ok(Self {
            mean: found.mean.col_as_slice(0).to_vec(),
            observed: roots(found.observed_variance()),
            latent: roots(found.latent_variance),
        })
    }
}
