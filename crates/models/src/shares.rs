//! How much of a process comes from each of the functions that it is a sum of.

use crate::text::number;
use faer::{Mat, MatRef};
use posterior_kernels::additive::{Anova, Decomposed, Effect};
use posterior_kernels::matrix::CrossMatrix;
use posterior_kernels::{Component, Kernel};
use posterior_linalg::Real;
use posterior_linalg::operator::LinearOperator;
use posterior_report::Table;
use serde::Serialize;
use std::sync::Arc;

/// Rows at which components are compared: at most, and at least where it is worth while.
const MOST_ROWS: usize = 2000;
const LEAST_ROWS: usize = 100;

/// Values of kernels that shares may take, a second or two.
const MOST_VALUES: usize = 100_000_000;

/// How much of a process comes from each of the functions that it is a sum of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VarianceShares {
    /// What the places are at which the functions were compared.
    pub places: SharePlaces,
    /// Places, evenly spaced among those.
    pub rows: usize,
    /// Of so many.
    pub of: usize,
    /// The variance of the posterior mean over these places, about the prior's mean function, in squares of the target's unit.
    pub variance: f64,
    /// One for each term of the sum, and for each order of an additive kernel.
    pub components: Vec<Share>,
    /// Whether those of an additive kernel are effects: what columns do alone, what pairs of them add to that, apart from each other whatever the kernel's own parts are.
    pub of_effects: bool,
    /// Pairs of columns whose own shares were left out, because they would take minutes; none where there are more than 64 columns, whose pairs are not told apart.
    #[serde(skip_serializing_if = "crate::text::is_zero")]
    pub pairs_left_out: usize,
}

/// Where the functions of a sum are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharePlaces {
    /// At rows that the model was trained on, which it keeps.
    TrainingRows,
    /// At its inducing points: it keeps no rows.
    InducingPoints,
}

/// One function of a sum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// How many columns it depends on together, of an additive kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<usize>,
    /// The columns that it depends on alone: one of order 1, two of order 2.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Its prior variance, as a mean over the places, in squares of the target's unit.
    pub prior_variance: f64,
    /// That over the sum of all.
    pub prior_share: f64,
    /// The variance over the places of its posterior mean.
    pub variance: f64,
    /// The covariance over the places of its posterior mean with that of the whole, over the variance of the whole. Shares of all terms add up to 1; one is negative where
    /// a function is cancelled by others.
    pub share: f64,
    /// The functions of single columns that order 1 is the sum of, and of pairs of which order 2 is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Share>,
}

impl Share {
    /// Its parts, of which there may be many: those with the most variance, at most so many, the largest first.
    fn largest(&self, most: usize) -> Vec<&Self> {
        let mut parts: Vec<&Self> = self.parts.iter().collect();
        if parts.len() > most {
            parts.sort_by(|a, b| b.variance.total_cmp(&a.variance));
            parts.truncate(most);
        }
        parts
    }
}

impl VarianceShares {
    /// As a table, with at most so many parts of each order.
    pub(crate) fn table(&self, most: usize) -> Table {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let row = |share: &Share| {
            vec![
                share.name.clone(),
                number(share.prior_variance.sqrt()),
                percent(share.prior_share),
                number(share.variance.sqrt()),
                percent(share.share),
            ]
        };
        let rows =
            self.components.iter().flat_map(|one| std::iter::once(one).chain(one.largest(most))).map(row);
        let places = match self.places {
            SharePlaces::TrainingRows => "training rows",
            SharePlaces::InducingPoints => "inducing points",
        };
        let hidden: usize = self.components.iter().map(|one| one.parts.len().saturating_sub(most)).sum();
        let mut left = match hidden {
            0 => String::new(),
            _ => format!("; {hidden} smaller ones are in --json and the report"),
        };
        if self.pairs_left_out > 0 {
            left += &format!(
                "; the {} pairs of columns would take minutes and are left out",
                self.pairs_left_out
            );
        }
        let effects = match self.of_effects {
            true => "; of an additive kernel what columns do alone, and what they add together to that",
            false => "",
        };
        Table {
            title: format!(
                "Shares of the function's variance at {} of {} {places} (a negative share is cancelled by others{effects}){left}",
                self.rows, self.of
            ),
            head: ["function", "prior deviation", "share", "posterior deviation", "share"]
                .map(String::from)
                .to_vec(),
            rows: rows.collect(),
            ..Table::default()
        }
    }
}

/// A posterior mean without its prior mean, `Σ_j k(x, z_j) w_j`.
pub(crate) struct Weighted<'a, T> {
    pub(crate) points: MatRef<'a, T>,
    pub(crate) weights: Mat<T>,
}

