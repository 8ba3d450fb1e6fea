//! Function and noise in turns, on some rows.

use super::{names, own_kernel};
use crate::hyperparameter::{FunctionUnits, add_weak_priors};
use crate::options::{EvidenceOptions, LengthscalePrior};
use crate::output::{NoiseProcess, seen};
use crate::rows::LeftOut;
use crate::{FitRequest, FitStage, Hyperparameter, ModelError, NoiseSummary};
use faer::Mat;
use posterior_gp::exact::{Criterion, ExactGp, ExactPosterior, FitOptions, fit};
use posterior_gp::laplace::{LaplaceGp, LaplacePosterior, LatentPrediction, fit_laplace};
use posterior_gp::{MeanForm, Observations, Posterior};
use posterior_kernels::KernelExpression;
use posterior_likelihoods::ScaledChiSquared;
use posterior_linalg::random::Streams;
use posterior_optim::{Constraint, Observer, Parameters};
use rand::seq::index;
use std::f64::consts::PI;
use std::time::Duration;

/// Rows that the noise learns from, at most, where that is asked for.
pub(crate) const ROWS: usize = 600;

/// The same of a fold, and where noise is one of several that are tried.
pub(crate) const FOLD_ROWS: usize = 300;

/// Fewer rows say nothing of how noise differs.
pub(crate) const LEAST_ROWS: usize = 40;

/// How often function and noise take turns.
const ROUNDS: usize = 3;

/// Steps of a first search, and of those that begin where another ended.
const STEPS: [usize; 2] = [60, 20];

/// The share of a time budget that all searches may take.
const SEARCHES_SHARE: f64 = 0.5;

/// Newton steps of a mode, about.
const NEWTON: f64 = 8.0;

/// The least square of an error that is learned from, in squared standard units: rounding has none below it.
const LEAST_SQUARE: f64 = 1e-12;

/// Rows that tell it, each as the others predict it.
struct ByOthers {
    mean: Vec<f64>,
    error: Vec<f64>,
    /// Variances of the function where each row is left out.
    latent: Vec<f64>,
    /// Mean negative log density.
    nll: f64,
}

impl ByOthers {
    /// Of a process whose rows have this noise.
    fn of(posterior: &ExactPosterior, noise: &dyn Fn(usize) -> f64) -> Self {
        let LeftOut { mean, variance, truths, .. } = LeftOut::each(posterior);
        let n = truths.len();
        let error: Vec<f64> = truths.iter().zip(&mean).map(|(y, m)| y - m).collect();
        let nll = (0..n).map(|i| 0.5 * ((2.0 * PI * variance[i]).ln() + error[i] * error[i] / variance[i]));
        let nll = nll.sum::<f64>() / n as f64;
        let latent = (0..n).map(|i| (variance[i] - noise(i)).max(0.0)).collect();
        Self { mean, error, latent, nll }
    }
}

/// What learning the noise of so many rows of so many inputs takes, in words and bytes.
pub(crate) fn plan_in_words(request: &FitRequest, rows: usize, inputs: usize) -> (String, u64) {
    let n = rows.min(ROWS) as f64;
    // An evidence is a factorisation and an inverse, Laplace's some factorisations and as much again.
    let [first, later] = STEPS.map(|steps| steps.min(most_steps(request)) as f64);
    let evaluations = first + ROUNDS as f64 * later;
    let flops = n.powi(3) * (evaluations + (first + 2.0 * later) * (1.0 + NEWTON / 3.0));
    let bytes = 8 * (rows.min(ROWS) as u64).pow(2) * 6 + 8 * (rows as u64) * (inputs as u64 + 4);
    let seconds = flops / crate::speed::dense_rate();
    let text = format!(
        "heteroscedastic noise before that, in {ROUNDS} turns on {n} rows, {} at most",
        crate::text::time(seconds)
    );
    (text, bytes)
}

fn most_steps(request: &FitRequest) -> usize {
    request.method.evidence().map_or(usize::MAX, EvidenceOptions::most_steps)
}

/// Noise that depends on the place.
#[derive(Debug)]
pub(crate) struct LearnedNoise {
    /// What it is anywhere.
    pub(crate) process: NoiseProcess,
    /// How it was learned.
    pub(crate) summary: NoiseSummary,
    /// All rows, with the noise of their places.
    pub(crate) data: Observations,
    /// Hyperparameters of the function beside it, by the rows that it learned from.
    pub(crate) function: Vec<f64>,
}

