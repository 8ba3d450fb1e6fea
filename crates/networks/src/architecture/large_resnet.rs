//! The residual networks of torchvision.

use super::building::{Weights, batch_norm, convolution, global_pool, linear, relu, wrong};
use crate::graph::{Graph, GraphBuilder, GraphError, Value};
use crate::operation::{Operation, Pool};
use serde::{Deserialize, Serialize};

/// How the image enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stem {
    /// A 7 x 7 convolution of stride 2 and a max pool of stride 2, for images of about 224 pixels.
    #[default]
    Imagenet,
    /// A 3 x 3 convolution of stride 1 and no pool, for images of about 32 pixels.
    Cifar,
}

/// Residual networks as in torchvision (kinds `resnet18`, `resnet34` with basic blocks, `resnet50`, `resnet101` with bottlenecks of expansion 4, whose stride is on the 3 x 3
/// convolution), with its names, `conv1.weight`, `bn1.weight`, `layer1.0.conv1.weight`, `layer2.0.downsample.0.weight`, ..., `fc.weight`, `fc.bias`, and its
/// initialisation: convolutions normal with variance 2 / fan-out.
///
/// With 1000 classes they have 11 689 512, 21 797 672, 25 557 032 and 44 549 160 trainable values; `resnet18` with the small stem and 100 classes has 11 220 132.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LargeResnet {
    /// Shape of an image; where left out, 3 x 224 x 224 or, with the small stem, 3 x 32 x 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<[usize; 3]>,
    /// Number of classes.
    #[serde(default = "thousand")]
    pub classes: usize,
    /// How the image enters.
    #[serde(default)]
    pub stem: Stem,
}

fn thousand() -> usize {
    1000
}

impl Default for LargeResnet {
    fn default() -> Self {
        Self { input: None, classes: 1000, stem: Stem::Imagenet }
    }
}

impl LargeResnet {
    pub(super) fn graph(
        &self,
        kind: &'static str,
        blocks: [usize; 4],
        bottleneck: bool,
    ) -> Result<Graph, GraphError> {
        if self.classes == 0 {
            return Err(wrong(kind, "`classes` must be at least 1"));
        }
        let side = if self.stem == Stem::Imagenet { 224 } else { 32 };
        let mut b = GraphBuilder::new(&self.input.unwrap_or([3, side, side]))?;
        let (kernel, stride) = if self.stem == Stem::Imagenet { (7, 2) } else { (3, 1) };
        let mut x =
            convolution(&mut b, "conv1", (64, kernel, stride), false, Weights::FanOut(1.0), Value::INPUT)?;
        x = batch_norm(&mut b, "bn1", x)?;
        x = relu(&mut b, "relu", x)?;
        if self.stem == Stem::Imagenet {
            x = b.add("maxpool", Operation::MaxPool(Pool::square(3, 2, 1)), &[x])?;
        }
        for (stage, count) in blocks.into_iter().enumerate() {
            for i in 0..count {
                let name = format!("layer{}.{i}", stage + 1);
                let stride = if stage > 0 && i == 0 { 2 } else { 1 };
                x = block(&mut b, &name, 64 << stage, stride, bottleneck, x)?;
            }
        }
        x = global_pool(&mut b, "avgpool", x)?;
        x = linear(&mut b, "fc", self.classes, true, Weights::Default, x)?;
        b.finish(x)
    }
}

/// A basic block (3 x 3, 3 x 3) or a bottleneck (1 x 1, 3 x 3, 1 x 1 to four times the width).
fn block(
    b: &mut GraphBuilder,
    name: &str,
    width: usize,
    stride: usize,
    bottleneck: bool,
    x: Value,
) -> Result<Value, GraphError> {
    let weights = Weights::FanOut(1.0);
    let outputs = if bottleneck { 4 * width } else { width };
    let basic = [(width, 3, stride), (width, 3, 1)];
    let narrow = [(width, 1, 1), (width, 3, stride), (outputs, 1, 1)];
    let parts = if bottleneck { &narrow[..] } else { &basic };
    let mut y = x;
    for (i, &sizes) in parts.iter().enumerate() {
        let i = i + 1;
        y = convolution(b, &format!("{name}.conv{i}"), sizes, false, weights, y)?;
        y = batch_norm(b, &format!("{name}.bn{i}"), y)?;
        if i < parts.len() {
            y = relu(b, &format!("{name}.relu{i}"), y)?;
        }
    }
    let mut shortcut = x;
    if stride > 1 || b.shape(x).first() != Some(&outputs) {
        shortcut = convolution(b, &format!("{name}.downsample.0"), (outputs, 1, stride), false, weights, x)?;
        shortcut = batch_norm(b, &format!("{name}.downsample.1"), shortcut)?;
    }
    y = b.add(&format!("{name}.add"), Operation::Add, &[y, shortcut])?;
    relu(b, &format!("{name}.relu"), y)
}
