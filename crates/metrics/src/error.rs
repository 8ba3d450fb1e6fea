//! Inputs that cannot be scored.

/// Why predictions cannot be scored. Rows are counted from 0.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// Nothing to score.
    #[error("there are no predictions to score")]
    Empty,
    /// Arrays of different lengths.
    #[error("{means} means, {variances} variances and {truths} truths: they must be equally many")]
    Lengths {
        /// Number of means.
        means: usize,
        /// Number of variances.
        variances: usize,
        /// Number of truths.
        truths: usize,
    },
    /// A value that is not finite.
    #[error("the {what} of row {row} is {value}")]
    NotFinite {
        /// Mean, variance or truth.
        what: &'static str,
        /// Row, counted from 0.
        row: usize,
        /// The value.
        value: f64,
    },
    /// A variance that is not positive.
    #[error("the variance of row {row} is {value}: a predictive distribution needs a positive one")]
    VarianceNotPositive {
        /// Row, counted from 0.
        row: usize,
        /// The value.
        value: f64,
    },
    /// A scale that is not positive.
    #[error("the target's scale is {value}: it must be positive and finite")]
    Scale {
        /// The value.
        value: f64,
    },
    /// Residuals so large that their squares are not finite.
    #[error("a score overflows: the errors are too large for double precision; change the target's unit")]
    Overflow,
    /// Values that do not fill a table.
    #[error("{values} {what} do not make {rows} rows of {columns}: the table must be full and not empty")]
    Shape {
        /// Probabilities, log-likelihoods, ...
        what: &'static str,
        /// Number of values given.
        values: usize,
        /// Rows the other input has.
        rows: usize,
        /// Values per row.
        columns: usize,
    },
    /// Two inputs that should be equally many.
    #[error("{left} {left_what} and {right} {right_what}: they must be equally many")]
    Unequal {
        /// The first input.
        left_what: &'static str,
        /// Its length.
        left: usize,
        /// The second input.
        right_what: &'static str,
        /// Its length.
        right: usize,
    },
    /// A probability that is none.
    #[error("the probability of class {class} in row {row} is {value}: probabilities lie between 0 and 1")]
    Probability {
        /// Row, counted from 0.
        row: usize,
        /// Class (or output), counted from 0.
        class: usize,
        /// The value.
        value: f64,
    },
    /// Class probabilities that do not add up.
    #[error("the probabilities of row {row} sum to {sum}, not to 1: normalise them (softmax) first")]
    ProbabilitySum {
        /// Row, counted from 0.
        row: usize,
        /// Their sum.
        sum: f64,
    },
    /// A label without a class.
    #[error("the label of row {row} is {label}, but the classes are 0 to {}", classes - 1)]
    Label {
        /// Row, counted from 0.
        row: usize,
        /// The label.
        label: usize,
        /// Number of classes.
        classes: usize,
    },
    /// A setting outside its range.
    #[error("{what} is {value}: it must lie between {least} and {most}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// The value.
        value: usize,
        /// Smallest allowed value.
        least: usize,
        /// Largest allowed value.
        most: usize,
    },
    /// A rank statistic of one group only.
    #[error(
        "there are {negatives} negatives and {positives} positives: a ranking needs at least one of each"
    )]
    OneGroup {
        /// Number of negatives.
        negatives: usize,
        /// Number of positives.
        positives: usize,
    },
    /// A rate of a count that is not positive.
    #[error("the rate of row {row} is {value}: it must be positive and finite")]
    Rate {
        /// Row, counted from 0.
        row: usize,
        /// The value.
        value: f64,
    },
    /// A matrix that is no covariance.
    #[error("the {which} covariance is unusable: {problem}")]
    Covariance {
        /// First or second.
        which: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Rows that no sample can explain.
    #[error(
        "every sample gives the labels of row {row} and its set probability 0; compute log-likelihoods from logits \
         (log-softmax) so that they stay finite"
    )]
    Impossible {
        /// A row of the set, counted from 0.
        row: usize,
    },
}