/// Learns from some of these rows, so many at `most`, and adds to all of the data what noise their places have.
///
/// # Errors
/// [`ModelError::Request`] for rows that are too few, or whose noise is known; [`ModelError::Interrupted`].
pub(crate) fn learn(
    request: &FitRequest,
    (features, most): (&[String], usize),
    (data, rows): (&Observations, &[usize]),
    observer: &mut Observer<'_, FitStage>,
) -> Result<LearnedNoise, ModelError> {
    let n = rows.len();
    let beside = if request.start.hyperparameters().is_some() {
        Some("--hyperparameters, under which nothing is learned")
    } else if data.weights().is_some() {
        Some("--row-weights, which it does not know")
    } else {
        None
    };
    if let Some(flag) = beside {
        return Err(ModelError::Usage(format!(
            "--noise heteroscedastic learns function and noise in turns, and goes without {flag}: leave one of them out"
        )));
    }
    if n < LEAST_ROWS {
        return Err(ModelError::Request(format!(
            "--noise heteroscedastic learns how noise differs from {LEAST_ROWS} rows or more, and there are {n}: leave it out"
        )));
    }
    let mut rng = Streams::new(request.seed).stream("model/noise-of-places");
    let mut drawn: Vec<usize> =
        index::sample(&mut rng, n, n.min(most)).into_iter().map(|k| rows[k]).collect();
    drawn.sort_unstable();
    let mut turns = NoiseAlternation::new(request, features, data.select(&drawn)?)?;
    let (mut posterior, mut left_out) = turns.function(None, observer)?;
    let nll_before = left_out.nll;
    let (mut found, mut of_others): (Option<LaplacePosterior>, Vec<f64>) = (None, Vec::new());
    for _ in 0..ROUNDS {
        let (noise, variances) = turns.noise(&left_out, found.as_ref(), observer)?;
        (posterior, left_out) = turns.function(Some(variances.clone()), observer)?;
        found = Some(noise);
        of_others = variances;
    }
    let Some(posterior_of_noise) = found else { return Err(ModelError::Interrupted) };
    let own = NoiseProcess { columns: turns.columns.clone(), posterior: posterior_of_noise };
    // Rows that told it are predicted from the others, the rest as new ones are.
    let mut means: Vec<f64> = posterior.predict(data.inputs())?.mean.col(0).iter().copied().collect();
    drawn.iter().zip(&left_out.mean).for_each(|(&row, mean)| means[row] = *mean);
    let mut variances = own.variances(data.inputs(), &means)?;
    drawn.iter().zip(&of_others).for_each(|(&row, variance)| variances[row] = *variance);
    let mut deviations: Vec<f64> = drawn.iter().map(|&row| variances[row].sqrt()).collect();
    deviations.sort_by(f64::total_cmp);
    let at = |share: f64| deviations[((deviations.len() - 1) as f64 * share).round() as usize];
    let summary = NoiseSummary {
        kernel: turns.kernel.clone(),
        columns: turns.columns,
        hyperparameters: Hyperparameter::of(own.posterior.model()),
        rows: drawn.len(),
        rounds: ROUNDS,
        deviations: [at(0.05), at(0.5), at(0.95)],
        nll_before,
        nll_after: left_out.nll,
    };
    let (inputs, targets) = (data.inputs().to_owned(), data.targets().to_owned());
    let mut known = Observations::new(inputs, targets, Some(variances))?;
    if let Some(parting) = data.parting() {
        known = known.with_parting(parting.clone())?;
    }
    Ok(LearnedNoise { process: own, summary, data: known, function: turns.function.values() })
}

/// What takes turns.
struct NoiseAlternation<'a> {
    request: &'a FitRequest,
    data: Observations,
    columns: Vec<usize>,
    kernel: KernelExpression,
    function: ExactGp,
    process: LaplaceGp,
    /// Searches so far, of the function and of the noise.
    searched: [bool; 2],
}

