//! `softmax(f)` and its logarithm without overflow, and the complement of its largest entry without cancellation.

/// What the numbers of a softmax leave out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peak {
    /// The class of the largest latent value.
    pub(crate) class: usize,
    /// One minus the probability of that class, summed from the others: `1 - p` is zero long before this is.
    pub(crate) complement: f64,
}

/// The place of the largest value (the first, if several).
pub(crate) fn largest(f: &[f64]) -> usize {
    let mut best = 0;
    for (i, &value) in f.iter().enumerate() {
        if value > f[best] {
            best = i;
        }
    }
    best
}

/// Writes `softmax(f)` and returns its peak. Cost O(C), one exponential for each class.
pub(crate) fn softmax(f: &[f64], out: &mut [f64]) -> Peak {
    assert_eq!(f.len(), out.len(), "one probability for each latent value");
    let class = largest(f);
    let mut others = 0.0;
    for (i, (out, value)) in out.iter_mut().zip(f).enumerate() {
        *out = (value - f[class]).exp();
        if i != class {
            others += *out;
        }
    }
    let total = 1.0 + others;
    for p in out.iter_mut() {
        *p /= total;
    }
    Peak { class, complement: others / total }
}

/// `log softmax(f)_class`, accurate also where the probability rounds to one.
pub(crate) fn log_softmax(f: &[f64], class: usize) -> f64 {
    let peak = largest(f);
    let others: f64 =
        f.iter().enumerate().filter(|&(i, _)| i != peak).map(|(_, value)| (value - f[peak]).exp()).sum();
    (f[class] - f[peak]) - others.ln_1p()
}

/// `log Σ exp(values)`; minus infinity for none.
pub(crate) fn log_sum_exp(values: &[f64]) -> f64 {
    if values.is_empty() {
        return f64::NEG_INFINITY;
    }
    let peak = values[largest(values)];
    if peak.is_infinite() {
        return peak;
    }
    peak + values.iter().map(|v| (v - peak).exp()).sum::<f64>().ln()
}

/// `1 / (1 + exp(-x))`, relatively accurate in both tails.
pub(crate) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// `log(1 + exp(x))`.
pub(crate) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
