//! The randomised Nyström approximation: `K ≈ U Λ Uᵀ` from one product with random vectors.

use super::SolveError;
use crate::Real;
use crate::cholesky::{Cholesky, JitterPolicy};
use crate::dense::{eigen, qr};
use crate::operator::LinearOperator;
use crate::random::Streams;
use faer::{Mat, MatRef};
use rand_distr::{Distribution, StandardNormal};

/// `K ≈ U diag(λ) Uᵀ` with orthonormal columns U and descending `λ >= 0`, kept as `U diag(λ)^½`'s ingredients.
///
/// Source: Frangella, Tropp and Udell (2023), *Randomized Nyström preconditioning*, algorithm 2.1.
#[derive(Clone, Debug)]
pub struct Nystrom<T> {
    vectors: Mat<T>,
    eigenvalues: Vec<f64>,
}

impl<T: Real> Nystrom<T> {
    /// Rank at most `rank` from that many standard normal vectors of stream `seed`. Cost: one product with `rank` vectors,
    /// about `14 n rank²` flops in f64, `40 n rank` bytes.
    ///
    /// # Errors
    /// [`SolveError::Cholesky`] or [`SolveError::Eigenvalues`] when the matrix is not semidefinite or not finite.
    pub fn new(matrix: &dyn LinearOperator<T>, rank: usize, seed: u64) -> Result<Self, SolveError> {
        let n = matrix.shape().0;
        let rank = rank.min(n);
        if rank == 0 {
            return Ok(Self { vectors: Mat::zeros(n, 0), eigenvalues: Vec::new() });
        }
        let test = Self::test_vectors(n, rank, seed);
        let narrow = Mat::<T>::from_fn(n, rank, |i, j| T::from_f64(test[(i, j)]));
        let product = matrix.multiply(narrow.as_ref());
        let product = Mat::<f64>::from_fn(n, rank, |i, j| product[(i, j)].to_f64());
        Self::of_products(test.as_ref(), product, T::EPSILON.to_f64())
    }

    /// Orthonormal vectors in random directions, n x rank, of stream `seed`: what [`Self::of_products`] wants products with. Cost: `8 n rank²` flops.
    pub fn test_vectors(n: usize, rank: usize, seed: u64) -> Mat<f64> {
        let mut rng = Streams::new(seed).stream("linalg/nystrom");
        let gaussian = Mat::<f64>::from_fn(n, rank, |_, _| StandardNormal.sample(&mut rng));
        qr(gaussian.as_ref()).0
    }

    /// From the product of the matrix with [`Self::test_vectors`], computed to a relative `precision`.
    ///
    /// # Errors
    /// As [`Self::new`].
    #[inline(never)]
    pub fn of_products(
        test: MatRef<'_, f64>,
        mut product: Mat<f64>,
        precision: f64,
    ) -> Result<Self, SolveError> {
        let (n, rank) = test.shape();
        // The shift keeps the small factorisation safe and is taken off the eigenvalues again.
        let shift = precision * product.norm_l2();
        product += test * faer::Scale(shift);
        let mut core = test.transpose() * &product;
        for j in 0..rank {
            for i in 0..j {
                let mean = 0.5 * (core[(i, j)] + core[(j, i)]);
                (core[(i, j)], core[(j, i)]) = (mean, mean);
            }
        }
        let factor = Cholesky::of(core.as_ref(), JitterPolicy::default())?;
        // B = Y C⁻ᵀ, so that B Bᵀ = Y (Ωᵀ Y)⁻¹ Yᵀ; its left singular vectors by those of BᵀB.
        let mut transposed = product.transpose().to_owned();
        factor.solve_factor_in_place(transposed.as_mut());
        let gram = &transposed * transposed.transpose();
        let eigen = eigen(gram.as_ref())
            .map_err(|_| SolveError::Eigenvalues { dimension: rank, what: "the Nyström approximation" })?;
        let squares: Vec<f64> = eigen.values.iter().rev().copied().collect();
        let floor = squares.first().copied().unwrap_or(0.0) * f64::EPSILON * n as f64;
        let kept = squares.iter().take_while(|&&s| s > floor && s > shift).count();
        let right =
            Mat::<f64>::from_fn(rank, kept, |i, j| eigen.vectors[(i, rank - 1 - j)] / squares[j].sqrt());
        let vectors = transposed.transpose() * &right;
        Ok(Self {
            vectors: Mat::from_fn(n, kept, |i, j| T::from_f64(vectors[(i, j)])),
            eigenvalues: squares[..kept].iter().map(|s| s - shift).collect(),
        })
    }

    /// U, n x R with orthonormal columns.
    pub fn vectors(&self) -> &Mat<T> {
        &self.vectors
    }

    /// λ (R), descending, not negative.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }
}
