//! A trained classifier of images with its tangent model: curvatures in every form, the mode, precisions by expectation maximisation, samples. What approximations of its posterior are compared by.

use super::ExperimentError;
use super::context::Context;
use super::images::{ImageSettings, Shared};
use super::training::TrainingSettings;
use faer::{Mat, MatRef};
use posterior_laplace::{FisherEstimate, Form, Latent, ModeOptions, PriorKind, Wanted};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_linear::curvature::Accumulator;
use posterior_linear::evidence::{EvidenceOptions, precision_update};
use posterior_linear::latent::add_inner_products;
use posterior_linear::mode::{Mode, ModeProblem, Predictor};
use posterior_linear::sampled::{ConjugateOptions, Noise, SampledModel, solve_exactly};
use posterior_linear::structure::Structure;
use posterior_linear::{FeatureMap, LinearError, Prior};
use posterior_networks::train::{Loss, Targets};
use posterior_networks::{Array, Network, Selection};
use posterior_report::SummaryRow;
use posterior_tangent::{Observed, Tangent, batch_size, segments};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::rc::Rc;
use toml::Table;

/// One `[[network]]` of experiments on classifiers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkSettings {
    /// Its name in tables.
    pub(crate) name: String,
    /// As architecture files have it.
    pub(crate) architecture: Table,
}

/// A form of the curvature, with where its rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Curvature {
    /// All of it.
    Full,
    /// A block for each layer.
    Block,
    /// Kronecker factors.
    Kronecker,
    /// Kronecker factors from one target drawn for each example.
    KroneckerSampled,
    /// Kronecker factors from the observed targets.
    KroneckerEmpirical,
    /// The diagonal.
    Diagonal,
}

impl Curvature {
    /// As in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Block => "block",
            Self::Kronecker => "kronecker",
            Self::KroneckerSampled => "kronecker-sampled",
            Self::KroneckerEmpirical => "kronecker-empirical",
            Self::Diagonal => "diagonal",
        }
    }

    fn form(self, seed: u64) -> (Form, FisherEstimate) {
        match self {
            Self::Full => (Form::Full, FisherEstimate::Exact),
            Self::Block => (Form::Block, FisherEstimate::Exact),
            Self::Kronecker => (Form::Kronecker, FisherEstimate::Exact),
            Self::KroneckerSampled => (Form::Kronecker, FisherEstimate::MonteCarlo { samples: 1, seed }),
            Self::KroneckerEmpirical => (Form::Kronecker, FisherEstimate::Empirical),
            Self::Diagonal => (Form::Diagonal, FisherEstimate::Exact),
        }
    }
}

/// How precisions are learned, as experiments' files have it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnSettings {
    /// Precision at the start, of every layer.
    pub(crate) initial_precision: f64,
    /// Turns at most.
    pub(crate) steps: usize,
    /// They end when no logarithm of a precision moves by more.
    #[serde(default)]
    pub(crate) tolerance: f64,
    /// The mode is found when a Newton step promises less, nats.
    pub(crate) mode_tolerance: f64,
}

impl TurnSettings {
    /// Refuses numbers that make no sense.
    ///
    /// # Errors
    /// [`ExperimentError::Setting`].
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        let positive = |v: f64| v > 0.0 && v.is_finite();
        if self.steps == 0 || !positive(self.initial_precision) || !positive(self.mode_tolerance) {
            return super::error::refused(
                "[turns]: `steps` is at least 1, `initial_precision` and `mode_tolerance` are positive",
            );
        }
        Ok(())
    }

    /// How far modes are pursued.
    pub(crate) fn mode(&self) -> ModeOptions {
        ModeOptions { tolerance: self.mode_tolerance, ..ModeOptions::default() }
    }
}

/// The way of the precisions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LearnedPrecisions {
    /// Names of the groups.
    pub(crate) groups: Vec<String>,
    /// Precisions of each group, turn by turn: the start first, the result last.
    pub(crate) precisions: Vec<Vec<f64>>,
    /// Effective dimensions that each turn found, one fewer.
    pub(crate) effective_dimensions: Vec<Vec<f64>>,
    /// The mode at the last precisions but one (d); empty where only samples know it.
    pub(crate) mode: Vec<f64>,
}

impl LearnedPrecisions {
    /// Where they ended.
    pub(crate) fn last(&self) -> &[f64] {
        self.precisions.last().map_or(&[], Vec::as_slice)
    }
}

/// A classifier that is trained when it is first asked for: a run that has all its parts needs none.
pub(crate) struct Untrained<'a> {
    data: &'a ImageSettings,
    training: &'a TrainingSettings,
    network: &'a NetworkSettings,
    trained: Option<Classifier>,
}

