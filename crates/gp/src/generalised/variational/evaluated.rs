//! Variances and covariances at some rows, with the way back to the parameters.

use super::super::reference::ReferenceProcess;
use super::conditioned::Conditioned;
use super::kernel::{Form, VariationalKernel, each_lower, exponentials};
use super::known::{Known, residual_covariance};
use crate::GpError;
use faer::{Mat, MatRef};
use posterior_kernels::{Kernel, Request, diagonal, gram, pullback_diagonal, pullback_gram};
use posterior_optim::Parameters;

/// Variances are not below so many times the kernel's own, nor those of P below so many times their mean at the inducing points.
pub(in crate::generalised) const FLOOR: f64 = 1e-10;

/// A variational kernel at some rows.
#[derive(Debug)]
pub struct Evaluated<'a> {
    of: &'a VariationalKernel,
    reference: &'a ReferenceProcess,
    known: &'a Known,
    x: MatRef<'a, f64>,
    /// `r(x, x)` (b), not below the floor.
    pub variances: Vec<f64>,
    /// Rows that were raised to it; they have no slope.
    floored: Vec<bool>,
    behind: Behind<'a>,
}

/// What the way back needs.
#[derive(Debug)]
enum Behind<'a> {
    /// `Sᵀ φ`, and S where it is not what is stored.
    Rooted {
        rooted: Mat<f64>,
        exponentials: Option<Mat<f64>>,
    },
    Nothing,
    Conditioned(Conditioned<'a>),
}

impl VariationalKernel {
    /// At the rows of x (b x D), of which `known` knows what does not change. Cost: see the table of families.
    ///
    /// # Errors
    /// [`GpError::Cholesky`] when the matrix of a kernel of its own cannot be factored.
    pub fn at<'a>(
        &'a self,
        reference: &'a ReferenceProcess,
        known: &'a Known,
        x: MatRef<'a, f64>,
    ) -> Result<Evaluated<'a>, GpError> {
        let features = known.features.as_ref();
        let squares =
            |m: &Mat<f64>| -> Vec<f64> { (0..m.ncols()).map(|i| m.col(i).squared_norm_l2()).collect() };
        let and_residual = |own: Vec<f64>| -> Vec<f64> {
            own.iter().zip(&known.residual).map(|(own, residual)| own + residual).collect()
        };
        let (mut variances, scale, behind) = match &self.form {
            Form::Root(root) => {
                let rooted = root.transpose() * features;
                let behind = Behind::Rooted { rooted, exponentials: None };
                let Behind::Rooted { rooted, .. } = &behind else { unreachable!("it was just made") };
                (and_residual(squares(rooted)), None, behind)
            }
            Form::Exponents(g) => {
                let e = exponentials(g);
                let rooted = e.transpose() * features;
                (and_residual(squares(&rooted)), None, Behind::Rooted { rooted, exponentials: Some(e) })
            }
            Form::Variances(v) => {
                let own = |i: usize| -> f64 { features.col(i).iter().zip(v).map(|(f, v)| v * f * f).sum() };
                (and_residual((0..features.ncols()).map(own).collect()), None, Behind::Nothing)
            }
            Form::Kernelised(kernel) => {
                let own = diagonal(&**kernel, x);
                (and_residual(own.clone()), Some(own), Behind::Nothing)
            }
            Form::Conditioned { kernel, fixed } => {
                let conditioned = Conditioned::new(&**kernel, *fixed, reference, x)?;
                let own = diagonal(&**kernel, x);
                let explained = squares(&conditioned.features);
                let variances = own.iter().zip(explained).map(|(own, explained)| own - explained);
                (variances.collect(), Some(own), Behind::Conditioned(conditioned))
            }
        };
        let scale = scale.as_ref().unwrap_or(&known.prior);
        let mut floored = vec![false; variances.len()];
        let least = reference.least_variance();
        for (i, (v, floored)) in variances.iter_mut().zip(&mut floored).enumerate() {
            // Where the prior has no variance of its own, P's is raised to the same.
            let floor = if known.prior[i] < least { least } else { FLOOR * scale[i] };
            if *v < floor {
                (*v, *floored) = (floor, true);
            }
        }
        Ok(Evaluated { of: self, reference, known, x, variances, floored, behind })
    }
}

