//! Log evidences over a grid of lengthscale and variance: of Gaussian pseudo-targets by each matching, of the bound with a learned pseudo-count, and of the likelihood itself.
//!
//! The latter by annealed importance sampling from the posterior q of the bound at every grid point (of two classes, so that the difference of the two functions is one function with twice the kernel):
//! `p(y) = Z E_q[Π p(y_i | f_i) / t_i(f_i)]`, q and Z the posterior and evidence of the Gaussian factors t, the pseudo-targets of the learned pseudo-count; from q to the posterior by elliptical slices, whose weights give Z with an error that is known.
//! Sources: Neal, *Annealed importance sampling*, 2001; Murray, Adams and MacKay, *Elliptical slice sampling*, 2010. Serves figure 3 of Bui's *Likelihood approximations via Gaussian approximate inference*.

mod annealed;

use crate::kinds::prelude::*;
use crate::labels::{Labelled, MadeUp, check_gaussian_labels, squared_exponential};
use annealed::{Annealing, Estimate};
use posterior_gp::MeanForm;
use posterior_gp::exact::{ExactGp, FitOptions, log_evidence_of_several};
use posterior_gp::gaussianised::{GaussianLabels, GaussianisedGp, fit_gaussianised};
use posterior_likelihoods::gaussianised::Matching;
use posterior_likelihoods::{Bernoulli, Gaussian, Link, OutputLikelihood};
use posterior_metrics::mid_ranks;
use posterior_optim::{Constraint, Parameters, Signal};
use posterior_report::{Plane, PlaneKind, PlanePanel};
use std::path::PathBuf;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Folder with `TABLE.csv` (the last column is the class), counted from the experiment's file; empty: a table is made up.
    folder: PathBuf,
    /// The table.
    table: String,
    /// The table that is made up.
    made_up: MadeUp,
    matchings: Vec<Matching>,
    /// Added to every class.
    pseudo_count: f64,
    /// Matching of the bound with a learned pseudo-count, from which annealing begins.
    bound: Matching,
    /// Natural logarithms.
    log_lengthscale: Axis,
    /// Natural logarithms.
    log_variance: Axis,
    annealing: Annealing,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Axis {
    from: f64,
    to: f64,
    points: usize,
}

impl Axis {
    fn values(&self) -> Vec<f64> {
        let step = (self.to - self.from) / (self.points - 1) as f64;
        (0..self.points).map(|i| self.from + step * i as f64).collect()
    }
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_gaussian_labels(&self.matchings, &[self.pseudo_count])?;
        self.annealing.check()?;
        for axis in [self.log_lengthscale, self.log_variance] {
            let inside = axis.from < axis.to && axis.from >= -20.0 && axis.to <= 20.0;
            if !(inside && (2..=200).contains(&axis.points)) {
                return refused("axes go from a number to a larger one, within 20, in 2 to 200 points");
            }
        }
        if self.made_up.classes != 2 {
            return refused("[made_up]: there are two classes");
        }
        if self.bound == Matching::MomentOriginal {
            return refused(
                "`bound` has one function for two classes: moment-original has no Gaussian for that",
            );
        }
        Ok(())
    }
}

/// One point of the grid.
#[derive(Serialize, Deserialize)]
struct Point {
    exact: Estimate,
    /// Of the pseudo-targets, in the order of the matchings; then the bound.
    others: Vec<f64>,
    /// The pseudo-count of the bound.
    learned: f64,
}

