//! What is observed of the function, and how it is inferred from that.

use super::numbers;
use super::target::TargetTransformName;
use posterior_likelihoods::gaussianised::Matching;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a target is, given the function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LikelihoodName {
    /// Detected from the target
    #[default]
    Auto,
    /// Numbers with Gaussian noise
    Gaussian,
    /// Two classes, or yes and no
    Bernoulli,
    /// Classes
    Categorical,
    /// Classes, one label in a hundred wrong (svgp, gvi and deep kernels)
    RobustMax,
    /// Counts whose variance is their mean
    Poisson,
    /// Counts that scatter more
    NegativeBinomial,
    /// Numbers with outliers
    StudentT,
    /// Events, one a row: their intensity over the columns of --window
    Cox,
}

impl LikelihoodName {
    /// Its name on the command line and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Gaussian => "gaussian",
            Self::Bernoulli => "bernoulli",
            Self::Categorical => "categorical",
            Self::RobustMax => "robust-max",
            Self::Poisson => "poisson",
            Self::NegativeBinomial => "negative-binomial",
            Self::StudentT => "student-t",
            Self::Cox => "cox",
        }
    }
}

/// How a posterior under another likelihood than Gaussian noise is approximated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum InferenceName {
    /// By likelihood and size
    #[default]
    Auto,
    /// Regression on Gaussian label approximations
    Gaussianised,
    /// Stochastic bound of inducing points, under the likelihood
    Variational,
    /// Laplace approximation at the mode
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

/// What gaussianised inference adds to every class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PseudoCountText", into = "PseudoCountText")]
pub enum PseudoCount {
    /// What makes a bound on the evidence of the labels largest, with the hyperparameters.
    Learned,
    /// This.
    Given(f64),
}

/// As written: a number, or a word.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PseudoCountText {
    Number(f64),
    Word(String),
}

impl FromStr for PseudoCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "learned" => Ok(Self::Learned),
            number => {
                numbers::positive(number).map(Self::Given).map_err(|why| format!("{why}, or `learned`"))
            }
        }
    }
}

impl TryFrom<PseudoCountText> for PseudoCount {
    type Error = String;
    fn try_from(written: PseudoCountText) -> Result<Self, String> {
        match written {
            PseudoCountText::Number(number) => number.to_string().parse(),
            PseudoCountText::Word(word) => word.parse(),
        }
    }
}

impl From<PseudoCount> for PseudoCountText {
    fn from(asked: PseudoCount) -> Self {
        match asked {
            PseudoCount::Learned => Self::Word("learned".into()),
            PseudoCount::Given(number) => Self::Number(number),
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
                        Some((label.trim().to_string(), numbers::positive(weight).ok()?))
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

/// A column of a [`Window`] with the range in which events would have been seen.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSide {
    /// By name or number (from 1).
    pub column: String,
    /// The lower end, in the column's units.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl WindowSide {
    /// Its middle.
    pub fn centre(&self) -> f64 {
        0.5 * self.low + 0.5 * self.high
    }
}

impl fmt::Display for WindowSide {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}:{}", self.column, self.low, self.high)
    }
}

/// The box in which events would have been seen, written `t=0:24` or `x=-1:1,y=0:5`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Window(pub Vec<WindowSide>);

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| {
            let found = text.rsplit_once('=').and_then(|(column, range)| {
                let (low, high) = range.split_once(':')?;
                let end = |text: &str| numbers::finite(text).ok();
                Some((column.trim().to_string(), end(low)?, end(high)?))
            });
            match found {
                Some((column, low, high)) if low < high && !column.is_empty() => {
                    Ok(WindowSide { column, low, high })
                }
                _ => Err(format!(
                    "`{text}` is no side of a window: write COLUMN=LOW:HIGH with two numbers, the lower one first"
                )),
            }
        };
        text.split(',').map(side).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        out.write_str(&all.join(","))
    }
}

