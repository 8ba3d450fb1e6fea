//! Conjugate gradients for many right-hand sides at once.

use super::error::same_size;
use super::vectors::{add_scaled, check_finite, column_dots, column_norms, pick_columns, scale_and_add};
use super::{Preconditioner, SolveError, Tridiagonal};
use crate::Real;
use crate::operator::LinearOperator;
use faer::{Mat, MatRef};

/// Everything that an interrupted solve needs to go on as if nothing had happened.
#[derive(Clone, Debug, PartialEq)]
pub struct ConjugateGradientState<T> {
    /// X, n x k.
    pub solution: Mat<T>,
    /// The recursively updated residuals, n x k.
    pub residual: Mat<T>,
    /// Search directions, n x k.
    pub direction: Mat<T>,
    /// `⟨R, P⁻¹R⟩` of each column.
    pub inner: Vec<f64>,
    /// Columns that are still worked on.
    pub active: Vec<bool>,
    /// True residual norm at the last check of each column; infinite before the first.
    pub checked: Vec<f64>,
    /// Iterations taken.
    pub iteration: usize,
}

/// Preconditioned conjugate gradients on `A X = Z` for symmetric positive-definite A: the columns go their own ways but share one product
/// with A a step. Columns that have converged are frozen and leave the product.
///
/// A column counts as converged when its residual is at most `max(tolerance ‖z‖, absolute)`. The residual is updated by recursion,
/// which in f32 drifts away from the truth; hence before the solve ends the true residuals are computed, and columns that fail
/// begin anew from where they are. A column whose true residual such a new beginning did not halve is at the limit of the precision and stays frozen.
///
/// Cost of a step: one product with the active columns, one preconditioner, ten passes over n x k numbers. Memory `5nk` numbers.
/// Source: spec `stochastic_gaussian_processes`, section 12; Golub and Van Loan (2013), algorithm 11.5.1.
pub struct ConjugateGradients<'a, T: Real> {
    matrix: &'a dyn LinearOperator<T>,
    preconditioner: &'a dyn Preconditioner<T>,
    targets: MatRef<'a, T>,
    norms: Vec<f64>,
    thresholds: Vec<f64>,
    state: ConjugateGradientState<T>,
    /// Of each column, where asked for; nothing is kept of a column that began anew.
    recorded: Option<Vec<Recorded>>,
}

/// Step lengths and ratios of one column.
#[derive(Clone, Debug, Default)]
struct Recorded {
    rates: Vec<f64>,
    ratios: Vec<f64>,
    closed: bool,
}

impl<'a, T: Real> ConjugateGradients<'a, T> {
    /// Begins from `start` (n x k), or from zero, which saves a product.
    ///
    /// # Errors
    /// [`SolveError::Shape`], or [`SolveError::NotFinite`] when a target or a start is not finite.
    #[inline(never)]
    pub fn new(
        matrix: &'a dyn LinearOperator<T>,
        preconditioner: &'a dyn Preconditioner<T>,
        targets: MatRef<'a, T>,
        start: Option<MatRef<'_, T>>,
        tolerance: f64,
        absolute: f64,
    ) -> Result<Self, SolveError> {
        let (n, k) = targets.shape();
        let zero = Mat::zeros(n, k);
        let state = ConjugateGradientState {
            solution: start.map_or_else(|| zero.clone(), |s| s.to_owned()),
            residual: targets.to_owned(),
            direction: zero,
            inner: vec![0.0; k],
            active: vec![true; k],
            checked: vec![f64::INFINITY; k],
            iteration: 0,
        };
        let mut this = Self::resume(matrix, preconditioner, targets, state, tolerance, absolute)?;
        if start.is_some() {
            check_finite("the start", this.state.solution.as_ref())?;
            let all: Vec<usize> = (0..k).collect();
            this.refresh_residuals(&all);
        }
        this.begin(&(0..k).collect::<Vec<_>>());
        Ok(this)
    }

    /// Goes on from a state.
    ///
    /// # Errors
    /// [`SolveError::Shape`] when the state is of another system, [`SolveError::NotFinite`] for targets.
    #[inline(never)]
    pub fn resume(
        matrix: &'a dyn LinearOperator<T>,
        preconditioner: &'a dyn Preconditioner<T>,
        targets: MatRef<'a, T>,
        state: ConjugateGradientState<T>,
        tolerance: f64,
        absolute: f64,
    ) -> Result<Self, SolveError> {
        let (n, k) = targets.shape();
        same_size("columns of a symmetric matrix", matrix.shape().0, matrix.shape().1)?;
        same_size("rows of the right-hand sides", matrix.shape().0, n)?;
        for block in [&state.solution, &state.residual, &state.direction] {
            same_size("rows of the state", n, block.nrows())?;
            same_size("columns of the state", k, block.ncols())?;
        }
        for length in [state.inner.len(), state.active.len(), state.checked.len()] {
            same_size("columns of the state", k, length)?;
        }
        check_finite("the right-hand sides", targets)?;
        let norms = column_norms(&targets.to_owned());
        let thresholds = norms.iter().map(|norm| (tolerance * norm).max(absolute)).collect();
        Ok(Self { matrix, preconditioner, targets, norms, thresholds, state, recorded: None })
    }

