//! What a learned kernel is made of: covariances of categories, curves of warped columns, shares of the terms of a sum.

use super::{GeneralisedModel, Header, Hyperparameter, ProcessModel, ProcessPosterior};
use crate::text::{number, table};
use faer::{Mat, MatRef};
use posterior_data::{Feature, Schema, Standardisation};
use posterior_kernels::additive::{Anova, Decomposed, Effect};
use posterior_kernels::categorical::Categorical;
use posterior_kernels::matrix::CrossMatrix;
use posterior_kernels::{Columns, Component, Kernel, KernelExpression, Warp, kernel_name};
use posterior_linalg::Real;
use posterior_linalg::operator::LinearOperator;
use posterior_optim::Parameters;
use posterior_report::{Curves, Line, Table};
use serde::Serialize;
use std::sync::Arc;

/// Rows at which components are compared: at most, and at least where it is worth while.
const MOST_ROWS: usize = 2000;
const LEAST_ROWS: usize = 100;

/// Values of kernels that shares may take, a second or two.
const MOST_VALUES: usize = 100_000_000;

/// Places of a curve, evenly spaced.
const PLACES: usize = 101;

/// Categories of which text shows all pairs, and functions of single columns or pairs that it shows of an order, the largest ones; `--json` and the report have all.
const SHOWN: usize = 12;

/// What a kernel is made of; what it lacks is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelParts {
    /// One for each kernel of categories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<CategoryCovariance>,
    /// One for each warped column.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warps: Vec<WarpCurve>,
    /// Of sums, of processes that keep their rows or inducing points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<VarianceShares>,
}

/// How the functions of categories belong together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CategoryCovariance {
    /// The kernel, as its parameters are called.
    pub kernel: String,
    /// The column.
    pub column: String,
    /// The categories of training (C).
    pub categories: Vec<String>,
    /// Their covariance, (C + 1) x (C + 1): the last row and column are those of a category that is none of them. The mean of the first C variances is 1.
    pub covariance: Vec<Vec<f64>>,
}

/// The curve that a column goes through, in standard units: as it was, as the kernel sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WarpCurve {
    /// The warp, as its parameters are called.
    pub kernel: String,
    /// The column.
    pub feature: String,
    /// Places, ascending, in units of the column.
    pub x: Vec<f64>,
    /// What the kernel sees there, in standard deviations; the column's mean is 0, where the curve has the slope of a straight one.
    pub warped: Vec<f64>,
}

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

impl KernelParts {
    /// What hyperparameters alone tell. Nothing of kernels that do not act on these columns.
    pub(super) fn learned(
        kernel: &KernelExpression,
        (schema, standard): (&Schema, &Standardisation),
        hyperparameters: &[Hyperparameter],
    ) -> Self {
        let features = schema.feature_names();
        let value = |label: &str, kind: &str| {
            let name = format!("{label}.{kind}");
            hyperparameters.iter().find(|h| h.name == name).map(|h| h.values.clone())
        };
        let mut out = Self::default();
        for (label, columns) in kernel.looks_at(&features).unwrap_or_default() {
            if kernel_name(&label) == "categorical" {
                let count = Columns::all(columns.len());
                let of =
                    match (value(&label, "lengthscale"), value(&label, "loading"), value(&label, "specific"))
                    {
                        (Some(own), _, _) => Some((Categorical::exchangeable(&label, count, 1.0), own)),
                        (_, Some(loading), Some(specific)) => {
                            let rank = (loading.len() / columns.len()).clamp(1, columns.len());
                            Some((Categorical::low_rank(&label, count, rank), [loading, specific].concat()))
                        }
                        _ => None,
                    };
                let Some((mut of, values)) = of else { continue };
                if of.values().len() != values.len() {
                    continue;
                }
                of.set_values(&values);
                out.categories.push(covariance(label, &columns, schema, of.covariance()));
            } else if kernel_name(&label) == "warp" {
                let (Some(skew), Some(tail)) = (value(&label, "skew"), value(&label, "tail")) else {
                    continue;
                };
                if skew.len() != columns.len() || tail.len() != columns.len() {
                    continue;
                }
                let warp = Warp::bent(columns.clone(), skew, tail);
                for (d, &j) in columns.iter().enumerate() {
                    let places: Vec<f64> =
                        (0..PLACES).map(|i| 6.0 * i as f64 / (PLACES - 1) as f64 - 3.0).collect();
                    let back = |z: &f64| standard.feature_means[j] + standard.feature_scales[j] * z;
                    out.warps.push(WarpCurve {
                        kernel: label.clone(),
                        feature: features[j].clone(),
                        x: places.iter().map(back).collect(),
                        warped: warp.curve(d, &places),
                    });
                }
            }
        }
        out
    }