impl<'a> Untrained<'a> {
    pub(crate) fn new(
        data: &'a ImageSettings,
        training: &'a TrainingSettings,
        network: &'a NetworkSettings,
    ) -> Self {
        Self { data, training, network, trained: None }
    }

    /// Everything that the trained network depends on.
    pub(crate) fn depends(&self) -> (&'a ImageSettings, &'a TrainingSettings, &'a Table) {
        (self.data, self.training, &self.network.architecture)
    }

    /// The classifier.
    ///
    /// # Errors
    /// Data that are not there, settings that do not fit, training that goes wrong, interruption.
    pub(crate) fn trained(&mut self, context: &mut Context<'_>) -> Result<&mut Classifier, ExperimentError> {
        if self.trained.is_none() {
            let (train, test) = self.data.read(context.folder)?;
            let (network, _) = self.training.train(
                &self.network.architecture,
                train.as_ref(),
                Loss::CrossEntropy,
                context,
            )?;
            self.trained = Some(Classifier {
                selection: Selection::all(network.graph()),
                likelihood: OutputLikelihood::Categorical(Categorical::new(self.data.classes)?),
                seed: context.seed,
                name: self.network.name.clone(),
                network,
                train,
                test,
                structures: Vec::new(),
            });
        }
        match &mut self.trained {
            Some(trained) => Ok(trained),
            None => super::error::refused("there is no network"),
        }
    }

    /// A line for the report: the network, its weights and how often it is right on test images.
    ///
    /// # Errors
    /// As [`Self::trained`].
    pub(crate) fn fact(&mut self, context: &mut Context<'_>) -> Result<(SummaryRow, Facts), ExperimentError> {
        let name = self.network.name.clone();
        let depends = self.depends();
        let facts: Facts = context
            .once(&format!("{name}: the network"), &depends, |context| self.trained(context)?.facts())?;
        let text = format!("{} weights, {:.2} % right", facts.weights, 100.0 * facts.accuracy);
        Ok((SummaryRow::new(name, text), facts))
    }
}

/// About a network.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Weights that are uncertain.
    pub(crate) weights: usize,
    /// The share of test images whose class has the largest output.
    pub(crate) accuracy: f64,
}

/// A trained classifier.
pub(crate) struct Classifier {
    pub(crate) network: Network<f32>,
    pub(crate) selection: Selection,
    pub(crate) likelihood: OutputLikelihood,
    pub(crate) train: Shared,
    test: Shared,
    name: String,
    seed: u64,
    structures: Vec<(Curvature, Rc<Structure>)>,
}

/// Test images that are looked at together.
const AT_ONCE: usize = 256;

/// Sees some test images and their numbers.
type VisitImages<'a> = dyn FnMut(&Array<f32>, Range<usize>) -> Result<(), ExperimentError> + 'a;

