//! Classes on a plane: the bound on their evidence whose posterior is regression on Gaussian pseudo-targets, with a learned pseudo-count, by each matching: decision regions, bounds, scores.
//!
//! Serves figure 8 of Bui's *Likelihood approximations via Gaussian approximate inference*.

use crate::kinds::prelude::*;
use crate::labels::{
    ClassScores, Labelled, MadeUp, check_gaussian_labels, probabilities, squared_exponential,
};
use posterior_gp::exact::{ExactGp, ExactPosterior, FitOptions};
use posterior_gp::gaussianised::{GaussianisedFit, GaussianisedGp, fit_gaussianised};
use posterior_gp::{MeanForm, Posterior};
use posterior_likelihoods::Gaussian;
use posterior_likelihoods::gaussianised::Matching;
use posterior_optim::{Parameters, Signal};
use posterior_report::{Plane, PlanePanel};
use std::time::Instant;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// The table; two columns.
    made_up: MadeUp,
    /// Rows that are scored.
    test: usize,
    matchings: Vec<Matching>,
    /// Where pseudo-counts begin.
    pseudo_count: f64,
    /// Pseudo-counts at which the bound is shown beside the learned one, everything else as it was learned.
    along: Vec<f64>,
    /// Steps of the search at most.
    steps: usize,
    /// Points of the map on each side.
    grid: usize,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_gaussian_labels(&self.matchings, &self.along)?;
        check_gaussian_labels(&self.matchings, &[self.pseudo_count])?;
        if self.made_up.columns != 2 {
            return refused("[made_up]: `columns` are two");
        }
        if !(2..=300).contains(&self.grid) || self.steps == 0 {
            return refused("`grid` is from 2 to 300 points, `steps` at least 1");
        }
        Ok(())
    }
}

/// Processes of all functions with what their predictions are moved by.
struct Fitted {
    posteriors: Vec<ExactPosterior>,
    means: Vec<f64>,
}

impl Fitted {
    fn new(fit: &GaussianisedFit, data: &Labelled) -> Result<Self> {
        let observations = data.observations()?;
        let several = fit.model.observations(&observations)?;
        let process = |c: usize| {
            let kernel = fit.model.kernel().clone_box();
            ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(1e-10, 0.0), 2, 1)
                .condition(several.function(c))
        };
        let posteriors = (0..several.functions()).map(process).collect::<Result<_, _>>()?;
        Ok(Self { posteriors, means: fit.model.mean().values() })
    }

    fn predict(&self, x: MatRef<'_, f64>) -> Result<Vec<f64>> {
        let functions = self.posteriors.len();
        let (mut mean, mut variance) = (Mat::zeros(x.nrows(), functions), Mat::zeros(x.nrows(), functions));
        for (k, posterior) in self.posteriors.iter().enumerate() {
            let found = posterior.predict(x)?;
            for i in 0..x.nrows() {
                mean[(i, k)] = self.means[k] + found.mean[(i, 0)];
                variance[(i, k)] = found.latent_variance[i];
            }
        }
        probabilities(mean.as_ref(), variance.as_ref())
    }
}

