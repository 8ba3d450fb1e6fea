//! How good a picture is, where the truth is known.

/// `20 log10(max - min of the truth) - 10 log10(mean squared error)`, dB; infinite for the truth itself, NaN without pixels.
///
/// # Panics
/// When the pictures have other numbers of pixels.
pub fn peak_signal_to_noise_ratio(truth: &[f64], picture: &[f64]) -> f64 {
    assert_eq!(truth.len(), picture.len(), "pictures of other sizes");
    let (low, high) =
        truth.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let squares: f64 = truth.iter().zip(picture).map(|(a, b)| (a - b).powi(2)).sum();
    20.0 * (high - low).log10() - 10.0 * (squares / truth.len() as f64).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_range_is_twenty_decibels() {
        let truth = [0.0, 2.0, 1.0, 1.0];
        let off: Vec<f64> = truth.iter().map(|t| t + 0.2).collect();
        assert!((peak_signal_to_noise_ratio(&truth, &off) - 20.0).abs() < 1e-10);
        assert_eq!(peak_signal_to_noise_ratio(&truth, &truth), f64::INFINITY);
    }
}
