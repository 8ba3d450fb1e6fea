//! How good a picture is, where the truth is known.

/// Peak signal-to-noise ratio in decibels: `20 log10(max truth - min truth) - 10 log10(mean squared error)`. Infinite for a picture without errors.
///
/// Source: spec `tomography`, section 2.
///
/// # Panics
/// When the lengths differ.
pub fn psnr(picture: &[f64], truth: &[f64]) -> f64 {
    assert_eq!(picture.len(), truth.len(), "picture and truth have the same pixels");
    let largest = truth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = truth.iter().copied().fold(f64::INFINITY, f64::min);
    let squares: f64 = picture.iter().zip(truth).map(|(a, b)| (a - b).powi(2)).sum();
    20.0 * (largest - smallest).log10() - 10.0 * (squares / truth.len() as f64).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_range_is_20_decibels() {
        assert!((psnr(&[0.2, 2.2, 1.2], &[0.0, 2.0, 1.0]) - 20.0).abs() < 1e-12);
        assert_eq!(psnr(&[0.0, 1.0], &[0.0, 1.0]), f64::INFINITY);
    }
}