impl Classifier {
    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.network.graph().output_shape().iter().product()
    }

    fn facts(&self) -> Result<Facts, ExperimentError> {
        let (classes, labels) = (self.classes(), self.test_labels());
        let mut right = 0;
        self.test_images(&mut |x, range| {
            let outputs = self.network.forward(x)?;
            for (row, label) in outputs.values().chunks_exact(classes).zip(&labels[range]) {
                let best = (0..classes).max_by(|a, b| row[*a].total_cmp(&row[*b]));
                right += usize::from(best == Some(*label));
            }
            Ok(())
        })?;
        Ok(Facts { weights: self.selection.len(), accuracy: right as f64 / labels.len() as f64 })
    }

    /// Shows the test images, some at a time, with their numbers.
    fn test_images(&self, visit: &mut VisitImages<'_>) -> Result<(), ExperimentError> {
        let count = self.test.len();
        for start in (0..count).step_by(AT_ONCE) {
            let range = start..(start + AT_ONCE).min(count);
            let (x, _) = self.test.batch(&range.clone().collect::<Vec<_>>(), None);
            visit(&x, range)?;
        }
        Ok(())
    }

    /// Classes of the test images.
    pub(crate) fn test_labels(&self) -> Vec<usize> {
        let all: Vec<usize> = (0..self.test.len()).collect();
        match self.test.batch(&all, None).1 {
            Targets::Classes(labels) => labels.into_iter().map(|l| l as usize).collect(),
            Targets::Values(_) => Vec::new(),
        }
    }

    /// A prior over the weights with one precision everywhere.
    ///
    /// # Errors
    /// A precision that is not positive.
    pub(crate) fn prior(&self, kind: &PriorKind, precision: f64) -> Result<Prior, ExperimentError> {
        Ok(kind.prior(self.network.graph(), &self.selection, precision)?)
    }

    /// The curvature of the training images, summed once.
    ///
    /// # Errors
    /// Bad images, interruption.
    pub(crate) fn curvature(
        &mut self,
        curvature: Curvature,
        context: &mut Context<'_>,
    ) -> Result<Rc<Structure>, ExperimentError> {
        if let Some((_, found)) = self.structures.iter().find(|s| s.0 == curvature) {
            return Ok(found.clone());
        }
        let tangent = Tangent::new(&self.network, &self.selection);
        let observed = Observed { examples: self.train.as_ref(), likelihood: &self.likelihood };
        let (form, estimate) = curvature.form(self.seed);
        let mut sums = Accumulator::new(&segments(self.network.graph(), &self.selection), form, estimate)?;
        let stage = format!("{}: {} curvature", self.name, curvature.name());
        let mut tell = |done, all| context.tell(&stage, done, all);
        sums.extend(&tangent, &observed, &self.likelihood, 0, &mut tell)?;
        let structure = Rc::new(sums.finish()?);
        self.structures.push((curvature, structure.clone()));
        Ok(structure)
    }

    /// The optimum of the linearised model under a prior, from other weights or the trained ones.
    ///
    /// # Errors
    /// Bad images, interruption.
    pub(crate) fn mode(
        &mut self,
        prior: &Prior,
        start: Option<&[f64]>,
        options: &ModeOptions,
        context: &mut Context<'_>,
    ) -> Result<Mode, ExperimentError> {
        // Whatever curvature the precisions are learned by: the mode does not depend on it, and the exact one leaves conjugate gradients little to do.
        let exact = self.curvature(Curvature::Full, context)?;
        let preconditioner = exact.condition(prior, 1.0).map_err(LinearError::from)?;
        let tangent = Tangent::new(&self.network, &self.selection);
        let observed = Observed { examples: self.train.as_ref(), likelihood: &self.likelihood };
        let problem = ModeProblem {
            features: &tangent,
            source: &observed,
            likelihood: &*self.likelihood,
            quadratic: false,
            precisions: prior.precision_of_each(0..prior.dimension()),
            strength: 1.0,
            predictor: Predictor::Affine,
        };
        let start = match start {
            Some(start) => start.to_vec(),
            None => self.selection.flatten(self.network.parameters()).into_iter().map(f64::from).collect(),
        };
        let stage = format!("{}: the mode", self.name);
        let mut tell = |done, all| context.tell(&stage, done, all);
        Ok(problem.solve(&start, &preconditioner, options, &mut tell)?)
    }

    /// Expectation maximisation under a curvature: the mode for the precisions, MacKay's update of the precisions for the mode (spec `linearised_laplace`, section 5).
    ///
    /// # Errors
    /// Bad images, interruption, precisions that leave every bound.
    pub(crate) fn learn(
        &mut self,
        curvature: Curvature,
        kind: &PriorKind,
        turns: &TurnSettings,
        context: &mut Context<'_>,
    ) -> Result<LearnedPrecisions, ExperimentError> {
        let structure = self.curvature(curvature, context)?;
        let mut prior = self.prior(kind, turns.initial_precision)?;
        let (low, high) = EvidenceOptions::default().precisions;
        let mut learned = LearnedPrecisions {
            groups: prior.names().to_vec(),
            precisions: vec![prior.precisions().to_vec()],
            effective_dimensions: Vec::new(),
            mode: Vec::new(),
        };
        for turn in 0..turns.steps {
            context.step(
                &format!("{}: precisions by {} curvature", self.name, curvature.name()),
                turn,
                turns.steps,
            )?;
            let start = (turn > 0).then_some(learned.mode.as_slice());
            learned.mode = self.mode(&prior, start, &turns.mode(), context)?.weights;
            let terms = structure.terms(&prior, 1.0).map_err(LinearError::from)?;
            let norms = prior.squared_norms(&learned.mode);
            let next: Vec<f64> = terms
                .effective_dimensions
                .iter()
                .zip(&norms)
                .map(|(gamma, norm)| precision_update(*gamma, *norm).clamp(low, high))
                .collect();
            let moved = prior.precisions().iter().zip(&next).map(|(a, b)| (b / a).ln().abs());
            let rest = moved.fold(0.0, f64::max) <= turns.tolerance;
            prior = prior.with_precisions(&next)?;
            learned.effective_dimensions.push(terms.effective_dimensions);
            learned.precisions.push(next);
            if rest {
                break;
            }
        }
        Ok(learned)
    }

    /// Samples of the exact posterior under a prior (d x K), solved to a relative residual.
    ///
    /// # Errors
    /// Bad images, interruption.
    pub(crate) fn samples(
        &self,
        prior: &Prior,
        count: usize,
        tolerance: f64,
        context: &mut Context<'_>,
    ) -> Result<Mat<f64>, ExperimentError> {
        let tangent = Tangent::new(&self.network, &self.selection);
        let observed = Observed { examples: self.train.as_ref(), likelihood: &self.likelihood };
        let model = SampledModel::new(&tangent, &observed, &self.likelihood);
        let stage = format!("{}: samples", self.name);
        let mut tell = |done, all| context.tell(&stage, done, all);
        let (diagonal, _) = model.curvature_diagonal(count, self.seed, &mut tell)?;
        let noise = Noise::draw(&model, 0..count, self.seed, &mut tell)?;
        exact_samples(
            &model,
            &noise,
            &prior.precision_of_each(0..prior.dimension()),
            &diagonal,
            tolerance,
            &mut tell,
        )
    }

    /// Outputs at the test images with their full covariances, by what a posterior says about some images at a time.
    ///
    /// # Errors
    /// Those of `latent`; interruption.
    pub(crate) fn predicted(
        &self,
        context: &mut Context<'_>,
        latent: &mut dyn FnMut(&Array<f32>) -> Result<Latent, ExperimentError>,
    ) -> Result<Predicted, ExperimentError> {
        let mut all = Predicted { mean: Vec::new(), covariance: Vec::new() };
        let (stage, count) = (format!("{}: test images", self.name), self.test.len());
        self.test_images(&mut |x, range| {
            context.step(&stage, range.start, count)?;
            let own = latent(x)?;
            all.mean.extend(own.mean);
            all.covariance.extend(own.covariance);
            Ok(())
        })?;
        Ok(all)
    }

    /// The network's outputs about which samples of the weights (d x K) scatter: covariances are their second moments, the mean being known.
    ///
    /// # Errors
    /// Images that do not fit.
    pub(crate) fn sampled_latent(
        &self,
        x: &Array<f32>,
        samples: MatRef<'_, f64>,
    ) -> Result<Latent, ExperimentError> {
        let tangent = Tangent::new(&self.network, &self.selection);
        let (c, k) = (self.classes(), samples.ncols());
        let rounded = Mat::from_fn(samples.nrows(), k, |i, j| samples[(i, j)] as f32);
        let mut latent =
            Latent { outputs: c, mean: Vec::new(), covariance: Vec::new(), wanted: Wanted::Full, clipped: 0 };
        let root = (k as f64).sqrt();
        for start in (0..x.rows()).step_by(batch_size(&self.network, k)) {
            let rows = start..(start + batch_size(&self.network, k)).min(x.rows());
            let features = tangent.at(x.slice_rows(rows.clone()))?;
            latent.mean.extend(features.outputs());
            let moved = features.apply(rounded.as_ref())?;
            let wide = Mat::from_fn(moved.nrows(), k, |i, j| f64::from(moved[(i, j)]) / root);
            let mut own = vec![0.0; rows.len() * c * c];
            add_inner_products(wide.as_ref(), c, Wanted::Full, &mut own);
            latent.covariance.extend(own);
        }
        Ok(latent)
    }
}

