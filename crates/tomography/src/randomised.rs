//! **A randomised eigendecomposition as preconditioner** of `C = K_yy + σ² I`: `K_yy ≈ U Λ Uᵀ` of rank q from products with random vectors, `P = U Λ Uᵀ + σ² I`.
//!
//! Antorán (2024), section 7.3.2; Halko, Martinsson and Tropp (2011), sections 4 and 5.5. `Q R = K_yy Ω` (thin QR of q + oversampling columns), `B = Qᵀ K_yy Q = V Λ Vᵀ`, `U = Q V`.
//! One pass takes B from the product that gave Q: the solution of `(Ωᵀ Q) B = (K_yy Ω)ᵀ Q`.
//!
//! U is orthonormal, so the inverse needs no small factorisation and no reciprocal of an eigenvalue, and draws need no root of a matrix:
//!
//! ```text
//! P⁻¹ v = v / s + U (1 / (λ + σ²) - 1 / s) Uᵀ v        P^½ (z₁, z₂) = U (λ + σ² - s)^½ z₁ + s^½ z₂
//! ```
//!
//! where s is what P is outside of U: σ² as published, or `λ_q + σ²` ([`Tail`]).
//!
//! How this differs from [`Nystrom`](posterior_linalg::solve::Nystrom): that one takes `K_yy ≈ (K_yy Ω)(Ωᵀ K_yy Ω)⁻¹(K_yy Ω)ᵀ` from one product and a Cholesky factor, which needs K_yy to be semidefinite
//! up to rounding; its second product is saved, but so is the power iteration that two passes are. Neither a projection nor a rescaling to another prior variance
//! ([`RandomisedPreconditioner::rescaled`]) exists there.

use faer::{Accum, Mat, MatMut, MatRef};
use posterior_linalg::dense::{eigen, multiply_into, product, qr, solve_upper};
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_linalg::solve::{DrawnPreconditioner, Preconditioner, SolveError};
use posterior_linalg::symmetric::average_with_transpose;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// How often the matrix is multiplied with a block of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Passes {
    /// Twice: the projection `Qᵀ K Q` itself.
    Two,
    /// Once: the projection by least squares. Half the products, and eigenvalues of less accuracy.
    One,
}

/// What P is on vectors that U does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tail {
    /// σ², as published. Eigenvalues that were left out then stand above those that were kept, which can be worse than no preconditioner.
    Noise,
    /// `λ_q + σ²` (Frangella, Tropp and Udell 2023, equation 1.3): what was left out is below it.
    Last,
}

/// What to build.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandomisedOptions {
    /// Eigenvectors kept, q; 400 in the thesis.
    pub rank: usize,
    /// Random vectors beyond the rank; 5 to 10.
    pub oversampling: usize,
    /// Products.
    pub passes: Passes,
    /// Outside of the kept eigenvectors.
    pub tail: Tail,
    /// The preconditioner is not used while `λ_q / σ²` exceeds this: the rank has then not reached the noise. 0.5 in the spec; infinite with [`Tail::Last`], which does not need the rule.
    pub unused_above: f64,
    /// Of the random vectors.
    pub seed: u64,
}

impl Default for RandomisedOptions {
    /// 400 vectors and 8 more, two passes, `λ_q + σ²` outside, always used.
    fn default() -> Self {
        Self {
            rank: 400,
            oversampling: 8,
            passes: Passes::Two,
            tail: Tail::Last,
            unused_above: f64::INFINITY,
            seed: 0,
        }
    }
}

/// `P = U diag(λ) Uᵀ + σ² I`, or `P = σ² I` where the rank was too small to help ([`Self::is_used`]).
#[derive(Clone, Debug)]
pub struct RandomisedPreconditioner {
    /// U, c x q.
    vectors: Mat<f64>,
    /// λ, descending, not negative.
    eigenvalues: Vec<f64>,
    noise: f64,
    tail: Tail,
    unused_above: f64,
}

impl RandomisedPreconditioner {
    /// Of the prior covariance of the measurements (c x c, symmetric, without the noise) and the noise variance.
    ///
    /// Cost: one or two products with `rank + oversampling` vectors, about `6 c (rank + oversampling)²` flops; 24 bytes for each number of such a block.
    ///
    /// # Errors
    /// [`SolveError::Setting`] when the noise variance is not positive, [`SolveError::NotFinite`] when a product is not finite, [`SolveError::Eigenvalues`] when its decomposition fails.
    pub fn new(
        covariance: &dyn LinearOperator<f64>,
        noise: f64,
        options: &RandomisedOptions,
    ) -> Result<Self, SolveError> {
        check_noise(noise)?;
        let n = covariance.shape().0;
        let (rank, columns) = (options.rank.min(n), (options.rank + options.oversampling).min(n));
        let mut rng = Streams::new(options.seed).stream("tomography/randomised");
        let random = Mat::<f64>::from_fn(n, columns, |_, _| StandardNormal.sample(&mut rng));
        let image = covariance.multiply(random.as_ref());
        let at = (0..columns).find_map(|j| (0..n).find(|&i| !image[(i, j)].is_finite()).map(|i| (i, j)));
        if let Some((row, column)) = at {
            let (what, value) =
                ("a product with the prior covariance of the measurements", image[(row, column)]);
            return Err(SolveError::NotFinite { what, row, column, value });
        }
        let basis = qr(image.as_ref()).0;
        let mut core = match options.passes {
            Passes::Two => product(basis.transpose(), covariance.multiply(basis.as_ref()).as_ref()),
            Passes::One => {
                let (q, r) = qr(product(random.transpose(), basis.as_ref()).as_ref());
                let right = product(image.transpose(), basis.as_ref());
                let mut core = product(q.transpose(), right.as_ref());
                solve_upper(r.as_ref(), core.as_mut());
                core
            }
        };
        average_with_transpose(core.as_mut());
        let failed = SolveError::Eigenvalues { dimension: columns, what: "the randomised preconditioner" };
        let found = eigen(core.as_ref()).map_err(|_| failed)?;
        // Ascending there, descending here; rounding below zero is zero.
        let kept = Mat::from_fn(columns, rank, |i, j| found.vectors[(i, columns - 1 - j)]);
        let eigenvalues = (0..rank).map(|j| found.values[columns - 1 - j].max(0.0)).collect();
        let vectors = product(basis.as_ref(), kept.as_ref());
        Ok(Self { vectors, eigenvalues, noise, tail: options.tail, unused_above: options.unused_above })
    }

