//! Hyperparameters of filters by products alone: where neither Jacobian nor kernel can be stored.

use super::evidence::{HeldFilters, ImageHyperparameters, LearnedHyperparameters, charge};
use super::filters::{FilterPrior, WeightPrior, correlations, distances};
use super::leading::LeadingDirections;
use super::measured::MeasuredTangent;
use super::measurement_space::solve;
use super::sampled_roughness::SampledRoughness;
use super::tangent::PriorRoot;
use super::weights::ConvolutionWeights;
use crate::TomographyError;
use crate::measured::ObservedPrior;
use faer::Mat;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::Streams;
use posterior_linear::sampled::ConjugateOptions;
use posterior_networks::Precision;
use posterior_optim::{Adaptive, Iteration, Progress, Run, Schedule, Signal, Step};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Vectors with which traces are estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probes {
    /// Signs: on flat spectra a fifth of the scatter of normal vectors.
    #[default]
    Signs,
    /// Normal vectors with the preconditioner's covariance P, `tr = E (C^-1 z)' dC P^-1 z`.
    Preconditioned,
}

/// What is asked of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StochasticEvidenceOptions {
    /// Steps of Adam.
    pub steps: usize,
    /// Its step size.
    pub learning_rate: f64,
    /// Steps after which it is halved, again and again.
    pub halve_every: Option<usize>,
    /// Vectors for each step.
    pub probes: usize,
    /// Of which kind.
    pub kind: Probes,
    /// How far they are solved for.
    pub conjugate: ConjugateOptions,
    /// Directions of the preconditioner.
    pub rank: usize,
    /// Steps after which it is found anew.
    pub refresh: usize,
    /// What is learned.
    pub learned: LearnedHyperparameters,
    /// Weight of the prior over lengthscales (TV-PredCP); 0: marginal likelihood.
    pub roughness: f64,
    /// Seed.
    pub seed: u64,
}

impl Default for StochasticEvidenceOptions {
    /// As the reference does it, but for a tolerance that means something: its 1 ends every solve at once.
    fn default() -> Self {
        Self {
            steps: 1500,
            learning_rate: 0.01,
            halve_every: None,
            probes: 10,
            kind: Probes::default(),
            conjugate: ConjugateOptions { tolerance: 0.1, steps: 50 },
            rank: 200,
            refresh: 100,
            learned: LearnedHyperparameters::default(),
            roughness: 0.0,
            seed: 0,
        }
    }
}

/// Where a search stands: plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StochasticEvidenceState {
    /// Steps taken.
    pub step: usize,
    /// Hyperparameters under way.
    pub hyperparameters: ImageHyperparameters,
    /// The memory of Adam.
    pub adam: Adaptive,
    /// The hyperparameters at which the preconditioner was found last.
    pub preconditioned: ImageHyperparameters,
    /// Hyperparameters after every step.
    pub trace: Vec<ImageHyperparameters>,
    /// The largest relative residual of a solve so far.
    pub residual: f64,
}

/// A search under way for the maximum of equation 7.10, with the weights held.
///
/// Cost of a step: conjugate gradients with as many right-hand sides as there are probes, two products back for each, and the samples of the roughness.
/// Source: Antorán (2024), algorithm 5; spec `tomography`, section 5.4.
pub struct StochasticEvidence<'a, T: Precision> {
    measured: &'a MeasuredTangent<'a, T>,
    weights: &'a ConvolutionWeights,
    charged: &'a [HeldFilters],
    residual_sum: f64,
    roughness: Option<&'a SampledRoughness<'a, T>>,
    options: &'a StochasticEvidenceOptions,
    state: StochasticEvidenceState,
    leading: Option<LeadingDirections>,
}

/// Slopes of the objective, estimated.
#[derive(Clone, Debug)]
pub struct EstimatedSlopes {
    /// In all log variances and all log lengthscales.
    pub filters: [Vec<f64>; 2],
    /// In the log noise variance.
    pub noise: f64,
    /// The largest relative residual of the solves.
    pub residual: f64,
}

