//! The families, their parameters, and where they begin.

use super::super::reference::ReferenceProcess;
use super::known::Coordinates;
use crate::GpError;
use faer::{Mat, MatRef};
use posterior_kernels::Kernel;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::triangular::root_of_inverse;
use posterior_optim::{Parameters, Segment, Transform};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Families of variational kernels; see the table above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Family {
    /// Any covariance of the weights of inducing points
    #[default]
    Cholesky,
    /// Uncorrelated weights of inducing points
    Diagonal,
    /// Any covariance of the weights with a positive root
    Log,
    /// What inducing points leave of the prior, and a kernel of its own
    Kernelised,
    /// A kernel of its own, conditioned on the inducing points
    SparsePosterior,
    /// The same with the inverse of the prior's matrix, which stays
    FixedSparsePosterior,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Cholesky,
        Self::Diagonal,
        Self::Log,
        Self::Kernelised,
        Self::SparsePosterior,
        Self::FixedSparsePosterior,
    ];

    /// Whether what is trained is a distribution of the weights of inducing points: only then has the process a finite Kullback-Leibler divergence from its prior.
    pub fn is_of_weights(self) -> bool {
        matches!(self, Self::Cholesky | Self::Diagonal | Self::Log)
    }

    /// Numbers that it trains for each function, given inducing points and columns: of a kernel of its own a lengthscale for each column and what few scales it may have.
    pub fn parameters(self, inducing_points: usize, inputs: usize) -> usize {
        match self {
            Self::Cholesky => inducing_points * (inducing_points + 1) / 2,
            Self::Diagonal => inducing_points,
            Self::Log => inducing_points * inducing_points,
            Self::Kernelised | Self::SparsePosterior | Self::FixedSparsePosterior => inputs + 4,
        }
    }

    /// What it is, in words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Cholesky => "any covariance of weights of inducing points",
            Self::Diagonal => "uncorrelated weights of inducing points",
            Self::Log => "weights of inducing points, with a positive root",
            Self::Kernelised => "what inducing points leave of the prior, and a kernel of its own",
            Self::SparsePosterior => "a kernel of its own, conditioned on inducing points",
            Self::FixedSparsePosterior => "a kernel of its own, conditioned by the prior's matrix",
        }
    }
}

impl fmt::Display for Family {
    /// The name that options and files have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One function's covariance under the variational process.
#[derive(Debug)]
pub struct VariationalKernel {
    pub(super) form: Form,
}

/// What is trained.
#[derive(Debug)]
pub(super) enum Form {
    /// S, lower triangular.
    Root(Mat<f64>),
    /// v.
    Variances(Vec<f64>),
    /// G.
    Exponents(Mat<f64>),
    /// `r₀` beside what inducing points leave.
    Kernelised(Box<dyn Kernel<f64>>),
    /// `r₀`, conditioned by its own matrix or by the prior's.
    Conditioned { kernel: Box<dyn Kernel<f64>>, fixed: bool },
}

impl Clone for VariationalKernel {
    fn clone(&self) -> Self {
        let form = match &self.form {
            Form::Root(root) => Form::Root(root.clone()),
            Form::Variances(variances) => Form::Variances(variances.clone()),
            Form::Exponents(exponents) => Form::Exponents(exponents.clone()),
            Form::Kernelised(kernel) => Form::Kernelised(kernel.clone_box()),
            Form::Conditioned { kernel, fixed } => {
                Form::Conditioned { kernel: kernel.clone_box(), fixed: *fixed }
            }
        };
        Self { form }
    }
}

/// Least exponent of the log family where its root would have entries that are not positive.
const LEAST: f64 = 1e-10;

impl VariationalKernel {
    /// Where training begins: `r₀ = k`, and weights with the covariance `B⁻¹` (whitened; `Ψ⁻¹` in the kernel's coordinates) that they have given all rows under Gaussian noise of variance `noise`, `precision` being
    /// the sum over rows of `φ φᵀ / noise` in whitened coordinates (M x M).
    ///
    /// # Errors
    /// [`GpError::Cholesky`] when a matrix cannot be factored.
    pub fn begin(
        family: Family,
        coordinates: Coordinates,
        reference: &ReferenceProcess,
        precision: MatRef<'_, f64>,
    ) -> Result<Self, GpError> {
        if !family.is_of_weights() {
            return Ok(Self::blank(family, reference));
        }
        let m = reference.rank();
        let posterior = Mat::from_fn(m, m, |i, j| precision[(i, j)] + f64::from(u8::from(i == j)));
        let mut root = root_of_inverse(posterior.as_ref())?;
        if coordinates == Coordinates::Kernel {
            // Ψ⁻¹ = L⁻ᵀ B⁻¹ L⁻¹
            reference.whitening().cholesky.solve_factor_transpose_in_place(root.as_mut());
            let covariance = &root * root.transpose();
            root = lower(&Cholesky::of(covariance.as_ref(), JitterPolicy::default())?);
        }
        let form = match family {
            Family::Cholesky => Form::Root(root),
            Family::Diagonal => Form::Variances((0..m).map(|i| root.row(i).squared_norm_l2()).collect()),
            _ => Form::Exponents(Mat::from_fn(m, m, |i, j| root[(i, j)].max(LEAST).ln())),
        };
        Ok(Self { form })
    }