impl<'a> NoiseAlternation<'a> {
    fn new(request: &'a FitRequest, features: &[String], data: Observations) -> Result<Self, ModelError> {
        // Counts have no distance.
        let apart = request.prior.kernel.count_columns(features);
        let columns: Vec<usize> = (0..features.len()).filter(|j| !apart.contains(j)).collect();
        let kernel = own_kernel()?;
        let own = names(&columns, features);
        let process =
            LaplaceGp::new(kernel.build(&own)?, MeanForm::Constant, Box::new(ScaledChiSquared), own.len());
        let function = request.process(request.prior.kernel.build(features)?, features.len(), 1);
        Ok(Self { request, data, columns, kernel, function, process, searched: [false; 2] })
    }

    /// A search that begins where the last one ended, of all but what is held.
    fn options(&mut self, which: usize, priors: bool) -> FitOptions {
        let evidence = self.request.method.evidence().cloned().unwrap_or_default();
        let mut options = self.request.fit_options(&evidence);
        (options.criterion, options.restarts) = (Criterion::Evidence, 1);
        options.steps.steps = options.steps.steps.min(STEPS[usize::from(self.searched[which])]);
        self.searched[which] = true;
        // Half of a budget for all searches.
        let share = SEARCHES_SHARE / (2 * ROUNDS + 1) as f64;
        options.steps.time =
            self.request.limits.time.map(|s| Duration::from_secs_f64((share * s).clamp(0.0, 1e9)));
        let model: &dyn Parameters = if which == 0 { &self.function } else { &self.process };
        if which == 1 {
            // What is said of hyperparameters is said of the function's.
            options.hyperpriors.clear();
            options.constraints.clear();
        }
        if priors {
            let inputs = self.data.inputs().ncols();
            add_weak_priors(
                &mut options.hyperpriors,
                model,
                (inputs, [FunctionUnits::Target, FunctionUnits::Link][which]),
            );
        }
        options
    }

