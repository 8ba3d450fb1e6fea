//! Which inference and method, why, and what they take.

use super::cost::{Cost, Size};
use super::observed::Observed;
use crate::options::{
    CalibrateName, HyperparameterOptions, InferenceName, LargeTableOptions, LikelihoodName, MethodName,
    ObjectiveName, PseudoCount,
};
use crate::text::{time, work};
use crate::{FitRequest, Method, ModelError, Target, calibration};
use posterior_gp::exact::{Criterion, Plan};
use posterior_likelihoods::OutputLikelihood;
use posterior_likelihoods::gaussianised::Matching;
use posterior_notes::fixes::{
    EXACT, INFERENCE_GAUSSIANISED, INFERENCE_LAPLACE, INFERENCE_VARIATIONAL, LIKELIHOOD_CATEGORICAL, SGPR,
};

/// Operations of all latent functions' kernel matrices up to which these are factored as a whole: a minute or two on two cores.
const EXACT_WORK: f64 = 1e11;

/// Operations of an evaluation up to which hyperparameters are searched for on all rows.
pub(crate) const SEARCH_WORK: f64 = 1e10;

/// Rows, at most, that a pseudo-target's pseudo-count is chosen on: operations of one evaluation on all functions.
pub(crate) const TRIAL_WORK: f64 = 1e9;

/// What a fit will do.
#[derive(Clone, Debug)]
pub struct InferencePlan {
    /// How, never [`InferenceName::Auto`].
    pub inference: InferenceName,
    /// The inference that is tried as well, where the choice is ours and it costs little: the one that predicts rows better that are left out is kept.
    pub compared: Option<InferenceName>,
    /// By which method, never [`Method::Auto`].
    pub method: Method,
    /// Why.
    pub why: String,
    /// Latent functions, at most.
    pub latents: usize,
    /// Whether yes and no are taken as two classes with a function each as well, and the better of both is kept.
    pub tries_two_classes: bool,
    /// Rows that hyperparameters, or a pseudo-count, are searched for on.
    pub trial_rows: usize,
    /// Memory, and the work of one evaluation.
    pub plan: Plan,
    /// How much there is.
    size: Size,
    /// What all of it takes.
    cost: Cost,
    /// Seconds that it takes on this machine; None until they are measured, or where they cannot be.
    pub seconds: Option<f64>,
}

/// Operations of the Laplace approximation up to which it is compared: half a minute or so.
const COMPARED_WORK: f64 = 4e11;

impl InferencePlan {
    /// For these rows; refuses what does not go together or does not fit the memory.
    ///
    /// # Errors
    /// [`ModelError::Usage`] or [`ModelError::Gp`], with the way out.
    pub fn of(observed: &Observed, request: &FitRequest) -> Result<Self, ModelError> {
        let classes = match &observed.target {
            Target::Classes { names } => names.count() as u64,
            _ => 0,
        };
        let events = matches!(observed.target, Target::Events { .. });
        if request.validation.calibrate == CalibrateName::Conformal && events {
            let problem = "--calibrate conformal is by rows, and events are none: leave it out";
            return Err(ModelError::Usage(problem.into()));
        }
        let mut out = Self::unchecked(observed, request)?;
        if request.validation.calibrate != CalibrateName::None && !events {
            let rows = out.judged_rows(observed.rows());
            calibration::check(request.validation.calibrate, rows, out.method.settings().leaves_one_out())?;
            // Their probabilities (or moments, truths and scores) are kept until all else is done, and once more as they are changed.
            let kept = 16u64.saturating_mul(rows as u64).saturating_mul(classes.max(4));
            out.plan.peak_bytes = out.plan.peak_bytes.saturating_add(kept);
        }
        if out.plan.peak_bytes > request.limits.memory {
            let (plan, limit) = (out.plan, request.limits.memory);
            return Err(posterior_gp::GpError::Memory { plan, limit }.into());
        }
        Ok(out)
    }