impl<'a, T: Precision> StochasticEvidence<'a, T> {
    /// Of a picture's linear model, measurements (c), the weights that are charged for, and roughness by samples; from a state on, or from hyperparameters.
    ///
    /// # Errors
    /// [`TomographyError::Shape`], [`TomographyError::Option`].
    pub fn new(
        measured: &'a MeasuredTangent<'a, T>,
        weights: &'a ConvolutionWeights,
        sinogram: &[f64],
        charged: &'a [HeldFilters],
        roughness: Option<&'a SampledRoughness<'a, T>>,
        options: &'a StochasticEvidenceOptions,
        start: &ImageHyperparameters,
        saved: Option<StochasticEvidenceState>,
    ) -> Result<Self, TomographyError> {
        crate::error::same_count("measurements", measured.measurements(), sinogram.len())?;
        crate::error::same_count("blocks of held weights", weights.blocks().len(), charged.len())?;
        let refuse = |name, value: usize, expected| {
            Err(TomographyError::Option { name, value: value as f64, expected })
        };
        if options.probes == 0 {
            return refuse("probes", 0, "at least one vector for each step");
        }
        if options.refresh == 0 {
            return refuse("refresh", 0, "at least one step");
        }
        if options.roughness > 0.0 && roughness.is_none() {
            let expected = "0 where nothing says how rough pictures are";
            return Err(TomographyError::Option { name: "roughness", value: options.roughness, expected });
        }
        let schedule = match options.halve_every {
            Some(every) => Schedule::Step { every, factor: 0.5 },
            None => Schedule::Constant,
        };
        let state = saved.unwrap_or_else(|| StochasticEvidenceState {
            step: 0,
            hyperparameters: start.clone(),
            adam: Adaptive::adam(options.learning_rate).scheduled(schedule),
            preconditioned: start.clone(),
            trace: Vec::new(),
            residual: 0.0,
        });
        let each = sinogram.iter().zip(measured.measured_picture());
        let residual_sum = each.map(|(y, g)| (y - g).powi(2)).sum();
        Ok(Self { measured, weights, charged, residual_sum, roughness, options, state, leading: None })
    }

    /// Where it stands.
    pub fn state(&self) -> &StochasticEvidenceState {
        &self.state
    }

