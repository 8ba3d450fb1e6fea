//! `k = Σ_q w_q Π_d exp(-2π² σ_qd² τ_d²) cos(2π μ_qd τ_d)`, `τ = x - z`: a spectrum of several bumps.

mod periodogram;

use crate::features::{FeatureError, FeatureRecipe, SpectralLaw, Spectrum, halton};
use crate::inputs::{Columns, add_column, lane_sum};
use crate::kernel::{Adjoints, Component, Kernel, Pair, column, entries};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use periodogram::{Waves, waves};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment, Transform};
use std::f64::consts::{PI, TAU};

/// The spectral mixture kernel of A. G. Wilson and R. P. Adams, "Gaussian process kernels for pattern discovery and extrapolation", ICML 2013, eq. 12: weights w, frequencies μ (cycles in one
/// unit of a column) and bandwidths σ (standard deviations of the frequency) of Q components, by column. The weights are variances. Any stationary kernel can be approached with enough components.
///
/// An entry costs Q exponentials and `8 Q D` flops, points `2 Q D` sines.
#[derive(Clone, Debug)]
pub struct SpectralMixture {
    label: String,
    columns: Columns,
    weights: Vec<f64>,
    /// Q x D, component after component.
    frequencies: Vec<f64>,
    /// The same shape.
    bandwidths: Vec<f64>,
    /// Whether it may begin at what targets show.
    from_targets: bool,
}

/// The lowest frequency that is drawn, and the bandwidth of a slow trend.
const LOWEST: f64 = 0.05;
const TREND: f64 = 0.1;

impl SpectralMixture {
    /// `components` of them with equal weights that add up to `variance`. The first is a bump around 0 (a smooth trend, of bandwidth 0.1). Frequencies of the others are spread evenly between 0.05 and 2 cycles
    /// in a standard deviation on a logarithmic scale, in each column in an order of its own (a randomised Halton sequence of `seed`), and their bandwidths are half of that of their
    /// frequency: the evidence has many maxima, so another seed is another start. With a seed of 0 a fit begins at the waves of its targets instead ([`Kernel::begin`]).
    ///
    /// # Panics
    /// When there are no components.
    pub fn new(
        label: impl Into<String>,
        columns: Columns,
        (components, variance): (usize, f64),
        seed: u64,
    ) -> Self {
        assert!(components > 0, "a mixture has at least one component");
        const HIGHEST: f64 = 2.0;
        let d = columns.count();
        let mut rng = Streams::new(seed).stream("kernels/spectral-mixture");
        let places = halton(d, components, &mut rng);
        let frequency = |place: f64| LOWEST * (HIGHEST / LOWEST).powf(place);
        // What is 0 could not be learned on a logarithmic scale.
        let first = std::iter::repeat_n(0.1 * LOWEST, d);
        let others = places.iter().skip(1).flat_map(|p| p.iter().map(|&p| frequency(p)));
        let frequencies: Vec<f64> = first.chain(others).collect();
        let bandwidths =
            frequencies.iter().enumerate().map(|(i, f)| if i < d { TREND } else { 0.5 * f }).collect();
        let weights = vec![variance / components as f64; components];
        Self { label: label.into(), columns, weights, frequencies, bandwidths, from_targets: seed == 0 }
    }

    /// Components behind the first, which stays a trend, become the waves that targets are nearly made of: each with a bandwidth with which it falls out of step over the whole range of its column, and a trend along all others. The trend has the variance that they leave; components that no wave is found for stay where they are.
    fn begin_at(&mut self, columns: &[Vec<f64>], targets: &[f64]) {
        /// Of a cycle over the whole range.
        const IN_STEP: f64 = 0.3;
        let Waves { waves, rest } = waves(columns, targets, self.weights.len() - 1);
        let all = rest + waves.iter().map(|wave| wave.variance).sum::<f64>();
        if waves.is_empty() || !(all > 0.0 && all.is_finite()) {
            return;
        }
        // What is nothing could not be learned on a logarithmic scale.
        let least = 1e-3 * all;
        let share = rest / self.weights.len() as f64;
        self.weights.fill(share.max(least));
        for (q, wave) in waves.iter().enumerate().map(|(k, wave)| (k + 1, wave)) {
            self.weights[q] = wave.variance.max(least);
            for d in 0..self.columns.count() {
                let place = self.place(q, d);
                (self.frequencies[place], self.bandwidths[place]) = match d == wave.column {
                    true => (wave.frequency, IN_STEP / wave.range),
                    false => (0.1 * LOWEST, TREND),
                };
            }
        }
    }