    /// Keeps step lengths of these columns from now on; see [`Self::tridiagonal`]. Of a solver that has taken no step yet.
    pub fn recording(mut self, columns: std::ops::Range<usize>) -> Self {
        let mut recorded = vec![Recorded { closed: true, ..Recorded::default() }; self.norms.len()];
        let began = self.state.iteration > 0;
        recorded[columns].iter_mut().for_each(|own| own.closed = began);
        self.recorded = Some(recorded);
        self
    }

    /// The matrix T of the Lanczos process for `P^-½ A P^-½` from `P^-½ z`, of a column z that was recorded: with step lengths `a_j` and ratios `b_j`, its diagonal is `1/a_j + b_{j-1}/a_{j-1}`, beside
    /// which stands `√b_j / a_j`. Empty where nothing was recorded, or where the solve had not begun at zero. Source: Golub and Van Loan (2013), section 11.3.
    pub fn tridiagonal(&self, column: usize) -> Tridiagonal {
        let mut out = Tridiagonal::default();
        let Some(Recorded { rates, ratios, .. }) = self.recorded.as_ref().and_then(|all| all.get(column))
        else {
            return out;
        };
        for (j, rate) in rates.iter().enumerate() {
            let before = if j > 0 { ratios[j - 1] / rates[j - 1] } else { 0.0 };
            out.diagonal.push(1.0 / rate + before);
            if j + 1 < rates.len() {
                out.off.push(ratios[j].sqrt() / rate);
            }
        }
        out
    }

    /// Where it stands.
    pub fn state(&self) -> &ConjugateGradientState<T> {
        &self.state
    }

    /// The solution so far and the true relative residuals where they were checked last, given away.
    pub fn into_state(self) -> ConjugateGradientState<T> {
        self.state
    }

    /// Residual norms relative to those of the right-hand sides (by recursion); 0 for a zero right-hand side.
    #[inline(never)]
    pub fn relative_residuals(&self) -> Vec<f64> {
        let norms = column_norms(&self.state.residual);
        norms.iter().zip(&self.norms).map(|(r, z)| if *z == 0.0 { 0.0 } else { r / z }).collect()
    }

    /// Takes a step. `false` when there is nothing left to do: every column's true residual has passed, or cannot be improved.
    ///
    /// # Errors
    /// [`SolveError::Indefinite`] when A or P is not positive definite.
    #[inline(never)]
    pub fn step(&mut self) -> Result<bool, SolveError> {
        let mut active: Vec<usize> = (0..self.norms.len()).filter(|&j| self.state.active[j]).collect();
        if active.is_empty() {
            active = self.check();
            if active.is_empty() {
                return Ok(false);
            }
        }
        let all = active.len() == self.norms.len();
        let picked;
        let direction = if all {
            &self.state.direction
        } else {
            picked = pick_columns(&self.state.direction, &active);
            &picked
        };
        let product = self.matrix.multiply(direction.as_ref());
        let curvature = column_dots(direction, &product);
        let mut rate = vec![0.0; self.norms.len()];
        let mut spread = Mat::zeros(0, 0);
        for (a, &j) in active.iter().enumerate() {
            let length = self.state.inner[j] / curvature[a];
            if !(curvature[a] > 0.0 && length.is_finite()) {
                // Where nothing but rounding is left, there is no direction to be had either.
                if self.state.residual.col(j).norm_l2().to_f64() <= self.norms[j] * T::EPSILON.to_f64() * 64.0
                {
                    continue;
                }
                return Err(SolveError::Indefinite {
                    iteration: self.state.iteration,
                    column: j,
                    curvature: curvature[a],
                });
            }
            rate[j] = length;
            if let Some(own) = self.recorded.as_mut().map(|all| &mut all[j]).filter(|own| !own.closed) {
                own.rates.push(length);
            }
        }
        let full_product = if all {
            &product
        } else {
            spread = scatter(&product, &active, self.norms.len());
            &spread
        };
        add_scaled(&mut self.state.solution, &rate, &self.state.direction);
        let down: Vec<f64> = rate.iter().map(|r| -r).collect();
        add_scaled(&mut self.state.residual, &down, full_product);
        drop(spread);
        self.state.iteration += 1;
        let residuals = column_norms(&self.state.residual);
        for &j in &active {
            if residuals[j] <= self.thresholds[j] || rate[j] == 0.0 {
                self.state.active[j] = false;
            } else if !residuals[j].is_finite() {
                return Err(SolveError::Indefinite {
                    iteration: self.state.iteration,
                    column: j,
                    curvature: residuals[j],
                });
            }
        }
        let going: Vec<usize> = active.into_iter().filter(|&j| self.state.active[j]).collect();
        if !going.is_empty() {
            self.turn(&going);
        }
        Ok(true)
    }

