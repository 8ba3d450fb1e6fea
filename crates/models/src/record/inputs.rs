//! What inputs looked like at the fit, so that inputs on another scale are noticed: a network gives an answer to any numbers, and error bars are about the kind that it learned from.

use crate::ModelError;
use posterior_data::{ArrayValues, NumericArray};
use posterior_notes::fixes::OTHER_INPUTS;
use serde::{Deserialize, Serialize};

/// Groups of numbers that are recorded one by one; more (features of a large head, say) are recorded as one.
const MOST_GROUPS: usize = 1000;

/// Examples that a spread is judged by at least.
const ENOUGH: usize = 20;

/// Share of the recorded range below which a spread belongs to another scale.
const SHRUNK: f64 = 0.05;

/// What kind of numbers a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementKind {
    /// Unsigned bytes.
    Bytes,
    /// Other whole numbers.
    Integers,
    /// Numbers of single or double precision, and cells of tables.
    Numbers,
}

impl ElementKind {
    fn of(values: &ArrayValues) -> Self {
        match values {
            ArrayValues::U8(_) => Self::Bytes,
            ArrayValues::I64(_) => Self::Integers,
            ArrayValues::F32(_) | ArrayValues::F64(_) => Self::Numbers,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Integers => "whole numbers",
            Self::Numbers => "floating-point numbers",
        }
    }
}

/// Kind and range of a model's inputs as they stood in their files, by column of a table or feature, by channel of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputRecord {
    /// Kind of numbers.
    pub kind: ElementKind,
    /// Least number of each group. Groups have equal sizes and cover an example's numbers in order.
    pub least: Vec<f64>,
    /// Largest number of each group.
    pub largest: Vec<f64>,
}

/// How far inputs are from those of the fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Departure {
    /// Examples with a number outside the range of its group.
    pub examples: usize,
    /// Groups with such numbers.
    pub outside: Vec<usize>,
    /// Groups whose numbers span less than a twentieth of what they spanned.
    pub shrunk: Vec<usize>,
}

impl InputRecord {
    /// Of examples with `groups` groups of numbers, or as one group where these are too many or do not divide an example. One pass.
    pub(crate) fn of(inputs: &NumericArray, groups: usize) -> Self {
        let width: usize = inputs.example_shape().iter().product();
        let groups =
            if groups > MOST_GROUPS || groups == 0 || !width.is_multiple_of(groups) { 1 } else { groups };
        let (mut least, mut largest) = (vec![f64::INFINITY; groups], vec![f64::NEG_INFINITY; groups]);
        let size = (width / groups).max(1);
        visit(inputs.values(), |i, v| {
            let group = (i % width.max(1)) / size;
            least[group] = least[group].min(v);
            largest[group] = largest[group].max(v);
        });
        Self { kind: ElementKind::of(inputs.values()), least, largest }
    }

    /// The range of both.
    pub(crate) fn merged(&self, other: &Self) -> Self {
        if self.least.len() != other.least.len() {
            return self.clone();
        }
        let both =
            |a: &[f64], b: &[f64], f: fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect();
        Self {
            kind: self.kind,
            least: both(&self.least, &other.least, f64::min),
            largest: both(&self.largest, &other.largest, f64::max),
        }
    }

    /// Refuses numbers of another kind, unless `allowed`; then says so.
    ///
    /// # Errors
    /// [`ModelError::Request`], with the way out.
    pub fn check_kind(
        &self,
        name: &str,
        inputs: &NumericArray,
        allowed: bool,
    ) -> Result<Option<String>, ModelError> {
        let found = ElementKind::of(inputs.values());
        if found == self.kind {
            return Ok(None);
        }
        let what = format!("{name} holds {}, the model was fitted on {}", found.name(), self.kind.name());
        if allowed {
            return Ok(Some(format!("{what}: taken as they are")));
        }
        Err(ModelError::Request(format!(
            "{what}, which are prepared in another way: convert them, or insist with {OTHER_INPUTS}"
        )))
    }

    /// How far inputs leave the range. One pass.
    pub fn departure(&self, inputs: &NumericArray) -> Departure {
        let (width, groups): (usize, _) = (inputs.example_shape().iter().product(), self.least.len());
        if groups == 0 || width == 0 || !width.is_multiple_of(groups) {
            return Departure::default();
        }
        let size = width / groups;
        let now = Self::of(inputs, groups);
        let mut out = Departure::default();
        let mut last = usize::MAX;
        visit(inputs.values(), |i, v| {
            let (example, group) = (i / width, (i % width) / size);
            if (v < self.least[group] || v > self.largest[group]) && example != last {
                last = example;
                out.examples += 1;
            }
        });
        for g in 0..groups {
            let (before, span) = (self.largest[g] - self.least[g], now.largest[g] - now.least[g]);
            if now.least[g] < self.least[g] || now.largest[g] > self.largest[g] {
                out.outside.push(g);
            }
            if inputs.examples() >= ENOUGH && before > 0.0 && span < SHRUNK * before {
                out.shrunk.push(g);
            }
        }
        out
    }