    fn components_count(&self) -> usize {
        self.weights.len()
    }

    /// Where component q has the number of column d.
    fn place(&self, q: usize, d: usize) -> usize {
        q * self.columns.count() + d
    }

    /// The columns, then sines and cosines of `2π μ_qd x_d` for all q and d.
    fn angles<T: Real>(&self, x: MatRef<'_, T>) -> Mat<T> {
        let (dimension, count) = (self.columns.count(), self.frequencies.len());
        let mut out = Mat::zeros(x.nrows(), dimension + 2 * count);
        for (d, &c) in self.columns.indices().iter().enumerate() {
            out.col_as_slice_mut(d).iter_mut().zip(x.col(c).iter()).for_each(|(o, &v)| *o = v);
            for q in 0..self.components_count() {
                let place = self.place(q, d);
                for i in 0..x.nrows() {
                    let (sine, cosine) = (TAU * self.frequencies[place] * x[(i, c)].to_f64()).sin_cos();
                    out[(i, dimension + place)] = T::from_f64(sine);
                    out[(i, dimension + count + place)] = T::from_f64(cosine);
                }
            }
        }
        out
    }

    fn tile<T: Real>(&self, x: Angles<'_, T>, z: Angles<'_, T>, mut out: MatMut<'_, T>) {
        let n = out.nrows();
        let (mut product, mut power) = (vec![T::ZERO; n], vec![T::ZERO; n]);
        dispatch(
            #[inline(always)]
            || {
                let (product, power) = (&mut product[..n], &mut power[..n]);
                for j in 0..out.ncols() {
                    let values = column(&mut out, j);
                    values.fill(T::ZERO);
                    for (q, &weight) in self.weights.iter().enumerate() {
                        product.fill(T::from_f64(weight));
                        power.fill(T::ZERO);
                        for d in 0..self.columns.count() {
                            let place = self.place(q, d);
                            let sharpness = T::from_f64(-2.0 * (PI * self.bandwidths[place]).powi(2));
                            let (xd, zd) = (&x.values(d)[..n], z.values(d)[j]);
                            let (sx, cx) = (&x.sine(place)[..n], &x.cosine(place)[..n]);
                            let (sz, cz) = (z.sine(place)[j], z.cosine(place)[j]);
                            for i in 0..n {
                                let difference = xd[i] - zd;
                                power[i] += sharpness * difference * difference;
                                product[i] *= cx[i] * cz + sx[i] * sz;
                            }
                        }
                        for i in 0..n {
                            values[i] += product[i] * power[i].exp();
                        }
                    }
                }
            },
        );
    }

    /// One component alone.
    fn component(&self, q: usize) -> Self {
        let d = self.columns.count();
        let own = |values: &[f64]| values[q * d..(q + 1) * d].to_vec();
        Self {
            weights: vec![self.weights[q]],
            frequencies: own(&self.frequencies),
            bandwidths: own(&self.bandwidths),
            ..self.clone()
        }
    }
}

/// What [`SpectralMixture::angles`] made, read by column.
#[derive(Clone, Copy)]
struct Angles<'a, T> {
    matrix: MatRef<'a, T>,
    dimension: usize,
    count: usize,
}

impl<'a, T: Real> Angles<'a, T> {
    fn of(matrix: MatRef<'a, T>, kernel: &SpectralMixture) -> Self {
        Self { matrix, dimension: kernel.columns.count(), count: kernel.frequencies.len() }
    }

    #[inline(always)]
    fn values(self, d: usize) -> &'a [T] {
        entries(self.matrix, d)
    }

    #[inline(always)]
    fn sine(self, place: usize) -> &'a [T] {
        entries(self.matrix, self.dimension + place)
    }

    #[inline(always)]
    fn cosine(self, place: usize) -> &'a [T] {
        entries(self.matrix, self.dimension + self.count + place)
    }
}

