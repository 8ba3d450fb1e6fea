//! **Mixtures of predictive distributions** with equal weights: what an ensemble predicts, or a network at several draws of its weights.
//!
//! Numbers of all examples stand one after the other, so that the same few lines serve one example and a million. Components are taken in their order, on one thread each number.

/// The mean of each number over the components: probabilities of classes or events under the mixture.
///
/// # Panics
/// When there are no components, or their lengths differ.
pub fn average(components: &[&[f64]]) -> Vec<f64> {
    each(components, |k| components.iter().map(|c| c[k]).sum::<f64>() / components.len() as f64)
}

/// Mean and variance of each number under the mixture: the mean of the means; the mean of the variances and of the squared distances of the means from it.
///
/// # Panics
/// When there are no components, or their lengths differ.
pub fn mixture_moments(means: &[&[f64]], variances: &[&[f64]]) -> (Vec<f64>, Vec<f64>) {
    let (mean, count) = (average(means), means.len() as f64);
    assert_eq!(variances.len(), means.len(), "each component has means and variances");
    let variance = each(variances, |k| {
        let own = means.iter().zip(variances).map(|(m, v)| v[k] + (m[k] - mean[k]).powi(2));
        own.sum::<f64>() / count
    });
    (mean, variance)
}

/// The logarithm of the mean of exponentials of each number: log densities under the mixture from those under its components. Minus infinity where all are.
///
/// # Panics
/// When there are no components, or their lengths differ.
pub fn log_average_exp(components: &[&[f64]]) -> Vec<f64> {
    each(components, |k| {
        let largest = components.iter().map(|c| c[k]).fold(f64::NEG_INFINITY, f64::max);
        if largest.is_infinite() {
            return largest;
        }
        let sum: f64 = components.iter().map(|c| (c[k] - largest).exp()).sum();
        largest + (sum / components.len() as f64).ln()
    })
}

/// One result for each number.
fn each(components: &[&[f64]], of: impl Fn(usize) -> f64) -> Vec<f64> {
    let length = components.first().map(|c| c.len());
    assert!(length.is_some(), "a mixture has at least one component");
    assert!(components.iter().all(|c| Some(c.len()) == length), "components are of one length");
    (0..length.unwrap_or(0)).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_linalg::random::Streams;
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn by_hand() {
        let p: [&[f64]; 2] = [&[0.2, 0.8], &[0.6, 0.4]];
        assert_eq!(average(&p), [0.4, 0.6000000000000001]);
        // Two points a distance of 2 apart have the variance 1.
        let (mean, variance) = mixture_moments(&[&[1.0], &[3.0]], &[&[0.5], &[1.5]]);
        assert_eq!((mean[0], variance[0]), (2.0, 2.0));
        // Densities of 1/2 and 1/8 have the mean 5/16, also where they are multiplied by e^-2000.
        let found = log_average_exp(&[&[-2000.0 + 0.5f64.ln()], &[-2000.0 + 0.125f64.ln()]]);
        assert!((found[0] - (-2000.0 + (5.0f64 / 16.0).ln())).abs() < 1e-12);
        assert_eq!(log_average_exp(&[&[f64::NEG_INFINITY], &[f64::NEG_INFINITY]]), [f64::NEG_INFINITY]);
    }

    #[test]
    fn moments_are_those_of_draws() {
        let (means, variances) = ([0.3, -1.0, 2.0], [0.5f64, 2.0, 0.1]);
        let mut rng = Streams::new(3).stream("likelihoods/mixture");
        let count = 200_000;
        let draws: Vec<f64> = (0..count)
            .map(|_| {
                let (k, z): (usize, f64) = (rng.random_range(0..3), StandardNormal.sample(&mut rng));
                means[k] + variances[k].sqrt() * z
            })
            .collect();
        let sampled = draws.iter().sum::<f64>() / count as f64;
        let spread = draws.iter().map(|d| (d - sampled).powi(2)).sum::<f64>() / count as f64;
        let fourth = draws.iter().map(|d| (d - sampled).powi(4)).sum::<f64>() / count as f64;
        let slices = |v| <[f64]>::chunks(v, 1).collect::<Vec<_>>();
        let (mean, variance) = mixture_moments(&slices(&means), &slices(&variances));
        // Five standard errors of each.
        assert!((sampled - mean[0]).abs() < 5.0 * (spread / count as f64).sqrt());
        assert!((spread - variance[0]).abs() < 5.0 * ((fourth - spread * spread) / count as f64).sqrt());
    }
}