    /// The departure in sentences; `names` are those of the groups, where they have some.
    pub fn sentences(&self, inputs: &NumericArray, names: &[String]) -> Vec<String> {
        let departure = self.departure(inputs);
        let count = inputs.examples();
        let of = |groups: &[usize]| {
            if self.least.len() == 1 && names.is_empty() {
                return String::new();
            }
            let name = |&g: &usize| names.get(g).map_or_else(|| format!("{}", g + 1), |n| format!("`{n}`"));
            let shown: Vec<String> = groups.iter().take(5).map(name).collect();
            let rest =
                if groups.len() > 5 { format!(" and {} more", groups.len() - 5) } else { String::new() };
            let kind = if names.is_empty() { "channels or columns" } else { "columns" };
            format!(" ({kind} {}{rest})", shown.join(", "))
        };
        let mut out = Vec::new();
        if departure.examples > 0 {
            let warning = if 2 * departure.examples > count { "WARNING: " } else { "" };
            let hint = if warning.is_empty() { "" } else { "; are they on the scale of the training data?" };
            out.push(format!(
                "{warning}{} of {count} examples have numbers outside the range that the model was fitted on{}{hint}",
                departure.examples,
                of(&departure.outside)
            ));
        }
        if !departure.shrunk.is_empty() {
            out.push(format!(
                "WARNING: numbers span less than a twentieth of the range that the model was fitted on{}; are they on the scale of the training data?",
                of(&departure.shrunk)
            ));
        }
        out
    }
}

/// All numbers with their positions.
fn visit(values: &ArrayValues, mut f: impl FnMut(usize, f64)) {
    match values {
        ArrayValues::F32(v) => v.iter().enumerate().for_each(|(i, v)| f(i, f64::from(*v))),
        ArrayValues::F64(v) => v.iter().enumerate().for_each(|(i, v)| f(i, *v)),
        ArrayValues::I64(v) => v.iter().enumerate().for_each(|(i, v)| f(i, *v as f64)),
        ArrayValues::U8(v) => v.iter().enumerate().for_each(|(i, v)| f(i, f64::from(*v))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(shape: &[usize], values: Vec<f64>) -> NumericArray {
        NumericArray::new(shape.to_vec(), ArrayValues::F64(values)).unwrap()
    }

    /// Against a count from the definition, by column and by channel.
    #[test]
    fn departures_are_counted_by_group() {
        let fitted = array(&[3, 2], vec![0.0, 10.0, 1.0, 20.0, 0.5, 15.0]);
        let record = InputRecord::of(&fitted, 2);
        assert_eq!(
            (record.least.as_slice(), record.largest.as_slice()),
            (&[0.0, 10.0][..], &[1.0, 20.0][..])
        );
        assert_eq!(record.departure(&fitted), Departure::default());
        let other = array(&[4, 2], vec![0.5, 21.0, 0.5, 11.0, -1.0, 30.0, 0.2, 12.0]);
        let found = record.departure(&other);
        assert_eq!((found.examples, found.outside), (2, vec![0, 1]));
        // Channels of two pixels each.
        let record = InputRecord::of(&array(&[1, 2, 2], vec![0.0, 1.0, 5.0, 9.0]), 2);
        let found = record.departure(&array(&[2, 2, 2], vec![0.5, 0.5, 6.0, 9.5, 0.0, 1.0, 5.0, 5.0]));
        assert_eq!((found.examples, found.outside), (1, vec![1]));
    }

    #[test]
    fn a_smaller_scale_is_noticed_within_the_range() {
        let fitted = array(&[30, 1], (0..30).map(|i| i as f64 * 8.0).collect());
        let record = InputRecord::of(&fitted, 1);
        let scaled = array(&[30, 1], (0..30).map(|i| i as f64 * 8.0 / 255.0).collect());
        assert_eq!(record.departure(&scaled).shrunk, [0]);
        assert!(record.sentences(&scaled, &[])[0].contains("less than a twentieth"));
        assert!(record.departure(&fitted).shrunk.is_empty());
        // A handful of rows says nothing about a spread.
        assert!(record.departure(&array(&[3, 1], vec![8.0, 8.0, 8.0])).shrunk.is_empty());
    }

    #[test]
    fn another_kind_is_refused_unless_allowed() {
        let record = InputRecord::of(&array(&[1, 1], vec![0.5]), 1);
        let bytes = NumericArray::new(vec![1, 1], ArrayValues::U8(vec![3])).unwrap();
        let text = record.check_kind("x.npy", &bytes, false).unwrap_err().to_string();
        assert!(text.contains("x.npy holds bytes") && text.contains("--allow-other-inputs"), "{text}");
        assert!(record.check_kind("x.npy", &bytes, true).unwrap().unwrap().contains("taken as they are"));
        assert_eq!(record.check_kind("x.npy", &array(&[1, 1], vec![7.0]), false).unwrap(), None);
    }
}
