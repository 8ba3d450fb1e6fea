//! What is particular to `nngp-conv`: the shape of images, and layers in their order.

use super::build::listed;
use super::network::{has_readout, hint, known, leaky_slope};
use super::{Kind, Leaf};
use crate::infinite::convolution::{check as check_layers, fits};
use crate::infinite::{Activation, ImageLayer, ImageLayerError, Padding};

/// Layers that are a word by themselves, beside activations.
const WORDS: [&str; 2] = ["dense", "flatten"];

/// Settings that are layers, or that layers are laid upon.
pub(super) const SETTINGS: [&str; 4] = ["shape", "conv", "conv-same", "pool"];

/// Images and the layers on them.
#[derive(Clone, Debug, Default)]
pub(super) struct Images {
    /// Channels, height and width, and the byte at which they stand in the source.
    shape: Option<([usize; 3], usize)>,
    /// Layers with their places in the source. The slope of leaky ReLUs is a setting that may come later.
    layers: Vec<(ImageLayer, usize)>,
    /// Whether positions are left.
    flat: bool,
}

/// Whether a word is a layer of `kind`.
pub(super) fn is_layer(kind: Kind, word: &str) -> bool {
    kind == Kind::NngpConv && (WORDS.contains(&word) || known(word).is_some())
}

/// Reads a layer that is a word.
pub(super) fn add_word(leaf: &mut Leaf, word: &str, position: usize) {
    let layer = match word {
        "leaky-relu" => ImageLayer::Activation(Activation::LeakyRelu { slope: 0.0 }),
        "erf" => ImageLayer::Activation(Activation::Erf),
        "sine" => ImageLayer::Activation(Activation::Sine),
        "relu" => ImageLayer::Activation(Activation::Relu),
        "dense" => ImageLayer::Dense,
        // Before a fully connected layer and at the end all positions are seen anyway.
        _ => return leaf.images.flat = true,
    };
    leaf.images.layers.push((layer, position));
}

/// Reads one of [`SETTINGS`], or says what it should be.
pub(super) fn set(leaf: &mut Leaf, name: &str, text: &str, position: usize) -> Result<(), String> {
    let images = &mut leaf.images;
    if name == "shape" {
        if images.shape.is_some() {
            return Err("`shape` is set twice".to_string());
        }
        let shape = match sizes(text).as_deref() {
            Some([channels, height, width]) => [*channels, *height, *width],
            Some([height, width]) => [1, *height, *width],
            _ => return Err("`shape` is channels, height and width of images, such as `1x28x28`".to_string()),
        };
        if !fits(shape) {
            return Err(ImageLayerError::Shape { shape }.to_string());
        }
        images.shape = Some((shape, position));
        return Ok(());
    }
    if images.flat {
        return Err(format!("behind `flatten` there are no positions left for `{name}`"));
    }
    let (size, stride) = text.split_once('/').map_or((text, None), |(size, stride)| (size, Some(stride)));
    let both = |text: &str| match sizes(text).as_deref() {
        Some([one]) => Some([*one; 2]),
        Some([height, width]) => Some([*height, *width]),
        _ => None,
    };
    let Some((size, stride)) = both(size).zip(stride.map_or(Some(None), |text| both(text).map(Some))) else {
        return Err(format!(
            "`{name}` is a height and a width, such as `3` or `3x5`, and perhaps a stride, as in `3/2` or `3x5/2x1`"
        ));
    };
    let convolution =
        |padding| ImageLayer::Convolution { filter: size, stride: stride.unwrap_or([1; 2]), padding };
    let layer = match name {
        "conv" => convolution(Padding::Valid),
        "conv-same" => convolution(Padding::Same),
        _ => ImageLayer::AveragePool { window: size, stride: stride.unwrap_or(size) },
    };
    images.layers.push((layer, position));
    Ok(())
}

/// Whole numbers from 1 with `x` between.
fn sizes(text: &str) -> Option<Vec<usize>> {
    text.split('x').map(|part| part.trim().parse().ok().filter(|size| *size > 0)).collect()
}