impl TryFrom<String> for Window {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Window> for String {
    fn from(window: Window) -> Self {
        window.to_string()
    }
}

/// What the target is, and how it is inferred from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct OutputRequest {
    /// What a target with Gaussian noise is mapped by before it is learned; predictions, intervals and scores are in its own units
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub target_transform: TargetTransformName,
    /// What the target is
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub likelihood: LikelihoodName,
    /// How the posterior is approximated where the likelihood is not Gaussian
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub inference: InferenceName,
    /// Gaussian label approximation of --inference gaussianised [default: moment-original for classes, else variational]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub matching: Option<Matching>,
    /// Pseudo-count of every class for --inference gaussianised, or `learned` by the evidence (--method exact) [default: the best on validation rows]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X"))]
    pub pseudo_count: Option<PseudoCount>,
    /// Weights of classes: equal, balanced, or LABEL=WEIGHT,...
    #[cfg_attr(feature = "clap", arg(long, value_name = "WEIGHTS", default_value_t))]
    pub class_weights: ClassWeights,
    /// Column of sample weights; 2 counts as two equal rows (numbers: exact processes only)
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL"))]
    pub row_weights: Option<String>,
    /// Events (--likelihood cox), in place of --target: columns of place or time with the observed range, such as t=0:24 or x=-1:1,y=0:5
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL=LOW:HIGH"))]
    pub window: Option<Window>,
}

impl OutputRequest {
    /// Whether every row is an event: as asked, or because a window says so.
    pub fn of_events(&self) -> bool {
        self.likelihood == LikelihoodName::Cox
            || (self.likelihood == LikelihoodName::Auto && self.window.is_some())
    }

    /// The first flag that was set which means nothing where noise is Gaussian.
    pub fn not_for_gaussian(&self) -> Option<&'static str> {
        let Self { inference, matching, pseudo_count, class_weights, window, .. } = self;
        [
            (*inference != InferenceName::Auto, "inference"),
            (matching.is_some(), "matching"),
            (pseudo_count.is_some(), "pseudo-count"),
            (*class_weights != ClassWeights::Equal, "class-weights"),
            (window.is_some(), "window"),
        ]
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pseudo_counts_are_numbers_or_learned() {
        let read = |text: &str| serde_json::from_str::<PseudoCount>(text).map_err(|e| e.to_string());
        for (text, written, expected) in [
            ("learned", "\"learned\"", PseudoCount::Learned),
            (" 0.1", "0.1", PseudoCount::Given(0.1)),
            ("1e-3", "0.001", PseudoCount::Given(0.001)),
        ] {
            assert_eq!(text.parse(), Ok(expected));
            assert_eq!(
                (read(written), serde_json::to_string(&expected).unwrap()),
                (Ok(expected), written.into())
            );
        }
        for bad in ["0", "-1", "nan", "inf", "", "learn"] {
            assert!(bad.parse::<PseudoCount>().unwrap_err().contains("or `learned`"), "{bad}");
        }
        assert!(read("-0.5").is_err() && read("\"many\"").is_err() && read("[]").is_err());
    }

    #[test]
    fn windows_are_read_and_written() {
        for text in ["t=0:24", "x=-1:1.5,y=-3:-2", "a=b=0:1"] {
            assert_eq!(text.parse::<Window>().unwrap().to_string(), text);
        }
        let read: Window = serde_json::from_str("\" t = 1e-3 : 2\"").unwrap();
        assert_eq!(read.0, [WindowSide { column: "t".into(), low: 1e-3, high: 2.0 }]);
        for bad in ["", "t", "t=1", "t=2:1", "t=1:1", "t=0:inf", "t=nan:1", "=0:1", "t=0:1,", "t=0:1:2"] {
            assert!(bad.parse::<Window>().unwrap_err().contains("COLUMN=LOW:HIGH"), "{bad}");
        }
    }

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
