//! The steps of a fit, in order.

use super::conjugate::LARGEST;
use super::held_out::noise_change;
use super::result::{Curvature, Posterior, displacement};
use super::{Approximation, FitOptions, FitSummary, Laplace, NoiseModel, scaled_noise};
use crate::accumulate::FitSums;
use crate::ella::Ella;
use crate::function_space::FunctionSpace;
use crate::keep::Keeper;
use crate::learned::LearnedReport;
use crate::mode::Mode;
use crate::normalisation::{ScaleInvariant, explain, scale_invariant_layers};
use crate::saved::{kept, resumed};
use crate::{Accumulator, FisherEstimate, LaplaceError, Plan, PriorKind, Stage, Tune};
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::compiled_here;
use posterior_linear::curvature::{is_gaussian, low_rank};
use posterior_linear::evidence::{EvidenceValue, LaplaceEvidence};
use posterior_linear::structure::Structure;
use posterior_networks::train::Examples;
use posterior_networks::{Graph, Network, PerNetworkPrecision, Precision, Selection};
use posterior_optim::Signal;
use posterior_tangent::{Observed, Tangent, check_outputs};
use std::borrow::Cow;
use std::time::Instant;

/// The observer of a fit.
pub(super) type Observer<'a> = &'a mut dyn FnMut(Stage, usize, usize) -> Signal;

/// Whose norm the evidence charges for and which weights share a precision, where that is left to us.
pub(crate) struct Choices {
    pub(crate) mode: Mode,
    pub(crate) prior: PriorKind,
    /// Layers with uncertain weights whose scale no output depends on.
    pub(crate) scale_invariant: Vec<ScaleInvariant>,
}

impl Choices {
    pub(crate) fn of(graph: &Graph, selection: &Selection, options: &FitOptions) -> Self {
        let mut scale_invariant = scale_invariant_layers(graph);
        let is_uncertain = |parameter| selection.parts().iter().any(|p| p.parameter == parameter);
        scale_invariant.retain(|layer| layer.parameters.iter().any(|p| is_uncertain(*p)));
        let normalised = !scale_invariant.is_empty();
        let mode = match options.mode {
            Mode::Auto if normalised => Mode::Linearised,
            Mode::Auto => Mode::Trained,
            other => other,
        };
        Self { mode, prior: options.prior.resolved(normalised), scale_invariant }
    }
}

/// What all steps share.
pub(super) struct Fitting<'a, T> {
    pub(super) network: &'a Network<T>,
    pub(super) examples: &'a dyn Examples<T>,
    pub(super) validation: Option<&'a dyn Examples<T>>,
    pub(super) options: &'a FitOptions,
    pub(super) selection: Selection,
    pub(super) prior: PriorKind,
    pub(super) mode: Mode,
    pub(super) trained: Vec<f64>,
}

/// Fits a posterior to a trained network. `validation` is needed by [`Tune::Validation`] only. `keeper` has what an earlier, interrupted call left, and is given what this one does.
///
/// # Errors
/// [`LaplaceError`]: bad targets or inputs, a plan that does not fit the memory, what does not fit together, interruption.
pub fn fit<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    likelihood: &OutputLikelihood,
    options: &FitOptions,
    keeper: &mut Keeper<'_>,
    observer: Observer<'_>,
) -> Result<Laplace<T>, LaplaceError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a, 'c: 'a] run, (
        network: &'a Network<T> = network,
        examples: &'a dyn Examples<T> = examples,
        validation: Option<&'a dyn Examples<T>> = validation,
        likelihood: &'a OutputLikelihood = likelihood,
        options: &'a FitOptions = options,
        keeper: &'a mut Keeper<'c> = keeper,
        observer: &'a mut (dyn FnMut(Stage, usize, usize) -> Signal + 'b) = observer,
    ) -> Result<Laplace<T>, LaplaceError>)
}

