//! Networks, described as in architecture files, and their training.

use super::context::Context;
use super::error::{ExperimentError, Result, refused};
use posterior_linalg::random::Streams;
use posterior_networks::train::{
    Adjustment, EpochHook, Examples, Keep, Loss, TrainError, TrainOptions, Trained, train_with,
};
use posterior_networks::{Architecture, Network, Precision, Selection};
use posterior_optim::{Reason, Rule, Schedule, Signal};
use posterior_report::SummaryRow;
use serde::Deserialize;
use toml::Table;

/// Which rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RuleName {
    /// Adam, weight decay in the gradient.
    #[default]
    Adam,
    /// Adam with decoupled weight decay.
    Adamw,
    /// Gradient descent with momentum.
    Sgd,
}

/// The table `[training]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct TrainingSettings {
    /// The rule.
    #[serde(default)]
    pub(crate) rule: RuleName,
    /// Base step size.
    pub(crate) learning_rate: f64,
    /// Steps; or `epochs`.
    pub(crate) steps: Option<usize>,
    /// Passes over the data; or `steps`, rounded up to whole passes.
    pub(crate) epochs: Option<usize>,
    /// Examples of a step.
    pub(crate) batch: usize,
    /// Weight decay on the mean loss.
    #[serde(default)]
    pub(crate) weight_decay: f64,
    /// Momentum of `sgd`.
    #[serde(default)]
    pub(crate) momentum: f64,
    /// How the step size changes.
    #[serde(default)]
    pub(crate) schedule: Schedule,
}

impl TrainingSettings {
    fn options(&self, examples: usize, loss: Loss, seed: u64) -> Result<TrainOptions> {
        let per_epoch = examples.div_ceil(self.batch.max(1)).max(1);
        let epochs = match (self.steps, self.epochs) {
            (Some(steps), None) => steps.div_ceil(per_epoch),
            (None, Some(epochs)) => epochs,
            _ => return refused("[training] needs either `steps` or `epochs`"),
        };
        let adam = |decoupled| Rule::Adam {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: self.weight_decay,
            decoupled,
        };
        let rule = match self.rule {
            RuleName::Adam => adam(false),
            RuleName::Adamw => adam(true),
            RuleName::Sgd => {
                Rule::Sgd { momentum: self.momentum, nesterov: false, weight_decay: self.weight_decay }
            }
        };
        if self.rule != RuleName::Sgd && self.momentum != 0.0 {
            return refused("[training]: `momentum` belongs to rule = \"sgd\"");
        }
        Ok(TrainOptions {
            loss,
            epochs,
            batch: self.batch,
            rule,
            learning_rate: self.learning_rate,
            schedule: self.schedule,
            clip: None,
            patience: None,
            seed,
        })
    }

    /// Trains a network of this description from fresh weights; also facts for the report.
    ///
    /// # Errors
    /// A description that is no network or does not fit the data; what goes wrong in training; interruption.
    pub(crate) fn train<T: Precision>(
        &self,
        description: &Table,
        examples: &dyn Examples<T>,
        loss: Loss,
        context: &mut Context<'_>,
    ) -> Result<(Network<T>, Vec<SummaryRow>)> {
        let (trained, facts) = self.train_watched(description, examples, None, loss, context)?;
        Ok((trained.network, facts))
    }

    /// The same, and what its epochs scored on examples that are watched and choose nothing: the network has its last weights.
    ///
    /// # Errors
    /// As [`Self::train`].
    pub(crate) fn train_watched<T: Precision>(
        &self,
        description: &Table,
        examples: &dyn Examples<T>,
        watched: Option<&dyn Examples<T>>,
        loss: Loss,
        context: &mut Context<'_>,
    ) -> Result<(Trained<T>, Vec<SummaryRow>)> {
        let architecture = architecture(description)?;
        let seed = context.seed;
        let network = Network::<T>::initialised(architecture.graph()?, Streams::new(seed))?;
        if network.graph().input_shape() != examples.input_shape() {
            return refused(format!(
                "[network] takes inputs of shape {:?}, the data have shape {:?}",
                network.graph().input_shape(),
                examples.input_shape()
            ));
        }
        let options = self.options(examples.len(), loss, seed)?;
        let mut last = LastWeights { weight_decay: self.weight_decay };
        let hook = watched.is_some().then_some(&mut last as &mut dyn EpochHook<T>);
        let trained = train_with(network, examples, watched, &options, hook, None, &mut |progress, _| {
            // An audience for every step would cost more than a step of a small network.
            match progress.step % 50 == 0 || progress.step == progress.steps_planned {
                true => context.tell("training", progress.step, progress.steps_planned),
                false => Signal::Continue,
            }
        })?;
        if trained.reason == Reason::Interrupted {
            return Err(ExperimentError::Interrupted);
        }
        let loss = trained.state.history.last().map_or(f64::NAN, |r| r.train_loss);
        let facts = vec![
            SummaryRow::new("Network", description.to_string().trim().replace('\n', ", ")),
            SummaryRow::new("Weights", trained.network.graph().trainable().to_string()),
            SummaryRow::new("Training", format!("{} steps, last mean loss {loss:.5}", trained.state.step)),
        ];
        Ok((trained, facts))
    }
}

/// Keeps the last weights whatever the watched examples say, and changes nothing.
struct LastWeights {
    /// That of the settings.
    weight_decay: f64,
}

impl<T: Precision> EpochHook<T> for LastWeights {
    fn keep(&self) -> Keep {
        Keep::Last
    }

    fn start(&mut self, network: &Network<T>, _: &mut String) -> Result<Adjustment<T>, TrainError> {
        let parts = Selection::all(network.graph()).parts().len();
        Ok(Adjustment { weight_decay: vec![self.weight_decay; parts], log_variance: None, score: None })
    }

    fn due(&self, _: usize) -> bool {
        false
    }

    fn run(
        &mut self,
        _: &Network<T>,
        _: usize,
        _: &[T],
        _: &mut String,
    ) -> Result<Option<Adjustment<T>>, TrainError> {
        Ok(None)
    }
}

/// The architecture of a table `[network]`, read as architecture files are.
///
/// # Errors
/// When it is none.
pub(crate) fn architecture(description: &Table) -> Result<Architecture> {
    Ok(Architecture::from_toml(&description.to_string())?)
}
