//! Everything trainable: named blocks of natural values, and the one flat unconstrained vector that optimisers move.

use crate::Transform;
use serde::{Deserialize, Serialize};

/// One named block of parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Its name, such as `matern32.lengthscale`.
    pub name: String,
    /// Its shape; the entries of a matrix follow one another by columns. A packed triangle ([`Transform::Triangular`])
    /// has its number of entries, or `[k, k]` for `k (k + 1) / 2` entries.
    pub shape: Vec<usize>,
    /// How it is constrained.
    pub transform: Transform,
}

impl Segment {
    /// Number of entries.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match (self.transform, self.shape.as_slice()) {
            (Transform::Triangular, &[rows, columns]) if rows == columns => rows * (rows + 1) / 2,
            (_, shape) => shape.iter().product(),
        }
    }

    /// The name of each entry, such as `matern32.lengthscale[2]`; the block's own where it has one entry.
    pub fn entry_names(&self) -> Vec<String> {
        let count = self.len();
        let name = |i: usize| if count == 1 { self.name.clone() } else { format!("{}[{i}]", self.name) };
        (0..count).map(name).collect()
    }
}

/// Natural values (a lengthscale, not its logarithm) as one flat vector in the order of [`Parameters::segments`], and
/// the same without constraints.
pub trait Parameters {
    /// The named blocks, in order.
    fn segments(&self) -> Vec<Segment>;

    /// Natural values, blocks end to end.
    fn values(&self) -> Vec<f64>;

    /// Whether these are natural values: as many as there are, all finite and each within its transform's range. Files are asked so before their numbers are believed.
    fn admits(&self, values: &[f64]) -> bool {
        admitted(&self.segments(), values)
    }

    /// Replaces the natural values.
    ///
    /// # Panics
    /// When the length is not that of [`Parameters::values`].
    fn set_values(&mut self, values: &[f64]);

    /// The vector that an optimiser moves: fixed blocks are left out, the others are unconstrained.
    fn unconstrained(&self) -> Vec<f64> {
        Free::of(&self.segments()).unconstrained(&self.values())
    }

    /// Moves to an unconstrained vector; fixed blocks keep their values.
    ///
    /// # Panics
    /// When the length is not that of [`Parameters::unconstrained`].
    fn set_unconstrained(&mut self, theta: &[f64]) {
        let mut values = self.values();
        Free::of(&self.segments()).write(theta, &mut values);
        self.set_values(&values);
    }

    /// The gradient with respect to the unconstrained vector, from the one with respect to the natural values at the
    /// unconstrained point `theta`.
    fn chain(&self, theta: &[f64], natural_gradient: &[f64]) -> Vec<f64> {
        Free::of(&self.segments()).chain(theta, natural_gradient)
    }

    /// The name of each entry of the unconstrained vector, such as `matern32.lengthscale[2]`.
    fn unconstrained_names(&self) -> Vec<String> {
        free_names(&self.segments())
    }
}

/// What [`Parameters::admits`] answers. The work of these methods is in functions of this crate, since every type brings its own copy of a trait's.
fn admitted(segments: &[Segment], values: &[f64]) -> bool {
    let mut ranges = entries(segments);
    let own =
        ranges.by_ref().zip(values).all(|((transform, position), value)| transform.admits(position, *value));
    own && values.len() == segments.iter().map(Segment::len).sum::<usize>()
}

/// What [`Parameters::unconstrained_names`] answers.
fn free_names(segments: &[Segment]) -> Vec<String> {
    let names: Vec<String> = segments.iter().flat_map(Segment::entry_names).collect();
    Free::of(segments).indices().map(|i| names[i].clone()).collect()
}

/// Transform and position in its block of every entry of the flat vector.
pub(crate) fn entries(segments: &[Segment]) -> impl Iterator<Item = (Transform, usize)> + '_ {
    segments.iter().flat_map(|s| (0..s.len()).map(move |position| (s.transform, position)))
}

