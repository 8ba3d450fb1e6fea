//! Counts whose rates are known: what each inference covers of the rates and of new counts, on several functions.
//!
//! After section 4.3 of spec `likelihood_approximations` (Poisson counts by Gaussian pseudo-targets), whose source has no counts.

use crate::kinds::prelude::*;
use posterior_data::Selection;
use posterior_data::synthetic::{SmoothTargets, smooth_counts};
use posterior_likelihoods::gaussianised::Matching;
use posterior_likelihoods::{Likelihood, Poisson};
use posterior_models::options::{InferenceName, LikelihoodName, OutputRequest, PriorSettings, PseudoCount};
use posterior_models::{
    FitRequest, Method, Model, ModelData, Observed, Predicted, Question, choose_likelihood,
};
use posterior_optim::Signal;
use rand::RngExt;
use std::time::Instant;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// The covariance function, as text.
    kernel: String,
    /// Functions, each with rows of its own.
    functions: usize,
    /// Training rows of each.
    train: usize,
    /// Rows of each that are scored.
    test: usize,
    /// Columns.
    columns: usize,
    /// The rate where the function is 0.
    mean_count: f64,
    /// Of the functions, in standard deviations of the inputs.
    lengthscale: f64,
    /// Standard deviation of the log rate.
    amplitude: f64,
    #[serde(rename = "method")]
    methods: Vec<CountMethod>,
}

/// How to infer, in the words of `posterior fit`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CountMethod {
    name: String,
    inference: InferenceName,
    matching: Option<Matching>,
    pseudo_count: Option<PseudoCount>,
    /// With its options; the inference's own if absent.
    method: Option<Method>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("method", self.methods.iter().map(|m| m.name.as_str()))?;
        if self.functions == 0 || self.train < 2 || self.test == 0 {
            return refused("`functions`, `train` and `test` are at least 1, 2 and 1");
        }
        self.kernel.parse::<posterior_kernels::KernelExpression>()?;
        Ok(())
    }
}

/// Levels of intervals, in per cent.
const LEVELS: [u32; 3] = [50, 90, 95];

/// What a method says on one function.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    nll: f64,
    /// Shares of counts, then of rates, inside the intervals of each level.
    counts: [f64; 3],
    rates: [f64; 3],
    pseudo_count: Option<f64>,
    seconds: f64,
}

/// What is averaged over functions.
const QUANTITIES: [Quantity<Found>; 3] = [
    ("nll", "NLL", |f| Some(f.nll)),
    ("pseudo_count", "pseudo-count", |f| f.pseudo_count),
    ("seconds", "seconds", |f| Some(f.seconds)),
];

/// Shares inside the intervals of each level.
type Shares = fn(&Found) -> [f64; 3];

/// `u` with `P(Y < y) + U P(Y = y)`, uniform where counts come from what was predicted, whatever their grain.
fn place(likelihood: &Poisson, y: f64, (mean, variance): (f64, f64), uniform: f64) -> f64 {
    let mass = |count: f64| likelihood.log_predictive_density(&[count], &[mean], &[variance]).exp();
    let below: f64 = (0..y as u64).map(|count| mass(count as f64)).sum();
    below + uniform * mass(y)
}

fn inside(u: f64, level: u32) -> bool {
    (u - 0.5).abs() <= 0.5 * f64::from(level) / 100.0
}