fn run<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    likelihood: &OutputLikelihood,
    options: &FitOptions,
    keeper: &mut Keeper<'_>,
    observer: Observer<'_>,
) -> Result<Laplace<T>, LaplaceError> {
    check_outputs(network, likelihood)?;
    likelihood.check_curvature()?;
    check(options, validation.is_some())?;
    options.check_search()?;
    let started = Instant::now();
    let selection =
        options.weights.select(network, options.affine, examples, likelihood, options.seed, observer)?;
    let Choices { mode, prior, scale_invariant } = Choices::of(network.graph(), &selection, options);
    let trained: Vec<f64> = selection.flatten(network.parameters()).iter().map(|v| v.to_f64()).collect();
    let mut notes = Vec::new();
    if options.prior == PriorKind::Auto && options.mode == Mode::Auto {
        notes.extend(explain(&scale_invariant));
    }
    let mode = known_mode(mode, &prior, options, (examples.len(), likelihood))?;
    let counts = (examples.len(), validation.map_or(0, |v| v.len()));
    let plan = Plan::new(network, &selection, counts, likelihood, options)?;
    plan.check(options)?;
    let choosing = started.elapsed().as_secs_f64();
    let fitting = Fitting { network, examples, validation, options, selection, prior, mode, trained };

    if options.approximation.is_learned() {
        return fitting.learned(likelihood, plan, choosing, keeper, observer);
    }
    let mut likelihood = likelihood.clone();
    let mut seconds = [choosing, 0.0, 0.0, 0.0];
    let clock = Instant::now();
    let (mut curvature, mut fit) = fitting.curvature(examples, &likelihood, keeper, observer)?;
    seconds[1] = clock.elapsed().as_secs_f64();
    let mut solved = match fitting.solve(&curvature, &likelihood, &fit, &mut seconds, observer) {
        Err(LaplaceError::Interrupted) => {
            // The sums are whole and need not be made again.
            if let Curvature::Structure { sums: Some(sums), .. } = &curvature {
                keeper.keep(|| kept(sums))?;
            }
            return Err(LaplaceError::Interrupted);
        }
        other => other?,
    };
    if matches!(options.noise, NoiseModel::PerOutput | NoiseModel::Full) && is_gaussian(&likelihood) {
        let clock = Instant::now();
        for round in 0..20 {
            let next = fitting.noise(&curvature, &solved, &likelihood, observer)?;
            let change = noise_change(&scaled_noise(&likelihood, solved.noise_variance)?, &next);
            likelihood = next;
            (curvature, fit) = fitting.curvature(examples, &likelihood, &mut Keeper::default(), observer)?;
            solved = fitting.solve(&curvature, &likelihood, &fit, &mut seconds, observer)?;
            if change < 1e-4 {
                break;
            }
            if round == 19 {
                notes
                    .push(format!("the noise was still changing by {:.1} % after 20 rounds", 100.0 * change));
            }
        }
        seconds[1] += clock.elapsed().as_secs_f64();
    }
    let clock = Instant::now();
    let held_out = fitting.held_out(validation, &curvature, &likelihood, &fit, &mut solved, observer)?;
    seconds[3] += clock.elapsed().as_secs_f64();
    notes.extend(solved.notes(&held_out, options.seen_by_network));

    let strength = if is_gaussian(&likelihood) { 1.0 / solved.noise_variance } else { 1.0 };
    let posterior = Posterior::new(network, &fitting.selection, &curvature, &solved.prior, strength)?;
    let evidence_structure = fitting.evidence_structure(&curvature)?;
    let at = |mode: &[f64], data_fit| -> Result<_, LaplaceError> {
        let evidence = LaplaceEvidence::new(&evidence_structure, solved.prior.clone(), mode, data_fit)?;
        Ok(evidence.at(solved.prior.precisions(), solved.noise_variance)?)
    };
    let own_fit = solved.data_fit(&likelihood, &fit);
    let evidence = Some(at(&solved.mode, own_fit)?);
    notes.extend(evidence.as_ref().and_then(|e| absurd(e, fit.examples, &likelihood)));
    let evidence_at_trained =
        if solved.summary.is_some() { Some(at(&fitting.trained, fit.data_fit(&likelihood))?) } else { None };
    let (corrections, points) = match &curvature {
        Curvature::Structure { structure, .. } => (structure.corrections(), None),
        Curvature::FunctionSpace(points) => (Default::default(), Some(points.points())),
        Curvature::Ella(..) => Default::default(),
    };
    let summary = FitSummary {
        plan,
        fit,
        evidence,
        maximised: solved.maximised,
        held_out,
        unseen: None,
        evidence_at_trained,
        mode: solved.summary,
        corrections,
        scale_invariant,
        g_prior: fitting.prior == PriorKind::GPrior,
        points,
        learned: match &curvature {
            Curvature::Ella(_, report) => Some(LearnedReport::Ella(report.clone())),
            _ => None,
        },
        notes,
        seconds,
    };
    Ok(Laplace {
        displacement: displacement(network, &fitting.selection, &solved.mode, summary.displacement()),
        likelihood: scaled_noise(&likelihood, solved.noise_variance)?,
        base_likelihood: likelihood,
        noise_variance: solved.noise_variance,
        prior: solved.prior,
        integration: options.integration,
        selection: fitting.selection,
        curvature: Some(curvature),
        mode: solved.mode,
        posterior,
        summary,
    })
}

