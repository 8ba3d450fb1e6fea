//! The variational process of C functions, and what is known of rows.

use super::mean::VariationalMean;
use super::reference::{ReferenceMarginals, ReferenceProcess};
use super::variational::{Coordinates, Evaluated, Family, Known, VariationalKernel};
use crate::data::{check_finite, same_width};
use crate::inducing::check_targets;
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_likelihoods::Likelihood;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::tiles::pieces;
use posterior_optim::{Parameters, Segment, Transform};

/// `Q = GP(m_Q, r)` for C functions behind a likelihood, with the process `P` that regularises it.
///
/// Its parameters are those of the mean, of each function's kernel (`function[c].…`) and of the likelihood (fixed unless [`learn_likelihood`](Self::learn_likelihood)).
#[derive(Clone, Debug)]
pub struct GeneralisedGp {
    pub(super) references: Vec<ReferenceProcess>,
    pub(super) kernels: Vec<VariationalKernel>,
    pub(super) mean: VariationalMean,
    pub(super) likelihood: Box<dyn Likelihood>,
    pub(super) coordinates: Coordinates,
    /// What the variances of each function are multiplied by (C): 1 before tempering.
    pub(super) tempering: Vec<f64>,
    /// Whether a fit moves the likelihood's own parameters.
    pub learn_likelihood: bool,
}

/// Rows to learn from: what was observed, and means that are given for each function at each row (n x C), around which functions are what is left (a network that was trained elsewhere).
#[derive(Clone, Copy, Debug)]
pub struct GeneralisedData<'a> {
    /// Inputs, targets and what goes with them.
    pub observations: &'a Observations,
    /// Added to the latent values before the likelihood sees them.
    pub given: Option<MatRef<'a, f64>>,
}

/// What does not change of some rows in training: features and marginals of the reference.
#[derive(Clone, Debug)]
pub struct KnownRows {
    pub(super) of: Vec<Known>,
    pub(super) prior_means: Vec<Mat<f64>>,
    pub(super) marginals: Vec<ReferenceMarginals>,
}

impl KnownRows {
    /// Some of them.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        let matrix = |m: &Mat<f64>| Mat::from_fn(rows.len(), m.ncols(), |i, j| m[(rows[i], j)]);
        let marginals = |m: &ReferenceMarginals| ReferenceMarginals {
            means: matrix(&m.means),
            variances: rows.iter().map(|&i| m.variances[i]).collect(),
            raised: rows.iter().map(|&i| m.raised[i]).collect(),
        };
        Self {
            of: self.of.iter().map(|known| known.select(rows)).collect(),
            prior_means: self.prior_means.iter().map(matrix).collect(),
            marginals: self.marginals.iter().map(marginals).collect(),
        }
    }

    /// Variances of the reference that were raised to their floor.
    pub(super) fn raised(&self) -> usize {
        self.marginals.iter().flat_map(|marginals| &marginals.raised).filter(|raised| **raised).count()
    }

    /// Variances that rounding had made negative.
    pub(super) fn clipped(&self) -> usize {
        self.of.iter().map(|known| known.clipped).sum()
    }
}

/// Rows of which features are computed at a time.
const BLOCK: usize = 1024;

impl GeneralisedGp {
    /// A process whose kernels begin where [`VariationalKernel::begin`] says, under noise of the references'; `references` are one process of C functions or C of one.
    ///
    /// Cost `n M²` flops for the kernels of weights, nothing of the data for the others.
    ///
    /// # Errors
    /// [`GpError::Shape`] when numbers of functions differ; [`GpError::Cholesky`].
    pub fn begin(
        references: Vec<ReferenceProcess>,
        (family, coordinates): (Family, Coordinates),
        mean: VariationalMean,
        likelihood: Box<dyn Likelihood>,
        x: MatRef<'_, f64>,
    ) -> Result<Self, GpError> {
        let each = references.iter().map(|reference| {
            let mut precision = Mat::zeros(reference.rank(), reference.rank());
            if family.is_of_weights() {
                let noise = reference.noise_variance();
                for rows in pieces(x.nrows(), BLOCK) {
                    let rows = x.subrows(rows.start, rows.len());
                    let features =
                        reference.whitening().features(reference.kernel(), reference.inducing(), rows);
                    precision += &features * features.transpose() * faer::Scale(1.0 / noise);
                }
            }
            VariationalKernel::begin(family, coordinates, reference, precision.as_ref())
        });
        let begun = each.collect::<Result<Vec<_>, _>>()?;
        let functions = likelihood.outputs();
        let kernels = match begun.as_slice() {
            [shared] => vec![shared.clone(); functions],
            _ => begun,
        };
        Self::from_parts(references, kernels, coordinates, mean, likelihood)
    }

