//! What there is to say of a model, as data: facts with labels, numbers and units, in order.
//!
//! A fact is built where it is known. [`Facts::text`] renders it for a terminal and [`Facts::rows`] for a report. What several methods have to say has one builder here.
//!
//! ```text
//! search: 12 steps, 30 evaluations, ended by the tolerance
//! label   value unit  ...                            a list, three facts
//! ```

use crate::text::{number, table};
use posterior_optim::Reason;
use posterior_report::SummaryRow;
use std::fmt;

/// Behind numbers that no unit of the target changes.
pub(crate) const STANDARDISED: &str = "(of the standardised target)";

/// A labelled value; its text is label, value and unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is; empty where value and unit say it.
    pub label: String,
    /// Its value.
    pub value: FactValue,
    /// The unit, or words that belong behind the value.
    pub unit: String,
    /// Where it is shown.
    pub level: FactLevel,
}

/// Where a [`Fact`] is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FactLevel {
    /// In the long form alone.
    #[default]
    Detail,
    /// In the short form as well.
    Headline,
}

/// The value of a [`Fact`].
#[derive(Clone, Debug, PartialEq)]
pub enum FactValue {
    /// Words.
    Text(String),
    /// How many.
    Count(usize),
    /// A number that is shown with four significant digits.
    Number(f64),
    /// A number that is shown with so many digits behind the point.
    Fixed(f64, usize),
    /// A number that is shown as a power of ten, with so many digits behind the point.
    Power(f64, usize),
    /// Several that belong together.
    List(Facts),
}

/// Facts in order. As the value of another fact they are joined by a separator; those without text are left out there.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    facts: Vec<Fact>,
    separator: &'static str,
}

impl Fact {
    /// A value under a label.
    pub(crate) fn new(label: impl Into<String>, value: impl Into<Self>) -> Self {
        Self { label: label.into(), ..value.into() }
    }

    /// The same in the short form.
    pub(crate) fn headline(self) -> Self {
        Self { level: FactLevel::Headline, ..self }
    }

    /// Value and unit.
    pub(crate) fn said(&self) -> String {
        joined([self.value.to_string(), self.unit.clone()], " ")
    }
}

impl Facts {
    /// None yet; commas stand between them.
    pub(crate) fn new() -> Self {
        Self::apart(", ")
    }

    /// None yet, with a separator of their own.
    pub(crate) fn apart(separator: &'static str) -> Self {
        Self { facts: Vec::new(), separator }
    }

    /// With one more.
    pub(crate) fn fact(self, label: impl Into<String>, value: impl Into<Fact>) -> Self {
        self.with([Fact::new(label, value)])
    }

    /// With one more, in the short form as well.
    pub(crate) fn headline(self, label: impl Into<String>, value: impl Into<Fact>) -> Self {
        self.with([Fact::new(label, value).headline()])
    }

    /// With one more, under the label that it has, if any.
    pub(crate) fn and(self, value: impl Into<Fact>) -> Self {
        self.with([value.into()])
    }

    /// With one more, where it is known.
    pub(crate) fn maybe(self, label: impl Into<String>, value: Option<impl Into<Fact>>) -> Self {
        self.with(value.map(|value| Fact::new(label, value)))
    }

    /// With all of these.
    pub(crate) fn with(mut self, more: impl IntoIterator<Item = Fact>) -> Self {
        self.facts.extend(more);
        self
    }

    /// Those of the short form.
    pub fn headlines(&self) -> Self {
        let facts = self.facts.iter().filter(|fact| fact.level == FactLevel::Headline).cloned().collect();
        Self { facts, separator: self.separator }
    }

    /// For a terminal: a line for each.
    pub fn text(&self) -> String {
        let line = |fact: &Fact| format!("{}: {}", fact.label, fact.said()).trim_end().to_string();
        self.facts.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// For a terminal: a table of labels and values.
    pub fn table(&self) -> String {
        let row = |fact: &Fact| vec![fact.label.clone(), fact.said()];
        table(&self.facts.iter().map(row).collect::<Vec<_>>())
    }

    /// For a report.
    pub fn rows(&self) -> Vec<SummaryRow> {
        self.facts.iter().map(|fact| SummaryRow::new(&fact.label, fact.said())).collect()
    }
}

impl Default for Facts {
    fn default() -> Self {
        Self::new()
    }
}

impl IntoIterator for Facts {
    type Item = Fact;
    type IntoIter = std::vec::IntoIter<Fact>;

    fn into_iter(self) -> Self::IntoIter {
        self.facts.into_iter()
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

impl From<String> for Fact {
    fn from(text: String) -> Self {
        of(FactValue::Text(text), "")
    }
}

impl From<Facts> for Fact {
    fn from(facts: Facts) -> Self {
        of(FactValue::List(facts), "")
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined([self.label.clone(), self.said()], " "))
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(self.facts.iter().map(Fact::to_string), self.separator))
    }
}

impl fmt::Display for FactValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(value) => f.write_str(&number(*value)),
            Self::Fixed(value, digits) => write!(f, "{:.*}", *digits, value),
            Self::Power(value, digits) => write!(f, "{:.*e}", *digits, value),
            Self::List(facts) => write!(f, "{facts}"),
        }
    }
}

/// Texts that are not empty, in one.
fn joined(texts: impl IntoIterator<Item = String>, separator: &str) -> String {
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(separator)
}

fn of(value: FactValue, unit: impl Into<String>) -> Fact {
    Fact { label: String::new(), value, unit: unit.into(), level: FactLevel::Detail }
}

