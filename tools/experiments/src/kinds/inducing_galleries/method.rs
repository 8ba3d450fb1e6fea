//! Ways to choose: by chance, or by greedy variance under a kernel, on pixels or behind a network that may have learned.

use super::classes::ClassImages;
use crate::kinds::prelude::*;
use crate::training::architecture;
use posterior_kernels::{Kernel, KernelExpression};
use posterior_networks::Network;
use posterior_optim::Parameters;
use posterior_tangent::{MappedKernel, NetworkEmbedding};
use toml::Table;

/// A table `[[method]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct MethodSettings {
    /// Its name in numbers.
    pub(crate) name: String,
    /// The kernel by whose greedy variance images are chosen, in text form, on pixels or on what the network makes of them; by chance where there is none.
    pub(crate) kernel: Option<String>,
    /// The name of the network in `[networks]`; its weights are drawn anew for each class.
    pub(crate) network: Option<String>,
    /// Steps of each turn of learning kernel and network; where there are none, they stay as they begin.
    pub(crate) epochs: Option<usize>,
}

impl MethodSettings {
    /// Refuses what has no meaning.
    pub(crate) fn check(&self, networks: &Table) -> Result<()> {
        let refuse = |problem: String| refused(format!("[[method]] `{}`: {problem}", self.name));
        if self.name.is_empty() || self.name.contains('.') {
            return refused("[[method]]: `name` is a word without points");
        }
        if self.network.is_some() && self.kernel.is_none() {
            return refuse("a `network` needs the `kernel` on what it makes of images".into());
        }
        match self.epochs {
            Some(0) => {
                return refuse("`epochs` are at least 1; leave them out for what has learned nothing".into());
            }
            Some(_) if self.kernel.is_none() => return refuse("`epochs` belong to a `kernel`".into()),
            _ => {}
        }
        if let Some(text) = &self.kernel
            && let Err(error) = text.parse::<KernelExpression>()
        {
            return refuse(error.to_string());
        }
        if self.network.is_some() {
            architecture(self.described(networks)?)?.graph()?;
        }
        Ok(())
    }

    /// The table of its network.
    fn described<'a>(&self, networks: &'a Table) -> Result<&'a Table> {
        let name = self.network.as_deref().unwrap_or_default();
        let found = networks.get(name).and_then(toml::Value::as_table);
        found.ok_or_else(|| {
            let known: Vec<&str> = networks.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            ExperimentError::Setting(format!(
                "[[method]] `{}`: there is no [networks.{name}]; there are: {known}",
                self.name
            ))
        })
    }

    /// What everything that it chooses depends on, apart from images and learning.
    pub(crate) fn depends<'a>(&'a self, networks: &'a Table) -> (&'a Self, Option<&'a toml::Value>) {
        (self, self.network.as_deref().and_then(|name| networks.get(name)))
    }

    /// The kernel of a class before it has learned anything; none where chance chooses.
    ///
    /// # Errors
    /// A kernel or a network that does not fit the images.
    pub(crate) fn prior(
        &self,
        networks: &Table,
        images: &ClassImages,
        (class, streams): (usize, Streams),
    ) -> Result<Option<Prior>> {
        let Some(text) = &self.kernel else { return Ok(None) };
        let [height, width] = images.sides;
        let refuse = |problem: String| {
            ExperimentError::Setting(format!(
                "[[method]] `{}`, images of {height} x {width}: {problem}",
                self.name
            ))
        };
        let kernel = |prefix: &str, columns: usize| -> Result<Box<dyn Kernel<f64>>> {
            let names: Vec<String> = (1..=columns).map(|column| format!("{prefix}{column}")).collect();
            let parsed: KernelExpression = text.parse()?;
            parsed.build(&names).map_err(|error| refuse(error.to_string()))
        };
        let Some(name) = &self.network else {
            return Ok(Some(Prior::OnPixels(kernel("pixel", images.pixels())?)));
        };
        let graph = architecture(self.described(networks)?)?.graph()?;
        let wanted: Vec<usize> = graph.input_shape().iter().copied().filter(|side| *side != 1).collect();
        let own: Vec<usize> = images.sides.into_iter().filter(|side| *side != 1).collect();
        if wanted != own && wanted != [images.pixels()] {
            let shape = graph.input_shape();
            return Err(refuse(format!("[networks.{name}] takes inputs of shape {shape:?}")));
        }
        let outputs = graph.output_shape().iter().product();
        let streams = streams.child("experiment/gallery-network", class as u64);
        let map = NetworkEmbedding::new(Network::<f32>::initialised(graph, streams)?);
        let base = kernel("feature", outputs)?;
        Ok(Some(Prior::Behind(MappedKernel::new(base, Box::new(map)))))
    }
}

/// A kernel on pixels, or one behind a network.
pub(crate) enum Prior {
    /// On pixels.
    OnPixels(Box<dyn Kernel<f64>>),
    /// Behind a network.
    Behind(MappedKernel),
}

impl Prior {
    /// As one kernel on pixels, which passes the network wherever it is asked.
    pub(crate) fn whole(self) -> Box<dyn Kernel<f64>> {
        match self {
            Self::OnPixels(kernel) => kernel,
            Self::Behind(kernel) => Box::new(kernel),
        }
    }

    /// The same with hyperparameters (natural values) of a kernel like it.
    pub(crate) fn with_values(mut self, values: &[f64]) -> Self {
        match &mut self {
            Self::OnPixels(kernel) => kernel.set_values(values),
            Self::Behind(kernel) => kernel.set_values(values),
        }
        self
    }

    /// The kernel that is left when images have passed the network, and what they are then: whatever is asked of these, they pass once.
    ///
    /// # Errors
    /// What the network refuses.
    pub(crate) fn at(&self, x: MatRef<'_, f64>) -> Result<(&dyn Kernel<f64>, Mat<f64>)> {
        Ok(match self {
            Self::OnPixels(kernel) => (&**kernel, x.to_owned()),
            Self::Behind(kernel) => (kernel.base(), kernel.map().embedded(x)?),
        })
    }
}
