//! The **prior** `w ~ N(0, A^-1)` with a diagonal precision that is constant within groups of weights: one group for everything, one for each
//! layer, or one for each weight.

use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A diagonal Gaussian prior with one precision for each group of weights.
///
/// Weights are counted in one flat vector; consecutive stretches of it belong to groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// Ends of the stretches, ascending; the last is the number of weights.
    ends: Vec<usize>,
    /// The group of each stretch.
    groups: Vec<usize>,
    names: Vec<String>,
    precisions: Vec<f64>,
}

/// Why groups of weights do not make a prior.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PriorError {
    /// A precision that is not a positive finite number.
    #[error("the prior precision of `{group}` is {value}; it must be a positive finite number")]
    Precision {
        /// The group.
        group: String,
        /// What was given.
        value: f64,
    },
    /// Stretches without a group, or groups without a name or precision.
    #[error(
        "{groups} groups were used, but {names} names and {precisions} precisions were given; give one of each for every group"
    )]
    Groups {
        /// Groups in use.
        groups: usize,
        /// Names given.
        names: usize,
        /// Precisions given.
        precisions: usize,
    },
}

impl Prior {
    /// One precision for all weights.
    ///
    /// # Errors
    /// Unless the precision is positive and finite.
    pub fn scalar(dimension: usize, precision: f64) -> Result<Self, PriorError> {
        Self::grouped(&[(dimension, 0)], vec!["all".into()], vec![precision])
    }

    /// Consecutive stretches of weights, each given by its length and its group; names and precisions of the groups.
    ///
    /// # Errors
    /// When a group has no name or precision, or a precision is not positive and finite.
    pub fn grouped(
        stretches: &[(usize, usize)],
        names: Vec<String>,
        precisions: Vec<f64>,
    ) -> Result<Self, PriorError> {
        let groups = stretches.iter().map(|s| s.1 + 1).max().unwrap_or(names.len());
        if groups != names.len() || names.len() != precisions.len() {
            return Err(PriorError::Groups { groups, names: names.len(), precisions: precisions.len() });
        }
        let mut end = 0;
        let ends = stretches.iter().map(|s| {
            end += s.0;
            end
        });
        let prior = Self {
            ends: ends.collect(),
            groups: stretches.iter().map(|s| s.1).collect(),
            names,
            precisions: Vec::new(),
        };
        prior.with_precisions(&precisions)
    }

    /// One group for each weight.
    ///
    /// # Errors
    /// When a precision is not positive and finite.
    pub fn each(precisions: Vec<f64>) -> Result<Self, PriorError> {
        let stretches: Vec<_> = (0..precisions.len()).map(|i| (1, i)).collect();
        let names = (0..precisions.len()).map(|i| format!("weight {i}")).collect();
        Self::grouped(&stretches, names, precisions)
    }

    /// The same groups with other precisions.
    ///
    /// # Errors
    /// When their number is wrong or one is not positive and finite.
    pub fn with_precisions(&self, precisions: &[f64]) -> Result<Self, PriorError> {
        if precisions.len() != self.names.len() {
            let (groups, given) = (self.names.len(), precisions.len());
            return Err(PriorError::Groups { groups, names: groups, precisions: given });
        }
        match precisions.iter().position(|p| !(p.is_finite() && *p > 0.0)) {
            Some(i) => Err(PriorError::Precision { group: self.names[i].clone(), value: precisions[i] }),
            None => Ok(Self { precisions: precisions.to_vec(), ..self.clone() }),
        }
    }

    /// Number of weights.
    pub fn dimension(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Names of the groups.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Precisions of the groups.
    pub fn precisions(&self) -> &[f64] {
        &self.precisions
    }

    /// The stretches `(weights, group)` inside a range of weights, cut to it.
    pub fn stretches(&self, within: Range<usize>) -> impl Iterator<Item = (Range<usize>, usize)> + '_ {
        let first = self.ends.partition_point(|&e| e <= within.start);
        (first..self.ends.len())
            .map(move |i| {
                let start = if i == 0 { 0 } else { self.ends[i - 1] };
                (start.max(within.start)..self.ends[i].min(within.end), self.groups[i])
            })
            .take_while(move |(range, _)| range.start < range.end)
    }

