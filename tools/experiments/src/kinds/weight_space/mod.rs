//! Linear models seen as functions: what their priors look like, what a few points make of them, how far below the evidence bounds of other Gaussians lie and where these would put the prior, what a sample is made of, how samples of a process ask for the next point, and what Gaussians make of a posterior that is none.
//!
//! Serves figures 2.1 to 2.5, 2.7 to 2.9, 3.1 and 3.2 of the thesis.

mod bounds;
mod cases;
mod classes;
mod next_points;
mod pathwise;
mod variational;

use crate::kinds::prelude::*;
use bounds::Bound;
use cases::{Case, CaseResult};
use classes::Classes;
use next_points::Next;
use pathwise::Pathwise;
use posterior_report::{PosteriorPanels, TitledPosterior};

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Inputs of the points that are seen.
    inputs: Vec<f64>,
    /// Their targets.
    targets: Vec<f64>,
    /// Precision of the noise.
    noise_precision: f64,
    /// Functions are shown from minus to plus this.
    reach: f64,
    /// Points that functions are shown at.
    grid: usize,
    /// Functions drawn of each prior and posterior.
    shown: usize,
    /// Draws that moments of priors are taken from.
    draws: usize,
    #[serde(rename = "case")]
    cases: Vec<Case>,
    bound: Bound,
    pathwise: Pathwise,
    next: Next,
    classes: Classes,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("case", self.cases.iter().map(|case| case.name.as_str()))?;
        let numbers = [self.noise_precision, self.reach, self.bound.kept, self.next.noise];
        let cases =
            self.cases.iter().all(|c| positive(c.prior_precision) && (c.kernel.is_none() || c.features > 0));
        let factor = self.bound.factor > 1.0 && self.bound.factor.is_finite();
        if !(numbers.into_iter().all(positive) && cases && factor) {
            return refused("precisions, `reach`, `noise` and `features` must be positive, `factor` above 1");
        }
        if self.inputs.is_empty() || self.inputs.len() != self.targets.len() {
            return refused("`inputs` and `targets` are as many, at least one");
        }
        let counts =
            [self.shown, self.draws, self.bound.turns, self.next.points, self.next.samples, self.next.rounds];
        if counts.contains(&0) || self.shown > self.draws {
            return refused(
                "`shown`, `draws`, `turns`, `points`, `samples` and `rounds` are at least 1, `shown` no more than `draws`",
            );
        }
        if [self.grid, self.bound.grid, self.next.grid].into_iter().any(|g| !(2..=2000).contains(&g)) {
            return refused("grids have from 2 to 2000 points");
        }
        self.case("bound", &self.bound.case)?;
        self.case("pathwise", &self.pathwise.case)?;
        if !(1..=self.draws).contains(&self.pathwise.samples) {
            return refused("[pathwise]: `samples` is at least 1, no more than `draws`");
        }
        self.classes.check()
    }
}

impl Settings {
    /// The case of this name, which a table of settings asks for.
    fn case(&self, table: &str, name: &str) -> Result<&Case> {
        match self.cases.iter().find(|case| case.name == name) {
            Some(case) => Ok(case),
            None => refused(format!("[{table}]: `case` is the name of one")),
        }
    }
}

/// So many points from `low` to `high`.
fn spaced(low: f64, high: f64, count: usize) -> Vec<f64> {
    (0..count).map(|i| low + (high - low) * i as f64 / (count - 1) as f64).collect()
}

fn column(values: &[f64]) -> Mat<f64> {
    Mat::from_fn(values.len(), 1, |i, _| values[i])
}

/// Shows all of it.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let streams = Streams::new(context.seed).child("experiment/weight-space", 0);
    let (mut numbers, mut figures, mut panels, mut covariances) =
        (Map::new(), Vec::new(), Vec::new(), Vec::new());
    for (k, case) in settings.cases.iter().enumerate() {
        context.step("cases", k, settings.cases.len())?;
        let CaseResult { prior, covariance, posterior, numbers: own } =
            cases::of_case(settings, case, streams)?;
        figures.push(prior.into());
        covariances.push(covariance);
        panels.push(TitledPosterior::new(case.name.clone(), posterior));
        numbers.insert(case.name.clone(), own);
    }
    figures.push(
        Curves::new("Covariances of priors with the function at 0", "x", "covariance", covariances)
            .captioned("Of a constant and the input, the value at 0 is the constant: its covariance is the same everywhere. Features of stationary kernels forget.")
            .into(),
    );
    figures.push(
        PosteriorPanels::new(
            "What a few points make of them",
            "y",
            panels,
            "Means and two standard deviations.",
        )
        .into(),
    );
    let (bound, more) = bounds::bounds(settings, streams)?;
    figures.extend(more);
    let (parts, more) = pathwise::pathwise(settings, streams)?;
    figures.extend(more);
    let (next, more) = next_points::next_points(&settings.next, context)?;
    figures.extend(more);
    let (classes, more) = classes::classes(settings)?;
    figures.extend(more);
    let names = || settings.cases.iter().map(|case| case.name.as_str());
    Ok(Measured {
        numbers: json!({"cases": numbers, "bound": bound, "pathwise": parts, "next": next, "classes": classes}),
        series: Value::Null,
        tables: vec![NumberTable::by_name(
            "Linear models",
            "model",
            "cases",
            names(),
            &[
                ("evidence", "log evidence"),
                ("mean_field_bound", "bound by mean field"),
                ("deviation_at_points", "deviation at the points"),
                ("deviation_at_ends", "at the ends"),
                ("prior_deviation_at_ends", "before, at the ends"),
            ],
            "Standard deviations of functions, noise apart.",
        )],
        figures,
        facts: Vec::new(),
        notes: Vec::new(),
    })
}