impl<T: Real> Weighted<'_, T> {
    /// The part of a component at some places.
    fn at(&self, kernel: &dyn Kernel<T>, x: MatRef<'_, T>) -> Vec<f64> {
        let mut out = Mat::zeros(x.nrows(), 1);
        CrossMatrix::new(kernel, x, self.points).apply(self.weights.as_ref(), out.as_mut());
        out.col_as_slice(0).iter().map(|v| v.to_f64()).collect()
    }

    /// Shares of the components of a kernel; `rows` are all places, `scale` is that of the target. None where there is one component only, or where there are too many rows. Pairs of columns go first where all together would take too long.
    pub(crate) fn shares(
        &self,
        kernel: &dyn Kernel<T>,
        rows: MatRef<'_, T>,
        (places, names): (SharePlaces, &[String]),
        scale: f64,
    ) -> Option<VarianceShares> {
        let mut components = kernel.components();
        if components.len() < 2 && components.iter().all(|c| c.parts.is_empty()) {
            return None;
        }
        let n = rows.nrows();
        let affordable = |components: &[Component<T>]| {
            let functions: usize =
                components.iter().map(|c| 1 + c.parts.iter().map(factors).sum::<usize>()).sum();
            MOST_ROWS.min(MOST_VALUES / (functions * self.points.nrows()).max(1)).min(n)
        };
        let mut pairs_left_out = 0;
        if affordable(&components) < LEAST_ROWS.min(n) {
            for component in components.iter_mut().filter(|c| c.order > Some(1)) {
                pairs_left_out += std::mem::take(&mut component.parts).len();
            }
        }
        let count = affordable(&components);
        if count < LEAST_ROWS.min(n) {
            return None;
        }
        let x = Mat::from_fn(count, rows.ncols(), |i, j| rows[(i * n / count, j)]);
        let whole = self.at(kernel, x.as_ref());
        let mut of = Functions { weighted: self, x, whole, names, square: scale * scale, prior: 0.0 };
        let functions = of.functions(&components);
        of.prior = functions.iter().map(|own| own.prior).sum();
        let of_effects = components.iter().any(|c| c.part_of.is_some());
        Some(VarianceShares {
            places,
            rows: count,
            of: n,
            variance: covariance_of(&of.whole, &of.whole) * of.square,
            components: components.iter().zip(functions).map(|(c, own)| of.share(c, own)).collect(),
            of_effects,
            pairs_left_out,
        })
    }
}

/// A function of a sum.
struct Function {
    /// Of its posterior mean, at the places.
    values: Vec<f64>,
    /// Its prior variance.
    prior: f64,
    /// What it is a sum of itself.
    parts: Vec<Self>,
}

/// What all functions of a sum are compared by.
struct Functions<'a, T> {
    weighted: &'a Weighted<'a, T>,
    x: Mat<T>,
    /// The posterior mean there.
    whole: Vec<f64>,
    names: &'a [String],
    square: f64,
    /// The prior variance of all together.
    prior: f64,
}

impl<T: Real> Functions<'_, T> {
    fn prior(&self, kernel: &dyn Kernel<T>) -> f64 {
        let values = posterior_kernels::diagonal(kernel, self.x.as_ref());
        values.iter().map(|v| v.to_f64()).sum::<f64>() / values.len() as f64
    }

    /// A component as the kernel has it.
    fn function(&self, component: &Component<T>) -> Function {
        let (values, prior) =
            (self.weighted.at(&*component.kernel, self.x.as_ref()), self.prior(&*component.kernel));
        Function { values, prior, parts: component.parts.iter().map(|part| self.function(part)).collect() }
    }

    /// All components: orders of an additive kernel, and what they are sums of, as effects that are apart from each other.
    fn functions(&self, components: &[Component<T>]) -> Vec<Function> {
        let weights: Vec<f64> = self.weighted.weights.col(0).iter().map(|w| w.to_f64()).collect();
        let mut known: Option<(&Arc<dyn Decomposed<T>>, Anova, usize)> = None;
        let mut out = Vec::with_capacity(components.len());
        for component in components {
            let (Some(whole), Some(order)) = (&component.part_of, component.order) else {
                out.push(self.function(component));
                continue;
            };
            if known.as_ref().is_none_or(|(own, ..)| !Arc::ptr_eq(own, whole)) {
                let same = |c: &&Component<T>| c.part_of.as_ref().is_some_and(|own| Arc::ptr_eq(own, whole));
                let parts = components.iter().filter(same).flat_map(|c| &c.parts);
                let sets: Vec<Vec<usize>> = parts.map(|part| part.columns.clone()).collect();
                known = Some((whole, whole.anova(self.x.as_ref(), self.weighted.points, &weights, &sets), 0));
            }
            let Some((_, anova, next)) = &mut known else { continue };
            let effect = |own: &Effect| Function {
                values: own.values.clone(),
                prior: own.prior_variance,
                parts: Vec::new(),
            };
            let first = *next;
            *next += component.parts.len();
            let parts = anova.sets[first..*next].iter().map(effect).collect();
            out.push(Function { parts, ..effect(&anova.orders[order - 1]) });
        }
        out
    }

    fn share(&self, component: &Component<T>, function: Function) -> Share {
        let Function { values: own, prior, parts } = function;
        let total = covariance_of(&self.whole, &self.whole);
        let features: Vec<String> = component.columns.iter().map(|&j| self.names[j].clone()).collect();
        let name = match (&*features, component.order) {
            ([feature], _) => format!("{}, {feature} alone", component.label),
            ([], Some(order)) => format!("{}, order {order}", component.label),
            ([], None) => component.label.clone(),
            (several, _) => format!("{}, {} together", component.label, several.join(" and ")),
        };
        let part_of = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Share {
            name,
            order: component.order,
            features,
            prior_variance: prior * self.square,
            prior_share: part_of(prior, self.prior),
            variance: covariance_of(&own, &own) * self.square,
            share: part_of(covariance_of(&own, &self.whole), total),
            parts: component.parts.iter().zip(parts).map(|(part, own)| self.share(part, own)).collect(),
        }
    }
}

/// Kernels of one column that a function's own is the product of.
fn factors<T: Real>(component: &Component<T>) -> usize {
    component.columns.len().max(1)
}

/// The covariance of two functions over rows.
fn covariance_of(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (of_a, of_b) = (mean(a), mean(b));
    a.iter().zip(b).map(|(a, b)| (a - of_a) * (b - of_b)).sum::<f64>() / n
}