    /// Of `factor K_yy` and another noise variance: the eigenvectors are the same. Whether it is used is judged anew. Cost: a copy of U.
    ///
    /// # Errors
    /// [`SolveError::Setting`] when the factor or the noise variance is not positive and finite.
    pub fn rescaled(&self, factor: f64, noise: f64) -> Result<Self, SolveError> {
        check_noise(noise)?;
        if !(factor > 0.0 && factor.is_finite()) {
            let (what, needed) = ("the factor of the prior variance", "positive and finite");
            return Err(SolveError::Setting { what, value: factor, needed });
        }
        let mut other = self.clone();
        other.eigenvalues.iter_mut().for_each(|value| *value *= factor);
        other.noise = noise;
        Ok(other)
    }

    /// `λ_q / σ²`: how far the first eigenvalue that may have been left out stands above the noise; 0 where nothing was.
    pub fn tail_ratio(&self) -> f64 {
        if self.vectors.ncols() == self.vectors.nrows() {
            return 0.0;
        }
        self.eigenvalues.last().map_or(0.0, |last| last / self.noise)
    }

    /// Whether P is more than `σ² I`.
    pub fn is_used(&self) -> bool {
        self.tail_ratio() <= self.unused_above && !self.eigenvalues.is_empty()
    }

    /// U, c x q, orthonormal.
    pub fn vectors(&self) -> MatRef<'_, f64> {
        self.vectors.as_ref()
    }

    /// λ (q), descending.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// What P is outside of U, s.
    pub fn outside(&self) -> f64 {
        match self.tail {
            Tail::Last if self.is_used() => self.noise * (1.0 + self.tail_ratio()),
            _ => self.noise,
        }
    }

    /// `out += U diag(scales) input`.
    fn add_scaled(&self, mut out: MatMut<'_, f64>, mut input: Mat<f64>, scale: impl Fn(f64) -> f64) {
        for column in input.col_iter_mut() {
            column.iter_mut().zip(&self.eigenvalues).for_each(|(v, &lambda)| *v *= scale(lambda));
        }
        multiply_into(out.as_mut(), Accum::Add, self.vectors.as_ref(), input.as_ref(), 1.0);
    }
}

fn check_noise(noise: f64) -> Result<(), SolveError> {
    let (what, needed) = ("the noise variance", "positive and finite");
    if noise > 0.0 && noise.is_finite() {
        Ok(())
    } else {
        Err(SolveError::Setting { what, value: noise, needed })
    }
}

impl Preconditioner<f64> for RandomisedPreconditioner {
    fn apply(&self, input: MatRef<'_, f64>, mut output: MatMut<'_, f64>) {
        let outside = self.outside();
        for (to, from) in output.as_mut().col_iter_mut().zip(input.col_iter()) {
            to.iter_mut().zip(from.iter()).for_each(|(to, from)| *to = from / outside);
        }
        if self.is_used() {
            let seen = product(self.vectors.transpose(), input);
            self.add_scaled(output, seen, |lambda| 1.0 / (lambda + self.noise) - 1.0 / outside);
        }
    }
}

impl DrawnPreconditioner<f64> for RandomisedPreconditioner {
    fn log_determinant(&self) -> f64 {
        let (n, outside) = (self.vectors.nrows() as f64, self.outside());
        if !self.is_used() {
            return n * outside.ln();
        }
        let seen: f64 = self.eigenvalues.iter().map(|lambda| (lambda + self.noise).ln()).sum();
        seen + (n - self.eigenvalues.len() as f64) * outside.ln()
    }

    fn draw(&self, rows: usize, count: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
        let outside = self.outside();
        let mut out = Mat::<f64>::from_fn(rows, count, |_, _| StandardNormal.sample(&mut *rng));
        out *= faer::Scale(outside.sqrt());
        if self.is_used() {
            let white =
                Mat::<f64>::from_fn(self.eigenvalues.len(), count, |_, _| StandardNormal.sample(&mut *rng));
            self.add_scaled(out.as_mut(), white, |lambda| (lambda + self.noise - outside).max(0.0).sqrt());
        }
        out
    }
}

#[cfg(test)]
mod tests;
