//! Syntax to kernels, for one table's columns.

use super::object::Object;
use super::parse::{KernelTextError, nearest};
use super::{Kind, Leaf, Node, additive, categories, images, network};
use crate::categorical::Categorical;
use crate::composite::{Product, Scaled, Sum, Warped};
use crate::infinite::{ConvolutionalNetwork, InfiniteNetwork};
use crate::stationary::{
    Form, Matern12, Matern32, Matern52, RationalQuadratic, SquaredExponential, Stationary,
};
use crate::tanimoto::Tanimoto;
use crate::{Columns, Constant, Kernel, Linear, Periodic, Polynomial, SpectralMixture, Warp, White};
use posterior_linalg::Real;
use std::collections::HashMap;

pub(super) struct Builder<'a> {
    features: &'a [String],
    source: &'a str,
    /// Features that belong to categorical kernels.
    claimed: Vec<usize>,
    /// Columns of counts that a `tanimoto` looks at, which no warp changes.
    counted: Vec<usize>,
    /// What was built looks at.
    columns: Vec<(String, Vec<usize>)>,
    /// Columns of kernels that a warp would change, one entry for each.
    numbers: Vec<Vec<usize>>,
    /// How often each label has been used.
    used: HashMap<String, usize>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(features: &'a [String], node: &Node, source: &'a str) -> Self {
        let (claimed, counted) = (claimed(node, features), counted(node, features));
        Self {
            features,
            source,
            claimed,
            counted,
            columns: Vec::new(),
            numbers: Vec::new(),
            used: HashMap::new(),
        }
    }

    /// The labels of kernels that were built, with the columns that each looks at.
    pub(super) fn into_columns(self) -> Vec<(String, Vec<usize>)> {
        self.columns
    }

    pub(super) fn root<T: Real>(&mut self, node: &Node) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
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
            Node::Product(_) => {
                if node.has_amplitude() {
                    return self.factor(node);
                }
                let label = self.label(&title(node));
                let variance = node.factor_variances().iter().map(|s| s.value).product();
                Ok(Box::new(Scaled::new(label, variance, self.factor(node)?)))
            }
            Node::Warp(inner, position) => self.warped(*position, |builder| builder.term(inner)),
            Node::Object(object) => {
                let inner = self.object(object)?;
                if object.has_amplitude() {
                    return Ok(inner);
                }
                Ok(Box::new(Scaled::new(object.name(), 1.0, inner)))
            }
            Node::Leaf(leaf) => {
                let label = self.label(leaf.kind.names()[0]);
                let inner = self.leaf(leaf, &label)?;
                if leaf.has_own_variances() {
                    return Ok(inner);
                }
                Ok(Box::new(Scaled::new(label, leaf.initial("variance", 1.0), inner)))
            }
        }
    }

    /// A factor: amplitude 1, unless it is a sum.
    fn factor<T: Real>(&mut self, node: &Node) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
        match node {
            Node::Sum(_) => self.term(node),
            Node::Warp(inner, position) => self.warped(*position, |builder| builder.factor(inner)),
            Node::Object(object) => self.object(object),
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

    /// What `inner` builds, behind a warp of all columns of numbers that it looks at.
    fn warped<T: Real>(
        &mut self,
        position: usize,
        inner: impl FnOnce(&mut Self) -> Result<Box<dyn Kernel<T>>, KernelTextError>,
    ) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
        let label = self.label("warp");
        let before = self.numbers.len();
        let inner = inner(self)?;
        let mut columns: Vec<usize> = self.numbers[before..].iter().flatten().copied().collect();
        columns.sort_unstable();
        columns.dedup();
        columns.retain(|c| !self.claimed.contains(c) && !self.counted.contains(c));
        if columns.is_empty() {
            let message =
                "there is nothing to warp: all columns in these parentheses are categories or counts";
            return Err(KernelTextError::new(self.source, position, message));
        }
        self.columns.push((label.clone(), columns.clone()));
        Ok(Box::new(Warped::new(label, Warp::new(columns), inner)))
    }

    /// A kernel of the caller's own, which sees all columns.
    fn object<T: Real>(&mut self, object: &Object) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
        let here = |message: String| KernelTextError::new(self.source, object.position(), message);
        let kernel = object.build().map_err(here)?;
        if self.label(object.name()) != object.name() {
            let message = format!(
                "`{}` stands twice in this kernel, and its parameters would have one name: leave one out",
                object.name()
            );
            return Err(KernelTextError::new(self.source, object.position(), message));
        }
        let columns: Vec<usize> = (0..self.features.len()).collect();
        self.columns.push((object.name().to_string(), columns.clone()));
        self.numbers.push(columns);
        Ok(kernel)
    }

    fn leaf<T: Real>(&mut self, leaf: &Leaf, label: &str) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
        let columns = self.columns(leaf)?;
        if leaf.kind.takes_columns() {
            self.columns.push((label.to_string(), columns.indices().to_vec()));
        }
        if leaf.kind.is_warped() {
            self.numbers.push(columns.indices().to_vec());
        }
        let setting = |name| leaf.initial(name, 1.0);
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
                let degree = leaf.initial("degree", 2.0);
                Box::new(Polynomial::new(label, columns, degree, setting("offset")))
            }
            Kind::Constant => Box::new(Constant),
            Kind::White => Box::new(White),
            Kind::Tanimoto => Box::new(Tanimoto::new(columns)),
            Kind::Categorical => match leaf.setting("rank") {
                None => Box::new(Categorical::exchangeable(label, columns, setting("lengthscale"))),
                Some(rank) => {
                    let error = |message| KernelTextError::new(self.source, rank.position, message);
                    categories::check_rank(rank.value as usize, columns.count()).map_err(error)?;
                    Box::new(Categorical::low_rank(label, columns, rank.value as usize))
                }
            },
            Kind::Additive => {
                let order = leaf.initial("order", 1.0) as usize;
                additive::check_order(order, columns.count()).map_err(|message| {
                    let position = leaf.setting("order").map_or(leaf.position, |order| order.position);
                    KernelTextError::new(self.source, position, message)
                })?;
                additive::build(leaf, label, columns, order)
            }
            Kind::SpectralMixture => {
                let sizes = (leaf.initial("components", 4.0) as usize, setting("variance"));
                Box::new(SpectralMixture::new(label, columns, sizes, leaf.initial("seed", 0.0) as u64))
            }
            Kind::Nngp => {
                let activations = vec![network::activation(leaf); leaf.initial("depth", 1.0) as usize];
                let readout = network::has_readout(leaf);
                let (weight, bias) = (setting("weight"), setting("bias"));
                Box::new(InfiniteNetwork::new(label, columns, activations, readout, weight, bias))
            }
            Kind::NngpConv => {
                let ((shape, layers), readout) = (images::network(leaf), network::has_readout(leaf));
                let (weight, bias) = (setting("weight"), setting("bias"));
                let kernel = ConvolutionalNetwork::new(label, columns, shape, layers, readout, weight, bias);
                Box::new(kernel.map_err(|error| {
                    KernelTextError::new(self.source, images::position(leaf, &error), error.to_string())
                })?)
            }
        })
    }

    fn columns(&self, leaf: &Leaf) -> Result<Columns, KernelTextError> {
        let mut indices: Vec<usize> = Vec::new();
        if let (Kind::Categorical, Some((name, position))) = (leaf.kind, leaf.columns.first()) {
            indices = categories::features_of(name, self.features);
            if indices.is_empty() {
                let message = categories::no_categories(name, self.features);
                return Err(KernelTextError::new(self.source, *position, message));
            }
            return Ok(Columns::some(indices));
        }
        if leaf.columns.is_empty() {
            indices.extend((0..self.features.len()).filter(|j| !self.claimed.contains(j)));
            if indices.is_empty() && leaf.kind.takes_columns() {
                let message = format!(
                    "`{}` has no column left: all belong to `categorical`; leave it out, or name the columns that it looks at",
                    leaf.kind.names()[0]
                );
                return Err(KernelTextError::new(self.source, leaf.position, message));
            }
            return Ok(if indices.is_empty() { Columns::all(0) } else { Columns::some(indices) });
        }
        for (name, position) in &leaf.columns {
            let here = |message: String| KernelTextError::new(self.source, *position, message);
            let index = self.features.iter().position(|f| f == name).ok_or_else(|| {
                here(match leaf.kind {
                    Kind::Nngp => network::unknown_word(name, self.features),
                    Kind::NngpConv => images::unknown_word(name, self.features),
                    _ => unknown_column(name, self.features),
                })
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

/// Indices of the features that categorical kernels look at, ascending.
pub(super) fn claimed(node: &Node, features: &[String]) -> Vec<usize> {
    let categorical = node.leaves().into_iter().filter(|leaf| leaf.kind == Kind::Categorical);
    let mut out: Vec<usize> = categorical
        .flat_map(|leaf| leaf.columns.iter().flat_map(|(name, _)| categories::features_of(name, features)))
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Indices of the features that kernels of counts look at, ascending; names that are no feature are left out.
pub(super) fn counted(node: &Node, features: &[String]) -> Vec<usize> {
    let claimed = claimed(node, features);
    let looks_at = |leaf: &Leaf, j: usize| match leaf.kind {
        Kind::Tanimoto if leaf.columns.is_empty() => !claimed.contains(&j),
        Kind::Tanimoto => leaf.columns.iter().any(|(name, _)| *name == features[j]),
        _ => false,
    };
    let leaves = node.leaves();
    (0..features.len()).filter(|&j| leaves.iter().any(|leaf| looks_at(leaf, j))).collect()
}

impl Leaf {
    pub(super) fn initial(&self, name: &str, default: f64) -> f64 {
        self.setting(name).map_or(default, |s| s.value)
    }
}

/// Names of columns, as far as one reads them.
pub(super) fn listed(features: &[String]) -> String {
    /// Columns that are listed.
    const LISTED: usize = 30;
    let list = features.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match features.len().saturating_sub(LISTED) {
        0 => list,
        more => format!("{list} and {more} more"),
    }
}

fn unknown_column(name: &str, features: &[String]) -> String {
    let hint = match nearest(name, features.iter().map(String::as_str)) {
        _ if name.eq_ignore_ascii_case("ard") => "; did you mean `ard`?".to_string(),
        Some(near) => format!("; did you mean `{near}`?"),
        None => ".".to_string(),
    };
    format!("no feature column is called `{name}`{hint} There are: {}", listed(features))
}

/// What a product's variance is called: its factors' names with `*` between.
fn title(node: &Node) -> String {
    match node {
        Node::Leaf(leaf) => leaf.kind.names()[0].to_string(),
        Node::Sum(_) => "sum".to_string(),
        Node::Warp(inner, _) => format!("warp({})", title(inner)),
        Node::Object(object) => object.name().to_string(),
        Node::Product(parts) => parts.iter().map(title).collect::<Vec<_>>().join("*"),
    }
}

fn stationary<T: Real, F: Form>(label: &str, leaf: &Leaf, columns: Columns, form: F) -> Box<dyn Kernel<T>> {
    Box::new(Stationary::new(label, form, columns, leaf.ard, leaf.initial("lengthscale", 1.0)))
}