    fn unchecked(observed: &Observed, request: &FitRequest) -> Result<Self, ModelError> {
        let (n, d) = (observed.rows_to_learn(), observed.data.inputs().ncols());
        let likelihood = &observed.likelihood;
        let asked = &request.output;
        let open = asked.matching.is_none()
            && asked.pseudo_count.is_none()
            && request.start.hyperparameters().is_none();
        let tries_two_classes = matches!(likelihood, OutputLikelihood::Bernoulli(_))
            && asked.likelihood == LikelihoodName::Auto
            && matches!(asked.inference, InferenceName::Auto | InferenceName::Gaussianised)
            && !request.method.sets_aside()
            && open;
        let latents = match tries_two_classes {
            true => 2,
            false => posterior_likelihoods::Likelihood::outputs(&**likelihood),
        };
        let has_gaussian_labels = matches!(
            likelihood,
            OutputLikelihood::Bernoulli(_) | OutputLikelihood::Categorical(_) | OutputLikelihood::Poisson(_)
        );
        let work = |rows: usize| latents as f64 * (rows as f64).powi(3);
        let small = work(n) <= EXACT_WORK
            && latents as u64 * Plan::evidence(n, d, 1).peak_bytes <= request.limits.memory / 2;
        let deep = request.method.sets_aside();
        let (likely, named) = (likelihood.name(), request.method.name());
        let (inference, mut why) = match (asked.inference, has_gaussian_labels) {
            (InferenceName::Auto, _) if deep => {
                let bound = match request.method.deep() {
                    Some((options, kind, _))
                        if kind.exact && options.objective == Some(ObjectiveName::Evidence) =>
                    {
                        "as asked; the evidence of labels and counts has no closed form, and its bound on batches stands for it"
                    }
                    _ => "as asked",
                };
                (InferenceName::Variational, bound.into())
            }
            (InferenceName::Auto, true) => {
                (InferenceName::Gaussianised, "because it costs what regression costs".to_string())
            }
            (InferenceName::Auto, false) if likelihood.is_flat() => {
                (InferenceName::Variational, format!("because {likely} has expectations and no curvature"))
            }
            (InferenceName::Auto, false) if small => (
                InferenceName::Laplace,
                format!("because {likely} has no Gaussian label approximation and the rows are few"),
            ),
            (InferenceName::Auto, false) => (
                InferenceName::Variational,
                format!("because {likely} has no Gaussian label approximation and the rows are many"),
            ),
            (named, _) => (named, "as asked".into()),
        };
        let refuse = |problem: String| Err(ModelError::Usage(problem));
        let other =
            |flag: &str| format!("--{flag} is for gaussianised inference; this is {}", inference.as_str());
        if deep && matches!(inference, InferenceName::Gaussianised | InferenceName::Laplace) {
            return refuse(format!(
                "{named} learns under the likelihood itself: leave --inference out, or take another --method"
            ));
        }
        if inference == InferenceName::Laplace {
            likelihood.check_curvature()?;
        }
        if inference != InferenceName::Gaussianised {
            if asked.matching.is_some() {
                return refuse(other("matching"));
            }
            if asked.pseudo_count.is_some() {
                return refuse(other("pseudo-count"));
            }
        } else if !has_gaussian_labels {
            return refuse(format!(
                "{likely} has no Gaussian label approximation: take {INFERENCE_LAPLACE} or {INFERENCE_VARIATIONAL:-}"
            ));
        }
        if matches!(likelihood, OutputLikelihood::Bernoulli(_))
            && asked.matching == Some(Matching::MomentOriginal)
        {
            return refuse(format!(
                "--matching moment-original is for classes and counts, not for yes and no: {LIKELIHOOD_CATEGORICAL} takes two labels as classes"
            ));
        }
        no_noise(request)?;
        let settings = request.method.settings();
        let Some(method) = settings.for_labels(&request.method, inference, small) else {
            return refuse(match inference {
                InferenceName::Variational => format!(
                    "--inference variational is the stochastic bound (--method svgp), generalised variational inference (gvi) or deep kernels (svdbk, svdkl, ...), not {named}"
                ),
                InferenceName::Laplace => format!(
                    "--inference laplace factors whole kernel matrices (--method exact), not {named}: for many rows take {INFERENCE_GAUSSIANISED} or {INFERENCE_VARIATIONAL:-}"
                ),
                _ => format!(
                    "gaussianised inference with inducing points has a closed form: take {SGPR}, or {INFERENCE_VARIATIONAL} for the stochastic bound"
                ),
            });
        };
        if settings.is_automatic() && inference == InferenceName::Gaussianised && !small {
            why += &format!("; {n} rows of {latents} functions are many, hence inducing points");
        }
        searched_by_blocks(&method)?;
        let leaves_one_out = method.settings().leaves_one_out();
        if asked.pseudo_count == Some(PseudoCount::Learned) && !leaves_one_out {
            return refuse(format!(
                "--pseudo-count learned factors the kernel matrix of all rows, which {} does not: take {EXACT} for {n} rows, give a number, or leave it out and have it chosen on a part of the rows",
                method.name()
            ));
        }
        let trial_rows = n.min((TRIAL_WORK / latents as f64).cbrt() as usize).max(2.min(n));
        let scatter = observed.scatter();
        let size = Size { rows: n, inputs: d, functions: latents, scatter, trial_rows };
        let mut cost = Cost::of(inference, &method, request, size);
        let mut compared = None;
        if asked.inference == InferenceName::Auto
            && inference == InferenceName::Gaussianised
            && leaves_one_out
            && open
        {
            let other = Cost::of(InferenceName::Laplace, &method, request, size);
            if other.flops <= COMPARED_WORK && other.plan.peak_bytes <= request.limits.memory / 2 {
                compared = Some(InferenceName::Laplace);
                why += "; few rows, hence laplace is tried as well";
                // What was found first is kept beside the other.
                cost.plan.peak_bytes = cost.plan.peak_bytes.saturating_add(other.plan.peak_bytes);
                cost.flops += other.flops;
            }
        }
        let plan = cost.plan;
        Ok(Self {
            inference,
            compared,
            method,
            why,
            latents,
            tries_two_classes,
            trial_rows,
            plan,
            size,
            cost,
            seconds: None,
        })
    }

