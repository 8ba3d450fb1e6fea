//! Gaussian processes with the Tanimoto kernel on made-up fingerprints: exact agreement with brute force, hyperparameters learned from data as good as
//! those that made them, iterative solvers with random hashes.

use crate::gaussian::{MethodSettings, check_methods, normals};
use crate::kinds::prelude::*;
use crate::synthetic::{CountFingerprints, FingerprintSettings, count_fingerprints};
use crate::toy::panel;
use posterior_gp::exact::{ExactGp, FitOptions, fit};
use posterior_gp::iterative::{Problem, Start, solve};
use posterior_gp::{GpError, MeanForm, Observations, Posterior};
use posterior_kernels::composite::Scaled;
use posterior_kernels::tanimoto::{SparseCounts, SparseFeatures, Tanimoto, TanimotoMatrix};
use posterior_kernels::{Columns, Kernel};
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linalg::operator::{LinearOperator, RowAccess};
use posterior_linalg::solve::System;
use posterior_metrics::Gaussians;
use posterior_report::{PosteriorPanel, PosteriorPanels, TitledPosterior};
use std::sync::Arc;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Training rows.
    train: usize,
    /// Test rows.
    test: usize,
    /// Columns of counts.
    columns: usize,
    /// Families of rows with counts in common.
    families: usize,
    /// Columns that a family has in common.
    shared: usize,
    /// Mean number of columns that a row has for itself.
    own: usize,
    /// Variance of the function.
    variance: f64,
    /// Standard deviation of the noise.
    noise: f64,
    /// Variance and noise at which learning begins, as multiples of the true ones.
    start: f64,
    /// Steps of learning at most.
    learning_steps: usize,
    /// Posterior samples of the iterative methods.
    samples: usize,
    /// Random hashes of a prior function.
    features: usize,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_methods(&self.methods)?;
        self.methods.iter().try_for_each(|m| m.rows_solver(1, 0).map(|_| ()))?;
        if ["generating", "learned", "brute force"].iter().any(|n| self.methods.iter().any(|m| m.name == *n))
        {
            return refused("[[method]]: `generating`, `learned` and `brute force` are there anyway");
        }
        if [self.train, self.test, self.samples, self.features, self.learning_steps].contains(&0) {
            return refused("`train`, `test`, `samples`, `features` and `learning_steps` must be at least 1");
        }
        if ![self.variance, self.noise, self.start].into_iter().all(positive) {
            return refused("`variance`, `noise` and `start` must be positive");
        }
        Ok(())
    }
}

/// `v Σ min / Σ max` from its definition, entry by entry.
fn brute_force(x: MatRef<'_, f64>, z: MatRef<'_, f64>, variance: f64) -> Mat<f64> {
    // Columns of the transpose are contiguous.
    let (x, z) = (x.transpose().to_owned(), z.transpose().to_owned());
    Mat::from_fn(x.ncols(), z.ncols(), |i, j| {
        let pairs = x.col_as_slice(i).iter().zip(z.col_as_slice(j));
        let (least, most) = pairs.fold((0.0, 0.0), |(l, m), (a, b)| (l + a.min(*b), m + a.max(*b)));
        if most > 0.0 { variance * (least / most) } else { variance }
    })
}

/// Means, latent variances.
struct Marginals {
    mean: Vec<f64>,
    variance: Vec<f64>,
}

/// The posterior by textbook formulas on a given matrix.
fn textbook(gram: &Mat<f64>, cross: &Mat<f64>, y: &[f64], variance: f64, noise: f64) -> Result<Marginals> {
    let n = y.len();
    let system = Mat::from_fn(n, n, |i, j| gram[(i, j)] + if i == j { noise } else { 0.0 });
    let factored = Cholesky::of(system.as_ref(), JitterPolicy::NONE).map_err(GpError::from)?;
    let weights = factored.solve(Mat::from_fn(n, 1, |i, _| y[i]).as_ref());
    let mean = product(cross.as_ref(), weights.as_ref());
    let mut whitened = cross.transpose().to_owned();
    factored.solve_factor_in_place(whitened.as_mut());
    Ok(Marginals {
        mean: (0..cross.nrows()).map(|i| mean[(i, 0)]).collect(),
        variance: (0..cross.nrows())
            .map(|i| (variance - whitened.col(i).squared_norm_l2()).max(0.0))
            .collect(),
    })
}

/// Scores of predictions of observations, and the error against the function itself.
fn scores(found: &Marginals, noise: f64, y: &[f64], function: &[f64]) -> Result<Value> {
    let observed: Vec<f64> = found.variance.iter().map(|v| v + noise).collect();
    let scores = Gaussians::new(&found.mean, &observed, y)?.scores(1.0)?;
    let error = mean(found.mean.iter().zip(function).map(|(m, f)| (m - f).powi(2))).sqrt();
    Ok(json!({
        "rmse": scores.rmse,
        "nll": scores.nll,
        "r2": scores.r2,
        "explained_variance": scores.explained_variance,
        "coverage_90": scores.coverage_90,
        "function_error": error,
    }))
}