    /// The group of all weights in a range, if there is only one.
    pub fn group_of(&self, within: Range<usize>) -> Option<usize> {
        let mut groups = self.stretches(within).map(|s| s.1);
        let first = groups.next()?;
        groups.all(|g| g == first).then_some(first)
    }

    /// The precision of each weight in a range.
    pub fn precision_of_each(&self, within: Range<usize>) -> Vec<f64> {
        let mut out = Vec::with_capacity(within.len());
        for (range, group) in self.stretches(within) {
            out.resize(out.len() + range.len(), self.precisions[group]);
        }
        out
    }

    /// Number of weights in each group.
    pub fn group_sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.names.len()];
        self.stretches(0..self.dimension()).for_each(|(range, group)| sizes[group] += range.len());
        sizes
    }

    /// `|w_g|^2` for each group.
    ///
    /// # Panics
    /// When the vector's length is not [`Self::dimension`].
    pub fn squared_norms(&self, w: &[f64]) -> Vec<f64> {
        assert_eq!(w.len(), self.dimension(), "one value for each weight");
        let mut norms = vec![0.0; self.names.len()];
        for (range, group) in self.stretches(0..w.len()) {
            norms[group] += w[range].iter().map(|v| v * v).sum::<f64>();
        }
        norms
    }

    /// A draw of the weights, from the stream `linear/prior`.
    pub fn sample(&self, streams: Streams) -> Vec<f64> {
        let mut rng = streams.stream("linear/prior");
        let draw = |p: f64| {
            let z: f64 = StandardNormal.sample(&mut rng);
            z / p.sqrt()
        };
        self.precision_of_each(0..self.dimension()).into_iter().map(draw).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Prior {
        Prior::grouped(&[(2, 0), (3, 1), (1, 0)], vec!["a".into(), "b".into()], vec![2.0, 5.0]).unwrap()
    }

    #[test]
    fn stretches_are_cut_to_the_range() {
        let prior = three();
        let all: Vec<_> = prior.stretches(1..6).collect();
        assert_eq!(all, [(1..2, 0), (2..5, 1), (5..6, 0)]);
        assert_eq!(prior.precision_of_each(1..4), [2.0, 5.0, 5.0]);
        assert_eq!(prior.group_of(2..5), Some(1));
        assert_eq!(prior.group_of(1..3), None);
        assert_eq!(prior.group_sizes(), [3, 3]);
        assert_eq!(prior.squared_norms(&[1.0, 2.0, 3.0, 0.0, 1.0, 4.0]), [21.0, 10.0]);
        assert_eq!(Prior::each(vec![1.0, 3.0]).unwrap().precision_of_each(0..2), [1.0, 3.0]);
    }

    #[test]
    fn draws_have_the_prior_variance() {
        let prior = three();
        let count = 20_000;
        let mut sums = [0.0; 6];
        for i in 0..count {
            let w = prior.sample(Streams::new(0).child("test", i));
            sums.iter_mut().zip(&w).for_each(|(s, v)| *s += v * v / count as f64);
        }
        // The mean of n squared normals has relative deviation sqrt(2/n) = 1 %; six of them stay within 4.5 of those.
        for (sum, p) in sums.iter().zip(prior.precision_of_each(0..6)) {
            assert!((sum * p - 1.0).abs() < 0.045, "{sum} {p}");
        }
    }

    #[test]
    fn what_is_no_precision_is_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let message = Prior::scalar(3, bad).unwrap_err().to_string();
            assert!(message.contains("positive finite"), "{message}");
        }
        assert!(matches!(
            Prior::grouped(&[(1, 3)], vec!["a".into()], vec![1.0]),
            Err(PriorError::Groups { .. })
        ));
        assert!(three().with_precisions(&[1.0]).is_err());
    }
}
