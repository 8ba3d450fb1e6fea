//! Numbers by chance, for tests.

/// Pseudo-random numbers in (0, 1).
pub(crate) fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// The class that a uniform number picks by these probabilities.
pub(crate) fn draw(probabilities: &[f64], uniform: f64) -> usize {
    let mut sum = 0.0;
    let found = probabilities.iter().position(|p| {
        sum += p;
        uniform < sum
    });
    found.unwrap_or(probabilities.len() - 1)
}