    /// One of a family whose parameters are yet to be set: weights of no variance, or the prior's own kernel.
    pub fn blank(family: Family, reference: &ReferenceProcess) -> Self {
        let m = reference.rank();
        let own = || reference.kernel().clone_box();
        let form = match family {
            Family::Cholesky => Form::Root(Mat::zeros(m, m)),
            Family::Diagonal => Form::Variances(vec![0.0; m]),
            Family::Log => Form::Exponents(Mat::zeros(m, m)),
            Family::Kernelised => Form::Kernelised(own()),
            Family::SparsePosterior => Form::Conditioned { kernel: own(), fixed: false },
            Family::FixedSparsePosterior => Form::Conditioned { kernel: own(), fixed: true },
        };
        Self { form }
    }

    /// Weights with a covariance `S Sᵀ` (M x M; what stands above the diagonal is not read), positive on the diagonal.
    pub fn with_root(root: MatRef<'_, f64>) -> Self {
        Self {
            form: Form::Root(Mat::from_fn(root.nrows(), root.nrows(), |i, j| {
                if i >= j { root[(i, j)] } else { 0.0 }
            })),
        }
    }

    /// Uncorrelated weights with the given variances (M).
    pub fn with_variances(variances: Vec<f64>) -> Self {
        Self { form: Form::Variances(variances) }
    }

    /// Weights with the root `exp(G)`, G of M x M.
    pub fn with_exponents(exponents: Mat<f64>) -> Self {
        Self { form: Form::Exponents(exponents) }
    }

    /// A kernel of its own beside what inducing points leave.
    pub fn kernelised(kernel: Box<dyn Kernel<f64>>) -> Self {
        Self { form: Form::Kernelised(kernel) }
    }

    /// A kernel of its own, conditioned on the inducing points by its own matrix, or by the prior's where that is `fixed`.
    pub fn conditioned(kernel: Box<dyn Kernel<f64>>, fixed: bool) -> Self {
        Self { form: Form::Conditioned { kernel, fixed } }
    }

    /// Which family it is of.
    pub fn family(&self) -> Family {
        match &self.form {
            Form::Root(_) => Family::Cholesky,
            Form::Variances(_) => Family::Diagonal,
            Form::Exponents(_) => Family::Log,
            Form::Kernelised(_) => Family::Kernelised,
            Form::Conditioned { fixed: false, .. } => Family::SparsePosterior,
            Form::Conditioned { fixed: true, .. } => Family::FixedSparsePosterior,
        }
    }

