//! The process that regularises: hyperparameters by the evidence of some rows, or of the inducing points in turns with their choice; then inducing points among all rows.

use super::kernel::{self, PriorKernel};
use crate::hyperparameter::FunctionUnits;
use crate::method::deep::Columns;
use crate::method::training::set as set_hyperparameters;
use crate::options::{GviOptions, InducingChoiceName};
use crate::prepare::some_of;
use crate::{FitRequest, FitStage, ModelError, PriorSummary};
use posterior_gp::exact::{self, ExactGp, FitOptions};
use posterior_gp::generalised::{
    Alternation, JITTER, LearningOptions, ReferenceProcess, RegulariserRisk, Selector, learn_reference,
};
use posterior_gp::{GpError, Hyperprior, Observations};
use posterior_kernels::Kernel;
use posterior_linalg::random::Streams;
use posterior_notes::fixes::{PRIOR_ROWS_NONE, RISK_EVIDENCE};
use posterior_optim::{
    Adaptive, Constrained, Constraint, Observer, Optimiser, Parameters, Reason, Signal, UpdateRule,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Steps and step size of the pointwise risk, and the risk that ends it, as published.
const POINTWISE: (usize, f64, f64) = (10_000, 1e-4, -10.0);

/// What was learned, as a checkpoint keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FoundPrior {
    /// Hyperparameters of the exact process, natural values.
    pub(crate) values: Vec<f64>,
    /// Inducing points among the rows trained on.
    pub(crate) rows: Vec<usize>,
    turns: Vec<Alternation>,
    settled: bool,
    /// Whether time ended it.
    timed_out: bool,
    /// Rows that hyperparameters were learned from.
    from: usize,
    /// Priors that were told.
    pub(crate) hyperpriors: Vec<Hyperprior>,
    /// Steps of the search.
    pub(crate) steps: usize,
}

/// What the prior is learned from: rows with a number for each function.
pub(crate) struct PriorTask<'a> {
    pub(crate) request: &'a FitRequest,
    pub(crate) options: &'a GviOptions,
    /// The columns of the inputs, and what was done to them.
    pub(crate) columns: Columns<'a>,
    /// Inputs, targets n x C and known noise.
    pub(crate) data: &'a Observations,
}

