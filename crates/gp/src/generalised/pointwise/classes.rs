//! **Of classes**: how likely labels are where each class has an exact process of its own, on targets that are 1 at its points and 0 at the others, and the class of a point is that of the largest latent value but for errors:
//!
//! ```text
//! -(1/n) Σ_i log [ (1 - δ) S(i, y_i) + δ / (J - 1) (1 - S(i, y_i)) ],    S(i, j) = P(f_j is the largest of the f_l ~ N(m_il, v_il))
//! ```
//!
//! It is at least `-log(1 - δ)`. This is the only posterior of classes that the published program calls exact; its text does not describe it.
//!
//! Source: spec `generalised_variational_inference`, section 2.3.

use super::OwnMarginals;
use crate::GpError;
use crate::exact::ExactGp;
use crate::generalised::class_posterior::one_hot;
use crate::generalised::risk::Risk;
use faer::{Mat, MatRef};
use posterior_likelihoods::RobustMax;
use posterior_linalg::parallel;
use posterior_linear::low_rank::{ObservedRows, RowTerms};

/// The risk with its gradient in the natural parameters of each model: one process for each class, of one target, at the points x (n x D) with these classes. Cost `J` times that of an exact process and its gradient.
///
/// # Errors
/// [`GpError::Shape`] for another number of models than the likelihood has classes, another number of labels than rows, widths that do not fit; [`GpError::GaussianLabels`] for labels beyond the classes;
/// [`GpError::Cholesky`] when a matrix cannot be factored.
pub fn pointwise_class_risk(
    models: &[ExactGp],
    x: MatRef<'_, f64>,
    labels: &[usize],
    likelihood: &RobustMax,
) -> Result<(f64, Vec<Vec<f64>>), GpError> {
    let (n, classes) = (x.nrows(), likelihood.classes());
    crate::data::same_width("processes, one for each class", classes, models.len())?;
    let one_hot = one_hot(x, labels, likelihood)?;
    let observed = Mat::from_fn(n, 1, |i, _| labels[i] as f64);
    let marginals: Vec<_> = parallel::map(classes, 1, |c| OwnMarginals::of(&models[c], &one_hot[c]));
    let marginals: Vec<OwnMarginals<'_>> = marginals.into_iter().collect::<Result<_, _>>()?;
    let means = Mat::from_fn(n, classes, |i, c| marginals[c].mean(i, 0));
    // What rounds to nothing is what rounding leaves.
    let variances =
        Mat::from_fn(n, classes, |i, c| marginals[c].variance(i).max(f64::EPSILON * marginals[c].noise[i]));
    let rows = ObservedRows { targets: observed.as_ref(), noise: None, weights: None, offsets: None };
    let terms = RowTerms::of(likelihood, Risk::Predictive.power(), &rows, (&means, &variances));
    let scale = -1.0 / n as f64;
    let gradients = parallel::map(classes, 1, |c| {
        let of_means = Mat::from_fn(n, 1, |i, _| scale * terms.means[(i, c)]);
        let of_variances: Vec<f64> = (0..n).map(|i| scale * terms.variances[(i, c)]).collect();
        marginals[c].pull_back(of_means.as_ref(), &of_variances)
    });
    Ok((scale * terms.value, gradients))
}