/// So many of something.
pub(crate) fn count(count: usize, unit: impl Into<String>) -> Fact {
    of(FactValue::Count(count), unit)
}

/// So many of something, where there are some.
pub(crate) fn nonzero(count: usize, unit: impl Into<String>) -> Option<Fact> {
    (count > 0).then(|| of(FactValue::Count(count), unit))
}

/// A number with four significant digits.
pub(crate) fn figure(value: f64, unit: impl Into<String>) -> Fact {
    of(FactValue::Number(value), unit)
}

/// A number with so many digits behind the point.
pub(crate) fn fixed(value: f64, digits: usize, unit: impl Into<String>) -> Fact {
    of(FactValue::Fixed(value, digits), unit)
}

/// A number as a power of ten, with so many digits behind the point.
pub(crate) fn power(value: f64, digits: usize, unit: impl Into<String>) -> Fact {
    of(FactValue::Power(value, digits), unit)
}

/// The first numbers of several, with four significant digits.
pub(crate) fn figures(values: &[f64], most: usize) -> Facts {
    Facts::new().with(values.iter().take(most).map(|value| figure(*value, "")))
}

/// Steps that an earlier run had taken, where there was one.
pub(crate) fn resumed(step: usize) -> Option<Fact> {
    nonzero(step, "").map(|step| Fact::new("resumed at step", step))
}

/// How a search for hyperparameters went.
pub(crate) fn search(steps: usize, evaluations: usize, reason: Reason) -> Fact {
    let went = Facts::new().and(count(steps, "steps")).and(count(evaluations, "evaluations"));
    Fact::new("search", went.fact("ended by", ended(reason)))
}

/// Inducing points of a bound.
pub(crate) fn inducing(points: usize, moved: bool) -> Facts {
    let moved = if moved { "moved by the bound" } else { "where they were chosen" };
    Facts::new().and(count(points, "")).and(moved)
}

/// How long a fit took, and its seed.
pub(crate) fn ending(seconds: f64, parts: impl Into<String>, seed: u64) -> Facts {
    Facts::new().headline("seconds", fixed(seconds, 2, parts)).fact("seed", seed.to_string())
}

/// One way to train: the NLL of the rows set aside at its best look, the same once weights or variances are `again` others, and how training went.
pub(crate) fn way(name: &str, nll: f64, again: Option<(f64, &str)>, run: Facts) -> Fact {
    let again = again.map_or_else(String::new, |(nll, with)| format!("({nll:.4} {with})"));
    let score = match nll < f64::MAX {
        true => Fact::new("NLL", fixed(nll, 4, again)),
        false => Fact { unit: again, ..Fact::from("no result") },
    };
    Fact::new(format!("tried {name}"), Facts::apart("; ").and(score).and(run))
}

/// Steps of training, all and before the best look, why it ended, and how long it took.
pub(crate) fn training([all, best]: [usize; 2], ended: &str, seconds: f64) -> Facts {
    let steps = count(all, format!("steps (best after {best})"));
    Facts::new().and(steps).fact("ended by", ended).and(fixed(seconds, 1, "s"))
}

/// Why a run ended.
pub(crate) fn ended(reason: Reason) -> &'static str {
    match reason {
        Reason::Gradient => "a vanishing gradient",
        Reason::Value => "no further improvement",
        Reason::Steps => "the limit of steps",
        Reason::Time => "the limit of time",
        Reason::Tolerance => "the tolerance",
        Reason::Precision => "the limit of precision",
        Reason::Patience => "the end of patience",
        Reason::Diverged => "numbers that were not finite",
        Reason::Interrupted => "an interruption",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_joined_and_what_is_empty_is_left_out() {
        let steps = Facts::new().and(count(12, "steps")).and("").fact("ended by", ended(Reason::Tolerance));
        let facts = Facts::new()
            .fact("search", Facts::apart("; ").and(steps).fact("gain", power(1.2e-3, 1, "nats")))
            .maybe("weights", None::<&str>)
            .fact("NLL", fixed(0.25, 3, STANDARDISED));
        let text = "search: 12 steps, ended by the tolerance; gain 1.2e-3 nats\nNLL: 0.250 (of the standardised target)";
        assert_eq!(facts.text(), text);
        assert_eq!(facts.rows()[1], SummaryRow::new("NLL", "0.250 (of the standardised target)"));
        let both = facts.headline("method", "exact");
        assert_eq!(both.headlines().text(), "method: exact");
    }

    #[test]
    fn tables_have_a_row_for_each() {
        let facts = Facts::new().fact("draws", count(20, "")).fact("PSNR, dB", figure(31.4159, ""));
        assert_eq!(facts.table(), "draws        20\nPSNR, dB  31.42");
        assert_eq!(figures(&[1.0, 2.5, 3.0], 2).to_string(), "1.000, 2.500");
        assert_eq!((nonzero(0, "rows"), resumed(0)), (None, None));
    }

    #[test]
    fn ways_without_a_score_say_so() {
        let run = || training([10, 5], "time", 1.0);
        let said = "10 steps (best after 5), ended by time, 1.0 s";
        assert_eq!(way("adam", 0.25, None, run()).to_string(), format!("tried adam NLL 0.2500; {said}"));
        let failed = way("adam", f64::MAX, Some((0.5, "tempered")), run());
        assert_eq!(failed.to_string(), format!("tried adam no result (0.5000 tempered); {said}"));
    }
}
