//! Encoder and decoder with skips, for images and volumes.

use super::building::wrong;
use super::unet_blocks::Blocks;
use crate::graph::{Graph, GraphBuilder, GraphError, Value};
use crate::operation::Activation;
use serde::{Deserialize, Serialize};

const KIND: &str = "unet";

/// Scales at most: every scale halves the image.
const MOST_SCALES: usize = 16;

/// U-Net of the deep image prior for tomography (Antorán 2023, chapter 7 and appendix A.2), on images `[1, height, width]` or volumes
/// `[1, depth, height, width]`.
///
/// | block | layers |
/// |---|---|
/// | `in` | `conv` 3 x 3, `norm` of 2 groups, leaky ReLU |
/// | `down0`, ... | `conv1` 3 x 3 of stride 2, `norm1` of 4 groups, leaky ReLU, `conv2` 3 x 3, `norm2` of 4 groups, leaky ReLU |
/// | `skip0`, ... | `conv` 1 x 1, `norm` of 1 group, leaky ReLU |
/// | `up0`, ... | enlarged twice (linear, corners in place), cut to the size of its skip, joined with it, `norm` of 1 group, then as `down` with stride 1 and norms of 2 groups |
/// | `head0`, ... | `conv` 3 x 3, `norm` of 4 groups, leaky ReLU |
/// | `out` | `conv` 1 x 1 |
///
/// `up0` is the deepest and `skip0` leads to it. A pattern such as `down0.*` or `up1.conv?.weight` selects the parameters of a block.
/// A skip of 0 channels keeps its 1 x 1 convolution to one channel and multiplies it by zero: only so do the published 2 973 880
/// parameters come out. Without `norm` the network of three scales has 76 905 parameters, with it 77 641. Sources disagree on where the norms stand; here each follows its convolution,
/// and one more stands behind each join.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unet {
    /// Shape of an image `[channels, height, width]` or of a volume `[channels, depth, height, width]`.
    pub input: Vec<usize>,
    /// Channels of `in`, `down0`, `down1`, ...
    #[serde(default = "usual_channels")]
    pub channels: Vec<usize>,
    /// Channels of `up0`, `up1`, ...; those of the encoder at the same scale where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoder: Option<Vec<usize>>,
    /// Channels of `skip0`, `skip1`, ...; 0 for a closed skip.
    #[serde(default = "usual_skips")]
    pub skips: Vec<usize>,
    /// Channels of further 3 x 3 convolutions before the last one.
    #[serde(default)]
    pub head: Vec<usize>,
    /// Channels of the output.
    #[serde(default = "one")]
    pub outputs: usize,
    /// Whether there are group norms.
    #[serde(default = "yes")]
    pub norm: bool,
    /// Slope of the leaky ReLU.
    #[serde(default = "usual_slope")]
    pub slope: f64,
    /// Whether a sigmoid ends the network.
    #[serde(default)]
    pub sigmoid: bool,
}

fn usual_channels() -> Vec<usize> {
    vec![32; 3]
}

fn usual_skips() -> Vec<usize> {
    vec![4; 2]
}

fn usual_slope() -> f64 {
    0.2
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

impl Unet {
    /// Three scales of 32 channels with a sigmoid, for images of 28 x 28 (76 905 or, with norms, 77 641 parameters).
    pub fn small(norm: bool) -> Self {
        Self {
            input: vec![1, 28, 28],
            channels: usual_channels(),
            decoder: None,
            skips: usual_skips(),
            head: vec![],
            outputs: 1,
            norm,
            slope: usual_slope(),
            sigmoid: true,
        }
    }

    /// Six scales of 128 channels with norms, skips at the two deepest only (2 973 880 parameters).
    pub fn deep(height: usize, width: usize) -> Self {
        Self {
            input: vec![1, height, width],
            channels: vec![128; 6],
            skips: vec![4, 4, 0, 0, 0],
            sigmoid: false,
            ..Self::small(true)
        }
    }

    /// For volumes: encoder of 8 channels, decoder of 128 and 64, closed skips, four more convolutions (1 065 003 parameters).
    pub fn volume(depth: usize, height: usize, width: usize) -> Self {
        Self {
            input: vec![1, depth, height, width],
            channels: vec![8; 3],
            decoder: Some(vec![128, 64]),
            skips: vec![0, 0],
            head: vec![64, 48, 32, 16],
            sigmoid: false,
            ..Self::small(true)
        }
    }

    fn check(&self) -> Result<Vec<usize>, GraphError> {
        if !(3..=4).contains(&self.input.len()) {
            let problem = format!(
                "`input` {:?} must be [channels, height, width] or [channels, depth, height, width]",
                self.input
            );
            return Err(wrong(KIND, problem));
        }
        let scales = self.channels.len();
        if !(2..=MOST_SCALES).contains(&scales) || self.head.len() > MOST_SCALES {
            return Err(wrong(
                KIND,
                format!("`channels` needs 2 to {MOST_SCALES} entries, `head` at most {MOST_SCALES}"),
            ));
        }
        let mirrored = || self.channels[..scales - 1].iter().rev().copied().collect();
        let decoder = self.decoder.clone().unwrap_or_else(mirrored);
        if decoder.len() != scales - 1 || self.skips.len() != scales - 1 {
            let problem =
                format!("`decoder` and `skips` need {} entries, one less than `channels`", scales - 1);
            return Err(wrong(KIND, problem));
        }
        Ok(decoder)
    }

    pub(super) fn graph(&self) -> Result<Graph, GraphError> {
        let decoder = self.check()?;
        let mut b = Blocks {
            builder: GraphBuilder::new(&self.input)?,
            axes: self.input.len() - 1,
            norm: self.norm,
            activation: Activation::LeakyRelu { slope: self.slope },
        };
        let x = Value::INPUT;
        let mut scales = vec![b.layer("in", "", self.channels[0], 3, 1, 2, x)?];
        for (i, &channels) in self.channels[1..].iter().enumerate() {
            let name = format!("down{i}");
            let y = b.layer(&name, "1", channels, 3, 2, 4, scales[i])?;
            scales.push(b.layer(&name, "2", channels, 3, 1, 4, y)?);
        }
        let mut x = scales[scales.len() - 1];
        for (i, (&channels, &skip)) in decoder.iter().zip(&self.skips).enumerate() {
            let beside = b.skip(&format!("skip{i}"), skip, scales[scales.len() - 2 - i])?;
            let name = format!("up{i}");
            x = b.join(&name, x, beside)?;
            x = b.layer(&name, "1", channels, 3, 1, 2, x)?;
            x = b.layer(&name, "2", channels, 3, 1, 2, x)?;
        }
        for (i, &channels) in self.head.iter().enumerate() {
            x = b.layer(&format!("head{i}"), "", channels, 3, 1, 4, x)?;
        }
        x = b.convolution("out.conv", self.outputs, 1, 1, x)?;
        if self.sigmoid {
            x = b.builder.activation("out.sigmoid", Activation::Sigmoid, x)?;
        }
        b.builder.finish(x)
    }
}