/// Counts of some rows.
fn counts(made: &CountFingerprints, rows: std::ops::Range<usize>) -> Result<SparseCounts<f64>> {
    Ok(SparseCounts::new(made.counts.select(&rows.collect::<Vec<_>>()))?)
}

/// Mean and samples by an iterative solver on sparse counts, prior functions from random hashes.
fn iterative(
    settings: &Settings,
    method: &MethodSettings,
    matrix: &TanimotoMatrix<f64>,
    (train, test): (&SparseCounts<f64>, &Arc<SparseCounts<f64>>),
    y: &[f64],
    context: &mut Context<'_>,
) -> Result<Marginals> {
    let (n, s) = (y.len(), settings.samples);
    let streams = Streams::new(context.seed).child("experiment/prior", 0);
    let hashes = SparseFeatures::new(settings.columns, settings.features, settings.variance, streams);
    let weights = normals(settings.features, s, streams, "experiment/weights");
    let (at_train, at_test) =
        (hashes.multiply(train, weights.as_ref()), hashes.multiply(test, weights.as_ref()));
    let white = normals(n, s, streams, "experiment/sample-noise");
    let function = Mat::from_fn(n, 1 + s, |i, j| if j == 0 { y[i] } else { at_train[(i, j - 1)] });
    let errors = Mat::from_fn(n, 1 + s, |i, j| if j == 0 { 0.0 } else { settings.noise * white[(i, j - 1)] });
    let system = System::uniform(matrix, settings.noise * settings.noise).map_err(GpError::from)?;
    let problem = Problem::new(&system, function.as_ref(), Some(errors.as_ref()))?;
    let (solver, budget) = method.rows_solver(n, context.seed)?;
    let solution = solve(&solver, &problem, Start::Zero, &budget, &mut |progress, _| {
        context.tell(&method.name, progress.step, progress.steps_planned)
    })?;
    if context.stopped() {
        return Err(ExperimentError::Interrupted);
    }
    let product = matrix.cross(test.clone()).multiply(solution.weights.as_ref());
    let variance =
        |i: usize| (0..s).map(|j| (at_test[(i, j)] - product[(i, 1 + j)]).powi(2)).sum::<f64>() / s as f64;
    let m = product.nrows();
    Ok(Marginals {
        mean: (0..m).map(|i| product[(i, 0)]).collect(),
        variance: (0..m).map(variance).collect(),
    })
}