    /// The weights of a mean of inducing points (M x C) that are best for least squares under the reference's noise: where training of such a mean begins. Cost `n M²` flops.
    ///
    /// # Errors
    /// [`GpError::Shape`] unless there is a target for each function; [`GpError::Cholesky`].
    pub fn least_squares_mean(
        reference: &ReferenceProcess,
        coordinates: Coordinates,
        data: &Observations,
    ) -> Result<Mat<f64>, GpError> {
        same_width("columns of the targets", reference.functions(), data.targets().ncols())?;
        let m = reference.rank();
        let noise = reference.noise_variance();
        let (mut precision, mut right) = (Mat::<f64>::identity(m, m), Mat::zeros(m, reference.functions()));
        for rows in pieces(data.rows(), BLOCK) {
            let x = data.inputs().subrows(rows.start, rows.len());
            let features = reference.whitening().features(reference.kernel(), reference.inducing(), x);
            let residuals = data.targets().subrows(rows.start, rows.len()) - reference.prior_means(x);
            precision += &features * features.transpose() * faer::Scale(1.0 / noise);
            right += &features * residuals * faer::Scale(1.0 / noise);
        }
        let factored = Cholesky::of(precision.as_ref(), JitterPolicy::default())?;
        let mut weights = factored.solve(right.as_ref());
        if coordinates == Coordinates::Kernel {
            reference.whitening().cholesky.solve_factor_transpose_in_place(weights.as_mut());
        }
        Ok(weights)
    }

    /// From its parts.
    ///
    /// # Errors
    /// [`GpError::Shape`] when they do not fit together.
    pub fn from_parts(
        references: Vec<ReferenceProcess>,
        kernels: Vec<VariationalKernel>,
        coordinates: Coordinates,
        mean: VariationalMean,
        likelihood: Box<dyn Likelihood>,
    ) -> Result<Self, GpError> {
        let functions = likelihood.outputs();
        same_width("variational kernels", functions, kernels.len())?;
        let of_references: usize = references.iter().map(ReferenceProcess::functions).sum();
        same_width("functions of the reference", functions, of_references)?;
        if references.len() != 1 {
            same_width("reference processes", functions, references.len())?;
        }
        let model = Self {
            references,
            kernels,
            mean,
            likelihood,
            coordinates,
            tempering: vec![1.0; functions],
            learn_likelihood: true,
        };
        for c in 0..functions {
            let rank = model.reference(c).rank();
            if let Some(root) = model.kernels[c].weight_root() {
                same_width("weights of a variational kernel", rank, root.nrows())?;
            }
        }
        match &model.mean {
            VariationalMean::Prior => {}
            VariationalMean::Constant(values) => same_width("constants", functions, values.len())?,
            VariationalMean::Inducing(weights) => {
                same_width("columns of the mean's weights", functions, weights.ncols())?;
                for c in 0..functions {
                    same_width("rows of the mean's weights", model.reference(c).rank(), weights.nrows())?;
                }
            }
            VariationalMean::Embedding(map) => {
                same_width("outputs of the network", functions, map.width())?;
                same_width("inputs of the network", model.inputs(), map.inputs())?;
            }
        }
        Ok(model)
    }

    /// D.
    pub fn inputs(&self) -> usize {
        self.references[0].inducing().ncols()
    }

    /// C.
    pub fn functions(&self) -> usize {
        self.kernels.len()
    }

    /// The process that regularises function c.
    pub fn reference(&self, c: usize) -> &ReferenceProcess {
        &self.references[self.place(c)]
    }

    /// All of these: one that the functions share, or one for each.
    pub fn references(&self) -> &[ReferenceProcess] {
        &self.references
    }

    /// Variational kernels, one for each function.
    pub fn kernels(&self) -> &[VariationalKernel] {
        &self.kernels
    }

    /// The variational mean.
    pub fn mean(&self) -> &VariationalMean {
        &self.mean
    }

