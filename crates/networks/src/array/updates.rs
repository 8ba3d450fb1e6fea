//! Steps of optimisers: one pass over weights, gradient and moments.

use super::piece;
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use rayon::prelude::*;

/// Adam; `constants` are beta1, beta2, epsilon, rate over the first bias correction, the root of the second's inverse, the decay that joins the
/// gradient, and the factor on the weights. Bound by memory: seven numbers moved for each weight.
pub(crate) fn adam_update<T: Real>(
    values: &mut [T],
    gradient: &[T],
    first: &mut [T],
    second: &mut [T],
    constants: [T; 7],
) {
    let [beta1, beta2, epsilon, rate, correct, decay, shrink] = constants;
    let piece = piece(values.len());
    values
        .par_chunks_mut(piece)
        .zip(gradient.par_chunks(piece))
        .zip(first.par_chunks_mut(piece).zip(second.par_chunks_mut(piece)))
        .for_each(|((values, gradient), (first, second))| {
            dispatch(
                #[inline(always)]
                || {
                    for (((v, &g), m), s) in values.iter_mut().zip(gradient).zip(first).zip(second) {
                        let g = g + decay * *v;
                        *m += (T::ONE - beta1) * (g - *m);
                        *s += (T::ONE - beta2) * (g * g - *s);
                        *v = *v * shrink - rate * *m / (Real::sqrt(*s) * correct + epsilon);
                    }
                },
            );
        });
}

/// Gradient descent with momentum; `constants` are rate, momentum and decay.
pub(crate) fn sgd_update<T: Real>(
    values: &mut [T],
    gradient: &[T],
    moment: &mut [T],
    constants: [T; 3],
    nesterov: bool,
) {
    let [rate, momentum, decay] = constants;
    let piece = piece(values.len());
    values.par_chunks_mut(piece).zip(gradient.par_chunks(piece)).zip(moment.par_chunks_mut(piece)).for_each(
        |((values, gradient), moment)| {
            dispatch(
                #[inline(always)]
                || {
                    for ((v, &g), m) in values.iter_mut().zip(gradient).zip(moment) {
                        let g = g + decay * *v;
                        *m = momentum * *m + g;
                        *v -= rate * if nesterov { g + momentum * *m } else { *m };
                    }
                },
            );
        },
    );
}
