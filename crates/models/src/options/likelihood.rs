//! What is observed of the function, and how it is inferred from that.

#[cfg(feature = "clap")]
use super::numbers;
use posterior_likelihoods::gaussianised::Matching;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a target is, given the function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LikelihoodName {
    /// What the target looks like; said, with the way to another
    #[default]
    Auto,
    /// Numbers with Gaussian noise
    Gaussian,
    /// Two classes, or yes and no
    Bernoulli,
    /// Classes
    Categorical,
    /// Counts whose variance is their mean
    Poisson,
    /// Counts that scatter more
    NegativeBinomial,
    /// Numbers with outliers
    StudentT,
}

impl LikelihoodName {
    /// Its name on the command line and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Gaussian => "gaussian",
            Self::Bernoulli => "bernoulli",
            Self::Categorical => "categorical",
            Self::Poisson => "poisson",
            Self::NegativeBinomial => "negative-binomial",
            Self::StudentT => "student-t",
        }
    }
}

/// How a posterior under another likelihood than Gaussian noise is approximated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum InferenceName {
    /// By likelihood and size; said
    #[default]
    Auto,
    /// Labels become numbers with noise of their own once, and regression does the rest
    Gaussianised,
    /// The stochastic bound of inducing points under the likelihood itself
    Variational,
    /// The curvature at the posterior's mode
    Laplace,
}

impl InferenceName {
    /// Its name on the command line and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Gaussianised => "gaussianised",
            Self::Variational => "variational",
            Self::Laplace => "laplace",
        }
    }
}

/// What the log-likelihoods of classes are multiplied by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ClassWeights {
    /// All count the same.
    #[default]
    Equal,
    /// Rows over rows of the class over classes, so that all classes count the same.
    Balanced,
    /// By label; 1 where none is given.
    Given(Vec<(String, f64)>),
}

impl FromStr for ClassWeights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "equal" => Ok(Self::Equal),
            "balanced" => Ok(Self::Balanced),
            list => {
                let pair = |pair: &str| {
                    let found = pair.rsplit_once('=').and_then(|(label, weight)| {
                        let weight =
                            weight.trim().parse().ok().filter(|w: &f64| w.is_finite() && *w > 0.0)?;
                        Some((label.trim().to_string(), weight))
                    });
                    found.ok_or_else(|| {
                        format!(
                            "`{pair}` is no weight: write `balanced`, or LABEL=WEIGHT with positive weights"
                        )
                    })
                };
                list.split(',').map(pair).collect::<Result<_, _>>().map(Self::Given)
            }
        }
    }
}

impl fmt::Display for ClassWeights {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => out.write_str("equal"),
            Self::Balanced => out.write_str("balanced"),
            Self::Given(pairs) => {
                let all: Vec<String> = pairs.iter().map(|(l, w)| format!("{l}={w}")).collect();
                out.write_str(&all.join(","))
            }
        }
    }
}

impl TryFrom<String> for ClassWeights {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ClassWeights> for String {
    fn from(weights: ClassWeights) -> Self {
        weights.to_string()
    }
}

/// What the target is, and how it is inferred from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct LikelihoodOptions {
    /// What the target is
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub likelihood: LikelihoodName,
    /// How the posterior is approximated where the likelihood is not Gaussian
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub inference: InferenceName,
    /// How gaussianised inference makes numbers of labels [default: moment-original for classes, variational for yes and no and counts]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub matching: Option<Matching>,
    /// Pseudo-count that gaussianised inference adds to every class: small is close to the likelihood and hard to match
    /// [default: the one that predicts rows best that are left out]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive))]
    pub pseudo_count: Option<f64>,
    /// What classes count: equal, balanced, or LABEL=WEIGHT,...; probabilities are then those of a population so weighted
    #[cfg_attr(feature = "clap", arg(long, value_name = "WEIGHTS", default_value_t))]
    pub class_weights: ClassWeights,
    /// Column of positive weights: what rows count, 2 as much as a row that occurs twice (classes, counts, student-t)
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL"))]
    pub row_weights: Option<String>,
}

impl LikelihoodOptions {
    /// The first flag that was set which means nothing where noise is Gaussian.
    pub fn not_for_gaussian(&self) -> Option<&'static str> {
        let Self { inference, matching, pseudo_count, class_weights, row_weights, .. } = self;
        [
            (*inference != InferenceName::Auto, "inference"),
            (matching.is_some(), "matching"),
            (pseudo_count.is_some(), "pseudo-count"),
            (*class_weights != ClassWeights::Equal, "class-weights"),
            (row_weights.is_some(), "row-weights"),
        ]
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_classes_are_read_and_written() {
        for text in ["equal", "balanced", "a=2,b=0.5", "x=y=3"] {
            assert_eq!(text.parse::<ClassWeights>().unwrap().to_string(), text);
        }
        assert_eq!("x=y=3".parse::<ClassWeights>().unwrap(), ClassWeights::Given(vec![("x=y".into(), 3.0)]));
        for text in ["a", "a=0", "a=-1", "a=x", "a=1,b"] {
            assert!(text.parse::<ClassWeights>().unwrap_err().contains("no weight"), "{text}");
        }
    }
}
