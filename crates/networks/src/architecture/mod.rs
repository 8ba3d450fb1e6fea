//! **Architectures**: networks described by a few numbers, in a TOML file or in code.
//!
//! ```toml
//! kind = "perceptron"
//! inputs = [1, 28, 28]
//! hidden = [200, 200]
//! outputs = 10
//! activation = "tanh"
//! ```
//!
//! | kind | network | file |
//! |---|---|---|
//! | `perceptron` | fully connected layers | `perceptron` |
//! | `residual_perceptron` | fully connected layers with shortcuts | `residual_perceptron` |
//! | `lenet` | three convolutions with batch norm | `lenet` |
//! | `resnet` | residual network for small images, depth 6n + 2 | `resnet` |
//! | `mnist_resnet` | residual network of 15 to 46 thousand parameters | `mnist_resnet` |
//! | `resnet18`, `resnet34`, `resnet50`, `resnet101` | residual networks of torchvision | `large_resnet` |
//! | `unet` | encoder and decoder with skips, 2-D or 3-D | `unet` |
//! | `transformer` | encoder on sets of tokens with a class token | `transformer` |
//! | `layers` | any layers, one by one | `layers` |
//!
//! Parameters are named as in PyTorch, so weights trained there load as they are. Every kind refuses sizes that make no network
//! (or an absurdly large one) before anything is allocated for it.

mod activation_text;
mod building;
mod file;
mod from_graph;
mod large_resnet;
mod layer_text;
mod layers;
mod lenet;
mod mnist_resnet;
mod perceptron;
mod recurrent_text;
mod residual;
mod residual_perceptron;
mod resnet;
mod transformer;
mod unet;
mod unet_blocks;

pub use file::ArchitectureError;
pub use large_resnet::{LargeResnet, Stem};
pub use layers::{LayerEntry, LayerOperation, Layers, ParameterEntry};
pub use lenet::Lenet;
pub use mnist_resnet::MnistResnet;
pub use perceptron::{Inputs, Perceptron};
pub use residual::Variant;
pub use residual_perceptron::ResidualPerceptron;
pub use resnet::{Names, Resnet, ShortcutOption};
pub use transformer::Transformer;
pub use unet::Unet;

use crate::graph::{Graph, GraphError};
use serde::{Deserialize, Serialize};

/// Three published sizes of one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// About 15 000 parameters.
    Small,
    /// About 27 000 parameters.
    Medium,
    /// About 46 000 parameters.
    Big,
}

/// Declares the kinds once: the enumeration, their names, their graphs and how they are read.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:literal $variant:ident($type:ty) => $graph:expr;)*) => {
        /// A network described by a few numbers; see [the module](self) for the kinds.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        #[non_exhaustive]
        pub enum Architecture {
            $($(#[$doc])* #[serde(rename = $kind)] $variant($type),)*
        }

        impl Architecture {
            /// All kinds, as in files.
            pub const KINDS: &[&str] = &[$($kind),*];

            /// Its kind, as in files.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                }
            }

            fn build(&self) -> Result<Graph, GraphError> {
                match self {
                    $(Self::$variant(architecture) => $graph(architecture),)*
                }
            }

            /// Reads the settings of a kind (without the key `kind`); None where there is no such kind.
            fn from_settings(kind: &str, settings: toml::Deserializer<'_>) -> Option<Result<Self, toml::de::Error>> {
                match kind {
                    $($kind => Some(<$type>::deserialize(settings).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Fully connected layers.
    "perceptron" Perceptron(Perceptron) => Perceptron::graph;
    /// Fully connected layers with shortcuts.
    "residual_perceptron" ResidualPerceptron(ResidualPerceptron) => ResidualPerceptron::graph;
    /// Three convolutions with batch norm.
    "lenet" Lenet(Lenet) => Lenet::graph;
    /// A residual network for small images.
    "resnet" Resnet(Resnet) => Resnet::graph;
    /// A small residual network for digits.
    "mnist_resnet" MnistResnet(MnistResnet) => MnistResnet::graph;
    /// Torchvision's `resnet18`.
    "resnet18" Resnet18(LargeResnet) => |a: &LargeResnet| a.graph("resnet18", [2, 2, 2, 2], false);
    /// Torchvision's `resnet34`.
    "resnet34" Resnet34(LargeResnet) => |a: &LargeResnet| a.graph("resnet34", [3, 4, 6, 3], false);
    /// Torchvision's `resnet50`.
    "resnet50" Resnet50(LargeResnet) => |a: &LargeResnet| a.graph("resnet50", [3, 4, 6, 3], true);
    /// Torchvision's `resnet101`.
    "resnet101" Resnet101(LargeResnet) => |a: &LargeResnet| a.graph("resnet101", [3, 4, 23, 3], true);
    /// An encoder and decoder with skips.
    "unet" Unet(Unet) => Unet::graph;
    /// A transformer encoder with a class token.
    "transformer" Transformer(Transformer) => Transformer::graph;
    /// Any layers, one by one.
    "layers" Layers(Layers) => Layers::graph;
}

/// Parameters of one network at most (2^31 values are 16 GiB in double precision): more is a mistake or an attack.
const MOST_PARAMETERS: u64 = 1 << 31;

impl Architecture {
    /// The graph it describes. Nothing of the size of the parameters is allocated.
    ///
    /// # Errors
    /// [`GraphError::Architecture`] for settings that make no network, [`GraphError::Node`] with the layer that does not fit.
    pub fn graph(&self) -> Result<Graph, GraphError> {
        let graph = self.build()?;
        let values = graph.parameters().iter().fold(0u64, |sum, p| sum.saturating_add(p.len() as u64));
        if values > MOST_PARAMETERS {
            let problem = format!("{values} parameters are more than {MOST_PARAMETERS}: make it smaller");
            return Err(GraphError::Architecture { kind: self.kind(), problem });
        }
        Ok(graph)
    }
}