    /// A root of the covariance of the weights, where weights are what is trained.
    pub fn weight_root(&self) -> Option<Mat<f64>> {
        match &self.form {
            Form::Root(root) => Some(root.clone()),
            Form::Variances(v) => {
                Some(Mat::from_fn(v.len(), v.len(), |i, j| if i == j { v[i].sqrt() } else { 0.0 }))
            }
            Form::Exponents(g) => Some(exponentials(g)),
            Form::Kernelised(_) | Form::Conditioned { .. } => None,
        }
    }

    /// The gradient in its natural parameters of what says `adjoint` (M x M) of [`Self::weight_root`], added.
    pub(crate) fn pull_back_root(&self, adjoint: MatRef<'_, f64>, gradient: &mut [f64]) {
        match &self.form {
            Form::Root(root) => {
                each_lower(root.nrows(), |position, i, j| gradient[position] += adjoint[(i, j)]);
            }
            Form::Variances(v) => {
                for (i, (g, v)) in gradient.iter_mut().zip(v).enumerate() {
                    *g += 0.5 * adjoint[(i, i)] / v.sqrt();
                }
            }
            Form::Exponents(g) => {
                let m = g.nrows();
                for j in 0..m {
                    for i in 0..m {
                        gradient[j * m + i] += adjoint[(i, j)] * g[(i, j)].exp();
                    }
                }
            }
            Form::Kernelised(_) | Form::Conditioned { .. } => {}
        }
    }
}

/// `E = exp(G)`.
pub(super) fn exponentials(exponents: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(exponents.nrows(), exponents.ncols(), |i, j| exponents[(i, j)].exp())
}

/// The positions of a packed lower triangle, row by row, with their indices.
pub(super) fn each_lower(m: usize, mut visit: impl FnMut(usize, usize, usize)) {
    for i in 0..m {
        for j in 0..=i {
            visit(i * (i + 1) / 2 + j, i, j);
        }
    }
}

/// The factor without what stands above its diagonal.
fn lower(factored: &Cholesky) -> Mat<f64> {
    let factor = factored.factor();
    Mat::from_fn(factor.nrows(), factor.nrows(), |i, j| if i >= j { factor[(i, j)] } else { 0.0 })
}

impl Parameters for VariationalKernel {
    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str, shape, transform| vec![Segment { name: name.into(), shape, transform }];
        match &self.form {
            Form::Root(root) => {
                let m = root.nrows();
                segment("weight_root", vec![m, m], Transform::Triangular)
            }
            Form::Variances(v) => segment("weight_variances", vec![v.len()], Transform::Log),
            Form::Exponents(g) => {
                segment("weight_exponents", vec![g.nrows(), g.nrows()], Transform::Identity)
            }
            Form::Kernelised(kernel) | Form::Conditioned { kernel, .. } => kernel.segments(),
        }
    }

    fn values(&self) -> Vec<f64> {
        match &self.form {
            Form::Root(root) => {
                let mut out = vec![0.0; root.nrows() * (root.nrows() + 1) / 2];
                each_lower(root.nrows(), |position, i, j| out[position] = root[(i, j)]);
                out
            }
            Form::Variances(v) => v.clone(),
            Form::Exponents(g) => (0..g.ncols()).flat_map(|j| g.col_as_slice(j).iter().copied()).collect(),
            Form::Kernelised(kernel) | Form::Conditioned { kernel, .. } => kernel.values(),
        }
    }

    fn set_values(&mut self, values: &[f64]) {
        match &mut self.form {
            Form::Root(root) => {
                assert_eq!(values.len(), root.nrows() * (root.nrows() + 1) / 2, "a packed triangle");
                each_lower(root.nrows(), |position, i, j| root[(i, j)] = values[position]);
            }
            Form::Variances(v) => v.copy_from_slice(values),
            Form::Exponents(g) => {
                let m = g.nrows();
                g.copy_from(MatRef::from_column_major_slice(values, m, m));
            }
            Form::Kernelised(kernel) | Form::Conditioned { kernel, .. } => kernel.set_values(values),
        }
    }
}
