//! The effective dimension from posterior samples, and MacKay's updates of amplitude and noise that it makes cheap.

use crate::GpError;
use crate::data::same_width;
use faer::MatRef;
use posterior_linalg::Real;
use posterior_linalg::solve::Estimate;

/// `γ = Tr K K̃⁻¹ = n - Tr(D K̃⁻¹)` from s sampling weights `u_j = K̃⁻¹ (f_j(X) + ε_j)` (n x s), for noise variances D (n): since
/// `Cov u = K̃⁻¹`, each `n - Σ_i D_i u_ij²` is unbiased. Free once samples exist.
///
/// Source: spec `stochastic_gaussian_processes`, sections 9.3 and 9.4.
///
/// # Errors
/// [`GpError::Shape`] when sizes differ, [`GpError::Empty`] without samples.
pub fn effective_dimension<T: Real>(
    sampling_weights: MatRef<'_, T>,
    noise: &[T],
) -> Result<Estimate, GpError> {
    same_width("rows of the sampling weights", noise.len(), sampling_weights.nrows())?;
    if sampling_weights.ncols() == 0 {
        return Err(GpError::Empty { what: "the set of samples" });
    }
    let values: Vec<f64> = (0..sampling_weights.ncols())
        .map(|j| {
            let trace: f64 = noise
                .iter()
                .enumerate()
                .map(|(i, d)| d.to_f64() * sampling_weights[(i, j)].to_f64().powi(2))
                .sum();
            noise.len() as f64 - trace
        })
        .collect();
    Ok(Estimate::of(&values))
}

/// New amplitude and noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MacKayUpdate {
    /// What to multiply the kernel by.
    pub amplitude_factor: f64,
    /// The new noise variance.
    pub noise_variance: f64,
}

/// MacKay's fixed-point step in function space, for `K̃ = K + σ² I`: with `K = K₁ / a`, `a <- a γ / αᵀKα` and `1/σ² <- (n - γ) / (σ⁴ ‖α‖²)`.
/// Fixed points are stationary points of the evidence. `quadratic` is `αᵀKα`, `squared_norm` is `‖α‖²`, for one target.
///
/// # Errors
/// [`GpError::NotFinite`] when γ is not inside (0, n), or a form is not positive: then no step is defined.
pub fn mackay_update(
    rows: usize,
    effective_dimension: f64,
    quadratic: f64,
    squared_norm: f64,
    noise_variance: f64,
) -> Result<MacKayUpdate, GpError> {
    let n = rows as f64;
    let wrong = |what, value| Err(GpError::NotFinite { what, row: 0, column: 0, value });
    if !(effective_dimension > 0.0 && effective_dimension < n) {
        return wrong(
            "effective dimension (which must be between 0 and the number of rows)",
            effective_dimension,
        );
    }
    if !(quadratic > 0.0 && squared_norm > 0.0) {
        return wrong("squared norm of the weights (which must be positive)", quadratic.min(squared_norm));
    }
    Ok(MacKayUpdate {
        amplitude_factor: quadratic / effective_dimension,
        noise_variance: noise_variance * noise_variance * squared_norm / (n - effective_dimension),
    })
}
