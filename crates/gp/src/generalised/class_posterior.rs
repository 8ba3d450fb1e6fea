//! **Exact processes of classes**: one process for each class, conditioned on targets that are 1 at its points and 0 at the others. The class of a point is that of the largest latent value but for errors, so that its probability is that of
//! one of several independent normals being the largest.
//!
//! This is no posterior given labels, which has no closed form: columns of zeros and ones are regressed on, each under a kernel, a mean and a noise of its own. Source: spec `generalised_variational_inference`, section 2.3.

use crate::data::same_width;
use crate::exact::{ExactGp, ExactPosterior};
use crate::inducing::{LatentMarginals, check_targets};
use crate::{GpError, Observations, Posterior};
use faer::{Mat, MatRef};
use posterior_likelihoods::RobustMax;

/// Targets of each class at the points x (n x D) with these classes: 1 where it is theirs, 0 elsewhere.
///
/// # Errors
/// [`GpError`]: another number of labels than rows, labels beyond the classes.
pub(super) fn one_hot(
    x: MatRef<'_, f64>,
    labels: &[usize],
    likelihood: &RobustMax,
) -> Result<Vec<Observations>, GpError> {
    let n = x.nrows();
    same_width("labels, one for each row", n, labels.len())?;
    check_targets(likelihood, Mat::from_fn(n, 1, |i, _| labels[i] as f64).as_ref())?;
    (0..likelihood.classes())
        .map(|class| {
            let targets = Mat::from_fn(n, 1, |i, _| if labels[i] == class { 1.0 } else { 0.0 });
            Observations::new(x.to_owned(), targets, None)
        })
        .collect()
}

/// Processes of classes given points and their classes.
#[derive(Clone, Debug)]
pub struct ClassPosterior {
    posteriors: Vec<ExactPosterior>,
    likelihood: RobustMax,
}

impl ClassPosterior {
    /// One process of one target for each class, at the points x (n x D) with these classes, from 0. Cost `J n³/3`; memory `J n²` numbers.
    ///
    /// # Errors
    /// [`GpError`]: another number of processes than classes or of labels than rows, labels beyond the classes, matrices that cannot be factored.
    pub fn new(
        models: Vec<ExactGp>,
        x: MatRef<'_, f64>,
        labels: &[usize],
        likelihood: RobustMax,
    ) -> Result<Self, GpError> {
        same_width("processes, one for each class", likelihood.classes(), models.len())?;
        let data = one_hot(x, labels, &likelihood)?;
        let posteriors = models
            .into_iter()
            .zip(data)
            .map(|(model, own)| model.condition(own))
            .collect::<Result<_, _>>()?;
        Ok(Self { posteriors, likelihood })
    }

    /// The process of each class.
    pub fn posteriors(&self) -> &[ExactPosterior] {
        &self.posteriors
    }

    /// Which errors labels have.
    pub fn likelihood(&self) -> &RobustMax {
        &self.likelihood
    }

    /// Latent values of all classes at the rows of x (k x D). Cost `J k n²`.
    ///
    /// # Errors
    /// [`GpError`] for another width or values that are not finite.
    pub fn latent(&self, x: MatRef<'_, f64>) -> Result<LatentMarginals, GpError> {
        let (k, classes) = (x.nrows(), self.posteriors.len());
        let mut out =
            LatentMarginals { mean: Mat::zeros(k, classes), variance: Mat::zeros(k, classes), clipped: 0 };
        for (class, posterior) in self.posteriors.iter().enumerate() {
            let found = posterior.predict(x)?;
            out.clipped += found.clipped;
            out.mean.col_as_slice_mut(class).copy_from_slice(found.mean.col_as_slice(0));
            out.variance.col_as_slice_mut(class).copy_from_slice(&found.latent_variance);
        }
        Ok(out)
    }

    /// Probabilities of all classes at the rows of x (k x D), k x J; those of a row sum to 1.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn probabilities(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        let LatentMarginals { mean, variance, .. } = self.latent(x)?;
        let classes = self.posteriors.len();
        let mut out = Mat::zeros(x.nrows(), classes);
        let mut row = vec![0.0; classes];
        for i in 0..x.nrows() {
            let of = |from: &Mat<f64>| (0..classes).map(|c| from[(i, c)]).collect::<Vec<f64>>();
            self.likelihood.probabilities(&of(&mean), &of(&variance), &mut row);
            (0..classes).for_each(|c| out[(i, c)] = row[c]);
        }
        Ok(out)
    }
}
