//! Networks that are trained for a task.

use super::task::Task;
use crate::kinds::prelude::*;
use crate::pictures::Pictures;
use crate::training::{TrainingSettings, architecture};
use posterior_data::ArrayValues;
use posterior_networks::train::{Examples, Loss};
use posterior_networks::{Network, Precision, Selection};
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
    ) -> Result<Network<f64>> {
        let seed = std::mem::replace(&mut context.seed, own);
        let weights: Result<Vec<u64>> =
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
            return refused("the network that was kept has another size: name another folder with --output");
        }
        all.assign(&weights, network.parameters_mut());
        Ok(network)
    }
}

/// Further classifiers of a task's images, beside the one that came with them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct MemberSettings {
    /// How many.
    count: usize,
    /// As architecture files have it.
    network: Table,
    training: TrainingSettings,
}

impl MemberSettings {
    pub(super) fn check(&self) -> Result<()> {
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
    ) -> Result<Vec<Network<f64>>> {
        let recipe =
            Recipe { description: &self.network, training: &self.training, loss: Loss::CrossEntropy };
        let shape = task.data.inputs.example_shape();
        let (ArrayValues::U8(bytes), ArrayValues::I64(labels), &[channels, height, width]) =
            (task.data.inputs.values(), task.data.targets.values(), shape)
        else {
            return refused(format!("{name}: `members` are trained on images"));
        };
        let graph = architecture(&self.network)?.graph()?;
        let labels = labels.iter().map(|l| *l as u32).collect();
        let images = Pictures { shape: [channels, height, width], bytes: bytes.clone(), labels };
        let (mean, deviation) = &task.channels;
        let examples = images.standardised((mean, deviation), graph.input_shape())?;
        // The task's rows are settings of the method's own part; these two decide the weights.
        let depends = (self, &task.data.inputs.shape());
        (1..=self.count as u64).map(|own| recipe.network(name, &depends, &examples, own, context)).collect()
    }
}
