//! Layer norms and RMS norms from their parts.

use super::{Found, Graph};
use crate::node::{Fused, Node};

impl<'a> Graph<'a> {
    /// `(x - mean x) / sqrt(mean (x - mean x)^2 + epsilon)`.
    pub(super) fn normalisation(&self, i: usize) -> Option<Found> {
        let last = &self.nodes[i];
        let (difference, root) = match last.operator.as_str() {
            "Div" => (last.input(0)?, last.input(1)?),
            "Mul" => {
                Self::orders(last).find_map(|(a, b)| Some((a, self.made(b, "Reciprocal")?.input(0)?)))?
            }
            _ => return None,
        };
        let sum = self.made(root, "Sqrt")?.input(0)?;
        let (variance, epsilon) = Self::orders(self.made(sum, "Add")?)
            .find_map(|(v, e)| Some((self.made(v, "ReduceMean")?, self.number(e)?)))?;
        let centred = |name: &str| -> Option<(&'a str, &'a Node)> {
            let subtraction = self.made(name, "Sub")?;
            let (x, mean) = (subtraction.input(0)?, self.made(subtraction.input(1)?, "ReduceMean")?);
            (mean.input(0) == Some(x)).then_some((x, mean))
        };
        let (x, mean) = centred(difference)?;
        let square = self.squared(variance.input(0)?)?;
        let same_axes = |a: &Node, b: &Node| {
            a.ints("axes") == b.ints("axes")
                && a.inputs.get(1).map(|n| self.axes(n)) == b.inputs.get(1).map(|n| self.axes(n))
        };
        let keeps = |node: &Node| node.int("keepdims").unwrap_or(1) == 1;
        let again = centred(square)?;
        let fits = again.0 == x && same_axes(again.1, mean) && same_axes(variance, mean);
        if !(fits && keeps(mean) && keeps(variance) && keeps(again.1)) {
            return None;
        }
        let mut inputs = vec![x.to_string()];
        inputs.extend(mean.inputs.get(1).cloned());
        Some(("a normalisation", Fused::Normalise { epsilon }, inputs, mean.attributes.clone()))
    }

    /// `x / sqrt(mean x^2 + epsilon)`.
    pub(super) fn rms_normalisation(&self, i: usize) -> Option<Found> {
        let last = &self.nodes[i];
        if !last.domain.is_empty() {
            return None;
        }
        let (x, sum) = match last.operator.as_str() {
            "Div" => (last.input(0)?, self.made(last.input(1)?, "Sqrt")?.input(0)?),
            "Mul" => Self::orders(last).find_map(|(x, factor)| Some((x, self.inverse_root(factor)?)))?,
            _ => return None,
        };
        let (mean, epsilon) = Self::orders(self.made(sum, "Add")?)
            .find_map(|(mean, e)| Some((self.made(mean, "ReduceMean")?, self.number(e)?)))?;
        let keeps = mean.int("keepdims").unwrap_or(1) == 1;
        if !keeps || epsilon < 0.0 || self.squared(mean.input(0)?)? != x {
            return None;
        }
        let mut inputs = vec![x.to_string()];
        inputs.extend(mean.inputs.get(1).cloned());
        Some(("an RMS norm", Fused::RmsNormalise { epsilon }, inputs, mean.attributes.clone()))
    }

    /// `s` where `name` is one over its root.
    fn inverse_root(&self, name: &str) -> Option<&'a str> {
        if let Some(inverse) = self.made(name, "Reciprocal") {
            return self.made(inverse.input(0)?, "Sqrt")?.input(0);
        }
        if let Some(power) = self.made(name, "Pow") {
            return power.input(0).filter(|_| power.input(1).is_some_and(|e| self.number(e) == Some(-0.5)));
        }
        let division = self.made(name, "Div")?;
        let one = division.input(0).is_some_and(|c| self.is(c, 1.0));
        self.made(division.input(1).filter(|_| one)?, "Sqrt")?.input(0)
    }
}