/// Its shape and layers as the text form writes them.
pub(super) fn arguments(leaf: &Leaf) -> impl Iterator<Item = String> + '_ {
    let shape = leaf.images.shape.iter().map(|([channels, height, width], _)| match channels {
        1 => format!("shape={height}x{width}"),
        _ => format!("shape={channels}x{height}x{width}"),
    });
    shape.chain(leaf.images.layers.iter().map(|(layer, _)| text(layer)))
}

fn text(layer: &ImageLayer) -> String {
    let size = |[height, width]: [usize; 2]| {
        if height == width { height.to_string() } else { format!("{height}x{width}") }
    };
    let with_stride = |name: &str, of: [usize; 2], stride: [usize; 2], usual: [usize; 2]| {
        if stride == usual {
            format!("{name}={}", size(of))
        } else {
            format!("{name}={}/{}", size(of), size(stride))
        }
    };
    match *layer {
        ImageLayer::Convolution { filter, stride, padding } => {
            let name = if padding == Padding::Same { "conv-same" } else { "conv" };
            with_stride(name, filter, stride, [1; 2])
        }
        ImageLayer::AveragePool { window, stride } => with_stride("pool", window, stride, window),
        ImageLayer::Activation(activation) => activation.name().to_string(),
        ImageLayer::Dense => "dense".to_string(),
    }
}

/// Its images' shape, and its layers.
pub(super) fn network(leaf: &Leaf) -> ([usize; 3], Vec<ImageLayer>) {
    let shape = leaf.images.shape.map_or([0; 3], |(shape, _)| shape);
    let layers = leaf.images.layers.iter().map(|&(layer, _)| match layer {
        ImageLayer::Activation(Activation::LeakyRelu { .. }) => {
            ImageLayer::Activation(Activation::LeakyRelu { slope: leaky_slope(leaf) })
        }
        layer => layer,
    });
    (shape, layers.collect())
}

/// Whether layers fit the images, one another and their settings: otherwise where what is wrong. `start` is where the kernel stands.
pub(super) fn check(leaf: &Leaf, start: usize) -> Result<(), (usize, String)> {
    if leaf.kind != Kind::NngpConv {
        return Ok(());
    }
    let Some((_, at)) = leaf.images.shape else {
        let message =
            "`nngp-conv` needs the shape of its images: `shape=1x28x28` is channels, height and width";
        return Err((start, message.to_string()));
    };
    let leaky = |(layer, _): &(ImageLayer, usize)| {
        matches!(layer, ImageLayer::Activation(Activation::LeakyRelu { .. }))
    };
    if let Some(slope) = leaf.setting("slope")
        && !leaf.images.layers.iter().any(leaky)
    {
        return Err((slope.position, "only `leaky-relu` has a `slope`".to_string()));
    }
    if let Some(variance) = leaf.setting("variance")
        && has_readout(leaf)
    {
        let message = "`nngp-conv` has no `variance` with its read-out layer, whose `weight` is the amplitude; set `weight`, or `readout=false`";
        return Err((variance.position, message.to_string()));
    }
    let (shape, layers) = network(leaf);
    check_layers(shape, &layers).map_err(|error| (place(leaf, &error, at), error.to_string()))
}

/// Where an error stands in the source: at its layer, or else at the shape.
fn place(leaf: &Leaf, error: &ImageLayerError, shape: usize) -> usize {
    error.layer().and_then(|layer| leaf.images.layers.get(layer)).map_or(shape, |(_, position)| *position)
}

/// Where an error of a checked leaf stands in the source.
pub(super) fn position(leaf: &Leaf, error: &ImageLayerError) -> usize {
    place(leaf, error, leaf.images.shape.map_or(0, |(_, position)| position))
}

/// A word that is neither a layer nor a column.
pub(super) fn unknown_word(word: &str, features: &[String]) -> String {
    let words = || Activation::NAMES.into_iter().chain(WORDS);
    let hint = hint(word, words().chain(SETTINGS).chain(features.iter().map(String::as_str)));
    format!(
        "`{word}` is neither a layer nor a feature column{hint} Layers: conv=3, conv-same=3, pool=2, {}. Columns: {}",
        words().collect::<Vec<_>>().join(", "),
        listed(features)
    )
}
