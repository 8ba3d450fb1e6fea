//! **The process that regularises**, `P = GP(network, a k)`: hyperparameters first, then inducing points among the rows that are learned from.
//!
//! Under Gaussian noise the kernel, a and the noise maximise the evidence of residuals, of which a unit is their root mean square. A network's residuals on its own training rows are smaller than on others, and so would the prior be: rows that it has not seen are taken where there
//! are enough to part them, half for this and half to judge by. With fewer all of them judge, and tempering by these repairs what training rows have made too small.
//!
//! Of other likelihoods (classes, events, counts) residuals do not say how far a network's outputs are off: those of a network that is calibrated are uncorrelated noise of the variance that its own probabilities have, whatever a is. There the kernel stays as its text says, with the median distance of rows for its lengthscales, and a is the one
//! of a grid under which Laplace's covariance at the inducing points ([`super::curvature`]) predicts rows best that the network has not seen. Without such rows nothing is chosen, and the result says so.

use super::curvature::{Whitened, whitening};
use super::options::{GwiNoise, GwiOptions};
use super::pseudo_targets::pseudo_targets;
use super::report::PriorRows;
use crate::LaplaceError;
use crate::kernel_inputs::separable;
use crate::rows::Rows;
use crate::run::{Run, Stage};
use faer::Mat;
use posterior_gp::exact::{self, ExactGp, FitOptions};
use posterior_gp::generalised::{JITTER, ReferenceProcess, Selector, select_rows};
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::Kernel;
use posterior_kernels::composite::Scaled;
use posterior_kernels::inducing::random_rows;
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_optim::{Constraint, Reason};
use serde::{Deserialize, Serialize};

/// Rows that curvatures and the unit of pseudo-targets are computed from.
pub(super) const BEGINNING: usize = 5000;

/// Rows for each inducing point among which they are chosen.
const CANDIDATES: usize = 500;

/// Least noise of a search, in units of the residuals' mean square: it keeps the matrix factorable where residuals seem free of noise.
const FLOOR: f64 = 1e-6;

/// Rows that inducing points are chosen among at most.
pub(super) fn candidates(rows: usize, inducing: usize) -> usize {
    inducing.saturating_mul(CANDIDATES).min(rows)
}

/// What was found, as a checkpoint keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FoundPrior {
    /// a.
    pub(super) amplitude: f64,
    /// Parameters of k, natural values.
    pub(super) kernel: Vec<f64>,
    /// The noise variance of pseudo-targets, in squared units of the outputs.
    pub(super) noise: f64,
    /// Prior variances that were tried, with their scores.
    pub(super) tried: Vec<(f64, f64)>,
    /// Rows that are inducing points.
    pub(super) rows: Vec<usize>,
    /// Which rows it was learned from, and how many.
    pub(super) from: (PriorRows, usize),
    /// Evaluations of the search.
    pub(super) evaluations: usize,
}

/// What the prior is learned from.
pub(super) struct PriorTask<'a> {
    pub(super) options: &'a GwiOptions,
    pub(super) text: &'a str,
    pub(super) likelihood: &'a OutputLikelihood,
    pub(super) rows: &'a Rows,
    /// Rows that the network has not seen, with the numbers of those that may be used here.
    pub(super) unseen: Option<(&'a Rows, &'a [usize])>,
    pub(super) seed: u64,
    pub(super) memory: u64,
}

