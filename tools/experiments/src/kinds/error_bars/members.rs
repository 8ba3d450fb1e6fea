//! Networks that are trained for a task.

use super::task::Task;
use crate::context::Context;
use crate::error::{ExperimentError, refused};
use crate::training::{TrainingSettings, architecture};
use posterior_data::ArrayValues;
use posterior_linalg::random::Streams;
use posterior_networks::train::{Augmentation, Examples, Images, Loss, Targets};
use posterior_networks::{Network, Precision, Selection};
use serde::Deserialize;
use std::fmt::Debug;
use toml::Table;

/// What a network is and how it is trained.
pub(super) struct Recipe<'a> {
    pub(super) description: &'a Table,
    pub(super) training: &'a TrainingSettings,
    pub(super) loss: Loss,
}

impl Recipe<'_> {
    /// The network from the seed `own`. It is trained once, whatever the seeds and methods that use it: its weights, bit by bit, are a part of the run, which depends on `depends`.
    pub(super) fn network<T: Precision>(
        &self,
        task: &str,
        depends: &dyn Debug,
        examples: &dyn Examples<T>,
        own: u64,
        context: &mut Context<'_>,
    ) -> Result<Network<f64>, ExperimentError> {
        let seed = std::mem::replace(&mut context.seed, own);
        let weights: Result<Vec<u64>, ExperimentError> =
            context.once(&format!("{task}: training network {own}"), depends, |context| {
                let (network, _) = self.training.train(self.description, examples, self.loss, context)?;
                let weights = Selection::all(network.graph()).flatten(network.parameters());
                Ok(weights.into_iter().map(|w| w.to_f64().to_bits()).collect())
            });
        context.seed = seed;
        let weights: Vec<f64> = weights?.into_iter().map(f64::from_bits).collect();
        let graph = architecture(self.description)?.graph()?;
        let mut network = Network::<f64>::initialised(graph, Streams::new(own))?;
        let all = Selection::all(network.graph());
        if weights.len() != all.len() {
            return refused("the network that was kept has another size: name another folder with --out");
        }
        all.assign(&weights, network.parameters_mut());
        Ok(network)
    }
}

/// Further classifiers of a task's images, beside the one that came with them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemberSettings {
    /// How many.
    count: usize,
    /// As architecture files have it.
    network: Table,
    training: TrainingSettings,
}

impl MemberSettings {
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        if (1..=100).contains(&self.count) {
            architecture(&self.network).map(|_| ())
        } else {
            refused("`members.count` lies between 1 and 100")
        }
    }

    /// The networks, from seeds of their own, in single precision.
    pub(super) fn networks(
        &self,
        name: &str,
        task: &Task,
        context: &mut Context<'_>,
    ) -> Result<Vec<Network<f64>>, ExperimentError> {
        let recipe =
            Recipe { description: &self.network, training: &self.training, loss: Loss::CrossEntropy };
        let shape = task.data.inputs.example_shape();
        let (ArrayValues::U8(bytes), ArrayValues::I64(labels), &[channels, height, width]) =
            (task.data.inputs.values(), task.data.targets.values(), shape)
        else {
            return refused(format!("{name}: `members` are trained on images"));
        };
        let input = architecture(&self.network)?.graph()?.input_shape().to_vec();
        if input.iter().product::<usize>() != channels * height * width {
            return refused(format!(
                "{name}: `members` take inputs of shape {input:?}, images have {shape:?}"
            ));
        }
        let (mean, deviation) = &task.channels;
        let examples = Images::<f32>::new(
            [channels, height, width],
            bytes.clone(),
            Targets::Classes(labels.iter().map(|l| *l as u32).collect()),
            mean,
            deviation,
            Augmentation::default(),
            input,
        );
        // The task's rows are settings of the method's own part; these two decide the weights.
        let depends = (self, &task.data.inputs.shape());
        (1..=self.count as u64).map(|own| recipe.network(name, &depends, &examples, own, context)).collect()
    }
}