    /// How observations scatter.
    pub fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }

    /// What features of inducing points are.
    pub fn coordinates(&self) -> Coordinates {
        self.coordinates
    }

    /// What the variances of each function are multiplied by (C).
    pub fn tempering(&self) -> &[f64] {
        &self.tempering
    }

    /// The same with variances multiplied by factors (C), those before replaced.
    ///
    /// # Errors
    /// [`GpError::Shape`].
    pub fn tempered(mut self, factors: Vec<f64>) -> Result<Self, GpError> {
        same_width("tempering factors", self.functions(), factors.len())?;
        self.tempering = factors;
        Ok(self)
    }

    /// Where function c stands among references (or what is known of rows).
    pub(super) fn place(&self, c: usize) -> usize {
        if self.references.len() == 1 { 0 } else { c }
    }

    /// Its column there.
    pub(super) fn column(&self, c: usize) -> usize {
        if self.references.len() == 1 { c } else { 0 }
    }

    /// What does not change of the rows of x. Cost `b M²` flops a reference.
    ///
    /// # Errors
    /// [`GpError::Shape`] or [`GpError::NotFinite`].
    pub fn known(&self, x: MatRef<'_, f64>) -> Result<KnownRows, GpError> {
        same_width("columns of the inputs", self.inputs(), x.ncols())?;
        let each = |reference: &ReferenceProcess| Known::of(reference, self.coordinates, x);
        Ok(KnownRows {
            of: self.references.iter().map(each).collect(),
            prior_means: self.references.iter().map(|reference| reference.prior_means(x)).collect(),
            marginals: self
                .references
                .iter()
                .map(|reference| reference.marginals(x))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The kernels of all functions at the rows of x, of which `known` knows what does not change.
    ///
    /// # Errors
    /// [`GpError::Cholesky`] when the matrix of a kernel of its own cannot be factored.
    pub(super) fn evaluated<'a>(
        &'a self,
        known: &'a KnownRows,
        x: MatRef<'a, f64>,
    ) -> Result<Vec<Evaluated<'a>>, GpError> {
        (0..self.functions())
            .map(|c| self.kernels[c].at(self.reference(c), &known.of[self.place(c)], x))
            .collect()
    }

    /// `m_P` of all functions, b x C.
    pub(super) fn prior_means(&self, known: &KnownRows) -> Mat<f64> {
        if let [shared] = known.prior_means.as_slice() {
            return shared.clone();
        }
        let rows = known.prior_means[0].nrows();
        Mat::from_fn(rows, self.functions(), |i, c| known.prior_means[self.place(c)][(i, self.column(c))])
    }

    /// Refuses rows that the likelihood cannot produce, and other widths.
    ///
    /// # Errors
    /// [`GpError`].
    pub fn check(&self, data: &GeneralisedData<'_>) -> Result<(), GpError> {
        let GeneralisedData { observations, given } = data;
        same_width("columns of the inputs", self.inputs(), observations.inputs().ncols())?;
        same_width("columns of the targets", self.likelihood.target_width(), observations.targets().ncols())?;
        if observations.noise_variances().is_some() && self.likelihood.with_row_noise(1.0).is_none() {
            let likelihood = self.likelihood.name();
            return Err(crate::inducing::InducingError::RowNoise { likelihood }.into());
        }
        if let Some(given) = given {
            same_width("rows of the given means", observations.rows(), given.nrows())?;
            same_width("columns of the given means", self.functions(), given.ncols())?;
            check_finite("given mean", *given)?;
        }
        check_targets(&*self.likelihood, observations.targets())?;
        Ok(())
    }

    /// The places of mean, kernels and likelihood in the natural parameters.
    pub(super) fn layout(&self) -> Vec<std::ops::Range<usize>> {
        let lengths = std::iter::once(self.mean.values().len())
            .chain(self.kernels.iter().map(|kernel| kernel.values().len()))
            .chain([self.likelihood.values().len()]);
        let mut start = 0;
        lengths
            .map(|length| {
                start += length;
                start - length..start
            })
            .collect()
    }
}

impl Parameters for GeneralisedGp {
    fn segments(&self) -> Vec<Segment> {
        let mut out = self.mean.segments();
        for (c, kernel) in self.kernels.iter().enumerate() {
            out.extend(
                kernel
                    .segments()
                    .into_iter()
                    .map(|segment| Segment { name: format!("function[{c}].{}", segment.name), ..segment }),
            );
        }
        let mut likelihood = self.likelihood.segments();
        if !self.learn_likelihood {
            likelihood.iter_mut().for_each(|segment| segment.transform = Transform::Fixed);
        }
        out.extend(likelihood);
        out
    }

    fn values(&self) -> Vec<f64> {
        let kernels = self.kernels.iter().flat_map(Parameters::values).collect();
        [self.mean.values(), kernels, self.likelihood.values()].concat()
    }

    fn set_values(&mut self, values: &[f64]) {
        let layout = self.layout();
        let (of_likelihood, rest) = layout.split_last().expect("a likelihood is always there");
        self.mean.set_values(&values[rest[0].clone()]);
        for (kernel, range) in self.kernels.iter_mut().zip(&rest[1..]) {
            kernel.set_values(&values[range.clone()]);
        }
        self.likelihood.set_values(&values[of_likelihood.clone()]);
    }
}