fn fit(settings: &Settings, method: &CountMethod, made: &SmoothTargets, seed: u64) -> Result<Found> {
    let table = made.table();
    let rows: Vec<usize> = (0..settings.train).collect();
    let labels = OutputRequest {
        likelihood: LikelihoodName::Poisson,
        inference: method.inference,
        matching: method.matching,
        pseudo_count: method.pseudo_count,
        ..OutputRequest::default()
    };
    let usual = FitRequest::default();
    let request = FitRequest {
        columns: Selection { target: "count".into(), ..Selection::default() },
        method: method.method.clone().unwrap_or(usual.method.clone()),
        output: labels,
        seed,
        prior: PriorSettings { kernel: settings.kernel.parse()?, ..usual.prior },
        ..usual
    };
    let clock = Instant::now();
    let chosen = choose_likelihood(&table, "count", &rows, request.output.likelihood, &request.columns)?;
    let observed = Observed::from_table(&table, &rows, &request, chosen)?;
    let model = Model::fit_observed(observed, &request, &mut |_, _| Signal::Continue)?;
    let seconds = clock.elapsed().as_secs_f64();
    let test: Vec<usize> = (settings.train..settings.train + settings.test).collect();
    let data = ModelData::of_table(table)?.selected(&test)?;
    let question = Question { truth: true, memory: 4 << 30, ..Question::default() };
    let found = model.predictive(&data, &question)?;
    let Predicted::Moments { mean, latent_variance, .. } = &found.predicted else {
        return refused("counts are predicted by moments");
    };
    let likelihood = Poisson::new(1)?;
    let mut rng = Streams::new(seed).stream("experiment/places");
    let (mut counts, mut rates) = ([0.0; 3], [0.0; 3]);
    for (i, &row) in test.iter().enumerate() {
        // The rate is log-normal: these are its moments.
        let variance = (latent_variance[i] / mean[i].powi(2)).ln_1p();
        let centre = mean[i].ln() - 0.5 * variance;
        let u = place(&likelihood, made.targets[row], (centre, variance), rng.random());
        let z = (made.truth[row].ln() - centre) / variance.sqrt();
        let normal = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
        for (k, level) in LEVELS.into_iter().enumerate() {
            counts[k] += f64::from(u8::from(inside(u, level))) / test.len() as f64;
            rates[k] += f64::from(u8::from(inside(normal, level))) / test.len() as f64;
        }
    }
    let density = found.log_density.unwrap_or_default();
    let nll = -density.iter().sum::<f64>() / density.len() as f64;
    let process = model.process();
    let fit = process.and_then(|own| own.record().fit.likelihood());
    let gaussian_labels = fit.and_then(|fit| fit.gaussian_labels.as_ref());
    let pseudo_count = gaussian_labels.map(|s| s.gaussianised.pseudo_count());
    Ok(Found { nll, counts, rates, pseudo_count, seconds })
}