impl PriorTask<'_> {
    /// The kernel before anything is learned.
    fn kernel(&self) -> Result<PriorKernel, ModelError> {
        kernel::begin(
            &self.options.kernel_network,
            &self.request.prior.kernel,
            self.columns,
            self.request.seed,
        )
    }

    /// The exact process before anything is learned.
    fn model(&self, kernel: Box<dyn Kernel<f64>>) -> ExactGp {
        self.request.process(kernel, self.data.inputs().ncols(), self.data.targets().ncols())
    }

    /// What was asked of its hyperparameters: nothing where they are given.
    fn constraints(&self) -> Vec<Constraint> {
        match self.request.start.hyperparameters() {
            Some(_) => Vec::new(),
            None => self.options.constraints.all(),
        }
    }

    /// Inducing points: so many as are asked for, or as many as there are rows.
    fn points(&self) -> usize {
        let asked = self.options.inducing.inducing;
        asked.unwrap_or_else(|| self.options.points().min(self.data.rows()))
    }

    fn selector(&self) -> Result<Selector, ModelError> {
        match self.options.inducing.inducing_choice {
            None | Some(InducingChoiceName::Greedy) => Ok(Selector::GreedyVariance),
            Some(InducingChoiceName::KMeans) => Ok(Selector::KMeans),
            Some(InducingChoiceName::Random) => Ok(Selector::Random),
            Some(InducingChoiceName::Cover | InducingChoiceName::Pruned) => Err(ModelError::Request(
                "--method gvi chooses its inducing points by --set inducing-choice=greedy, random or k-means"
                    .into(),
            )),
        }
    }

    /// Learns and chooses, within some time.
    pub(crate) fn learn(
        &self,
        time: Option<Duration>,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<(FoundPrior, bool), ModelError> {
        let Self { request, options, data, .. } = self;
        let PriorKernel { kernel, columns, .. } = self.kernel()?;
        let mut model = self.model(kernel);
        // The pointwise risk knows no priors.
        let pointwise = options.regulariser_risk == RegulariserRisk::PointwisePredictive;
        if pointwise && request.start.hyperparameters().is_none() && !request.prior.hyperpriors.is_empty() {
            return Err(ModelError::Request(format!(
                "--set regulariser-risk=pointwise-predictive has no place for priors on hyperparameters: leave hyperpriors out, or take {RISK_EVIDENCE}"
            )));
        }
        let mut hyperpriors = if pointwise {
            request.prior.hyperpriors.clone()
        } else {
            request.hyperpriors_of(&model, (columns, FunctionUnits::Link))
        };
        let mut evidence = FitOptions {
            hyperpriors: hyperpriors.clone(),
            constraints: self.constraints(),
            seed: request.seed,
            memory_limit: request.limits.memory,
            ..FitOptions::default()
        };
        evidence.steps.time = time;
        let (mut steps, mut from) = (0, 0);
        let (mut interrupted, mut timed_out) = (false, false);
        let mut turns = options.alternations;
        if let Some(given) = request.start.hyperparameters() {
            set_hyperparameters(&mut model, given)?;
            (turns, hyperpriors) = (0, Vec::new());
        } else if options.prior_rows > 0 {
            let streams = Streams::new(request.seed).child("model/prior-rows", 0);
            let rows = some_of(data.rows(), options.prior_rows, streams);
            from = rows.len();
            let own = data.select(&rows)?;
            if pointwise {
                return Err(ModelError::Request(format!(
                    "--set regulariser-risk=pointwise-predictive is for hyperparameters that are learned on the inducing points: ask for that with {PRIOR_ROWS_NONE}"
                )));
            }
            let found =
                exact::fit(model, own, &evidence, &mut |progress, _| observer(progress, &FitStage::Search))?;
            (interrupted, timed_out) = (found.reason == Reason::Interrupted, found.reason == Reason::Time);
            (steps, model) = (found.evaluations, found.posterior.model().clone());
            turns = 0;
        }
        let (pointwise_steps, rate, least_risk) = POINTWISE;
        evidence.restarts = 1;
        let learning = LearningOptions {
            points: self.points(),
            selector: self.selector()?,
            risk: options.regulariser_risk,
            turns,
            evidence,
            pointwise: (
                Optimiser::Adaptive(Adaptive::new(UpdateRule::AdaBelief.rule(), rate)),
                pointwise_steps,
            ),
            least_risk,
        };
        let learned = learn_reference(model, data, &learning, &mut |progress, _| {
            if interrupted { Signal::Stop } else { observer(progress, &FitStage::Search) }
        })?;
        let found = FoundPrior {
            values: learned.posterior.model().values(),
            steps: steps + learned.turns.iter().map(|turn| turn.steps).sum::<usize>(),
            rows: learned.rows,
            turns: learned.turns,
            settled: learned.settled,
            timed_out: timed_out || learned.timed_out,
            from,
            hyperpriors,
        };
        Ok((found, interrupted || learned.interrupted))
    }

    /// The process that was found, with what is to be told of it.
    pub(crate) fn reference(
        &self,
        found: &FoundPrior,
    ) -> Result<(ReferenceProcess, PriorSummary), ModelError> {
        let PriorKernel { kernel, network, .. } = self.kernel()?;
        let mut model = self.model(kernel);
        model.set_values(&found.values);
        let map = Constrained::new(&mut model.clone(), &self.constraints()).map_err(GpError::from)?;
        let at_bounds = map.at_bounds(&found.values);
        let data = self.data.select(&found.rows)?;
        let clipped = model.kernel().clipped_correlations(data.inputs(), data.inputs());
        let posterior = model.condition(data)?;
        let reference = ReferenceProcess::new(posterior, self.options.regulariser_mode, false, JITTER)?;
        let summary = PriorSummary {
            inducing: found.rows.len(),
            selector: self.selector()?,
            rows: found.from,
            risk: self.options.regulariser_risk,
            turns: found.turns.clone(),
            settled: found.settled,
            timed_out: found.timed_out,
            at_bounds,
            noise: reference.noise_variance(),
            relative_jitter: reference.whitening().relative_jitter,
            network,
            clipped_correlations: clipped,
            asked: self.points(),
        };
        Ok((reference, summary))
    }
}