/// Which entries of a vector of natural values move, and how: `(index, transform, position in its block)`.
#[derive(Clone, Debug)]
pub(crate) struct Free(Vec<(usize, Transform, usize)>);

impl Free {
    /// Those of all entries of some blocks.
    pub(crate) fn of(segments: &[Segment]) -> Self {
        Self::new(entries(segments))
    }

    /// Those of all entries that are not fixed.
    pub(crate) fn new(entries: impl IntoIterator<Item = (Transform, usize)>) -> Self {
        let free =
            entries.into_iter().enumerate().filter(|(_, (transform, _))| *transform != Transform::Fixed);
        Self(free.map(|(index, (transform, position))| (index, transform, position)).collect())
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Which of the natural values they are.
    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|entry| entry.0)
    }

    /// How each of so many natural values moves; fixed ones do not.
    pub(crate) fn transforms(&self, count: usize) -> Vec<Transform> {
        let mut all = vec![Transform::Fixed; count];
        self.0.iter().for_each(|&(index, transform, _)| all[index] = transform);
        all
    }

    /// Index, transform and unconstrained number of each.
    pub(crate) fn each<'a>(
        &'a self,
        values: &'a [f64],
    ) -> impl Iterator<Item = (usize, Transform, f64)> + 'a {
        self.0.iter().map(|&(i, transform, position)| (i, transform, transform.inverse(position, values[i])))
    }

    /// Unconstrained numbers from natural values.
    pub(crate) fn unconstrained(&self, values: &[f64]) -> Vec<f64> {
        self.each(values).map(|(_, _, u)| u).collect()
    }

    /// Natural values from unconstrained numbers; others keep theirs.
    pub(crate) fn write(&self, theta: &[f64], values: &mut [f64]) {
        assert_eq!(theta.len(), self.len(), "one number for each free parameter");
        for (&(i, transform, position), u) in self.0.iter().zip(theta) {
            values[i] = transform.forward(position, *u);
        }
    }

    /// The gradient in unconstrained numbers from the one in natural values.
    pub(crate) fn chain(&self, theta: &[f64], natural_gradient: &[f64]) -> Vec<f64> {
        let each = self.0.iter().zip(theta);
        each.map(|(&(i, transform, position), &u)| natural_gradient[i] * transform.derivative(position, u))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Example(Vec<f64>);

    impl Parameters for Example {
        fn segments(&self) -> Vec<Segment> {
            let segment = |name: &str, shape, transform| Segment { name: name.into(), shape, transform };
            vec![
                segment("scale", vec![2], Transform::Log),
                segment("known", vec![1], Transform::Fixed),
                segment("shift", vec![], Transform::Identity),
            ]
        }
        fn values(&self) -> Vec<f64> {
            self.0.clone()
        }
        fn set_values(&mut self, values: &[f64]) {
            self.0.copy_from_slice(values);
        }
    }

    #[test]
    fn a_triangle_has_its_packed_length() {
        let length = |shape: &[usize], transform| {
            Segment { name: "factor".into(), shape: shape.to_vec(), transform }.len()
        };
        assert_eq!(length(&[4, 4], Transform::Triangular), 10);
        assert_eq!(length(&[10], Transform::Triangular), 10);
        assert_eq!(length(&[4, 4], Transform::Identity), 16);
        assert_eq!(length(&[], Transform::Log), 1);
    }

    #[test]
    fn fixed_blocks_stay_and_the_chain_rule_holds() {
        let mut example = Example(vec![1.0, 2.0, 7.0, -3.0]);
        let theta = example.unconstrained();
        assert_eq!(theta, [0.0, 2f64.ln(), -3.0]);
        assert_eq!(example.unconstrained_names(), ["scale[0]", "scale[1]", "shift"]);
        example.set_unconstrained(&[1.0, 0.0, 5.0]);
        assert_eq!(example.values(), [1f64.exp(), 1.0, 7.0, 5.0]);
        assert_eq!(example.chain(&[1.0, 0.0, 5.0], &[2.0, 3.0, 100.0, 4.0]), [2.0 * 1f64.exp(), 3.0, 4.0]);
    }
}