/// The mode, where prior and mode are ones that the curvature knows: the default becomes the trained weights where it does not know the other.
fn known_mode(
    mut mode: Mode,
    prior: &PriorKind,
    options: &FitOptions,
    (examples, likelihood): (usize, &OutputLikelihood),
) -> Result<Mode, LaplaceError> {
    if matches!(options.approximation, Approximation::FunctionSpace { .. } | Approximation::Ella(_))
        && *prior != PriorKind::Scalar
    {
        return Err(LaplaceError::Request(format!(
            "{} knows one prior precision: use the scalar prior, or another curvature",
            options.approximation.name()
        )));
    }
    if let (Approximation::Ella(_), Mode::Linearised | Mode::LinearisedSimple) =
        (&options.approximation, mode)
    {
        match options.mode {
            Mode::Auto => mode = Mode::Trained,
            _ => {
                return Err(LaplaceError::Request(
                    "ella knows no optimum of the linearised model: use the mode `trained`, or another curvature".into(),
                ));
            }
        }
    }
    if matches!(mode, Mode::Linearised | Mode::LinearisedSimple)
        && let Approximation::FunctionSpace { points } = &options.approximation
    {
        let sampled = points.is_some_and(|p| p < examples);
        let known = mode == Mode::Linearised && !sampled && is_gaussian(likelihood);
        let rows = examples * likelihood.outputs();
        match options.mode {
            // The default is what there is.
            Mode::Auto if !known || rows > LARGEST => mode = Mode::Trained,
            _ if !known => {
                return Err(LaplaceError::Request(
                    "function space knows the optimum of the linearised model (with its offset) under Gaussian noise and from all examples only: use the mode `trained`, or a curvature of weights".into(),
                ));
            }
            _ if rows > LARGEST => {
                return Err(LaplaceError::Request(format!(
                    "function space finds the optimum of the linearised model from at most {LARGEST} observed numbers, not {rows}: use the mode `trained`, or a curvature of weights"
                )));
            }
            _ => {}
        }
    }
    Ok(mode)
}

/// Nats for each observed number beyond which what the evidence charges for weights says more about the approximation than about the model.
const ABSURD: f64 = 20.0;

/// A remark on an evidence that no model of these data could deserve.
fn absurd(value: &EvidenceValue, examples: usize, likelihood: &OutputLikelihood) -> Option<String> {
    let numbers = (examples * likelihood.target_width()) as f64;
    let charged = value.log_likelihood - value.log_evidence;
    let fine = value.log_evidence.is_finite() && charged <= ABSURD * numbers;
    (!fine).then(|| {
        format!(
            "WARNING: the log evidence {:.3e} charges {:.1e} nats for each observed number, more than any model of these data is worth: the prior precision does not fit the weights, or the curvature is \
             too crude for them; do not compare it, and tune by --tune evidence or choose a more exact curvature",
            value.log_evidence,
            charged / numbers.max(1.0)
        )
    })
}

