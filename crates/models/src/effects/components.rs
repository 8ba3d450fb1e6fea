//! What a learned kernel is made of: covariances of categories, curves of warped columns, shares of the terms of a sum.

use super::maps::even;
use crate::text::table;
use crate::{FitRecord, Hyperparameter, Process, VarianceShares};
use faer::MatRef;
use posterior_data::{Feature, Schema, Standardisation};
use posterior_kernels::categorical::Categorical;
use posterior_kernels::{Columns, KernelExpression, Warp, kernel_name};
use posterior_optim::Parameters;
use posterior_report::{Curves, Line, Table};
use serde::Serialize;

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

impl KernelParts {
    /// What hyperparameters alone tell. Nothing of kernels that do not act on these columns.
    pub(crate) fn learned(
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
                    let places = even(-3.0, 3.0, PLACES);
                    out.warps.push(WarpCurve {
                        kernel: label.clone(),
                        feature: features[j].clone(),
                        x: places.iter().map(|z| standard.feature_back(j, *z)).collect(),
                        warped: warp.curve(d, &places),
                    });
                }
            }
        }
        out
    }

    /// As tables for people.
    pub(crate) fn tables(&self) -> Vec<String> {
        let cells = |one: &Table| {
            let rows = std::iter::once(one.head.clone()).chain(one.rows.iter().cloned());
            format!("{}\n{}", one.title, table(&rows.collect::<Vec<_>>()))
        };
        let shown = self.categories.iter().map(|own| own.table(SHOWN));
        shown.chain(self.shares.iter().map(|own| own.table(SHOWN))).map(|one| cells(&one)).collect()
    }

    /// As tables of a report.
    pub(crate) fn report_tables(&self) -> Vec<Table> {
        let all = self.categories.iter().map(|own| own.table(usize::MAX));
        all.chain(self.shares.iter().map(|own| own.table(usize::MAX))).collect()
    }

    /// As curves of a report: one picture for each warped column.
    pub(crate) fn curves(&self) -> Vec<Curves> {
        let of_column = |one: &WarpCurve| {
            let scale = one.x.last().zip(one.x.first()).map_or(1.0, |(last, first)| (last - first) / 6.0);
            let middle = one.x[PLACES / 2];
            let straight = one.x.iter().map(|x| (x - middle) / scale).collect();
            let lines = vec![
                Line::new(one.kernel.clone(), one.x.clone(), one.warped.clone()),
                Line::new("without a warp", one.x.clone(), straight),
            ];
            let title = format!("What the kernel sees of {}", one.feature);
            Curves::new(title, one.feature.clone(), "warped, in standard deviations", lines).captioned(
                "Where the curve is steeper than the straight line, the function may change faster than elsewhere. Three standard deviations on either side of the column's mean.",
            )
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

impl Process<'_> {
    /// What its kernel is made of; nothing where it acts on what a network makes of the columns. Shares of sums are those of functions under Gaussian noise: they take at most some hundred million values of the kernel, at 2,000 rows (of inducing points: at these) or
    /// fewer; they are left out where that is not enough for 100.
    pub fn parts(&self) -> KernelParts {
        let (deep, gvi) = match &self.record.fit {
            FitRecord::Gaussian(fit) => {
                let large = fit.scalable.as_ref();
                (large.is_some_and(|own| own.deep.is_some()), large.and_then(|own| own.gvi.as_ref()))
            }
            FitRecord::Likelihood(fit) => {
                (fit.features.is_some(), fit.variation.as_ref().map(|own| &own.learned))
            }
        };
        if deep || gvi.is_some_and(|gvi| gvi.prior.network.is_some()) {
            return KernelParts::default();
        }
        let columns = (&self.inputs.schema, &self.inputs.standardisation);
        let learned = KernelParts::learned(&self.record.kernel, columns, &self.record.hyperparameters);
        let (names, scale) = (self.inputs.schema.feature_names(), self.inputs.standardisation.target_scale);
        let shares = self.output.gaussian().and_then(|_| self.predictor.shares(&names, scale));
        KernelParts { shares, ..learned }
    }
}
