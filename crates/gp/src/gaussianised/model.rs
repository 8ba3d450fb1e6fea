//! The prior, the likelihood and the pseudo-targets: everything that is learned.

use super::bound::{Bound, BoundAdjoints, bound};
use super::gaussian_labels::GaussianLabels;
use crate::data::same_width;
use crate::exact::{Plan, SeveralObservations};
use crate::inducing::InducingError;
use crate::{GpError, Mean, MeanForm, Observations, parameters};
use faer::Mat;
use posterior_kernels::{Kernel, Request, gram_lower_into, pullback_gram};
use posterior_likelihoods::OutputLikelihood;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::symmetric::mirror_lower;
use posterior_optim::{Parameters, Segment, Transform};

/// Where a pseudo-count is sought: below, variances of moments are squares of numbers that are large enough themselves; above, labels say nothing.
const PSEUDO_COUNTS: (f64, f64) = (1e-6, 1e3);

/// Latent Gaussian processes with one kernel, one for each latent value of a likelihood, whose posterior is that of regression on Gaussian pseudo-targets.
///
/// Its parameters are those of the kernel, of the means (in the units of the functions), and `pseudo_count`.
#[derive(Debug)]
pub struct GaussianisedGp {
    kernel: Box<dyn Kernel<f64>>,
    mean: Mean,
    likelihood: OutputLikelihood,
    matching: Matching,
    pseudo_count: PseudoCount,
    scale: f64,
    /// What to do when a matrix is not numerically positive definite.
    pub jitter: JitterPolicy,
}

#[derive(Clone, Debug)]
struct PseudoCount(f64);

impl Parameters for PseudoCount {
    fn segments(&self) -> Vec<Segment> {
        let (lower, upper) = PSEUDO_COUNTS;
        let transform = Transform::LogBounded { lower, upper };
        vec![Segment { name: "pseudo_count".into(), shape: vec![1], transform }]
    }

    fn values(&self) -> Vec<f64> {
        vec![self.0]
    }

    fn set_values(&mut self, values: &[f64]) {
        self.0 = values[0];
    }
}

impl Clone for GaussianisedGp {
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone_box(),
            mean: self.mean.clone(),
            likelihood: self.likelihood.clone(),
            matching: self.matching,
            pseudo_count: self.pseudo_count.clone(),
            scale: self.scale,
            jitter: self.jitter,
        }
    }
}

/// A bound with its gradient.
#[derive(Clone, Debug)]
pub struct GaussianisedBound {
    /// The bound and the posterior at the rows.
    pub bound: Bound,
    /// Its gradient in the natural values, in the order of the model's parameters; empty where it was not asked for.
    pub gradient: Vec<f64>,
}

impl GaussianisedGp {
    /// For inputs of dimension `inputs`, from pseudo-targets with this matching and, to begin with, this pseudo-count.
    ///
    /// # Errors
    /// [`GpError::GaussianLabels`] unless the pseudo-count is between 1e-6 and 1000 and the likelihood has pseudo-targets of this matching.
    pub fn new(
        kernel: Box<dyn Kernel<f64>>,
        mean: MeanForm,
        likelihood: OutputLikelihood,
        (matching, pseudo_count): (Matching, f64),
        inputs: usize,
    ) -> Result<Self, GpError> {
        let gaussianised = Gaussianised::new(matching, pseudo_count)?;
        posterior_likelihoods::gaussianised::LabelApproximation::new(&likelihood, &gaussianised)?;
        let (lower, upper) = PSEUDO_COUNTS;
        if !(lower..=upper).contains(&pseudo_count) {
            return Err(GpError::PseudoCount { value: pseudo_count, lower, upper });
        }
        let mean = Mean::new(mean, inputs, likelihood.outputs());
        let (pseudo_count, jitter) = (PseudoCount(pseudo_count), JitterPolicy::default());
        Ok(Self { kernel, mean, likelihood, matching, pseudo_count, scale: 1.0, jitter })
    }

    /// With functions that are so many times those of the kernel: what a standard unit of its variances is.
    pub fn with_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// The covariance function of all latent functions, in standard units.
    pub fn kernel(&self) -> &dyn Kernel<f64> {
        &*self.kernel
    }

    /// The prior means, one for each latent function, in the functions' units.
    pub fn mean(&self) -> &Mean {
        &self.mean
    }

    /// The prior means, to be set.
    pub fn mean_mut(&mut self) -> &mut Mean {
        &mut self.mean
    }

    /// The likelihood.
    pub fn likelihood(&self) -> &OutputLikelihood {
        &self.likelihood
    }

    /// What a standard unit is.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The pseudo-targets of one observation.
    ///
    /// # Errors
    /// [`GpError::GaussianLabels`] for a pseudo-count that was set to what it cannot be.
    pub fn gaussianised(&self) -> Result<Gaussianised, GpError> {
        Ok(Gaussianised::new(self.matching, self.pseudo_count.0)?)
    }