impl PriorTask<'_> {
    /// k before anything is learned.
    fn kernel(&self) -> Result<Box<dyn Kernel<f64>>, LaplaceError> {
        let mut kernel = separable::<f64>(self.text, self.rows.points.ncols(), 1, false)?;
        self.rows.begin_lengthscales(self.text, &mut kernel, Streams::new(self.seed));
        Ok(kernel.kernel().clone_box())
    }

    /// Some of the rows that are learned from: all, or so many by chance.
    fn some(&self, most: usize) -> Vec<usize> {
        random_rows(self.rows.means.nrows(), most, Streams::new(self.seed).child("laplace/gwi-rows", 0))
    }

    /// Learns and chooses.
    ///
    /// # Errors
    /// A text that is no kernel, nothing that could be factored, interruption.
    pub(super) fn learn(&self, run: &mut Run<'_>) -> Result<FoundPrior, LaplaceError> {
        let (mut kernel, options) = (self.kernel()?, self.options);
        let mut found = match self.likelihood {
            OutputLikelihood::Gaussian(own) if options.prior_rows > 0 => {
                let (model, found) = self.by_evidence(own, kernel, run)?;
                kernel = model.kernel().clone_box();
                found
            }
            _ => {
                let all = self.some(BEGINNING);
                FoundPrior {
                    amplitude: 1.0,
                    kernel: kernel.values(),
                    noise: pseudo_targets(self.likelihood, self.rows, &[], &all)?.noise,
                    ..FoundPrior::default()
                }
            }
        };
        let n = self.rows.means.nrows();
        let points = options.inducing(n);
        let streams = Streams::new(self.seed).child("laplace/gwi-inducing", 0);
        let among = random_rows(n, candidates(n, points), streams);
        let x = self.rows.at(&among);
        let chosen = select_rows(Selector::GreedyVariance, &*kernel, x.as_ref(), points, streams)?;
        found.rows = chosen.into_iter().map(|i| among[i]).collect();
        if found.rows.is_empty() {
            return Err(LaplaceError::Request(format!(
                "the kernel `{}` is zero at all examples: no inducing point can be chosen",
                self.text
            )));
        }
        let numbers = matches!(self.likelihood, OutputLikelihood::Gaussian(_));
        if let (false, Some((unseen, judging)), true) = (numbers, self.unseen, options.prior_rows > 0) {
            let z = self.rows.at(&found.rows);
            let whitening = whitening(&*kernel, &z)?;
            let at = Whitened { kernel: &*kernel, inducing: &z, whitening: &whitening };
            let (rows, share) = self.beginning();
            let curvatures = at.curvatures(&**self.likelihood, self.rows, (&rows, share));
            found.tried = at.amplitudes(&curvatures, &**self.likelihood, unseen, judging)?;
            let best = found.tried.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            found.amplitude = best.map_or(1.0, |best| best.0);
            found.from = (PriorRows::Unseen, judging.len());
        }
        Ok(found)
    }

    /// Kernel, prior variance and noise by the evidence of residuals.
    fn by_evidence(
        &self,
        given: &Gaussian,
        kernel: Box<dyn Kernel<f64>>,
        run: &mut Run<'_>,
    ) -> Result<(ExactGp, FoundPrior), LaplaceError> {
        let streams = Streams::new(self.seed).child("laplace/gwi-prior", 0);
        let (of, whose) = match self.unseen {
            Some((unseen, _)) => (unseen, PriorRows::Unseen),
            None => (self.rows, PriorRows::Training),
        };
        let all: Vec<usize> = match self.unseen {
            Some((_, own)) => own.to_vec(),
            None => (0..of.means.nrows()).collect(),
        };
        let few = random_rows(all.len(), self.options.prior_rows, streams);
        let rows: Vec<usize> = few.into_iter().map(|i| all[i]).collect();
        let residuals = pseudo_targets(self.likelihood, of, &rows, &rows)?;
        let (inputs, c) = (of.points.ncols(), self.likelihood.outputs());
        let square = residuals.values.squared_norm_l2() / (rows.len() * c) as f64;
        // A network may be right to the last digit.
        let unit = if square > 0.0 { square } else { residuals.noise };
        let data =
            Observations::new(of.at(&rows), residuals.values * faer::Scale(unit.sqrt().recip()), None)?;
        let mean = given.noise_variances().iter().sum::<f64>() / c as f64 / unit;
        let (noise, constraints) = match self.options.noise {
            GwiNoise::Given => {
                let stays = Constraint::Fixed { parameter: "noise_variance".into(), value: None };
                (Gaussian::new(mean, 0.0), vec![stays])
            }
            _ => (Gaussian::new(mean.clamp(1e-3, 1.0), FLOOR), Vec::new()),
        };
        let model = ExactGp::new(kernel, MeanForm::Zero, noise, inputs, c);
        let asked =
            FitOptions { seed: self.seed, constraints, memory_limit: self.memory, ..FitOptions::default() };
        let found = exact::fit(model, data, &asked, &mut |progress, _| {
            run.tell(Stage::Prior, progress.step, progress.steps_planned)
        })?;
        if found.reason == Reason::Interrupted {
            return Err(LaplaceError::Interrupted);
        }
        let model = found.posterior.model().clone();
        let learned = FoundPrior {
            amplitude: unit,
            kernel: model.kernel().values(),
            noise: unit * model.noise().noise_variance(),
            from: (whose, rows.len()),
            evaluations: found.evaluations,
            ..FoundPrior::default()
        };
        Ok((model, learned))
    }

    /// Rows that curvatures are summed over, and how many each of them stands for.
    pub(super) fn beginning(&self) -> (Vec<usize>, f64) {
        let rows = self.some(BEGINNING);
        let share = self.rows.means.nrows() as f64 / rows.len() as f64;
        (rows, share)
    }

    /// The process that was found.
    ///
    /// # Errors
    /// Matrices that cannot be factored.
    pub(super) fn reference(&self, found: &FoundPrior) -> Result<ReferenceProcess, LaplaceError> {
        let all = self.some(BEGINNING);
        let values = pseudo_targets(self.likelihood, self.rows, &found.rows, &all)?.values;
        let data = Observations::new(self.rows.at(&found.rows), values, None)?;
        let (inputs, c) = (data.inputs().ncols(), data.targets().ncols());
        let mut inner = self.kernel()?;
        inner.set_values(&found.kernel);
        let model = exact_process(inner, found.amplitude, found.noise, (inputs, c));
        Ok(ReferenceProcess::new(model.condition(data)?, self.options.mode, false, JITTER)?)
    }
}

/// The name of a in reports.
const AMPLITUDE: &str = "prior";

/// The process with the covariance a k and noise, for so many inputs and functions.
pub(super) fn exact_process(
    inner: Box<dyn Kernel<f64>>,
    amplitude: f64,
    noise: f64,
    (inputs, functions): (usize, usize),
) -> ExactGp {
    let kernel = Box::new(Scaled::new(AMPLITUDE, amplitude, inner));
    ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(noise, 0.0), inputs, functions)
}

/// What rows say of weights of the reference's inducing points, one matrix (M x M) for each function, whitened: where training of weights begins.
pub(super) fn precisions(
    task: &PriorTask<'_>,
    reference: &ReferenceProcess,
    likelihood: &OutputLikelihood,
) -> Vec<Mat<f64>> {
    let z = reference.inducing().to_owned();
    let at = Whitened { kernel: reference.kernel(), inducing: &z, whitening: reference.whitening() };
    let (rows, share) = task.beginning();
    at.curvatures(&**likelihood, task.rows, (&rows, share))
}
