//! The symmetric Kullback-Leibler divergence between categorical distributions.

use crate::{MetricsError, Probabilities};

/// `Σ_c (p_c - q_c)(log p_c - log q_c) = KL(p‖q) + KL(q‖p)`, in nats, not halved (spec `linearised_laplace`, section 7).
/// Infinite where one of the two is 0 and the other is not; 0 where both are.
///
/// # Errors
/// [`MetricsError::Unequal`] for distributions over different numbers of classes.
pub fn symmetric_kl(p: &[f64], q: &[f64]) -> Result<f64, MetricsError> {
    let (left, right) = (p.len(), q.len());
    if left != right {
        return Err(MetricsError::Unequal { left_what: "classes", left, right_what: "classes", right });
    }
    Ok(divergence(p, q))
}

fn divergence(p: &[f64], q: &[f64]) -> f64 {
    // Equal probabilities add nothing, which also covers two zeros.
    p.iter().zip(q).map(|(p, q)| if p == q { 0.0 } else { (p - q) * (p.ln() - q.ln()) }).sum()
}

/// The mean of [`symmetric_kl`] over rows.
///
/// # Errors
/// [`MetricsError::Unequal`] for tables of different sizes.
pub fn mean_symmetric_kl(p: &Probabilities, q: &Probabilities) -> Result<f64, MetricsError> {
    for (what, left, right) in [("rows", p.len(), q.len()), ("classes", p.classes(), q.classes())] {
        if left != right {
            return Err(MetricsError::Unequal { left_what: what, left, right_what: what, right });
        }
    }
    Ok(p.rows().zip(q.rows()).map(|(p, q)| divergence(p, q)).sum::<f64>() / p.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_small_example_by_hand() {
        // (¾ - ¼) log 3, twice.
        assert!((symmetric_kl(&[0.75, 0.25], &[0.25, 0.75]).unwrap() - 3f64.ln()).abs() < 1e-15);
        assert_eq!(symmetric_kl(&[1.0, 0.0], &[1.0, 0.0]), Ok(0.0));
        assert_eq!(symmetric_kl(&[1.0, 0.0], &[0.5, 0.5]), Ok(f64::INFINITY));
        assert!(symmetric_kl(&[1.0], &[0.5, 0.5]).is_err());
        let (p, q) = ([0.75, 0.25, 0.5, 0.5], [0.25, 0.75, 0.5, 0.5]);
        let (p, q) = (Probabilities::new(&p, 2).unwrap(), Probabilities::new(&q, 2).unwrap());
        assert!((mean_symmetric_kl(&p, &q).unwrap() - 0.5 * 3f64.ln()).abs() < 1e-15);
        let one = Probabilities::new(&[0.5, 0.5], 2).unwrap();
        assert!(mean_symmetric_kl(&p, &one).is_err());
    }

    proptest! {
        #[test]
        fn it_is_the_sum_of_both_directions(weights in prop::collection::vec((0.01..1.0f64, 0.01..1.0f64), 1..10)) {
            let normalise = |w: Vec<f64>| { let s: f64 = w.iter().sum(); w.iter().map(|v| v / s).collect::<Vec<_>>() };
            let p = normalise(weights.iter().map(|w| w.0).collect());
            let q = normalise(weights.iter().map(|w| w.1).collect());
            let kl = |p: &[f64], q: &[f64]| p.iter().zip(q).map(|(p, q)| p * (p / q).ln()).sum::<f64>();
            let value = symmetric_kl(&p, &q).unwrap();
            prop_assert!((value - kl(&p, &q) - kl(&q, &p)).abs() < 1e-12 && value >= 0.0);
        }
    }
}
