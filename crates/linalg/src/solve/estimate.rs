//! Traces and log-determinants from products with random vectors.

use super::vectors::column_dots;
use super::{Lanczos, SolveError, Tridiagonal};
use crate::Real;
use crate::operator::LinearOperator;
use crate::random::Streams;
use faer::Mat;
use rand::RngExt;

/// A Monte-Carlo mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean over the probes.
    pub mean: f64,
    /// Its standard error; NaN from a single probe.
    pub standard_error: f64,
}

impl Estimate {
    /// Mean and standard error of `values`.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Self { mean, standard_error: (squares / (count - 1.0) / count).sqrt() }
    }
}

/// Random signs, n x probes.
fn signs<T: Real>(rows: usize, probes: usize, seed: u64) -> Mat<T> {
    let mut rng = Streams::new(seed).stream("linalg/probes");
    Mat::from_fn(rows, probes, |_, _| if rng.random::<bool>() { T::ONE } else { -T::ONE })
}

fn at_least_one(what: &'static str, value: usize) -> Result<(), SolveError> {
    let needed = "at least 1";
    if value == 0 { Err(SolveError::Setting { what, value: 0.0, needed }) } else { Ok(()) }
}

/// `tr A = E[zᵀ A z]` with random signs z (Hutchinson 1990). Cost: one product with `probes` vectors.
///
/// # Errors
/// [`SolveError::Setting`] without probes.
pub fn trace<T: Real>(
    matrix: &dyn LinearOperator<T>,
    probes: usize,
    seed: u64,
) -> Result<Estimate, SolveError> {
    at_least_one("the number of probes", probes)?;
    let z = signs::<T>(matrix.shape().0, probes, seed);
    Ok(Estimate::of(&column_dots(&z, &matrix.multiply(z.as_ref()))))
}

/// `log det A` of a positive-definite matrix by stochastic Lanczos quadrature: [`trace_of_function`] of the logarithm.
///
/// # Errors
/// As [`trace_of_function`].
pub fn log_determinant<T: Real>(
    matrix: &dyn LinearOperator<T>,
    probes: usize,
    steps: usize,
    seed: u64,
) -> Result<Estimate, SolveError> {
    // A matrix that is definite only up to rounding may show Ritz values at 0; they are raised to the smallest normal number.
    trace_of_function(matrix, |e| e.max(f64::MIN_POSITIVE).ln(), probes, steps, seed)
}

/// `tr f(A)` of a symmetric matrix by stochastic Lanczos quadrature: [`SpectralMeasure::trace`] of a measure that is used once.
///
/// # Errors
/// As [`SpectralMeasure::of`].
pub fn trace_of_function<T: Real>(
    matrix: &dyn LinearOperator<T>,
    f: impl Fn(f64) -> f64,
    probes: usize,
    steps: usize,
    seed: u64,
) -> Result<Estimate, SolveError> {
    Ok(SpectralMeasure::of(matrix, probes, steps, seed)?.trace(f))
}

/// How the spectrum of a symmetric matrix weighs on random vectors: for each probe the nodes and weights of the Gauss rule that the Lanczos process gives, from which the trace of any
/// function of the matrix follows without further products.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectralMeasure {
    /// Rows of the matrix.
    dimension: usize,
    /// Of each probe: nodes with their weights, which sum to 1.
    rules: Vec<Vec<(f64, f64)>>,
}

impl SpectralMeasure {
    /// The measure by `steps` of the Lanczos process from each of `probes` random sign vectors, fully reorthogonalised.
    ///
    /// Cost: `steps` products with `probes` vectors, `4 n steps²` flops a probe; memory `n steps probes` numbers.
    /// Source: Ubaru, Chen and Saad (2017), algorithm 1; Golub and Meurant (2010).
    ///
    /// # Errors
    /// [`SolveError::Setting`] without probes or steps; [`SolveError::Eigenvalues`] when the matrix is not finite.
    pub fn of<T: Real>(
        matrix: &dyn LinearOperator<T>,
        probes: usize,
        steps: usize,
        seed: u64,
    ) -> Result<Self, SolveError> {
        at_least_one("the number of probes", probes)?;
        at_least_one("the number of Lanczos steps", steps)?;
        let n = matrix.shape().0;
        let mut lanczos = Lanczos::new(matrix, signs::<T>(n, probes, seed))?;
        for _ in 0..steps.min(n) {
            if !lanczos.step() {
                break;
            }
        }
        let rules = lanczos.coefficients().iter().map(Tridiagonal::gauss_rule);
        Ok(Self { dimension: n, rules: rules.collect::<Result<_, SolveError>>()? })
    }

    /// `tr f(A) = E[zᵀ f(A) z]`, each quadratic form by its rule, exact for polynomials of degree `2 steps - 1`.
    pub fn trace(&self, f: impl Fn(f64) -> f64) -> Estimate {
        let form = |rule: &Vec<(f64, f64)>| {
            self.dimension as f64 * rule.iter().map(|(node, weight)| weight * f(*node)).sum::<f64>()
        };
        Estimate::of(&self.rules.iter().map(form).collect::<Vec<f64>>())
    }
}