fn check(options: &FitOptions, validation: bool) -> Result<(), LaplaceError> {
    let refuse = |problem: String| Err(LaplaceError::Request(problem));
    if !(options.initial_precision.is_finite() && options.initial_precision > 0.0) {
        return refuse(format!(
            "the prior precision is {}; it must be positive and finite",
            options.initial_precision
        ));
    }
    match options.tune {
        Tune::Validation if !validation => {
            refuse("tuning by held-out data needs validation examples: give some".into())
        }
        Tune::CrossValidation { folds } if folds < 2 => {
            refuse("cross-validation needs at least two folds".into())
        }
        Tune::CrossValidation { .. } if !options.seen_by_network => refuse(
            "cross-validation scores rows that the network was trained on, whichever part is left out of the curvature, and so favours no error bars at all: let the evidence choose (--tune evidence), \
             give --validation-data that the network has not seen, or insist with --allow-seen-rows"
                .into(),
        ),
        Tune::CrossValidation { .. } if options.approximation.form().is_none() => refuse(
            "cross-validation needs a curvature made of sums: full, block, diagonal or kronecker".into(),
        ),
        _ => Ok(()),
    }
}

impl<T: Precision> Fitting<'_, T> {
    /// The curvature of some examples.
    pub(super) fn curvature(
        &self,
        examples: &dyn Examples<T>,
        likelihood: &OutputLikelihood,
        keeper: &mut Keeper<'_>,
        observer: Observer<'_>,
    ) -> Result<(Curvature<T>, FitSums), LaplaceError> {
        let (network, selection, options) = (self.network, &self.selection, self.options);
        if let Some(form) = options.approximation.form() {
            let estimate = options.approximation.estimate().unwrap_or(FisherEstimate::Exact);
            let mut sums = match keeper.earlier() {
                Some(state) => resumed(state, network, selection, (form, estimate))?,
                None => Accumulator::new(network, selection, form, estimate)?,
            };
            let from = sums.fit().examples;
            if let Err(error) = sums.extend(network, examples, likelihood, from, observer) {
                if let LaplaceError::Interrupted = error {
                    keeper.keep(|| kept(&sums))?;
                }
                return Err(error);
            }
            let fit = *sums.fit();
            let structure = self.scaled(sums.finish()?)?;
            return Ok((Curvature::Structure { structure, sums: Some(sums) }, fit));
        }
        match &options.approximation {
            &Approximation::LowRank { rank, iterations } => {
                let (tangent, observed) =
                    (Tangent::new(network, selection), Observed { examples, likelihood });
                let mut stage = |done, all| observer(Stage::Curvature, done, all);
                let (structure, fit) =
                    low_rank(&tangent, &observed, likelihood, (rank, iterations), options.seed, &mut stage)?;
                Ok((Curvature::Structure { structure: self.scaled(structure)?, sums: None }, fit))
            }
            &Approximation::FunctionSpace { points } => {
                let (points, fit) = FunctionSpace::new(
                    network,
                    selection,
                    examples,
                    likelihood,
                    points,
                    options.seed,
                    options.memory,
                    observer,
                )?;
                Ok((Curvature::FunctionSpace(points), fit))
            }
            Approximation::Ella(own) => {
                let (ella, fit, report) = Ella::fit(
                    network,
                    selection,
                    examples,
                    self.validation,
                    likelihood,
                    own,
                    options.seed,
                    options.memory,
                    keeper,
                    observer,
                )?;
                Ok((Curvature::Ella(ella, report), fit))
            }
            _ => Err(LaplaceError::Request("this curvature is not made of sums".into())),
        }
    }

    fn scaled(&self, structure: Structure) -> Result<Structure, LaplaceError> {
        Ok(if self.prior == PriorKind::GPrior { structure.normalised()? } else { structure })
    }

    /// The structure that the evidence is computed with: in function space a diagonal one with the same spectrum.
    pub(super) fn evidence_structure<'a>(
        &self,
        curvature: &'a Curvature<T>,
    ) -> Result<Cow<'a, Structure>, LaplaceError> {
        match curvature {
            Curvature::Structure { structure, .. } => Ok(Cow::Borrowed(structure)),
            Curvature::FunctionSpace(points) => Ok(Cow::Owned(points.spectrum()?)),
            Curvature::Ella(ella, _) => Ok(Cow::Owned(ella.spectrum()?)),
        }
    }
}
