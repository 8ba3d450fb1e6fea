//! The prior precision beside the **weight decay** of training: a network trained with decay `l` per step of the mean loss sits at the mode of a prior with precision `n l`,
//! so that a posterior with another prior is one around another point (thesis section 5.2). Said, not enforced.

use crate::network::TrainingRecord;
use crate::record::NetworkHeader;
use posterior_networks::train::Loss;

/// A sentence on what decay the prior corresponds to, and what the network was trained with, if that is known.
///
/// With the mean negative log-likelihood as loss `a = n l`. With mean squares `|y - f|^2` as loss and noise variance `s^2` the loss is `2 s^2 / n` times the negative
/// log-likelihood, so `a = n l / (2 s^2)`.
pub(crate) fn sentence(header: &NetworkHeader, precisions: &[f64], noise_variance: f64) -> Option<String> {
    let examples = header.data.examples.max(1) as f64;
    let training = header.network.training.as_ref();
    let factor = match training.map(|t| t.loss) {
        Some(Loss::Mse) => 2.0 * noise_variance,
        _ => 1.0,
    };
    let decays: Vec<f64> = precisions.iter().map(|a| factor * a / examples).collect();
    let (low, high) = decays.iter().fold((f64::INFINITY, 0.0f64), |(l, h), d| (l.min(*d), h.max(*d)));
    if !(low.is_finite() && low > 0.0) || header.summary.g_prior {
        return None;
    }
    let formula = if factor == 1.0 { "a / n" } else { "2 s^2 a / n" };
    let own = if precisions.len() == 1 {
        format!("prior precision {:.4} corresponds to a weight decay of {low:.2e} ({formula})", precisions[0])
    } else {
        format!("the prior precisions correspond to weight decays from {low:.2e} to {high:.2e} ({formula})")
    };
    Some(match training {
        None => own,
        Some(TrainingRecord { online: Some(online), .. }) => own + &learned(&online.precisions, precisions),
        Some(TrainingRecord { weight_decay, decoupled, .. }) => {
            let kind = if *decoupled { " (decoupled, which is not quite a prior)" } else { "" };
            let verdict = if *weight_decay == 0.0 {
                "; the network was trained without: it is the mode of a flat prior".to_string()
            } else if *weight_decay < 0.2 * low || *weight_decay > 5.0 * high {
                format!("; the network was trained with {weight_decay:.2e}{kind}, which is far from it")
            } else {
                format!("; the network was trained with {weight_decay:.2e}{kind}")
            };
            own + &verdict
        }
    })
}

/// The precisions that were learned while training, beside those of the posterior.
fn learned(during: &[f64], now: &[f64]) -> String {
    let range = |values: &[f64]| {
        values.iter().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)))
    };
    let ((low, high), (now_low, now_high)) = (range(during), range(now));
    let what = if low == high { format!("{low:.4}") } else { format!("from {low:.4} to {high:.4}") };
    let far = now_low > 5.0 * high || now_high < 0.2 * low;
    let verdict = if far { ", far from these" } else { "" };
    format!("; the network was trained with precisions that online Laplace learned, {what}{verdict}")
}