    /// As tables for people.
    pub(super) fn tables(&self) -> Vec<String> {
        let cells = |one: &Table| {
            let rows = std::iter::once(one.head.clone()).chain(one.rows.iter().cloned());
            format!("{}\n{}", one.title, table(&rows.collect::<Vec<_>>()))
        };
        let shown = self.categories.iter().map(|own| own.table(SHOWN));
        shown.chain(self.shares.iter().map(|own| own.table(SHOWN))).map(|one| cells(&one)).collect()
    }

    /// As tables of a report.
    pub(super) fn report_tables(&self) -> Vec<Table> {
        let all = self.categories.iter().map(|own| own.table(usize::MAX));
        all.chain(self.shares.iter().map(|own| own.table(usize::MAX))).collect()
    }

    /// As curves of a report: one picture for each warped column.
    pub(super) fn curves(&self) -> Vec<Curves> {
        let of_column = |one: &WarpCurve| {
            let scale = one.x.last().zip(one.x.first()).map_or(1.0, |(last, first)| (last - first) / 6.0);
            let middle = one.x[PLACES / 2];
            let straight = one.x.iter().map(|x| (x - middle) / scale).collect();
            Curves {
                title: format!("What the kernel sees of {}", one.feature),
                x: one.feature.clone(),
                y: "warped, in standard deviations".into(),
                lines: vec![
                    Line::new(one.kernel.clone(), one.x.clone(), one.warped.clone()),
                    Line::new("without a warp", one.x.clone(), straight),
                ],
                caption: "Where the curve is steeper than the straight line, the function may change faster than elsewhere. Three standard deviations on either side of the column's mean.".into(),
                ..Curves::default()
            }
        };
        self.warps.iter().map(of_column).collect()
    }
}

fn covariance(
    kernel: String,
    columns: &[usize],
    schema: &Schema,
    covariance: MatRef<'_, f64>,
) -> CategoryCovariance {
    let category = |&j: &usize| match &schema.features[j] {
        Feature::Category { category, .. } => category.clone(),
        Feature::Absent { .. } => "(missing)".into(),
        Feature::Number { column, .. } => column.clone(),
    };
    let row = |i: usize| (0..covariance.ncols()).map(|j| covariance[(i, j)]).collect();
    CategoryCovariance {
        kernel,
        column: columns.first().map(|&j| schema.features[j].column().to_string()).unwrap_or_default(),
        categories: columns.iter().map(category).collect(),
        covariance: (0..covariance.nrows()).map(row).collect(),
    }
}

impl CategoryCovariance {
    /// Its correlations and, behind them, standard deviations; of the first categories alone where there are more than `most`.
    fn table(&self, most: usize) -> Table {
        let count = self.categories.len();
        let mut shown: Vec<usize> = (0..count.min(most)).collect();
        shown.push(count);
        let name = |i: usize| self.categories.get(i).map_or("(none of these)", String::as_str).to_string();
        let deviation = |i: usize| self.covariance[i][i].sqrt();
        let correlation = |i: usize, j: usize| self.covariance[i][j] / (deviation(i) * deviation(j));
        let row = |&i: &usize| {
            let own = shown.iter().map(|&j| format!("{:.3}", correlation(i, j)));
            std::iter::once(name(i)).chain(own).chain([format!("{:.3}", deviation(i))]).collect()
        };
        let head = shown.iter().map(|&i| name(i));
        let left = match count.saturating_sub(most) {
            0 => String::new(),
            left => format!("; {left} more categories are in --json and the report"),
        };
        Table {
            title: format!("Correlations of the functions of `{}` ({}){left}", self.column, self.kernel),
            head: std::iter::once(String::new()).chain(head).chain(["deviation".to_string()]).collect(),
            rows: shown.iter().map(row).collect(),
            ..Table::default()
        }
    }
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
    fn table(&self, most: usize) -> Table {
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
struct Weighted<'a, T> {
    points: MatRef<'a, T>,
    weights: Mat<T>,
}

impl<T: Real> Weighted<'_, T> {
    /// The part of a component at some places.
    fn at(&self, kernel: &dyn Kernel<T>, x: MatRef<'_, T>) -> Vec<f64> {
        let mut out = Mat::zeros(x.nrows(), 1);
        CrossMatrix::new(kernel, x, self.points).apply(self.weights.as_ref(), out.as_mut());
        out.col_as_slice(0).iter().map(|v| v.to_f64()).collect()
    }

