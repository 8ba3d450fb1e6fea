//! The implicit bias of stochastic solvers: which parts of a posterior have converged when they stop early, seen along the inputs and by eigendirection
//! of the kernel matrix.
//!
//! Serves figure 4.10 of the thesis.

use crate::gaussian::{Covariance, MethodSettings, check_methods};
use crate::kinds::prelude::*;
use crate::line::{Inputs, KnownLine};
use crate::toy::{marginal_distances, posterior_panel};
use posterior_gp::iterative::{
    PathwiseModel, PathwiseSettings, Region, SpectralBasis, Start, Support, regions,
};
use posterior_gp::{Mean, MeanForm, Posterior, Prediction};
use posterior_kernels::features::FeatureSettings;
use posterior_kernels::{cross, diagonal, gram};
use posterior_likelihoods::Gaussian;
use posterior_report::{PosteriorPanel, PosteriorPanels, TitledPosterior};

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Rows; half of them in each of two clusters.
    rows: usize,
    /// The clusters lie at plus and minus this.
    centre: f64,
    /// Standard deviation of each cluster.
    deviation: f64,
    /// Standard deviation of the noise.
    noise: f64,
    /// The covariance function, as text.
    kernel: String,
    /// The grid reaches from minus to plus this.
    reach: f64,
    /// Points of the grid.
    grid: usize,
    /// Posterior samples.
    samples: usize,
    /// Random features of prior functions.
    features: usize,
    /// Basis functions that are drawn, counted from 1.
    basis: Vec<usize>,
    /// A point belongs to the prior region where no `k(x, x_i)` reaches this share of the variance.
    threshold: f64,
    /// Steps at which errors by eigendirection are looked at, besides the last.
    checkpoints: Vec<usize>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_methods(&self.methods)?;
        self.methods.iter().try_for_each(|m| m.rows_solver(1, 0).map(|_| ()))?;
        if !(4..=8000).contains(&self.rows) || !(2..=100_000).contains(&self.grid) {
            return refused(
                "`rows` must be between 4 and 8000 (all are decomposed) and `grid` between 2 and 100000",
            );
        }
        let all = [self.centre, self.deviation, self.noise, self.reach, self.threshold];
        if !all.into_iter().all(positive) || self.samples == 0 || self.features == 0 {
            return refused(
                "`centre`, `deviation`, `noise`, `reach`, `threshold`, `samples` and `features` must be positive",
            );
        }
        if self.basis.iter().any(|i| *i == 0 || *i > self.rows) {
            return refused("`basis` counts from 1 up to `rows`");
        }
        Ok(())
    }
}

const REGIONS: [(&str, Region); 3] = [
    ("interpolation", Region::Interpolation),
    ("extrapolation", Region::Extrapolation),
    ("prior", Region::Prior),
];

/// Everything that does not depend on the method.
struct Problem {
    line: KnownLine,
    /// The exact posterior at the inputs of the data.
    exact_at_data: Prediction,
    weights: Mat<f64>,
    basis: SpectralBasis,
    /// Coefficients of the exact mean.
    coefficients: Vec<f64>,
    regions: Vec<Region>,
    functions: Mat<f64>,
    /// Directions that the data determine.
    determined: usize,
}

impl Problem {
    fn new(settings: &Settings, context: &mut Context<'_>) -> Result<Self> {
        context.step("exact posterior", 0, 2)?;
        let streams = Streams::new(context.seed);
        let inputs = Inputs::Clusters { centre: settings.centre, deviation: settings.deviation };
        let x = inputs.draw(settings.rows, streams);
        let covariance = Covariance::parse(&settings.kernel, 1)?;
        let kernel = covariance.kernel::<f64>()?;
        let grid = (-settings.reach, settings.reach, settings.grid);
        let (line, exact) = KnownLine::new(covariance, x.clone(), settings.noise, grid, streams)?;
        let (weights, points) = (exact.weights().to_owned(), line.points.as_ref());
        let exact_at_data = exact.predict(x.as_ref())?;
        context.step("eigenvalues", 1, 2)?;
        let basis = SpectralBasis::new(gram(&*kernel, x.as_ref()).as_ref())?;
        let coefficients = basis.coefficients(weights.as_ref())?.col(0).iter().copied().collect();
        let between = cross(&*kernel, points, x.as_ref());
        let prior = diagonal(&*kernel, points);
        let regions = regions(&prior, &line.exact.latent_variance, between.as_ref(), settings.threshold)?;
        let most = settings.basis.iter().copied().max().unwrap_or(0);
        let functions = basis.functions(between.as_ref(), most)?;
        let determined = basis.interpolation_directions(line.noise_variance);
        Ok(Self { line, exact_at_data, weights, basis, coefficients, regions, functions, determined })
    }