fn point(
    settings: &Settings,
    table: &Labelled,
    (variance, lengthscale): (f64, f64),
    streams: Streams,
) -> Result<Point> {
    let kernel = || squared_exponential(variance, lengthscale, table.x.ncols());
    let mut others = Vec::new();
    for &matching in &settings.matchings {
        let (data, _) = table.gaussian_labels(matching, settings.pseudo_count)?;
        let model = ExactGp::new(kernel()?, MeanForm::Zero, Gaussian::new(1e-10, 0.0), table.x.ncols(), 1);
        others.push(log_evidence_of_several(&model, &data, None)?.value);
    }
    // Means of the functions differ by the logarithm of the classes' odds.
    let (_, means) = table.gaussian_labels(Matching::Laplace, settings.pseudo_count)?;
    let odds = means[1] - means[0];
    let difference = || squared_exponential(2.0 * variance, lengthscale, table.x.ncols());
    // Of the difference of the functions, as the exact one is: classes are events of one function.
    let likelihood = OutputLikelihood::Bernoulli(Bernoulli::new(1, Link::Logit)?);
    let begun = (settings.bound, settings.pseudo_count);
    let mut model =
        GaussianisedGp::new(difference()?, MeanForm::Constant, likelihood.clone(), begun, table.x.ncols())?;
    model.mean_mut().set_values(&[odds]);
    let held = model.segments().into_iter().filter(|s| s.name != "pseudo_count");
    let constraints = held.map(|s| Constraint::Fixed { parameter: s.name, value: None }).collect();
    let options = FitOptions { restarts: 1, constraints, ..FitOptions::default() };
    let data = table.observations()?;
    let found = fit_gaussianised(model, &data, &options, &mut |_, _| Signal::Continue)?;
    others.push(found.bound.value);
    let gaussianised = found.model.gaussianised()?;
    let gaussian_labels = GaussianLabels::of(&likelihood, &gaussianised, &data)?;
    let exact = settings.annealing.log_evidence(&*difference()?, table, (odds, &gaussian_labels), streams)?;
    Ok(Point { exact, others, learned: gaussianised.pseudo_count() })
}

/// Pearson's correlation.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let cov = |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    cov(a, ma, b, mb) / (cov(a, ma, a, ma) * cov(b, mb, b, mb)).sqrt()
}

fn highest(values: &[f64]) -> usize {
    (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0)
}

/// Nats below the highest value at which colours end.
const DEPTH: f64 = 40.0;

