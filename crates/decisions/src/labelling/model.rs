//! **The prior of the latent functions**: a kernel on standardised columns and a constant, with hyperparameters by the evidence of the labels' pseudo-targets.
//!
//! Before there are labels, functions are taken to change over a distance of order √D in D standardised columns, and by as much as labels differ. Hyperparameters are learned anew
//! whenever there are half as many labels again, or a class more: in between they stay, so that a label costs one update of the pool and no search.
//!
//! Cost of a search: dozens of evaluations of `t³` flops for each class, t being at most [`EVIDENCE_ROWS`].

use super::ClassGaussianLabels;
use crate::DecisionError;
use faer::{Mat, MatRef};
use posterior_gp::exact::{ExactGp, FitOptions, SeveralObservations};
use posterior_gp::iterative::fit_several_on_blocks;
use posterior_gp::{Density, Hyperprior, MeanForm};
use posterior_kernels::{Kernel, KernelExpression, is_distance};
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use posterior_optim::{Constraint, Reason, Signal};
use rand::seq::index;
use serde::{Deserialize, Serialize};

/// Most labels whose evidence chooses the hyperparameters; of more, as many by chance.
pub const EVIDENCE_ROWS: usize = 1500;

/// Pseudo-noise is all the noise there is, which a Gaussian likelihood cannot say.
const NO_NOISE: f64 = 1e-9;

/// How far variances are believed to lie from those of the pseudo-targets, in logarithms: a few labels must not say that nothing can be learned.
const VARIANCE_SCALE: f64 = 1.5;

/// Hyperparameters, and what they were learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Labels that there were.
    pub labels: usize,
    /// Classes that there were.
    pub classes: usize,
    /// Names and values, on standardised columns and in standard units of the functions.
    pub hyperparameters: Vec<(String, Vec<f64>)>,
    /// The same values end to end.
    pub values: Vec<f64>,
}

impl Learned {
    /// Whether there are labels enough for others: half as many again, or a class more.
    pub fn is_outgrown(&self, labels: usize, classes: usize) -> bool {
        classes != self.classes || 2 * labels >= 3 * self.labels
    }
}

/// The kernel as asked for, with a constant beside it: how common each class is.
///
/// # Errors
/// [`DecisionError::Kernel`] naming a column that is none.
pub fn prior_kernel(
    kernel: &KernelExpression,
    names: &[String],
    learned: Option<&Learned>,
) -> Result<Box<dyn Kernel<f64>>, DecisionError> {
    let text = format!("{kernel} + constant");
    let mut kernel = text.parse::<KernelExpression>()?.build::<f64>(names)?;
    let values = match learned {
        Some(learned) if learned.values.len() == kernel.values().len() => learned.values.clone(),
        _ => {
            let begun = kernel.segments().into_iter().flat_map(|segment| {
                vec![
                    begun(&segment.name, names.len()).filter(|_| !is_set(&text, &segment.name));
                    segment.len()
                ]
            });
            begun.zip(kernel.values()).map(|(begun, own)| begun.unwrap_or(own)).collect()
        }
    };
    kernel.set_values(&values);
    Ok(kernel)
}

/// Where a hyperparameter begins, if not at 1: for functions that change over a distance of √D, and weights of D features whose sum varies as labels do.
fn begun(name: &str, features: usize) -> Option<f64> {
    match name {
        _ if is_distance(name) => Some((features as f64).sqrt()),
        _ if name.starts_with("linear") && !name.contains('*') => Some(1.0 / features as f64),
        _ => None,
    }
}

/// Whether the kernel's text says where hyperparameters of this kind begin.
fn is_set(text: &str, name: &str) -> bool {
    let kind = name.rsplit('.').next().unwrap_or(name);
    text.contains(&format!("{kind}="))
}

/// Learns hyperparameters from labelled rows (n x D, standardised) and their classes.
///
/// # Errors
/// [`DecisionError::Gp`], [`DecisionError::Kernel`], [`DecisionError::Interrupted`].
pub fn learn(
    kernel: &KernelExpression,
    names: &[String],
    gaussian_labels: &ClassGaussianLabels,
    (inputs, classes): (MatRef<'_, f64>, &[usize]),
    seed: u64,
    observer: &mut dyn FnMut(usize, usize) -> Signal,
) -> Result<Learned, DecisionError> {
    let n = classes.len();
    let mut rows: Vec<usize> = (0..n).collect();
    if n > EVIDENCE_ROWS {
        let mut rng = Streams::new(seed).stream("decisions/label-evidence");
        rows = index::sample(&mut rng, n, EVIDENCE_ROWS).into_vec();
        rows.sort_unstable();
    }
    let pick = |value: &dyn Fn(usize, usize) -> f64, columns: usize| {
        Mat::from_fn(rows.len(), columns, |i, j| value(rows[i], j))
    };
    let functions = gaussian_labels.functions();
    let data = SeveralObservations::new(
        pick(&|i, j| inputs[(i, j)], inputs.ncols()),
        pick(&|i, c| gaussian_labels.of(classes[i], c).target, functions),
        pick(&|i, c| gaussian_labels.of(classes[i], c).variance, functions),
    )?;
    let kernel = prior_kernel(kernel, names, None)?;
    let model = ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(NO_NOISE, 0.0), inputs.ncols(), 1);
    let mut options = FitOptions { seed, ..FitOptions::default() };
    options.constraints.push(Constraint::Fixed { parameter: "noise_variance".into(), value: None });
    for segment in model.kernel().segments() {
        if is_distance(&segment.name) {
            options.hyperpriors.push(Hyperprior::weak_lengthscale(&segment.name, names.len()));
        } else if segment.name.ends_with("variance") {
            let location = begun(&segment.name, names.len()).unwrap_or(1.0).ln();
            let density = Density::LogNormal { location, scale: VARIANCE_SCALE };
            options.hyperpriors.push(Hyperprior { parameter: segment.name, density });
        }
    }
    let total = options.steps.steps;
    let all = [(0..rows.len()).collect::<Vec<usize>>()];
    let (model, found) = fit_several_on_blocks(model, &data, &all, &options, &mut |progress, _| {
        observer(progress.step.min(total), total)
    })?;
    if found.reason == Reason::Interrupted {
        return Err(DecisionError::Interrupted);
    }
    let kernel = model.kernel();
    let values = kernel.values();
    let mut rest = values.as_slice();
    let named = |segment: posterior_optim::Segment| {
        let (mine, others) = rest.split_at(segment.len());
        rest = others;
        (segment.name, mine.to_vec())
    };
    let hyperparameters = kernel.segments().into_iter().map(named).collect();
    Ok(Learned { labels: n, classes: gaussian_labels.classes(), hyperparameters, values })
}
