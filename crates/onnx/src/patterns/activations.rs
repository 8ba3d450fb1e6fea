//! Activations from their parts.

use super::{Found, Graph};
use crate::node::Fused;
use posterior_networks::Activation;

impl<'a> Graph<'a> {
    /// GELU in both forms, SiLU, Mish, the hard swish, and a softplus from logarithm and exponential.
    pub(super) fn activation(&self, i: usize) -> Option<Found> {
        let product = &self.nodes[i];
        let whole = |what, kind, x: &str| Some((what, Fused::Activation(kind), vec![x.to_string()], vec![]));
        match product.operator.as_str() {
            _ if !product.domain.is_empty() => return None,
            "Mul" => {}
            "Log" => return whole("a softplus", Activation::Softplus, self.one_plus_exp(product.input(0)?)?),
            "Div" => {
                let six = product.input(1).is_some_and(|c| self.is(c, 6.0));
                let parts = self.made(product.input(0)?, "Mul").filter(|_| six)?;
                let x = Self::orders(parts).find_map(|(x, c)| (self.shifted_clip(c)? == x).then_some(x))?;
                return whole("a hard swish", Activation::HardSwish, x);
            }
            _ => return None,
        }
        if let Some(x) = Self::orders(product).find_map(|(x, s)| (self.hard_sigmoid(s)? == x).then_some(x)) {
            return whole("a hard swish", Activation::HardSwish, x);
        }
        let mish = |x: &str, t: &str| {
            let softplus = self.made(t, "Tanh")?.input(0)?;
            let inner = match self.made(softplus, "Softplus") {
                Some(node) => node.input(0)?,
                None => self.one_plus_exp(self.made(softplus, "Log")?.input(0)?)?,
            };
            (inner == x).then_some(())
        };
        if let Some((x, _)) = Self::orders(product).find(|&(x, t)| mish(x, t).is_some()) {
            return whole("a Mish", Activation::Mish, x);
        }
        let silu = |x: &str, s: &str| self.made(s, "Sigmoid").is_some_and(|s| s.input(0) == Some(x));
        if let Some((x, _)) = Self::orders(product).find(|&(x, s)| silu(x, s)) {
            return Some(("a SiLU", Fused::Activation(Activation::Silu), vec![x.into()], vec![]));
        }
        let inner = |name: &str| self.made(name, "Mul").and_then(|n| n.input(0).zip(n.input(1)));
        let factors = Self::orders(product).filter_map(|(a, b)| inner(b).map(|(c, d)| [a, c, d]));
        for [a, b, c] in factors {
            for [x, sum, half] in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
                if self.is(half, 0.5)
                    && let Some(kind) = self.one_plus(sum, x)
                {
                    return Some(("a GELU", Fused::Activation(kind), vec![x.into()], vec![]));
                }
            }
        }
        None
    }

    /// `x` where `name = 1 + exp x`.
    fn one_plus_exp(&self, name: &str) -> Option<&'a str> {
        let (power, _) = Self::orders(self.made(name, "Add")?).find(|&(_, one)| self.is(one, 1.0))?;
        self.made(power, "Exp")?.input(0)
    }

    /// `x` where `name` is `x + 3` between 0 and 6.
    fn shifted_clip(&self, name: &str) -> Option<&'a str> {
        let clip = self.made(name, "Clip")?;
        let limit = |i: usize, attribute: &str| {
            clip.input(i).map_or_else(|| clip.float(attribute), |limit| self.number(limit))
        };
        if limit(1, "min") != Some(0.0) || limit(2, "max") != Some(6.0) {
            return None;
        }
        let (x, _) = Self::orders(self.made(clip.input(0)?, "Add")?).find(|&(_, c)| self.is(c, 3.0))?;
        Some(x)
    }

    /// `x` where `name` is its hard sigmoid of slope 1/6.
    fn hard_sigmoid(&self, name: &str) -> Option<&'a str> {
        if let Some(node) = self.made(name, "HardSigmoid") {
            let near = |attribute: &str, usual: f64, wanted: f64| {
                (node.float(attribute).unwrap_or(usual) - wanted).abs() < 1e-5
            };
            return node.input(0).filter(|_| near("alpha", 0.2, 1.0 / 6.0) && near("beta", 0.5, 0.5));
        }
        let division = self.made(name, "Div")?;
        let six = division.input(1).is_some_and(|c| self.is(c, 6.0));
        self.shifted_clip(division.input(0).filter(|_| six)?)
    }

    /// Which GELU it is where `name` is `1 + erf(x / sqrt 2)` or `1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))`.
    fn one_plus(&self, name: &str, x: &str) -> Option<Activation> {
        let (function, _) = Self::orders(self.made(name, "Add")?).find(|&(_, one)| self.is(one, 1.0))?;
        if let Some(erf) = self.made(function, "Erf") {
            let argument = erf.input(0)?;
            let divided = self.made(argument, "Div").is_some_and(|d| {
                d.input(0) == Some(x) && d.input(1).is_some_and(|c| self.is(c, std::f64::consts::SQRT_2))
            });
            let scaled = || {
                let (found, _) = Self::orders(self.made(argument, "Mul")?)
                    .find(|&(_, c)| self.is(c, std::f64::consts::FRAC_1_SQRT_2))?;
                (found == x).then_some(())
            };
            return (divided || scaled().is_some()).then_some(Activation::Gelu);
        }
        let argument = self.made(self.made(function, "Tanh")?.input(0)?, "Mul")?;
        let (sum, _) =
            Self::orders(argument).find(|&(_, c)| self.is(c, (2.0 / std::f64::consts::PI).sqrt()))?;
        let cubic = |name: &str| {
            let (cube, _) = Self::orders(self.made(name, "Mul")?).find(|&(_, c)| self.is(c, 0.044_715))?;
            self.cubed(cube)
        };
        Self::orders(self.made(sum, "Add")?)
            .any(|(a, b)| a == x && cubic(b) == Some(x))
            .then_some(Activation::GeluTanh)
    }
}