    /// Rows that the fit is judged on, of n: those held back, or those that are predicted from the others.
    fn judged_rows(&self, n: usize) -> usize {
        if self.method.settings().leaves_one_out() {
            return if self.inference == InferenceName::Laplace { n } else { self.trial_rows.min(n) };
        }
        let count = self.method.large().unwrap_or(&LargeTableOptions::default()).held_back_of(n);
        if count < n { count } else { 0 }
    }

    /// Measures how long it takes on this machine, in some hundredths of a second.
    pub(crate) fn timed(mut self, observed: &Observed, request: &FitRequest) -> Self {
        self.seconds = self.cost.seconds(request, &observed.feature_names(), self.size);
        self
    }

    /// In words.
    pub fn describe(&self) -> String {
        let time = self.seconds.map_or_else(String::new, |s| format!(", about {} on this machine", time(s)));
        format!(
            "{}{}{} latent function{}, by {} ({}); {} of memory, {}{time}",
            match self.method.deep() {
                Some(_) => "deep kernels for ".into(),
                None if self.method.gvi().is_some() => "a mean and a covariance for ".into(),
                None => format!("{} with ", self.inference.as_str()),
            },
            if self.tries_two_classes { "1 or " } else { "" },
            self.latents,
            if self.latents == 1 { "" } else { "s" },
            self.method.name(),
            self.why,
            self.plan,
            work(self.cost.flops),
        )
    }

    /// The name of its method.
    pub fn solver(&self) -> MethodName {
        self.method.name()
    }
}

/// Refuses what is said of noise that such targets do not have.
fn no_noise(request: &FitRequest) -> Result<(), ModelError> {
    let usual = FitRequest::default();
    let flags = [
        (request.prior.initial_noise != usual.prior.initial_noise, "set prior.initial-noise"),
        (request.prior.noise_floor != usual.prior.noise_floor, "set prior.noise-floor"),
    ];
    match flags.iter().find(|(given, _)| *given) {
        Some((_, flag)) => Err(ModelError::Usage(format!(
            "--{flag} is for numbers with Gaussian noise, which this target does not have"
        ))),
        None => Ok(()),
    }
}

/// Refuses criteria and searches that there are for Gaussian noise only.
fn searched_by_blocks(method: &Method) -> Result<(), ModelError> {
    if method.evidence().is_some_and(|evidence| !matches!(evidence.criterion(), Ok(Criterion::Evidence))) {
        let problem = "--set objective=leave-one-out is for numbers with Gaussian noise; other targets have the evidence";
        return Err(ModelError::Usage(problem.into()));
    }
    let Some(options) = method.iterative() else { return Ok(()) };
    let usual = HyperparameterOptions::default();
    let HyperparameterOptions { blocks, block_size, .. } = options.search;
    if options.search != (HyperparameterOptions { blocks, block_size, ..usual }) {
        let problem = "hyperparameters of classes and counts are searched for on blocks of rows: of that search --set blocks and --set block-size can be said";
        return Err(ModelError::Usage(problem.into()));
    }
    Ok(())
}