impl Parameters for SpectralMixture {
    fn segments(&self) -> Vec<Segment> {
        let (q, d) = (self.weights.len(), self.columns.count());
        let segment = |name: &str, shape| Segment {
            name: format!("{}.{name}", self.label),
            shape,
            transform: Transform::Log,
        };
        vec![segment("weight", vec![q]), segment("frequency", vec![q, d]), segment("bandwidth", vec![q, d])]
    }
    fn values(&self) -> Vec<f64> {
        [self.weights.as_slice(), &self.frequencies, &self.bandwidths].concat()
    }
    fn set_values(&mut self, values: &[f64]) {
        let (weights, rest) = values.split_at(self.weights.len());
        let (frequencies, bandwidths) = rest.split_at(self.frequencies.len());
        self.weights.copy_from_slice(weights);
        self.frequencies.copy_from_slice(frequencies);
        self.bandwidths.copy_from_slice(bandwidths);
    }
}

impl<T: Real> Kernel<T> for SpectralMixture {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        let (x, z) = (self.angles(pair.x), self.angles(pair.z));
        self.tile(Angles::of(x.as_ref(), self), Angles::of(z.as_ref(), self), out);
    }

    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        Prepared::own(self.angles(x))
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        _same: Option<(usize, usize)>,
        out: MatMut<'_, T>,
    ) {
        self.tile(Angles::of(x.matrix(), self), Angles::of(z.matrix(), self), out);
    }

    fn diagonal(&self, _x: MatRef<'_, T>, out: &mut [T]) {
        out.fill(T::from_f64(self.weights.iter().sum()));
    }

    fn values_at(&self, _x: PreparedBlock<'_, T>, out: &mut [T]) {
        out.fill(T::from_f64(self.weights.iter().sum()));
    }

    fn pullback_values_at(&self, _x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        let sum: f64 = adjoint.iter().map(|a| a.to_f64()).sum();
        parameters.iter_mut().take(self.weights.len()).for_each(|p| *p += sum);
    }

    /// Nothing: it is the sum of the weights everywhere.
    fn pullback_values_to_points(&self, _x: MatRef<'_, T>, _adjoint: &[T], _out: &mut Mat<T>) {}

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let request = adjoints.request();
        let (x, z) = (self.angles(pair.x), self.angles(pair.z));
        let (x, z) = (Angles::of(x.as_ref(), self), Angles::of(z.as_ref(), self));
        let (n, m, dimension) = (adjoint.nrows(), adjoint.ncols(), self.columns.count());
        let count = self.frequencies.len();
        // Adjoint times the exponential; products of the cosines before each column, and of those behind it.
        let (mut h, mut behind) = (vec![T::ZERO; n], vec![T::ZERO; n]);
        let mut before = vec![vec![T::ZERO; n]; dimension + 1];
        let (mut slope, mut toward_frequency, mut toward_bandwidth) =
            (vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]);
        let (mut by_weight, mut by_frequency, mut by_bandwidth) =
            (vec![0.0; self.weights.len()], vec![0.0; count], vec![0.0; count]);
        dispatch(
            #[inline(always)]
            || {
                for j in 0..m {
                    let g = &entries(adjoint, j)[..n];
                    for (q, &weight) in self.weights.iter().enumerate() {
                        h.fill(T::ZERO);
                        before[0].fill(T::ONE);
                        for d in 0..dimension {
                            let place = self.place(q, d);
                            let sharpness = T::from_f64(-2.0 * (PI * self.bandwidths[place]).powi(2));
                            let (xd, zd) = (&x.values(d)[..n], z.values(d)[j]);
                            let (sx, cx) = (&x.sine(place)[..n], &x.cosine(place)[..n]);
                            let (sz, cz) = (z.sine(place)[j], z.cosine(place)[j]);
                            let (first, rest) = before.split_at_mut(d + 1);
                            let (own, next) = (&first[d][..n], &mut rest[0][..n]);
                            for i in 0..n {
                                let difference = xd[i] - zd;
                                h[i] += sharpness * difference * difference;
                                next[i] = own[i] * (cx[i] * cz + sx[i] * sz);
                            }
                        }
                        for i in 0..n {
                            h[i] = g[i] * h[i].exp();
                        }
                        let whole = &before[dimension][..n];
                        by_weight[q] += lane_sum(
                            n,
                            #[inline(always)]
                            |i| h[i] * whole[i],
                        );
                        if !(request.parameters || request.x || request.z) {
                            continue;
                        }
                        behind.fill(T::from_f64(weight));
                        for d in (0..dimension).rev() {
                            let place = self.place(q, d);
                            let (mu, sigma) = (self.frequencies[place], self.bandwidths[place]);
                            let (xd, zd) = (&x.values(d)[..n], z.values(d)[j]);
                            let (sx, cx) = (&x.sine(place)[..n], &x.cosine(place)[..n]);
                            let (sz, cz) = (z.sine(place)[j], z.cosine(place)[j]);
                            let own = &before[d][..n];
                            let minus_tau = T::from_f64(-TAU);
                            let (frequency, width) =
                                (T::from_f64(mu), T::from_f64(-4.0 * PI * PI * sigma * sigma));
                            for i in 0..n {
                                let difference = xd[i] - zd;
                                let (sine, cosine) = (sx[i] * cz - cx[i] * sz, cx[i] * cz + sx[i] * sz);
                                let others = h[i] * own[i] * behind[i];
                                // In this order a distance that is too large to be squared meets 0 first.
                                let stretched = difference * (others * cosine);
                                let turned = minus_tau * others * sine;
                                slope[i] = width * stretched + frequency * turned;
                                toward_frequency[i] = difference * turned;
                                toward_bandwidth[i] = difference * stretched;
                                behind[i] *= cosine;
                            }
                            if request.parameters {
                                by_frequency[place] += lane_sum(
                                    n,
                                    #[inline(always)]
                                    |i| toward_frequency[i],
                                );
                                by_bandwidth[place] += -4.0
                                    * PI
                                    * PI
                                    * sigma
                                    * lane_sum(
                                        n,
                                        #[inline(always)]
                                        |i| toward_bandwidth[i],
                                    );
                            }
                            let c = self.columns.indices()[d];
                            if let Some(target) = &mut adjoints.x {
                                add_column(target, c, &slope);
                            }
                            if let Some(target) = &mut adjoints.z {
                                let sum = lane_sum(
                                    n,
                                    #[inline(always)]
                                    |i| slope[i],
                                );
                                target[(j, c)] -= T::from_f64(sum);
                            }
                        }
                    }
                }
            },
        );
        if request.parameters {
            let own = by_weight.iter().chain(&by_frequency).chain(&by_bandwidth);
            adjoints.parameters.iter_mut().zip(own).for_each(|(p, v)| *p += v);
        }
        by_weight.iter().zip(&self.weights).map(|(s, w)| s * w).sum()
    }

    /// Of each component: normal frequencies around plus or minus its own.
    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        let of_component = |q: usize| {
            let range = q * self.columns.count()..(q + 1) * self.columns.count();
            let lengthscales = self.bandwidths[range.clone()].iter().map(|s| 1.0 / (TAU * s)).collect();
            let spectrum = Spectrum {
                means: self.frequencies[range].iter().map(|f| TAU * f).collect(),
                ..Spectrum::new(self.columns.indices().to_vec(), lengthscales, SpectralLaw::Normal)
            };
            let waves = FeatureRecipe::Waves { spectra: vec![spectrum], categories: Vec::new() };
            FeatureRecipe::Scaled(self.weights[q], Box::new(waves))
        };
        Ok(FeatureRecipe::Sum((0..self.components_count()).map(of_component).collect()))
    }

    fn components(&self) -> Vec<Component<T>> {
        let single = |q: usize| Component {
            label: format!("{} {}", self.label, q + 1),
            order: None,
            columns: Vec::new(),
            kernel: Box::new(self.component(q)) as Box<dyn Kernel<T>>,
            parts: Vec::new(),
            part_of: None,
        };
        (0..self.components_count()).map(single).collect()
    }

    /// At the waves that targets are nearly made of, unless a seed says where.
    fn begin(&mut self, x: MatRef<'_, T>, targets: &[f64]) {
        if self.from_targets && self.weights.len() > 1 {
            let column = |&c: &usize| (0..x.nrows()).map(|i| x[(i, c)].to_f64()).collect();
            let columns: Vec<Vec<f64>> = self.columns.indices().iter().map(column).collect();
            self.begin_at(&columns, targets);
        }
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