    /// Sizes of the coefficients of a mean's error.
    fn errors(&self, weights: &Mat<f64>) -> Result<Vec<f64>> {
        let difference = Mat::from_fn(weights.nrows(), 1, |i, _| weights[(i, 0)] - self.weights[(i, 0)]);
        Ok(self.basis.coefficients(difference.as_ref())?.col(0).iter().map(|c| c.abs()).collect())
    }

    /// Norm of errors over that of the exact mean, over some directions.
    fn share(&self, errors: &[f64], directions: std::ops::Range<usize>) -> f64 {
        let norm = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
        norm(&errors[directions.clone()]) / norm(&self.coefficients[directions])
    }

    fn of_region(&self, values: &[f64], region: Region) -> f64 {
        mean(self.regions.iter().zip(values).filter(|p| *p.0 == region).map(|p| *p.1))
    }

    fn panel(&self, prediction: &Prediction) -> PosteriorPanel {
        let line = &self.line;
        let (x, y) = (line.data.inputs(), line.data.targets());
        let column = |m: MatRef<'_, f64>| m.col(0).iter().copied().collect();
        posterior_panel(&line.grid, prediction, line.noise_variance, (column(x), column(y)))
    }
}

/// What one method left behind.
struct Found {
    prediction: Prediction,
    at_data: Prediction,
    /// Steps and the errors of the mean there, by eigendirection; the last is the end.
    errors: Vec<(usize, Vec<f64>)>,
}

fn solve(
    settings: &Settings,
    problem: &Problem,
    method: &MethodSettings,
    context: &mut Context<'_>,
) -> Result<Found> {
    let model = PathwiseModel::<f64> {
        kernel: problem.line.covariance.kernel()?,
        mean: Mean::new(MeanForm::Zero, 1, 1),
        noise: Gaussian::new(problem.line.noise_variance, 0.0),
    };
    let (solver, budget) = method.rows_solver(problem.line.data.rows(), context.seed)?;
    let wanted = PathwiseSettings {
        budget,
        samples: settings.samples,
        features: FeatureSettings { count: settings.features, ..FeatureSettings::default() },
        // As published.
        samples_per_features: None,
        seed: context.seed,
        cache_bytes: 1 << 30,
    };
    let steps = wanted.budget.steps;
    let mut seen: Vec<(usize, Mat<f64>)> = Vec::new();
    let posterior = model.condition(
        problem.line.data.clone(),
        Support::Rows(solver),
        wanted,
        Start::Zero,
        &mut |progress, iterate| {
            let step = progress.step;
            if settings.checkpoints.contains(&step) && step < steps {
                seen.push((step, iterate.weights().get(.., ..1).to_owned()));
            }
            context.tell(&method.name, step, progress.steps_planned)
        },
    )?;
    if context.stopped() {
        return Err(ExperimentError::Interrupted);
    }
    let solution = posterior.solution();
    seen.push((solution.progress.step, solution.weights.get(.., ..1).to_owned()));
    let errors =
        seen.iter().map(|(step, weights)| Ok((*step, problem.errors(weights)?))).collect::<Result<_>>()?;
    let prediction = posterior.predict(problem.line.points.as_ref())?;
    Ok(Found { prediction, at_data: posterior.predict(problem.line.data.inputs())?, errors })
}