/// Evaluates everything over the grid.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let streams = Streams::new(context.seed);
    let table = match settings.folder.as_os_str().is_empty() {
        true => Labelled::made_up(&settings.made_up, streams)?,
        false => {
            let path = context.folder.join(&settings.folder).join(format!("{}.csv", settings.table));
            Labelled::read(&path)?
        }
    };
    if table.classes != 2 {
        return refused(format!("`{}` has {} classes; this is about two", settings.table, table.classes));
    }
    let (x, y) = (settings.log_lengthscale.values(), settings.log_variance.values());
    let mut points = Vec::new();
    for (row, variance) in y.iter().enumerate() {
        for (column, lengthscale) in x.iter().enumerate() {
            let place = row * x.len() + column;
            context.step("grid", place, x.len() * y.len())?;
            let stage = format!("point {row} {column}");
            let depends = (
                (&settings.folder, &settings.table, &settings.made_up, &settings.annealing),
                (&settings.matchings, settings.pseudo_count, settings.bound, variance, lengthscale),
            );
            points.push(context.once(&stage, &depends, |_| {
                point(
                    settings,
                    &table,
                    (variance.exp(), lengthscale.exp()),
                    streams.child("experiment/grid", place as u64),
                )
            })?);
        }
    }
    let exact: Vec<f64> = points.iter().map(|p| p.exact.log_evidence).collect();
    let mut names: Vec<String> = settings.matchings.iter().map(|m| m.name().to_string()).collect();
    names.push("bound".into());
    let place = |i: usize| (x[i % x.len()], y[i / x.len()]);
    let best = highest(&exact);
    let panel = |name: &str, values: &[f64]| {
        let at = highest(values);
        let shown = values.iter().map(|v| v.max(values[at] - DEPTH)).collect();
        PlanePanel::new(name, PlaneKind::Amount, shown).marked(place(at).0, place(at).1)
    };
    let mut panels = vec![panel("exact", &exact)];
    let mut out = Measured::default();
    let own = |values: &[f64]| {
        let at = highest(values);
        json!({
            "log_lengthscale": place(at).0, "log_variance": place(at).1, "highest": values[at],
            "correlation": correlation(values, &exact),
            "rank_correlation": correlation(&mid_ranks(values), &mid_ranks(&exact)),
            // What the evidence of the likelihood loses where this one is highest.
            "loss": exact[best] - exact[at],
        })
    };
    out.numbers["landscapes"]["exact"] = own(&exact);
    out.series["exact"] = json!(exact);
    for (k, name) in names.iter().enumerate() {
        let values: Vec<f64> = points.iter().map(|p| p.others[k]).collect();
        panels.push(panel(name, &values));
        out.numbers["landscapes"][name] = own(&values);
        out.series[name] = json!(values);
    }
    let mut errors: Vec<f64> = points.iter().map(|p| p.exact.standard_error).collect();
    errors.sort_by(f64::total_cmp);
    let largest = errors.last().copied().unwrap_or(f64::NAN);
    out.numbers["annealing"] = json!({"median_error": errors[errors.len() / 2], "largest_error": largest, "error_at_maximum": points[best].exact.standard_error});
    let last = names.len() - 1;
    let gaps: Vec<f64> = points.iter().map(|p| p.exact.log_evidence - p.others[last]).collect();
    // In standard errors of the exact one where it is below the bound.
    let below = points.iter().zip(&gaps).map(|(p, gap)| gap / p.exact.standard_error.max(1e-3));
    let counts: Vec<f64> = points.iter().map(|p| p.learned).collect();
    let bound = &mut out.numbers["landscapes"]["bound"];
    bound["lowest_gap"] = json!(gaps.iter().copied().fold(f64::INFINITY, f64::min));
    bound["lowest_gap_in_errors"] = json!(below.fold(f64::INFINITY, f64::min));
    bound["gap_at_maximum"] = json!(gaps[best]);
    bound["pseudo_count_at_maximum"] = json!(counts[best]);
    out.series["learned_pseudo_counts"] = json!(counts);
    out.series["errors"] = json!(points.iter().map(|p| p.exact.standard_error).collect::<Vec<_>>());
    out.series["log_lengthscale"] = json!(x);
    out.series["log_variance"] = json!(y);
    out.figures.push(Item::Plane(Plane {
        title: "Log evidence over the kernel's hyperparameters".into(),
        x: "log lengthscale".into(),
        y: "log variance".into(),
        panels,
        grid_x: x,
        grid_y: y,
        caption: format!("Colours end {DEPTH} nats below each panel's highest value, which is marked."),
        ..Plane::default()
    }));
    let all = std::iter::once("exact").chain(names.iter().map(String::as_str));
    out.tables.push(NumberTable::by_name(
        "Where each is highest",
        "evidence",
        "landscapes",
        all,
        &[
            ("log_lengthscale", "log lengthscale"),
            ("log_variance", "log variance"),
            ("loss", "exact log evidence lost there"),
            ("correlation", "correlation with the exact one"),
            ("rank_correlation", "of ranks"),
        ],
        "Over the points of the grid; losses in nats.",
    ));
    out.facts = vec![
        SummaryRow::new("table", format!("{} rows, {} columns", table.y.len(), table.x.ncols())),
        SummaryRow::new("standard error of the exact log evidence", format!("{:.2} nats at most", largest)),
    ];
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_by_hand() {
        let (a, b) = ([1.0, 2.0, 4.0], [10.0, 20.0, 15.0]);
        // Deviations -4/3, -1/3, 5/3 and -5, 5, 0.
        let expected = (20.0 / 3.0 - 5.0 / 3.0) / (42.0f64 / 9.0 * 50.0).sqrt();
        assert!((correlation(&a, &b) - expected).abs() < 1e-14);
        assert_eq!(mid_ranks(&[3.0, -1.0, 7.0]), [2.0, 1.0, 3.0]);
        assert_eq!(highest(&[3.0, -1.0, 7.0, 2.0]), 2);
    }
}