/// What a posterior says about the test images.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Predicted {
    /// `[images, C]`.
    pub(crate) mean: Vec<f64>,
    /// `[images, C, C]`.
    pub(crate) covariance: Vec<f64>,
}

/// Products that a solve may take.
const PRODUCTS: usize = 5000;

/// Samples for precisions of each weight by conjugate gradients, from draws of the prior.
///
/// # Errors
/// Those of the features, interruption, and [`ExperimentError::Setting`] where the residual stays larger than asked for.
pub(crate) fn exact_samples(
    model: &SampledModel<'_, f32, Tangent<'_, f32>>,
    noise: &Noise,
    precisions: &[f64],
    diagonal: &[f64],
    tolerance: f64,
    tell: &mut dyn FnMut(usize, usize) -> posterior_optim::Signal,
) -> Result<Mat<f64>, ExperimentError> {
    let options = ConjugateOptions { tolerance, steps: PRODUCTS };
    let start = noise.prior_draws(precisions)?;
    let (samples, reason) = solve_exactly(
        model,
        noise,
        (precisions, 1.0),
        diagonal,
        start,
        None,
        &options,
        &mut |progress, _| tell(progress.step, 0),
    )?;
    match reason {
        posterior_optim::Reason::Interrupted => Err(ExperimentError::Interrupted),
        posterior_optim::Reason::Steps => super::error::refused(format!(
            "samples have not reached a relative residual of {tolerance:e} after {PRODUCTS} products: allow a larger one"
        )),
        _ => Ok(samples),
    }
}
