//! The ramp filter.

use super::Filter;
use posterior_linalg::parallel;
use realfft::RealFftPlanner;
use std::f64::consts::PI;

/// Every row of `detectors` numbers, `spacing` apart, filtered; padded to twice its length and the next power of two, so that nothing wraps around.
pub(super) fn filtered(rows: &[f64], detectors: usize, spacing: f64, filter: Filter) -> Vec<f64> {
    let length = (2 * detectors).next_power_of_two();
    let mut planner = RealFftPlanner::<f64>::new();
    let (there, back) = (planner.plan_fft_forward(length), planner.plan_fft_inverse(length));
    let mut kernel: Vec<f64> = (0..length)
        .map(|n| match n.min(length - n) {
            0 => 0.25 / (spacing * spacing),
            n if n % 2 == 1 => -1.0 / (PI * n as f64 * spacing).powi(2),
            _ => 0.0,
        })
        .collect();
    let mut spectrum = there.make_output_vec();
    // Buffers are made for these lengths: neither transform can refuse them.
    let _ = there.process(&mut kernel, &mut spectrum);
    let nyquist = (length / 2) as f64;
    let response: Vec<f64> = spectrum
        .iter()
        .enumerate()
        .map(|(k, value)| {
            let window = match filter {
                Filter::RamLak => 1.0,
                Filter::Hann => 0.5 * (1.0 + (PI * k as f64 / nyquist).cos()),
            };
            // The inverse transform does not divide by its length.
            value.re * spacing * window / length as f64
        })
        .collect();
    let mut out = vec![0.0; rows.len()];
    parallel::chunks_with(
        &mut out,
        detectors,
        1,
        || {
            (
                there.make_input_vec(),
                there.make_output_vec(),
                there.make_scratch_vec(),
                back.make_scratch_vec(),
            )
        },
        |(padded, spectrum, scratch, scratch_back), row, out| {
            padded.fill(0.0);
            padded[..detectors].copy_from_slice(&rows[row * detectors..][..detectors]);
            let _ = there.process_with_scratch(padded, spectrum, scratch);
            spectrum.iter_mut().zip(&response).for_each(|(value, factor)| *value *= *factor);
            let _ = back.process_with_scratch(spectrum, padded, scratch_back);
            out.copy_from_slice(&padded[..detectors]);
        },
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filtering_is_the_convolution() {
        let (row, spacing) = ([0.3, -1.0, 2.0, 0.5, 0.0, 4.0, 1.0], 0.7);
        let kernel = |n: i32| match n.abs() {
            0 => 0.25 / (spacing * spacing),
            n if n % 2 == 1 => -1.0 / (PI * f64::from(n) * spacing).powi(2),
            _ => 0.0,
        };
        let found = filtered(&row, 7, spacing, Filter::RamLak);
        for i in 0..7 {
            let sum: f64 = (0..7).map(|j| kernel(i - j) * row[j as usize]).sum();
            assert!((found[i as usize] - spacing * sum).abs() < 1e-12);
        }
    }
}
