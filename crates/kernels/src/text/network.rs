//! What is particular to `nngp`: an activation among its arguments, and settings that go with one another.

use super::build::listed;
use super::parse::nearest;
use super::{Kind, Leaf};
use crate::infinite::Activation;

/// Most hidden layers. Beyond some tens the kernels of all pairs of points are alike to all digits, or out of range.
pub(super) const DEEPEST: f64 = 64.0;

/// The slope of a leaky ReLU for negative numbers, unless it is set.
const SLOPE: f64 = 0.01;

/// An activation's name, if it is one.
pub(super) fn known(word: &str) -> Option<&'static str> {
    Activation::NAMES.into_iter().find(|name| *name == word)
}

/// Reads an activation's name, or says which there are.
pub(super) fn set_activation(leaf: &mut Leaf, word: &str) -> Result<(), String> {
    let Some(name) = known(word) else {
        let hint = hint(word, Activation::NAMES.into_iter());
        return Err(format!(
            "no activation is called `{word}`{hint} Known: {}",
            Activation::NAMES.join(", ")
        ));
    };
    match leaf.activation.replace(name) {
        Some(_) => Err("`activation` is set twice".to_string()),
        None => Ok(()),
    }
}

/// A word that is neither an activation nor a column.
pub(super) fn unknown_word(word: &str, features: &[String]) -> String {
    let hint = hint(word, Activation::NAMES.into_iter().chain(features.iter().map(String::as_str)));
    format!(
        "`{word}` is neither an activation nor a feature column{hint} Activations: {}. Columns: {}",
        Activation::NAMES.join(", "),
        listed(features)
    )
}

pub(super) fn hint<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        _ if word.eq_ignore_ascii_case("tanh") => {
            "; its kernel has no closed form, that of `erf` is close to it.".to_string()
        }
        Some(near) => format!("; did you mean `{near}`?"),
        None => ".".to_string(),
    }
}

/// No setting without what it belongs to: otherwise where it stands and what is wrong.
pub(super) fn check(leaf: &Leaf) -> Result<(), (usize, String)> {
    if leaf.kind != Kind::Nngp {
        return Ok(());
    }
    if let Some(slope) = leaf.setting("slope")
        && leaf.activation != Some("leaky-relu")
    {
        return Err((slope.position, "only `leaky-relu` has a `slope`".to_string()));
    }
    if let Some(variance) = leaf.setting("variance")
        && has_readout(leaf)
    {
        let message = "`nngp` has no `variance` with its read-out layer, whose `weight` is the amplitude; set `weight`, or `readout=false`";
        return Err((variance.position, message.to_string()));
    }
    Ok(())
}

/// Whether a layer without activation stands at the end, as it does unless it is switched off.
pub(super) fn has_readout(leaf: &Leaf) -> bool {
    leaf.setting("readout").is_none_or(|s| s.value != 0.0)
}

/// The slope of its leaky ReLUs.
pub(super) fn leaky_slope(leaf: &Leaf) -> f64 {
    leaf.initial("slope", SLOPE)
}

/// What stands between its layers; ReLU, unless another one is named.
pub(super) fn activation(leaf: &Leaf) -> Activation {
    match leaf.activation {
        Some("leaky-relu") => Activation::LeakyRelu { slope: leaky_slope(leaf) },
        Some("erf") => Activation::Erf,
        Some("sine") => Activation::Sine,
        _ => Activation::Relu,
    }
}
