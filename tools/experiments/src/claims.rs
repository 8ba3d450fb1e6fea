//! Published numbers beside ours, and what is expected of ours.

use super::numbers::number_at;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A published number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// What it is.
    pub what: String,
    /// Its value.
    pub value: f64,
    /// Where ours is found in the numbers.
    pub ours: String,
    /// How comparable the two are.
    #[serde(default)]
    pub note: String,
}

/// A published number with ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedResult {
    /// The published one.
    #[serde(flatten)]
    pub published: Published,
    /// Ours, averaged over seeds; none if this run has no such number.
    pub found: Option<f64>,
}

/// A number, or the path to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Operand {
    /// A number.
    Number(f64),
    /// Its path.
    Path(String),
}

/// Something that should come out. `value` is compared with `above`, `below` or `near`, each a number or a path and multiplied by `times`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// What is expected, as a sentence.
    pub claim: String,
    /// Path of the number.
    pub value: String,
    /// It should be larger than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Operand>,
    /// It should be smaller than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Operand>,
    /// It should differ from this by at most the share `within`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<Operand>,
    /// The share for `near`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Multiplies what the number is compared with.
    #[serde(default = "one")]
    pub times: f64,
}

pub(crate) fn one() -> f64 {
    1.0
}

/// What became of an expectation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectationResult {
    /// The expectation.
    #[serde(flatten)]
    pub expectation: Expectation,
    /// The number.
    pub found: Option<f64>,
    /// What it was compared with.
    pub compared: Option<f64>,
    /// Whether it holds; none if a number is missing or not finite.
    pub holds: Option<bool>,
}

impl Published {
    pub(crate) fn beside(&self, numbers: &Value) -> PublishedResult {
        PublishedResult { published: self.clone(), found: number_at(numbers, &self.ours) }
    }
}

impl Expectation {
    /// What is wrong with it as written.
    pub(crate) fn problem(&self) -> Option<String> {
        let given = [&self.above, &self.below, &self.near].iter().filter(|o| o.is_some()).count();
        let claim = &self.claim;
        if given != 1 {
            return Some(format!("`{claim}` needs exactly one of above, below and near"));
        }
        match (&self.near, self.within) {
            (Some(_), None) => Some(format!("`{claim}` needs `within`, the share that it may be off")),
            (None, Some(_)) => Some(format!("`{claim}` has `within` without `near`")),
            (_, Some(w)) if !(w >= 0.0 && w.is_finite()) => Some(format!("`{claim}`: `within` is {w}")),
            _ if !self.times.is_finite() => Some(format!("`{claim}`: `times` is {}", self.times)),
            _ => None,
        }
    }

    pub(crate) fn judge(&self, numbers: &Value) -> ExpectationResult {
        let resolve = |operand: &Operand| match operand {
            Operand::Number(value) => Some(*value),
            Operand::Path(path) => number_at(numbers, path),
        };
        let found = number_at(numbers, &self.value).filter(|v| v.is_finite());
        let compared = [&self.above, &self.below, &self.near]
            .into_iter()
            .flatten()
            .next()
            .and_then(resolve)
            .map(|v| self.times * v)
            .filter(|v| v.is_finite());
        let holds = found.zip(compared).map(|(found, with)| {
            if self.above.is_some() {
                found > with
            } else if self.below.is_some() {
                found < with
            } else {
                (found - with).abs() <= self.within.unwrap_or(0.0) * with.abs()
            }
        });
        ExpectationResult { expectation: self.clone(), found, compared, holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn expectation(text: &str) -> Expectation {
        toml::from_str(&format!("claim = \"c\"\nvalue = \"a\"\n{text}")).unwrap()
    }

    #[test]
    fn expectations_are_judged() {
        let numbers = json!({"a": 2.0, "b": 1.0, "nothing": null});
        let judged = |text: &str| expectation(text).judge(&numbers).holds;
        assert_eq!(judged("above = 1.5"), Some(true));
        assert_eq!(judged("above = \"b\"\ntimes = 2.5"), Some(false));
        assert_eq!(judged("below = \"b\""), Some(false));
        assert_eq!(judged("near = 2.1\nwithin = 0.05"), Some(true));
        assert_eq!(judged("near = 2.2\nwithin = 0.05"), Some(false));
        assert_eq!(judged("above = \"nothing\""), None);
        assert_eq!(judged("above = \"missing\""), None);
    }

    #[test]
    fn expectations_are_checked() {
        assert!(expectation("above = 1.0").problem().is_none());
        for text in ["", "above = 1.0\nbelow = 2.0", "near = 1.0", "above = 1.0\nwithin = 0.1"] {
            assert!(expectation(text).problem().is_some(), "{text}");
        }
    }
}