    /// New directions `D <- P⁻¹R + (g' / g) D` for some columns.
    fn turn(&mut self, columns: &[usize]) {
        let residual = pick_columns(&self.state.residual, columns);
        let mut gradient = Mat::zeros(residual.nrows(), columns.len());
        self.preconditioner.apply(residual.as_ref(), gradient.as_mut());
        let inner = column_dots(&residual, &gradient);
        let mut direction = pick_columns(&self.state.direction, columns);
        let ratio: Vec<f64> = columns.iter().zip(&inner).map(|(&j, g)| g / self.state.inner[j]).collect();
        scale_and_add(&mut direction, &ratio, &gradient);
        for (a, &j) in columns.iter().enumerate() {
            self.state.inner[j] = inner[a];
            self.state.direction.col_as_slice_mut(j).copy_from_slice(direction.col_as_slice(a));
            if let Some(own) = self.recorded.as_mut().map(|all| &mut all[j]).filter(|own| !own.closed) {
                own.ratios.push(ratio[a]);
            }
        }
    }

    /// Directions `D <- P⁻¹R`, forgetting earlier ones; columns that already pass are frozen.
    #[inline(never)]
    fn begin(&mut self, columns: &[usize]) {
        let residual = pick_columns(&self.state.residual, columns);
        let mut gradient = Mat::zeros(residual.nrows(), columns.len());
        self.preconditioner.apply(residual.as_ref(), gradient.as_mut());
        let inner = column_dots(&residual, &gradient);
        let norms = column_norms(&residual);
        for (a, &j) in columns.iter().enumerate() {
            self.state.inner[j] = inner[a];
            self.state.direction.col_as_slice_mut(j).copy_from_slice(gradient.col_as_slice(a));
            self.state.active[j] = norms[a] > self.thresholds[j];
            // The recursion that the numbers belong to has ended.
            if let Some(all) = &mut self.recorded {
                all[j].closed = true;
            }
        }
    }

    /// Computes true residuals of all columns; those that fail begin anew, unless that was tried without much effect. Returns them.
    fn check(&mut self) -> Vec<usize> {
        let unsure: Vec<usize> =
            (0..self.norms.len()).filter(|&j| self.state.checked[j] > self.thresholds[j]).collect();
        if unsure.is_empty() {
            return Vec::new();
        }
        self.refresh_residuals(&unsure);
        let norms = column_norms(&pick_columns(&self.state.residual, &unsure));
        let mut failed = Vec::new();
        for (&j, norm) in unsure.iter().zip(norms) {
            let before = std::mem::replace(&mut self.state.checked[j], norm);
            if norm > self.thresholds[j] && norm < 0.5 * before {
                failed.push(j);
            } else if norm > self.thresholds[j] {
                // Remembered as final: checking again would give the same.
                self.thresholds[j] = norm;
            }
        }
        self.begin(&failed);
        failed.retain(|&j| self.state.active[j]);
        failed
    }

    /// `R <- Z - A X` for some columns.
    #[inline(never)]
    fn refresh_residuals(&mut self, columns: &[usize]) {
        let product = self.matrix.multiply(pick_columns(&self.state.solution, columns).as_ref());
        for (a, &j) in columns.iter().enumerate() {
            let column = self.state.residual.col_as_slice_mut(j);
            for (i, (r, &p)) in column.iter_mut().zip(product.col_as_slice(a)).enumerate() {
                *r = self.targets[(i, j)] - p;
            }
        }
    }
}

/// A matrix of `columns` columns, zero but for those named.
fn scatter<T: Real>(matrix: &Mat<T>, to: &[usize], columns: usize) -> Mat<T> {
    let mut out = Mat::zeros(matrix.nrows(), columns);
    for (from, &j) in to.iter().enumerate() {
        out.col_as_slice_mut(j).copy_from_slice(matrix.col_as_slice(from));
    }
    out
}