/// Makes fingerprints up, computes the posterior in every way, compares.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let (n, m) = (settings.train, settings.test);
    context.step("fingerprints", 0, 1)?;
    let shape = FingerprintSettings {
        rows: n.saturating_add(m),
        columns: settings.columns,
        families: settings.families,
        shared: settings.shared,
        own: settings.own,
        variance: settings.variance,
        noise: settings.noise,
    };
    let made = count_fingerprints(shape, Streams::new(context.seed))?;
    let dense = made.counts.to_dense();
    let (x, z) = (dense.get(..n, ..), dense.get(n.., ..));
    let (y, truth, function) = (&made.y[..n], &made.y[n..], &made.function[n..]);
    let (variance, noise) = (settings.variance, settings.noise * settings.noise);
    // Brute force against the sparse operator and the dense kernel.
    context.step("brute force", 0, 1)?;
    let (gram, cross) = (brute_force(x, x, variance), brute_force(z, x, variance));
    let reference = textbook(&gram, &cross, y, variance, noise)?;
    let (train, test) = (Arc::new(counts(&made, 0..n)?), Arc::new(counts(&made, n..n + m)?));
    let matrix = TanimotoMatrix::of_rows(train.clone(), variance);
    let mut sparse = Mat::zeros(n, n);
    matrix.columns_into(&(0..n).collect::<Vec<_>>(), sparse.as_mut());
    let identity = Mat::<f64>::identity(n, n);
    let sparse_cross = matrix.cross(test.clone()).multiply(identity.as_ref());
    let inner: Box<dyn Kernel<f64>> = Box::new(Tanimoto::new(Columns::all(settings.columns)));
    let kernel = |v: f64| Box::new(Scaled::new("tanimoto", v, inner.clone_box()));
    let by_kernel = posterior_kernels::gram(&*kernel(variance), x);
    let library = textbook(&sparse, &sparse_cross, y, variance, noise)?;
    let largest = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let agreement = json!({
        "entries": (&gram - &sparse).norm_max().max((&cross - &sparse_cross).norm_max()),
        "dense_entries": (&gram - &by_kernel).norm_max(),
        "means": largest(&reference.mean, &library.mean),
        "variances": largest(&reference.variance, &library.variance),
    });
    // Hyperparameters from the data.
    let targets = Mat::from_fn(n, 1, |i, _| y[i]);
    let data = Observations::new(x.to_owned(), targets, None)?;
    let model = ExactGp::new(
        kernel(settings.start * variance),
        MeanForm::Zero,
        Gaussian::new(settings.start * noise, 1e-10 * variance),
        settings.columns,
        1,
    );
    let mut options = FitOptions { restarts: 1, ..FitOptions::default() };
    options.steps.steps = settings.learning_steps;
    let fitted = fit(model, data, &options, &mut |_, event| {
        context.tell("learning", event.step, settings.learning_steps)
    })?;
    context.step("learning", settings.learning_steps, settings.learning_steps)?;
    let prediction = fitted.posterior.predict(z)?;
    let mean = prediction.mean.col(0).iter().copied().collect();
    let learned = Marginals { mean, variance: prediction.latent_variance };
    let found = fitted.posterior.model();
    let (learned_variance, learned_noise) = (found.kernel().values()[0], found.noise().noise_variance());
    let mut methods = Map::new();
    methods.insert("generating".into(), scores(&reference, noise, truth, function)?);
    methods.insert("learned".into(), scores(&learned, learned_noise, truth, function)?);
    for method in &settings.methods {
        let own = iterative(settings, method, &matrix, (&train, &test), y, context)?;
        let mut numbers = scores(&own, noise, truth, function)?;
        numbers["mean_difference"] = json!(largest(&own.mean, &reference.mean));
        methods.insert(method.name.clone(), numbers);
    }
    let names = ["generating", "learned"].into_iter().chain(settings.methods.iter().map(|m| m.name.as_str()));
    let tables = vec![
        NumberTable::by_name(
            "Predictions of test rows",
            "posterior",
            "methods",
            names,
            &[
                ("r2", "R²"),
                ("rmse", "RMSE"),
                ("nll", "NLL"),
                ("coverage_90", "in the 90 % interval"),
                ("function_error", "error against the function"),
                ("mean_difference", "largest difference of means from brute force"),
            ],
            "Generating: brute force with the hyperparameters that made the data. Iterative methods have these too; their variances come from samples.",
        ),
        NumberTable::of_quantities(
            "Agreement with brute force, and hyperparameters",
            ["quantity", "value"],
            &[
                ("entries of sparse matrices, largest difference", "agreement.entries"),
                ("entries of the dense kernel, largest difference", "agreement.dense_entries"),
                ("means, largest difference", "agreement.means"),
                ("variances, largest difference", "agreement.variances"),
                ("learned variance over the true one", "learned.variance_ratio"),
                ("learned noise over the true one (standard deviations)", "learned.noise_ratio"),
            ],
        ),
    ];
    Ok(Measured {
        numbers: json!({
            "agreement": agreement,
            "methods": methods,
            "learned": {
                "variance_ratio": learned_variance / variance,
                "noise_ratio": (learned_noise / noise).sqrt(),
                "log_evidence": fitted.log_evidence,
                "steps": fitted.steps,
            },
        }),
        series: json!({"truth": truth, "mean": reference.mean, "variance": reference.variance}),
        tables,
        figures: vec![ordered(&reference, &learned, noise, truth)],
        facts: vec![
            SummaryRow::new("Rows for training and testing", format!("{n} and {m}")),
            SummaryRow::new(
                "Counts in a row",
                format!("{:.1} of {}", made.counts.entries() as f64 / (n + m) as f64, settings.columns),
            ),
        ],
        ..Measured::default()
    })
}

/// Test rows in the order of their predicted mean, with both posteriors.
fn ordered(reference: &Marginals, learned: &Marginals, noise: f64, truth: &[f64]) -> Item {
    let mut order: Vec<usize> = (0..truth.len()).collect();
    order.sort_by(|a, b| reference.mean[*a].total_cmp(&reference.mean[*b]));
    let place: Vec<f64> = (0..truth.len()).map(|i| i as f64).collect();
    let sorted = |values: &[f64]| order.iter().map(|&i| values[i]).collect::<Vec<f64>>();
    let titled = |title: &str, found: &Marginals| {
        let (mean, variances) = (sorted(&found.mean), sorted(&found.variance).into_iter());
        let panel = panel(&place, mean, variances, noise, (place.clone(), sorted(truth)));
        let input = "test rows, by the mean of brute force".into();
        TitledPosterior::new(title, PosteriorPanel { input, ..panel })
    };
    PosteriorPanels::new(
        "Test rows",
        "y",
        vec![titled("generating hyperparameters", reference), titled("learned hyperparameters", learned)],
        "Points are what was observed at the test rows, which no posterior has seen.",
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brute_force_is_the_definition() {
        let x = faer::mat![[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]];
        let z = faer::mat![[2.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 0.0]];
        let k = brute_force(x.as_ref(), z.as_ref(), 3.0);
        // Minima 1 + 1 + 0, maxima 2 + 2 + 1.
        assert!((k[(0, 0)] - 1.2).abs() < 1e-15 && k[(0, 1)] == 0.0 && (k[(0, 2)] - 3.0).abs() < 1e-15);
        assert!(k[(1, 0)] == 0.0 && k[(1, 1)] == 3.0);
    }
}