    /// The function under a noise for each row, or one for all; and each row as the others predict it.
    fn function(
        &mut self,
        noise: Option<Vec<f64>>,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<(ExactPosterior, ByOthers), ModelError> {
        let mut options = self.options(0, self.request.prior.lengthscale_prior == LengthscalePrior::Weak);
        if noise.is_some() {
            // All of it is that of the places.
            let parameter = "noise_variance".to_string();
            let names_noise = |c: &Constraint| match c {
                Constraint::Fixed { parameter, .. } | Constraint::Between { parameter, .. } => {
                    parameter == "noise_variance"
                }
            };
            options.constraints.retain(|c| !names_noise(c));
            let value = Some(f64::max(2.0 * self.request.prior.noise_floor, 1e-9));
            options.constraints.push(Constraint::Fixed { parameter, value });
        }
        let (inputs, targets) = (self.data.inputs().to_owned(), self.data.targets().to_owned());
        let data = Observations::new(inputs, targets, noise.clone())?;
        let stage = &FitStage::Noise;
        let fitted =
            fit(self.function.clone(), data, &options, &mut |progress, _| observer(progress, stage))?;
        ModelError::heed(fitted.reason)?;
        let posterior = fitted.posterior;
        self.function.set_values(&posterior.model().values());
        let shared = posterior.model().noise().noise_variance();
        let of_row = |i: usize| shared + noise.as_ref().map_or(0.0, |v| v[i]);
        let left_out = ByOthers::of(&posterior, &of_row);
        Ok((posterior, left_out))
    }

    /// The noise of left-out rows: `log(l + exp g)` is `g` with an offset, by what the last turn has for g; and the variance of each row's place as the other rows tell it: a row whose own error says how noisy it is would
    /// be believed too little where it is far away, and its interval would hold it too often.
    fn noise(
        &mut self,
        left_out: &ByOthers,
        last: Option<&LaplacePosterior>,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<(LaplacePosterior, Vec<f64>), ModelError> {
        let inputs = seen(self.data.inputs(), &self.columns, &left_out.mean);
        let n = inputs.nrows();
        let squares: Vec<f64> = left_out.error.iter().map(|e| (e * e).max(LEAST_SQUARE)).collect();
        let level = match last {
            Some(last) => last.predict(inputs.as_ref())?.mean.col(0).iter().copied().collect(),
            // What is left of all squares beyond what the function is unsure of.
            None => {
                let left = squares.iter().zip(&left_out.latent).map(|(s, l)| s - l).sum::<f64>() / n as f64;
                vec![left.max(self.request.prior.noise_floor).max(LEAST_SQUARE).ln(); n]
            }
        };
        let offset = |(l, g): (&f64, &f64)| (l * (-g).exp()).ln_1p();
        let offsets = left_out.latent.iter().zip(&level).map(offset).collect();
        if last.is_none() {
            self.begin(level[0]);
        }
        let targets = Mat::from_fn(n, 1, |i, _| squares[i]);
        let data = Observations::new(inputs, targets, None)?.with_offsets(offsets)?;
        let options = self.options(1, true);
        let stage = &FitStage::Noise;
        let fitted =
            fit_laplace(self.process.clone(), &data, &options, &mut |progress, _| observer(progress, stage))?;
        ModelError::heed(fitted.reason)?;
        self.process.set_values(&fitted.posterior.model().values());
        let LatentPrediction { mean, covariance, .. } = fitted.posterior.left_out(&data, None)?;
        let variances = (0..n).map(|i| (mean[(i, 0)] + 0.5 * covariance[i]).exp()).collect();
        Ok((fitted.posterior, variances))
    }

    /// Begins at one noise for all places.
    fn begin(&mut self, level: f64) {
        let (mut values, mut start) = (self.process.values(), 0);
        for segment in self.process.segments() {
            if segment.name == "mean.constant" {
                values[start] = level;
            }
            start += segment.len();
        }
        self.process.set_values(&values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::MatRef;
    use posterior_optim::Signal;
    use rand_distr::{Distribution, StandardNormal};

    /// A sine whose noise grows along the input, in about standard units.
    fn grown(n: usize, deviation: impl Fn(f64) -> f64) -> Observations {
        let mut rng = Streams::new(4).stream("model/noise-test");
        let x = Mat::from_fn(n, 1, |i, _| 3.4 * (i as f64 / n as f64 - 0.5));
        let y = Mat::from_fn(n, 1, |i, _| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            (2.0 * x[(i, 0)]).sin() + deviation(x[(i, 0)]) * noise
        });
        Observations::new(x, y, None).unwrap()
    }

    fn learned(
        data: &Observations,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<LearnedNoise, ModelError> {
        let rows: Vec<usize> = (0..data.rows()).collect();
        learn(&FitRequest::default(), (&["x1".to_string()], ROWS), (data, &rows), observer)
    }

    fn of(x: MatRef<'_, f64>, own: &NoiseProcess, means: &[f64]) -> Vec<f64> {
        own.variances(x, means).unwrap().into_iter().map(f64::sqrt).collect()
    }

    #[test]
    fn noise_that_grows_is_found_and_even_noise_stays_even() {
        let grows = |x: f64| 0.05 + 0.2 * (x + 1.7);
        let mut observer = |_: &posterior_optim::Progress, _: &FitStage| Signal::Continue;
        let LearnedNoise { process: own, summary, data, .. } =
            learned(&grown(400, grows), &mut observer).unwrap();
        let at = Mat::from_fn(5, 1, |i, _| -1.5 + 0.75 * i as f64);
        let means: Vec<f64> = (0..5).map(|i| (2.0 * at[(i, 0)]).sin()).collect();
        for (i, found) in of(at.as_ref(), &own, &means).into_iter().enumerate() {
            let truth = grows(at[(i, 0)]);
            // Of 400 squares about a fifth tell the level of a place: half a log unit is three of its errors.
            assert!((found / truth).ln().abs() < 0.4, "{i}: {found} {truth}");
        }
        assert!(summary.nll_after < summary.nll_before - 0.1, "{summary:?}");
        assert_eq!(data.noise_variances().unwrap().len(), 400);
        let LearnedNoise { process: own, summary, .. } =
            learned(&grown(400, |_| 0.3), &mut observer).unwrap();
        for found in of(at.as_ref(), &own, &means) {
            assert!((found / 0.3).ln().abs() < 0.25, "{found}");
        }
        assert!((summary.nll_after - summary.nll_before).abs() < 0.05, "{summary:?}");
    }

    #[test]
    fn few_rows_are_refused_and_interruptions_are_heard() {
        let mut observer = |_: &posterior_optim::Progress, _: &FitStage| Signal::Stop;
        let error = learned(&grown(39, |_| 0.1), &mut observer).unwrap_err().to_string();
        assert!(error.contains("40 rows or more"), "{error}");
        let error = learned(&grown(80, |_| 0.1), &mut observer).unwrap_err();
        assert!(matches!(error, ModelError::Interrupted));
    }
}