    /// What an evaluation takes, for so many rows.
    pub fn plan(&self, rows: usize) -> Plan {
        Plan::gaussianised(rows, self.mean.input_dimension(), self.mean.target_count())
    }

    /// What regression learns the functions from at the model's pseudo-count: pseudo-targets less prior means, in standard units.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn observations(&self, data: &Observations) -> Result<SeveralObservations, GpError> {
        self.check(data)?;
        let GaussianLabels { mut targets, mut variances } =
            GaussianLabels::of(&self.likelihood, &self.gaussianised()?, data)?;
        targets -= self.mean.evaluate(data.inputs());
        let scale = self.scale;
        targets.col_iter_mut().for_each(|column| column.iter_mut().for_each(|t| *t /= scale));
        variances.col_iter_mut().for_each(|column| column.iter_mut().for_each(|v| *v /= scale * scale));
        SeveralObservations::new(data.inputs().to_owned(), targets, variances)
    }

    /// The bound, with its gradient where that is wanted. Cost and memory as [`bound`](super::bound()), and one pass over the kernel matrix with one back.
    ///
    /// # Errors
    /// [`GpError::Shape`], a target that the likelihood cannot produce, [`GpError::Cholesky`].
    pub fn evaluate(&self, data: &Observations, with_gradient: bool) -> Result<GaussianisedBound, GpError> {
        self.check(data)?;
        let n = data.rows();
        let square = self.scale * self.scale;
        let mut kernel = Mat::zeros(n, n);
        gram_lower_into(self.kernel(), data.inputs(), kernel.as_mut());
        kernel.col_iter_mut().for_each(|column| column.iter_mut().for_each(|k| *k *= square));
        mirror_lower(kernel.as_mut());
        let gaussianised = self.gaussianised()?;
        let gaussian_labels = GaussianLabels::of(&self.likelihood, &gaussianised, data)?;
        let prior = self.mean.evaluate(data.inputs());
        let observed = (&*self.likelihood, data);
        let (bound, adjoints) =
            bound(kernel.as_ref(), &prior, &gaussian_labels, observed, (self.jitter, with_gradient))?;
        let gradient = match adjoints {
            Some(adjoints) => {
                let slopes = GaussianLabels::slopes(&self.likelihood, &gaussianised, data)?;
                self.gradient(data, &adjoints, &slopes)
            }
            None => Vec::new(),
        };
        Ok(GaussianisedBound { bound, gradient })
    }

    fn gradient(&self, data: &Observations, adjoints: &BoundAdjoints, slopes: &GaussianLabels) -> Vec<f64> {
        let square = self.scale * self.scale;
        let request = Request { parameters: true, x: false, z: false };
        let adjoint = &adjoints.kernel;
        let tile = |rows: std::ops::Range<usize>,
                    columns: std::ops::Range<usize>,
                    mut tile: faer::MatMut<'_, f64>| {
            for (b, j) in columns.enumerate() {
                for (a, i) in rows.clone().enumerate() {
                    tile[(a, b)] = square * if i >= j { adjoint[(i, j)] } else { adjoint[(j, i)] };
                }
            }
        };
        let mut out = pullback_gram(self.kernel(), data.inputs(), &tile, request).parameters;
        out.extend(self.mean.pullback(data.inputs(), adjoints.means.as_ref()));
        let (own, changes) = (&adjoints.gaussian_labels, slopes);
        let along = |a: &Mat<f64>, b: &Mat<f64>| -> f64 {
            let column = |k| a.col_as_slice(k).iter().zip(b.col_as_slice(k)).map(|(a, b)| a * b).sum::<f64>();
            (0..a.ncols()).map(column).sum()
        };
        out.push(along(&own.targets, &changes.targets) + along(&own.variances, &changes.variances));
        out
    }

    /// Whether the data fit the model; looks at every target once.
    pub(super) fn check(&self, data: &Observations) -> Result<(), GpError> {
        same_width("columns of the inputs", self.mean.input_dimension(), data.inputs().ncols())?;
        same_width("columns of the targets", self.likelihood.target_width(), data.targets().ncols())?;
        if data.noise_variances().is_some() {
            return Err(InducingError::RowNoise { likelihood: self.likelihood.name() }.into());
        }
        Ok(crate::inducing::check_targets(&*self.likelihood, data.targets())?)
    }
}

impl Parameters for GaussianisedGp {
    fn segments(&self) -> Vec<Segment> {
        parameters::segments([&*self.kernel, &self.mean, &self.pseudo_count])
    }

    fn values(&self) -> Vec<f64> {
        parameters::values([&*self.kernel, &self.mean, &self.pseudo_count])
    }

    fn set_values(&mut self, values: &[f64]) {
        parameters::set_values([&mut *self.kernel, &mut self.mean, &mut self.pseudo_count], values);
    }
}