/// Fits every method to every function.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let likelihood = Poisson::new(1)?;
    let mut out = Measured::default();
    let (mut least, mut by_method) = (Vec::new(), vec![Vec::new(); settings.methods.len()]);
    for function in 0..settings.functions {
        let streams = Streams::new(context.seed).child("experiment/function", function as u64);
        let shape = (settings.lengthscale, settings.amplitude);
        let rows = settings.train + settings.test;
        let made = smooth_counts(rows, settings.columns, settings.mean_count, shape, None, streams)?;
        let own = (settings.train..rows)
            .map(|i| -likelihood.log_density(&[made.targets[i]], &[made.truth[i].ln()]));
        least.push(own.sum::<f64>() / settings.test as f64);
        for (method, all) in settings.methods.iter().zip(&mut by_method) {
            let stage = format!("function {function}, {}", method.name);
            context.step(&stage, function, settings.functions)?;
            let depends = (
                (rows, settings.train, settings.columns, settings.mean_count, shape),
                (&settings.kernel, method),
            );
            let seed = context.seed.wrapping_add(function as u64);
            all.push(context.once(&stage, &depends, |_| fit(settings, method, &made, seed))?);
        }
    }
    let mut lines = Vec::new();
    for (method, all) in settings.methods.iter().zip(&by_method) {
        let mut own = Map::new();
        let column = |value: &dyn Fn(&Found) -> f64| all.iter().map(value).collect::<Vec<f64>>();
        let excess: Vec<f64> = all.iter().zip(&least).map(|(f, least)| f.nll - least).collect();
        put(&mut own, "excess", &excess)?;
        put_all(&mut own, "", all, &QUANTITIES)?;
        let covered: [(&str, Shares); 2] = [("counts", |f| f.counts), ("rates", |f| f.rates)];
        for (what, of) in covered {
            for (k, level) in LEVELS.into_iter().enumerate() {
                let shares = column(&|f| 100.0 * of(f)[k]);
                let mean = shares.iter().sum::<f64>() / all.len() as f64;
                put(&mut own, &format!("{what}_{level}"), &shares)?;
                own.insert(format!("{what}_{level}_off"), json!((mean - f64::from(level)).abs()));
            }
        }
        let nominal: Vec<f64> = LEVELS.iter().map(|l| f64::from(*l)).collect();
        let reached = (0..3).map(|k| column(&|f| 100.0 * f.rates[k]).iter().sum::<f64>() / all.len() as f64);
        lines.push(Line::new(method.name.clone(), nominal, reached.collect()));
        out.series[&method.name] = json!(all);
        out.numbers["methods"][&method.name] = Value::Object(own);
    }
    let mut truth = Map::new();
    put(&mut truth, "nll", &least)?;
    let rows = (settings.functions * settings.test) as f64;
    // Of shares of independent rows; those of one function are not, which the scatter between functions shows.
    for level in LEVELS {
        let share = f64::from(level) / 100.0;
        truth.insert(format!("binomial_{level}"), json!(100.0 * (share * (1.0 - share) / rows).sqrt()));
    }
    out.numbers["truth"] = Value::Object(truth);
    let names = || settings.methods.iter().map(|m| m.name.as_str());
    let coverage = [("counts", "counts, "), ("rates", "rates, ")].map(|(what, words)| {
        LEVELS.map(|level| {
            let words = if level == LEVELS[0] { words } else { "" };
            (format!("{what}_{level}_shown"), format!("{words}{level}"))
        })
    });
    let coverage = coverage.concat();
    out.tables.push(NumberTable::by_name(
        "Coverage, %",
        "inference",
        "methods",
        names(),
        &coverage,
        "Shares of new counts, and of the rates that they were drawn from, in central intervals; means over functions with standard errors. Counts have a grain: those at the ends of an interval are in it with the share that belongs there.",
    ));
    let mut columns = shown_columns("", &QUANTITIES);
    columns.insert(1, ("excess_shown".into(), "NLL above that of the rates"));
    out.tables.push(NumberTable::by_name("Scores", "inference", "methods", names(), &columns, ""));
    out.figures
        .push(Curves::new("Rates inside their intervals", "level, %", "rates inside, %", lines).into());
    let Settings { functions, train, test, columns, .. } = settings;
    let what = format!("{functions}, each {train} and {test} rows, {columns} columns");
    out.facts.push(SummaryRow::new("functions", what));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::{Distribution, StandardNormal};

    /// Counts that are drawn from what is predicted have uniform places.
    #[test]
    fn places_of_what_was_predicted_are_uniform() {
        let likelihood = Poisson::new(1).unwrap();
        let mut rng = Streams::new(4).stream("test");
        let (n, mean, variance) = (4000, 0.4, 0.5f64);
        let mut covered = [0.0; 3];
        for _ in 0..n {
            let f = mean
                + variance.sqrt() * <StandardNormal as Distribution<f64>>::sample(&StandardNormal, &mut rng);
            let mut y = [0.0];
            likelihood.sample(&[f], &mut rng, &mut y);
            let u = place(&likelihood, y[0], (mean, variance), rng.random());
            LEVELS
                .into_iter()
                .zip(&mut covered)
                .for_each(|(level, c)| *c += f64::from(u8::from(inside(u, level))));
        }
        for (level, covered) in LEVELS.into_iter().zip(covered) {
            let share = f64::from(level) / 100.0;
            let error = (share * (1.0 - share) / f64::from(n)).sqrt();
            assert!((covered / f64::from(n) - share).abs() < 4.0 * error, "{level}: {covered}");
        }
    }
}