/// Solves with every method and takes the errors apart.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let problem = Problem::new(settings, context)?;
    let n = settings.rows;
    let (mut out, mut along) = (Measured::default(), Vec::new());
    let mut panels = vec![TitledPosterior::new("exact", problem.panel(&problem.line.exact))];
    let mut by_direction = Vec::new();
    for method in &settings.methods {
        let found = solve(settings, &problem, method, context)?;
        let distance = marginal_distances(&found.prediction, &problem.line.exact);
        let of_mean: Vec<f64> = (0..distance.len())
            .map(|i| (found.prediction.mean[(i, 0)] - problem.line.exact.mean[(i, 0)]).abs())
            .collect();
        let own = &mut out.numbers["methods"][&method.name];
        for (name, region) in REGIONS {
            own[name] = json!({"w2": problem.of_region(&distance, region), "mean_error": problem.of_region(&of_mean, region)});
        }
        // Regions count every point of the grid alike; here points count as often as data are there.
        let at_data = mean(marginal_distances(&found.at_data, &problem.exact_at_data));
        own["data"] = json!({ "w2": at_data });
        let last = &found.errors[found.errors.len() - 1].1;
        own["top_directions"] = json!(problem.share(last, 0..(problem.determined / 2).max(1)));
        own["other_directions"] = json!(problem.share(last, problem.determined.min(n - 1)..n));
        out.series[&method.name] = json!({"w2": distance, "errors": found.errors});
        panels.push(TitledPosterior::new(method.name.clone(), problem.panel(&found.prediction)));
        along.push(Line::new(method.name.clone(), problem.line.grid.clone(), distance));
        let index: Vec<f64> = (1..=n).map(|i| i as f64).collect();
        let mut lines: Vec<Line> = found
            .errors
            .iter()
            .rev()
            .take(7)
            .rev()
            .map(|(step, errors)| Line::new(format!("after {step} steps"), index.clone(), errors.clone()))
            .collect();
        lines.push(Line::new("no step", index, problem.coefficients.iter().map(|c| c.abs()).collect()));
        by_direction.push(Curves::new(format!("Error of the mean by eigendirection: {}", method.name), "index of the eigenvalue, largest first", "size of the coefficient", lines).logarithmic(true, true).captioned("Coefficients along orthonormal functions. Errors in the first directions go fast, those in the last hardly at all.").into());
    }
    out.numbers["determined_directions"] = json!(problem.determined);
    out.series["grid"] = json!(problem.line.grid);
    out.series["eigenvalues"] = json!(problem.basis.eigenvalues());
    let basis = settings.basis.iter().take(8).map(|&i| {
        let values = (0..problem.line.grid.len()).map(|g| problem.functions[(g, i - 1)]).collect();
        Line::new(format!("{i}"), problem.line.grid.clone(), values)
    });
    out.figures = vec![
        PosteriorPanels::new(
            "Posteriors",
            "y",
            panels,
            "Two standard deviations, exact and as stochastic solvers left them.",
        )
        .into(),
        Curves::new("Distance from the exact posterior", "x", "2-Wasserstein distance of marginals", along)
            .captioned("Small where the data are and far away; large around the edges of the data.")
            .into(),
        Curves::new("Spectral basis functions", "x", "value", basis.collect())
            .captioned("By index; those of high index live around the edges of the data.")
            .into(),
    ];
    out.figures.extend(by_direction);
    let names = settings.methods.iter().map(|m| m.name.as_str());
    let count = |region| problem.regions.iter().filter(|r| **r == region).count();
    let counts: Vec<String> =
        REGIONS.iter().map(|(name, region)| format!("{name} {}", count(*region))).collect();
    out.tables.push(NumberTable::by_name(
            "Distance from the exact posterior",
            "method",
            "methods",
            names,
            &[
                ("data.w2", "data"),
                ("interpolation.w2", "interpolation"),
                ("extrapolation.w2", "extrapolation"),
                ("prior.w2", "prior"),
                ("top_directions", "error in top directions"),
                ("other_directions", "error in undetermined directions"),
            ],
            "Mean 2-Wasserstein distance of marginals at the data and over the grid points of each region (interpolation: the posterior variance is less than half of the prior's); errors of the mean relative to the exact mean's share of \
             these directions. Top: the first half of those whose eigenvalue exceeds the noise; undetermined: those where it does not.",
    ));
    out.facts = vec![
        SummaryRow::new("Eigenvalues above the noise", format!("{} of {n}", problem.determined)),
        SummaryRow::new("Grid points by region", counts.join(", ")),
    ];
    Ok(out)
}
