//! Syntax to kernels, for one table's columns.

use super::{Kind, Leaf, Node, parse::KernelTextError};
use crate::composite::{Product, Scaled, Sum};
use crate::stationary::{
    Form, Matern12, Matern32, Matern52, RationalQuadratic, SquaredExponential, Stationary,
};
use crate::{Columns, Constant, Kernel, Linear, Periodic, Polynomial, White};
use posterior_linalg::Real;
use std::collections::HashMap;

pub(super) struct Builder<'a> {
    features: &'a [String],
    source: &'a str,
    /// How often each label has been used.
    used: HashMap<String, usize>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(features: &'a [String], source: &'a str) -> Self {
        Self { features, source, used: HashMap::new() }
    }

    pub(super) fn root<T: Real>(mut self, node: &Node) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
        if self.features.is_empty() {
            return Err(KernelTextError::new(self.source, 0, "a kernel needs at least one feature column"));
        }
        self.term(node)
    }

    /// A summand: carries one variance, unless its parts do.
    fn term<T: Real>(&mut self, node: &Node) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
        match node {
            Node::Sum(parts) => {
                let terms = parts.iter().map(|p| self.term(p)).collect::<Result<_, _>>()?;
                Ok(Box::new(Sum::new(terms)))
            }
            Node::Product(parts) => {
                let has_sum = parts.iter().any(|p| matches!(p, Node::Sum(_)));
                let label = self.label(&title(node));
                let factors = parts.iter().map(|p| self.factor(p)).collect::<Result<_, _>>()?;
                let product: Box<dyn Kernel<T>> = Box::new(Product::new(factors));
                let variance: f64 = parts.iter().filter_map(|p| leaf_of(p)?.setting("variance")).product();
                Ok(if has_sum { product } else { Box::new(Scaled::new(label, variance, product)) })
            }
            Node::Leaf(leaf) => {
                let label = self.label(leaf.kind.names()[0]);
                let inner = self.leaf(leaf, &label)?;
                if leaf.kind == Kind::Linear && leaf.ard {
                    return Ok(inner);
                }
                Ok(Box::new(Scaled::new(label, leaf.setting("variance").unwrap_or(1.0), inner)))
            }
        }
    }

    /// A factor: amplitude 1, unless it is a sum.
    fn factor<T: Real>(&mut self, node: &Node) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
        match node {
            Node::Sum(_) => self.term(node),
            Node::Product(parts) => {
                let factors = parts.iter().map(|p| self.factor(p)).collect::<Result<_, _>>()?;
                Ok(Box::new(Product::new(factors)))
            }
            Node::Leaf(leaf) => {
                let label = self.label(leaf.kind.names()[0]);
                self.leaf(leaf, &label)
            }
        }
    }

    fn leaf<T: Real>(&mut self, leaf: &Leaf, label: &str) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
        let columns = self.columns(leaf)?;
        let setting = |name| leaf.setting(name).unwrap_or(1.0);
        Ok(match leaf.kind {
            Kind::SquaredExponential => stationary(label, leaf, columns, SquaredExponential),
            Kind::Matern12 => stationary(label, leaf, columns, Matern12),
            Kind::Matern32 => stationary(label, leaf, columns, Matern32),
            Kind::Matern52 => stationary(label, leaf, columns, Matern52),
            Kind::RationalQuadratic => {
                stationary(label, leaf, columns, RationalQuadratic { alpha: setting("alpha") })
            }
            Kind::Periodic => {
                Box::new(Periodic::new(label, columns, leaf.ard, setting("lengthscale"), setting("period")))
            }
            Kind::Linear => Box::new(Linear::new(label, columns, leaf.ard, setting("variance"))),
            Kind::Polynomial => {
                let degree = leaf.setting("degree").unwrap_or(2.0) as u32;
                Box::new(Polynomial::new(label, columns, degree, setting("offset")))
            }
            Kind::Constant => Box::new(Constant),
            Kind::White => Box::new(White),
        })
    }

    fn columns(&self, leaf: &Leaf) -> Result<Columns, KernelTextError> {
        if leaf.columns.is_empty() {
            return Ok(Columns::all(self.features.len()));
        }
        let mut indices = Vec::new();
        for (name, position) in &leaf.columns {
            let here = |message: String| KernelTextError::new(self.source, *position, message);
            let index = self.features.iter().position(|f| f == name).ok_or_else(|| {
                here(format!("no feature column is called `{name}`; there are: {}", self.features.join(", ")))
            })?;
            if indices.contains(&index) {
                return Err(here(format!("column `{name}` is named twice")));
            }
            indices.push(index);
        }
        Ok(Columns::some(indices))
    }

    /// A name that no other kernel of the expression has: the second `linear` is `linear[2]`.
    fn label(&mut self, base: &str) -> String {
        let count = self.used.entry(base.to_string()).or_insert(0);
        *count += 1;
        if *count == 1 { base.to_string() } else { format!("{base}[{count}]") }
    }
}

impl Leaf {
    fn setting(&self, name: &str) -> Option<f64> {
        self.settings.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }
}

fn leaf_of(node: &Node) -> Option<&Leaf> {
    if let Node::Leaf(leaf) = node { Some(leaf) } else { None }
}

/// What a product's variance is called: its factors' names with `*` between.
fn title(node: &Node) -> String {
    match node {
        Node::Leaf(leaf) => leaf.kind.names()[0].to_string(),
        Node::Sum(_) => "sum".to_string(),
        Node::Product(parts) => parts.iter().map(title).collect::<Vec<_>>().join("*"),
    }
}

fn stationary<T: Real, F: Form>(label: &str, leaf: &Leaf, columns: Columns, form: F) -> Box<dyn Kernel<T>> {
    Box::new(Stationary::new(label, form, columns, leaf.ard, leaf.setting("lengthscale").unwrap_or(1.0)))
}