/// Learns by every matching and shows what comes of it.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let streams = Streams::new(context.seed);
    let all = MadeUp { rows: settings.made_up.rows + settings.test, ..settings.made_up.clone() };
    let all = Labelled::made_up(&all, streams)?;
    let (train, test) = all.split((settings.made_up.rows, settings.test), streams)?;
    let observations = train.observations()?;
    let range = |j: usize| {
        let column = train.x.col_as_slice(j);
        let low = column.iter().copied().fold(f64::INFINITY, f64::min) - 0.5;
        let high = column.iter().copied().fold(f64::NEG_INFINITY, f64::max) + 0.5;
        let step = (high - low) / (settings.grid - 1) as f64;
        (0..settings.grid).map(|i| low + step * i as f64).collect::<Vec<f64>>()
    };
    let (grid_x, grid_y) = (range(0), range(1));
    let points = Mat::from_fn(settings.grid * settings.grid, 2, |i, j| {
        if j == 0 { grid_x[i % settings.grid] } else { grid_y[i / settings.grid] }
    });
    let mut panels = Vec::new();
    let (mut out, mut lines) = (Measured::default(), Vec::new());
    for (done, &matching) in settings.matchings.iter().enumerate() {
        let name = matching.name();
        context.step(name, done, settings.matchings.len())?;
        let clock = Instant::now();
        let (_, means) = train.gaussian_labels(matching, settings.pseudo_count)?;
        let mut model = GaussianisedGp::new(
            squared_exponential(10.0, 1.0, 2)?,
            MeanForm::Constant,
            train.likelihood()?,
            (matching, settings.pseudo_count),
            2,
        )?;
        model.mean_mut().set_values(&means);
        let mut options = FitOptions { restarts: 1, ..FitOptions::default() };
        options.steps.steps = settings.steps;
        let begun = model.evaluate(&observations, false)?.bound.value;
        let fit = fit_gaussianised(model, &observations, &options, &mut |_, _| Signal::Continue)?;
        let fitted = Fitted::new(&fit, &train)?;
        let seconds = clock.elapsed().as_secs_f64();
        let scored = |of: &Labelled| -> Result<ClassScores> { of.scores(&fitted.predict(of.x.as_ref())?) };
        let (own, there) = (scored(&train)?, scored(&test)?);
        let learned = fit.model.gaussianised()?.pseudo_count();
        let mut values = Vec::new();
        let place = fit.model.values().len() - 1;
        for &pseudo_count in &settings.along {
            let mut moved = fit.model.clone();
            let mut all = moved.values();
            all[place] = pseudo_count;
            moved.set_values(&all);
            values.push(moved.evaluate(&observations, false)?.bound.value);
        }
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        out.numbers["matchings"][name] = json!({
            "pseudo_count": learned, "bound": fit.bound.value, "gained": fit.bound.value - begun,
            "above_the_others": fit.bound.value - highest,
            "expected_log_likelihood": fit.bound.expected_log_likelihood,
            "divergence": fit.bound.divergences.iter().sum::<f64>(),
            "train_nll": own.nll, "nll": there.nll, "error": there.error, "ece": there.ece,
            "evaluations": fit.evaluations, "seconds": seconds,
        });
        out.series[name] = json!({"pseudo_counts": settings.along, "bounds": values});
        let map = fitted.predict(points.as_ref())?;
        panels.push(PlanePanel::decisions(format!("{name}, {learned:.3}"), &map, train.classes));
        lines.push(Line::new(name, settings.along.clone(), values));
    }
    out.figures = vec![
        Item::Plane(Plane {
            title: "Decision regions, with the learned pseudo-counts".into(),
            x: "x1".into(),
            y: "x2".into(),
            grid_x,
            grid_y,
            panels,
            points_x: train.x.col_as_slice(0).to_vec(),
            points_y: train.x.col_as_slice(1).to_vec(),
            points_class: train.y.clone(),
            caption: "The most probable class, the stronger the surer.".into(),
        }),
        Curves::new(
            "The bound along the pseudo-count",
            "pseudo-count",
            "bound on the log evidence, nats",
            lines,
        )
        .logarithmic(true, false)
        .captioned("Kernel and means as they were learned.")
        .into(),
    ];
    out.tables.push(NumberTable::by_name(
        "By matching",
        "matching",
        "matchings",
        settings.matchings.iter().map(|m| m.name()),
        &[
            ("pseudo_count", "learned pseudo-count"),
            ("bound", "bound, nats"),
            ("divergence", "divergence"),
            ("train_nll", "NLL of training rows"),
            ("nll", "NLL of test rows"),
            ("error", "error, %"),
            ("ece", "ECE"),
            ("seconds", "seconds"),
        ],
        "Bounds of all matchings are bounds on one log evidence at hyperparameters of their own.",
    ));
    let (train_rows, test_rows, classes) = (train.y.len(), test.y.len(), train.classes);
    let rows = format!("{train_rows} for training, {test_rows} for tests, {classes} classes");
    out.facts.push(SummaryRow::new("rows", rows));
    Ok(out)
}
