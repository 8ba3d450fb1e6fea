//! Random networks of finite width: their second moments tend to the kernel.

use super::*;
use rand::Rng;

const DEPTH: usize = 2;
const SCALES: [(f64, f64); DEPTH + 1] = [(1.4, 0.5), (1.3, 0.3), (0.8, 0.2)];

/// `(1/N) Σ_k φ(u_k) φ(v_k)` over the last hidden layer of one network of width N, for the pairs (x, x), (x, z), (z, z), through the read-out layer, over
/// whose weights the mean is taken exactly.
fn moments(activation: Activation, width: usize, points: [&[f64]; 2], rng: &mut impl Rng) -> [f64; 3] {
    let mut normal = || -> f64 { StandardNormal.sample(rng) };
    let mut state = points.map(<[f64]>::to_vec);
    for (weight, bias) in &SCALES[..DEPTH] {
        let fan_in = state[0].len();
        let scale = weight / (fan_in as f64).sqrt();
        let mut next = [Vec::with_capacity(width), Vec::with_capacity(width)];
        for _ in 0..width {
            let offset = bias * normal();
            let mut sums = [offset; 2];
            for i in 0..fan_in {
                let w = scale * normal();
                sums[0] += w * state[0][i];
                sums[1] += w * state[1][i];
            }
            next[0].push(apply(activation, sums[0]));
            next[1].push(apply(activation, sums[1]));
        }
        state = next;
    }
    let (weight, bias) = SCALES[DEPTH];
    [(0, 0), (0, 1), (1, 1)].map(|(i, j)| {
        let sum: f64 = state[i].iter().zip(&state[j]).map(|(u, v)| u * v).sum();
        weight * weight * sum / width as f64 + bias * bias
    })
}

/// Means over networks with their standard errors.
fn estimate(activation: Activation, width: usize, draws: usize, points: [&[f64]; 2]) -> [(f64, f64); 3] {
    let mut rng = Streams::new(width as u64).stream(activation.name());
    let all: Vec<[f64; 3]> = (0..draws).map(|_| moments(activation, width, points, &mut rng)).collect();
    [0, 1, 2].map(|pair| {
        let n = draws as f64;
        let mean = all.iter().map(|m| m[pair]).sum::<f64>() / n;
        let variance = all.iter().map(|m| (m[pair] - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    })
}

/// Means at width N are off by `c/N + O(1/N²)`: `2 m(2N) - m(N)` is free of the first term, and its standard error is `√(4 s(2N)² + s(N)²)`. Five of them
/// are left room for, and for the second term ten times `size/N²`, where the size is the root of the product of both variances, as that of `c` is.
#[test]
fn wide_random_networks_have_these_covariances() {
    const WIDTH: usize = 32;
    const DRAWS: usize = 6_000;
    let (x, z): (&[f64], &[f64]) = (&[1.0, -0.4, 0.7], &[0.3, 0.9, 0.5]);
    for activation in ACTIVATIONS {
        let narrow = estimate(activation, WIDTH, DRAWS, [x, z]);
        let wide = estimate(activation, 2 * WIDTH, DRAWS, [x, z]);
        for (pair, (first, second)) in [(x, x), (x, z), (z, z)].into_iter().enumerate() {
            let kernel = network(&[activation; DEPTH], &SCALES, 3);
            let point = |p: &[f64]| Mat::from_fn(1, 3, |_, j| p[j]);
            let k = |x, z| crate::cross::<f64>(&kernel, point(x).as_ref(), point(z).as_ref())[(0, 0)];
            let (expected, size) = (k(first, second), (k(first, first) * k(second, second)).sqrt());
            let found = 2.0 * wide[pair].0 - narrow[pair].0;
            let error = (4.0 * wide[pair].1.powi(2) + narrow[pair].1.powi(2)).sqrt();
            let room = 5.0 * error + 10.0 * size / (WIDTH * WIDTH) as f64;
            assert!((found - expected).abs() < room, "{activation:?} {pair}: {found} {expected} {room}");
            // The check says something.
            assert!(room < 0.1 * size, "{activation:?} {pair}: {room}");
        }
    }
}