    /// Shares of the components of a kernel; `rows` are all places, `scale` is that of the target. None where there is one component only, or where there are too many rows. Pairs of columns go first where all together would take too long.
    fn shares(
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

impl ProcessPosterior {
    /// Shares of the terms of its kernel: of exact processes, of those that keep weights of their rows, and of inducing points.
    fn shares(&self, header: &Header) -> Option<VarianceShares> {
        let names = header.schema.feature_names();
        let scale = header.standardisation.target_scale;
        let at_rows = (SharePlaces::TrainingRows, &*names);
        match self {
            Self::Exact(own) => {
                let weights = own.weights().subcols(0, 1).to_owned();
                let weighted = Weighted { points: own.data().inputs(), weights };
                weighted.shares(own.model().kernel(), own.data().inputs(), at_rows, scale)
            }
            Self::Single(own) => {
                let weights = own.solution().weights.subcols(0, 1).to_owned();
                let x = own.data().inputs();
                let rows = Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] as f32);
                let weighted = Weighted { points: own.points(), weights };
                weighted.shares(&*own.model().kernel, rows.as_ref(), at_rows, scale)
            }
            Self::Double(own) => {
                let weights = own.solution().weights.subcols(0, 1).to_owned();
                let weighted = Weighted { points: own.points(), weights };
                weighted.shares(&*own.model().kernel, own.data().inputs(), at_rows, scale)
            }
            Self::Inducing(own) => {
                let weighted =
                    Weighted { points: own.inducing(), weights: own.weights().subcols(0, 1).to_owned() };
                weighted.shares(own.kernel(), own.inducing(), (SharePlaces::InducingPoints, &names), scale)
            }
            Self::LowRank(_) | Self::Embedded(_) | Self::Generalised(_) => None,
        }
    }
}

impl ProcessModel {
    /// What its kernel is made of; nothing where it acts on what a network makes of the columns. Shares of sums take at most some hundred million values of the kernel, at 2,000 rows (of inducing points: at these) or
    /// fewer; they are left out where that is not enough for 100.
    pub fn parts(&self) -> KernelParts {
        let header = &self.header;
        let large = header.fit.scalable.as_ref();
        let behind = large.is_some_and(|large| {
            large.deep.is_some() || large.gvi.as_ref().is_some_and(|gvi| gvi.prior.network.is_some())
        });
        if behind {
            return KernelParts::default();
        }
        let columns = (&header.schema, &header.standardisation);
        let learned = KernelParts::learned(&header.kernel, columns, &header.hyperparameters);
        KernelParts { shares: self.posterior.shares(header), ..learned }
    }
}

impl GeneralisedModel {
    /// What its kernel is made of, shares of sums excepted; nothing where it acts on what a network makes of the columns.
    pub fn parts(&self) -> KernelParts {
        let header = self.header();
        let fit = &header.fit;
        let network = fit.variation.as_ref().and_then(|own| own.learned.prior.network.as_ref());
        if fit.features.is_some() || network.is_some() {
            return KernelParts::default();
        }
        let columns = (&header.schema, &header.standardisation);
        KernelParts::learned(&header.kernel, columns, &header.hyperparameters)
    }
}
