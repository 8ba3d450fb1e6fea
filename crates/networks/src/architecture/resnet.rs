//! Residual networks for small images.

use super::building::{Weights, batch_norm, convolution, global_pool, linear, relu, scalar_bias, wrong};
use super::lenet::ten;
use super::residual::{Block, Shortcut, Variant};
use crate::graph::{Graph, GraphBuilder, GraphError, Value};
use serde::{Deserialize, Serialize};

const KIND: &str = "resnet";

/// Depth of the deepest network that has been trained (He et al. 2016a).
const DEEPEST: usize = 1202;

/// What joins blocks of different width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShortcutOption {
    /// Every second position and zero channels; no parameters.
    #[default]
    A,
    /// A convolution of kernel 1 and a batch norm.
    B,
}

/// Whose names the parameters have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// `shortcut.0`, `shortcut.1` and `linear`, as in the usual networks for CIFAR.
    #[default]
    Cifar,
    /// `downsample.0`, `downsample.1` and `fc`, as in torchvision.
    Torchvision,
}

/// Residual network of depth 6n + 2 for small images: a 3 x 3 convolution, three stages of n blocks with `width`, 2 `width` and 4 `width` channels at full, half
/// and quarter resolution, the mean over positions, a linear layer (He et al. 2016a, section 4.2).
///
/// Parameters: `conv1.weight`, `bn1.weight`, `bn1.bias`, `bn1.running_mean`, `bn1.running_var`, `layer1.0.conv1.weight`, ..., `linear.weight`,
/// `linear.bias`. Weights begin as He et al. (2015) say, normal with variance 2 / fan-in.
///
/// The pre-activation form has no norm behind the first convolution and one more, `bn`, with a ReLU before the mean; its projections read the
/// activated input and have no norm. The Fixup form follows its authors' code: parameters `bias1`, `layer1.0.bias1a`, `bias1b`, `bias2a`, `scale`,
/// `bias2b`, ..., `bias2`, all of shape `[1]`; first convolutions of branches normal with variance 2 / (fan-out blocks), second ones and the
/// last layer zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resnet {
    /// Depth 6n + 2: 20, 32, 44, 56, 110, ...
    pub depth: usize,
    /// Channels of the first stage.
    #[serde(default = "sixteen")]
    pub width: usize,
    /// Shape of an image.
    #[serde(default = "cifar")]
    pub input: [usize; 3],
    /// Number of classes.
    #[serde(default = "ten")]
    pub classes: usize,
    /// What joins blocks of different width.
    #[serde(default)]
    pub shortcut: ShortcutOption,
    /// Whose names the parameters have.
    #[serde(default)]
    pub names: Names,
    /// The form of the blocks.
    #[serde(default)]
    pub variant: Variant,
}

fn sixteen() -> usize {
    16
}

fn cifar() -> [usize; 3] {
    [3, 32, 32]
}

impl Resnet {
    /// For CIFAR-10, with parameter-free shortcuts.
    pub fn cifar10(depth: usize) -> Self {
        Self {
            depth,
            width: 16,
            input: cifar(),
            classes: 10,
            shortcut: ShortcutOption::A,
            names: Names::Cifar,
            variant: Variant::Plain,
        }
    }

    pub(super) fn graph(&self) -> Result<Graph, GraphError> {
        if !(8..=DEEPEST).contains(&self.depth) || self.depth % 6 != 2 {
            let problem =
                format!("`depth` {} is not 6n + 2 (8, 14, 20, 32, 44, 56, ..., {DEEPEST})", self.depth);
            return Err(wrong(KIND, problem));
        }
        let n = self.depth / 6;
        let widths = [1, 2, 4].map(|factor| self.width.saturating_mul(factor));
        let (projection, head) = match self.names {
            Names::Cifar => ("shortcut", "linear"),
            Names::Torchvision => ("downsample", "fc"),
        };
        let mut b = GraphBuilder::new(&self.input)?;
        let bias = self.variant == Variant::Biased;
        let stem = if self.variant == Variant::Fixup { Weights::Default } else { Weights::FanIn };
        let mut x = convolution(&mut b, "conv1", (self.width, 3, 1), bias, stem, Value::INPUT)?;
        x = match self.variant {
            Variant::Plain | Variant::Biased => batch_norm(&mut b, "bn1", x)?,
            Variant::PreActivation => x,
            Variant::Fixup => scalar_bias(&mut b, "bias1", x)?,
        };
        if self.variant != Variant::PreActivation {
            x = relu(&mut b, "relu", x)?;
        }
        for (stage, channels) in widths.into_iter().enumerate() {
            for i in 0..n {
                let first = stage > 0 && i == 0;
                let shortcut = match self.shortcut {
                    _ if !first => Shortcut::Identity,
                    ShortcutOption::A => Shortcut::Padded,
                    ShortcutOption::B => Shortcut::Projected(projection),
                };
                let name = format!("layer{}.{i}", stage + 1);
                let stride = if first { 2 } else { 1 };
                let block =
                    Block { name: &name, channels, stride, variant: self.variant, shortcut, blocks: 3 * n };
                x = block.add(&mut b, x)?;
            }
        }
        if self.variant == Variant::PreActivation {
            x = batch_norm(&mut b, "bn", x)?;
            x = relu(&mut b, "relu", x)?;
        }
        x = global_pool(&mut b, "pool", x)?;
        let weights = if self.variant == Variant::Fixup {
            x = scalar_bias(&mut b, "bias2", x)?;
            Weights::Zero
        } else {
            Weights::FanIn
        };
        x = linear(&mut b, head, self.classes, true, weights, x)?;
        b.finish(x)
    }
}