impl Evaluated<'_> {
    /// Rows whose variance was raised to the floor.
    pub fn floored(&self) -> usize {
        self.floored.iter().filter(|floored| **floored).count()
    }

    /// What was added to the diagonal of a matrix of its own, relative to its mean.
    pub fn relative_jitter(&self) -> f64 {
        match &self.behind {
            Behind::Conditioned(conditioned) => conditioned.relative_jitter(),
            _ => 0.0,
        }
    }

    /// Adds to `gradient` (natural parameters) what slopes in the variances (b) say. Cost as [`VariationalKernel::at`].
    pub fn pull_back(&self, slopes: &[f64], gradient: &mut [f64]) {
        let mut slopes = slopes.to_vec();
        slopes.iter_mut().zip(&self.floored).filter(|(_, floored)| **floored).for_each(|(s, _)| *s = 0.0);
        let weighted = |m: &Mat<f64>, times: f64| {
            Mat::from_fn(m.nrows(), m.ncols(), |i, j| times * slopes[j] * m[(i, j)])
        };
        match (&self.of.form, &self.behind) {
            (Form::Root(_) | Form::Exponents(_), Behind::Rooted { rooted, exponentials }) => {
                let adjoint = &self.known.features * weighted(rooted, 2.0).transpose();
                self.add_root(&adjoint, exponentials.as_ref(), gradient);
            }
            (Form::Variances(_), _) => {
                for (i, slope) in slopes.iter().enumerate() {
                    let features = self.known.features.col_as_slice(i);
                    gradient.iter_mut().zip(features).for_each(|(g, f)| *g += slope * f * f);
                }
            }
            (Form::Kernelised(kernel), _) => self.pull_back_diagonal(&**kernel, &slopes, gradient),
            (Form::Conditioned { kernel, .. }, Behind::Conditioned(conditioned)) => {
                self.pull_back_diagonal(&**kernel, &slopes, gradient);
                let adjoint = weighted(&conditioned.features, -2.0);
                let z = self.reference.inducing();
                conditioned.pull_back(&**kernel, z, self.x, adjoint, gradient);
            }
            (Form::Root(_) | Form::Exponents(_) | Form::Conditioned { .. }, _) => {
                unreachable!("what is behind belongs to the form")
            }
        }
    }

    fn pull_back_diagonal(&self, kernel: &dyn Kernel<f64>, slopes: &[f64], gradient: &mut [f64]) {
        let own = pullback_diagonal(kernel, self.x, slopes, Request::PARAMETERS);
        gradient.iter_mut().zip(own.parameters).for_each(|(g, p)| *g += p);
    }

    fn add_root(&self, adjoint: &Mat<f64>, exponentials: Option<&Mat<f64>>, gradient: &mut [f64]) {
        let m = adjoint.nrows();
        match exponentials {
            None => each_lower(m, |position, i, j| gradient[position] += adjoint[(i, j)]),
            Some(e) => {
                for j in 0..m {
                    for i in 0..m {
                        gradient[j * m + i] += adjoint[(i, j)] * e[(i, j)];
                    }
                }
            }
        }
    }

    /// `r` of all pairs of rows, b x b; what rounding or (5.7) made of its diagonal is not raised. Cost `b² M`.
    pub fn covariance(&self) -> Mat<f64> {
        let residual = self.has_residual().then(|| residual_covariance(self.reference, self.x));
        self.covariance_beside(residual.as_ref())
    }

    /// Whether what inducing points leave of the prior is a part of it.
    pub(in crate::generalised) fn has_residual(&self) -> bool {
        !matches!(self.of.form, Form::Conditioned { .. })
    }

    /// [`Self::covariance`], given [`residual_covariance`] where that is a part of it: functions that share a reference share this.
    pub(in crate::generalised) fn covariance_beside(&self, residual: Option<&Mat<f64>>) -> Mat<f64> {
        let own = self.own_covariance();
        match residual {
            Some(residual) => own + residual,
            None => own,
        }
    }

    /// The part that is trained.
    fn own_covariance(&self) -> Mat<f64> {
        let features = &self.known.features;
        match (&self.of.form, &self.behind) {
            (_, Behind::Rooted { rooted, .. }) => rooted.transpose() * rooted,
            (Form::Variances(v), _) => {
                let scaled = Mat::from_fn(v.len(), features.ncols(), |i, j| v[i] * features[(i, j)]);
                features.transpose() * &scaled
            }
            (Form::Kernelised(kernel), _) => gram(&**kernel, self.x),
            (Form::Conditioned { kernel, .. }, Behind::Conditioned(conditioned)) => {
                gram(&**kernel, self.x) - conditioned.features.transpose() * &conditioned.features
            }
            _ => unreachable!("what is behind belongs to the form"),
        }
    }

    /// Adds to `gradient` what a symmetric adjoint of [`Self::covariance`] (b x b) says.
    pub fn pull_back_covariance(&self, adjoint: MatRef<'_, f64>, gradient: &mut [f64]) {
        let features = &self.known.features;
        let of_gram = |kernel: &dyn Kernel<f64>, gradient: &mut [f64]| {
            let own = pullback_gram(
                kernel,
                self.x,
                &|rows, columns, mut tile| {
                    tile.copy_from(adjoint.submatrix(rows.start, columns.start, rows.len(), columns.len()));
                },
                Request::PARAMETERS,
            );
            gradient.iter_mut().zip(own.parameters).for_each(|(g, p)| *g += p);
        };
        match (&self.of.form, &self.behind) {
            (_, Behind::Rooted { rooted, exponentials }) => {
                let own = features * adjoint * rooted.transpose() * faer::Scale(2.0);
                self.add_root(&own, exponentials.as_ref(), gradient);
            }
            (Form::Variances(_), _) => {
                let through = features * adjoint;
                for (i, g) in gradient.iter_mut().enumerate() {
                    *g += through.row(i).iter().zip(features.row(i).iter()).map(|(a, f)| a * f).sum::<f64>();
                }
            }
            (Form::Kernelised(kernel), _) => of_gram(&**kernel, gradient),
            (Form::Conditioned { kernel, .. }, Behind::Conditioned(conditioned)) => {
                of_gram(&**kernel, gradient);
                let own = &conditioned.features * adjoint * faer::Scale(-2.0);
                conditioned.pull_back(&**kernel, self.reference.inducing(), self.x, own, gradient);
            }
            _ => unreachable!("what is behind belongs to the form"),
        }
    }

    /// Natural parameters.
    pub fn parameter_count(&self) -> usize {
        self.of.values().len()
    }
}