    fn root(&self, at: &ImageHyperparameters) -> Result<PriorRoot<'a, T>, TomographyError> {
        let prior = FilterPrior::new(self.weights, at.filters.clone())?;
        PriorRoot::new(self.measured.tangent(), WeightPrior::Filters(prior))
    }

    /// The preconditioner's directions for some hyperparameters.
    fn find_leading(&self, at: &ImageHyperparameters) -> Result<LeadingDirections, TomographyError> {
        let root = self.root(at)?;
        let observed = ObservedPrior::new(&root, self.measured.projector(), at.log_noise_variance.exp())?;
        LeadingDirections::new(&observed, self.options.rank, self.options.seed)
    }

    /// Slopes at some hyperparameters from the probes of a step.
    ///
    /// # Errors
    /// [`TomographyError`] of solves and of the prior.
    pub fn slopes(
        &self,
        at: &ImageHyperparameters,
        leading: &LeadingDirections,
        step: usize,
    ) -> Result<EstimatedSlopes, TomographyError> {
        let (c, m, projector) =
            (self.measured.measurements(), self.options.probes, self.measured.projector());
        let (root, noise_variance) = (self.root(at)?, at.log_noise_variance.exp());
        let matrix = ObservedPrior::new(&root, projector, noise_variance)?;
        let preconditioner = leading.preconditioner(1.0, noise_variance)?;
        let mut rng =
            Streams::new(self.options.seed).child("tomography/probes", step as u64).stream("probes");
        let (probes, turned) = match self.options.kind {
            Probes::Signs => {
                let signs = Mat::from_fn(c, m, |_, _| if rng.random_bool(0.5) { 1.0 } else { -1.0 });
                (signs.clone(), signs)
            }
            Probes::Preconditioned => {
                let drawn = preconditioner.draw(c, m, &mut rng);
                let mut turned = Mat::zeros(c, m);
                preconditioner.apply(drawn.as_ref(), turned.as_mut());
                (drawn, turned)
            }
        };
        let mut residual = 0.0f64;
        let (solved, ..) = solve(
            &matrix,
            &*preconditioner,
            probes.as_ref(),
            None,
            &self.options.conjugate,
            &mut |progress, _| {
                residual = progress.residual.unwrap_or(residual);
                Signal::Continue
            },
        )?;
        let tangent = self.measured.tangent();
        let pull =
            |u: &Mat<f64>| tangent.multiply_transpose(projector.multiply_transpose(u.as_ref()).as_ref());
        let (left, right) = (pull(&solved), pull(&turned));
        let blocks = self.weights.blocks();
        let mut filters = [vec![0.0; blocks.len()], vec![0.0; blocks.len()]];
        for (k, block) in blocks.iter().enumerate() {
            let (distances, which) = distances(&block.kernel);
            let variance = at.filters.log_variances[k].exp();
            let [values, slopes, _] = correlations(&distances, at.filters.log_lengthscales[k]);
            let n = block.positions();
            let mut sums = vec![0.0; distances.len()];
            for j in 0..m {
                let (l, r) = (left.col_as_slice(j), right.col_as_slice(j));
                for range in block.ranges() {
                    for (l, r) in l[range.clone()].chunks_exact(n).zip(r[range].chunks_exact(n)) {
                        for p in 0..n {
                            (0..n).for_each(|q| sums[which[p * n + q]] += l[p] * r[q]);
                        }
                    }
                }
            }
            let trace = |f: &[f64]| variance * sums.iter().zip(f).map(|(s, f)| s * f).sum::<f64>() / m as f64;
            let (_, charged) = charge(&self.charged[k], &at.filters, k)?;
            filters[0][k] = -0.5 * (trace(&values) + charged[0]);
            filters[1][k] = -0.5 * (trace(&slopes) + charged[1]);
            if let Some(roughness) = self.roughness.filter(|_| self.options.roughness > 0.0) {
                let seed = Streams::new(self.options.seed).child("tomography/roughness", step as u64).seed();
                if let Some(found) = roughness.of_block(k, &at.filters, seed)? {
                    let (_, own) = found.log_density(at.filters.log_lengthscales[k]);
                    (0..2).for_each(|i| filters[i][k] += self.options.roughness * own[i]);
                }
            }
        }
        let trace = (0..m).map(|j| {
            let own = solved.col_as_slice(j).iter().zip(turned.col_as_slice(j));
            own.map(|(a, b)| a * b).sum::<f64>()
        });
        let trace = trace.sum::<f64>() / m as f64;
        let noise = 0.5 * self.residual_sum / noise_variance - 0.5 * noise_variance * trace;
        Ok(EstimatedSlopes { filters, noise, residual })
    }
}

impl<T: Precision> Iteration for StochasticEvidence<'_, T> {
    type Error = TomographyError;

    fn progress(&self) -> Progress {
        let residual = Some(self.state.residual);
        Progress { step: self.state.step, residual, ..Progress::default() }
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, TomographyError> {
        let due = self.state.step.is_multiple_of(self.options.refresh);
        if due {
            self.state.preconditioned = self.state.hyperparameters.clone();
        }
        let leading = match self.leading.take().filter(|_| !due) {
            Some(leading) => leading,
            None => self.find_leading(&self.state.preconditioned)?,
        };
        let learned = self.options.learned;
        let at = self.state.hyperparameters.clone();
        let found = self.slopes(&at, &leading, self.state.step)?;
        self.leading = Some(leading);
        let mut theta = learned.pack(&at);
        let slopes: Vec<f64> =
            learned.pack_slopes(&found.filters, found.noise).into_iter().map(|s| -s).collect();
        if slopes.iter().any(|s| !s.is_finite()) {
            return Err(TomographyError::Diverged { what: "the evidence", step: self.state.step });
        }
        self.state.adam.step(&mut theta, &slopes, run.steps_planned());
        self.state.hyperparameters = learned.unpack(&theta, &at);
        self.state.trace.push(self.state.hyperparameters.clone());
        self.state.residual = self.state.residual.max(found.residual);
        self.state.step += 1;
        Ok(Step::Taken)
    }
}
