//! Frequencies of random waves, drawn at lengthscale 1.

use super::FrequencyDraw;
use super::halton::halton;
use super::law::SpectralLaw;
use super::recipe::Spectrum;
use super::widened::widen;
use faer::Mat;
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand::seq::index;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use statrs::distribution::{ContinuousCDF, Gamma, Normal};
use std::f64::consts::TAU;

/// What the frequencies of one spectrum are made of, whatever its lengthscales.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// Standard normal directions, D x L.
    pub(super) normals: Mat<f64>,
    /// What makes the factor that all coordinates of a frequency share (L), or each alone where a frequency has some columns only (D of L): a χ² variable for Student's t, a uniform one for
    /// the gamma mixture, nothing for the normal law.
    mixing: Vec<Vec<f64>>,
    /// 1 for the columns that a frequency has and 0 for others, D x L; none where it has all.
    pub(super) support: Option<Mat<f64>>,
    /// Signs of the means, D x L; none without means.
    signs: Option<Mat<f64>>,
}

/// Bases of all spectra, and phases in turns.
pub(super) struct Drawn {
    pub(super) bases: Vec<Base>,
    /// What each wave's power is multiplied by (L); none where all have 1.
    pub(super) weights: Option<Vec<f64>>,
    pub(super) phases: Vec<f64>,
}

/// Draws L frequencies for the given spectra, whatever their lengthscales, and L phases.
pub(super) fn draw(spectra: &[Spectrum], count: usize, how: FrequencyDraw, streams: Streams) -> Drawn {
    if how == FrequencyDraw::QuasiRandom {
        return quasi_random(spectra, count, streams);
    }
    let mut bases: Vec<Base> = spectra
        .iter()
        .enumerate()
        .map(|(index, spectrum)| {
            let dimension = spectrum.columns.len();
            let mut rng = streams.stream(&format!("kernels/frequencies#{index}"));
            let normals = match how {
                FrequencyDraw::Orthogonal => orthogonal(dimension, count, &mut rng),
                _ => Mat::from_fn(dimension, count, |_, _| StandardNormal.sample(&mut rng)),
            };
            Base::new(spectrum, normals, mixing(spectrum, count, index, streams), index, streams)
        })
        .collect();
    let weights = (how == FrequencyDraw::Widened).then(|| widen(&mut bases, spectra, count)).flatten();
    let mut rng = streams.stream("kernels/phases");
    Drawn { bases, weights, phases: (0..count).map(|_| rng.random()).collect() }
}

/// What the factors of frequencies are made of: one for all coordinates, or one for each where a frequency has some columns only.
fn mixing(spectrum: &Spectrum, count: usize, index: usize, streams: Streams) -> Vec<Vec<f64>> {
    let mut rng = streams.stream(&format!("kernels/mixing#{index}"));
    let mut draw = || match spectrum.law {
        SpectralLaw::Normal => Vec::new(),
        SpectralLaw::StudentT { degrees } => {
            let law = ChiSquared::new(f64::from(degrees.max(1))).expect("a positive number of degrees");
            (0..count).map(|_| law.sample(&mut rng)).collect()
        }
        SpectralLaw::GammaMixture { .. } => (0..count).map(|_| rng.random()).collect(),
    };
    (0..spectrum.support.map_or(1, |_| spectrum.columns.len())).map(|_| draw()).collect()
}

/// Blocks of D orthogonal directions with the lengths that independent normal vectors have. Each is normal; together they cover
/// directions evenly. Source: F. X. Yu and others, "Orthogonal random features", NeurIPS 2016, section 3.
fn orthogonal(dimension: usize, count: usize, rng: &mut impl RngExt) -> Mat<f64> {
    let mut out = Mat::zeros(dimension, count);
    if dimension == 0 {
        return out;
    }
    for start in (0..count).step_by(dimension) {
        let square = Mat::<f64>::from_fn(dimension, dimension, |_, _| StandardNormal.sample(rng));
        let (q, r) = posterior_linalg::dense::qr(square.as_ref());
        for j in 0..dimension.min(count - start) {
            let length = (0..dimension)
                .map(|_| {
                    let g: f64 = StandardNormal.sample(rng);
                    g * g
                })
                .sum::<f64>()
                .sqrt();
            // The sign makes the rotation uniform.
            let factor = if r[(j, j)] < 0.0 { -length } else { length };
            (0..dimension).for_each(|d| out[(d, start + j)] = factor * q[(d, j)]);
        }
    }
    out
}

/// Normal vectors, χ² variables (as sums of squares of normal ones), uniform ones and phases, all from one evenly spread set of points.
fn quasi_random(spectra: &[Spectrum], count: usize, streams: Streams) -> Drawn {
    // Factors of single coordinates would make points of very many coordinates, whose sequences are no more even than chance: those are by chance.
    let extra = |spectrum: &Spectrum| match spectrum.law {
        _ if spectrum.support.is_some() => 0,
        SpectralLaw::Normal => 0,
        SpectralLaw::StudentT { degrees } => degrees as usize,
        SpectralLaw::GammaMixture { .. } => 1,
    };
    let total: usize = spectra.iter().map(|s| s.columns.len() + extra(s)).sum();
    let points = halton(total + 1, count, &mut streams.stream("kernels/halton"));
    let standard = Normal::standard();
    let mut first = 0;
    let bases = spectra
        .iter()
        .enumerate()
        .map(|(index, spectrum)| {
            let dimension = spectrum.columns.len();
            let normals = Mat::from_fn(dimension, count, |d, l| standard.inverse_cdf(points[l][first + d]));
            let after = first + dimension;
            let mixing = match spectrum.law {
                _ if spectrum.support.is_some() => mixing(spectrum, count, index, streams),
                SpectralLaw::Normal => vec![Vec::new()],
                SpectralLaw::StudentT { degrees } => {
                    let square = |p: &[f64], k: usize| standard.inverse_cdf(p[after + k]).powi(2);
                    let sum = |p: &Vec<f64>| (0..degrees as usize).map(|k| square(p, k)).sum::<f64>();
                    vec![points.iter().map(sum).collect()]
                }
                SpectralLaw::GammaMixture { .. } => vec![points.iter().map(|p| p[after]).collect()],
            };
            first = after + extra(spectrum);
            Base::new(spectrum, normals, mixing, index, streams)
        })
        .collect();
    Drawn { bases, weights: None, phases: points.iter().map(|p| p[total]).collect() }
}

impl Base {
    fn new(
        spectrum: &Spectrum,
        normals: Mat<f64>,
        mixing: Vec<Vec<f64>>,
        index: usize,
        streams: Streams,
    ) -> Self {
        let (dimension, count) = normals.shape();
        let support = spectrum.support.map(|size| {
            let mut rng = streams.stream(&format!("kernels/supports#{index}"));
            let mut out = Mat::zeros(dimension, count);
            for l in 0..count {
                index::sample(&mut rng, dimension, size).into_iter().for_each(|d| out[(d, l)] = 1.0);
            }
            out
        });
        let signs = (!spectrum.means.is_empty()).then(|| {
            let mut rng = streams.stream(&format!("kernels/signs#{index}"));
            Mat::from_fn(dimension, count, |_, _| if rng.random::<bool>() { 1.0 } else { -1.0 })
        });
        Self { normals, mixing, support, signs }
    }

    /// What coordinate d of frequency l is multiplied by (every coordinate, where they share a factor).
    pub(super) fn factor_of(&self, law: SpectralLaw, d: usize, l: usize) -> f64 {
        self.factor(law, &self.mixing[d.min(self.mixing.len() - 1)], l)
    }

    /// What all coordinates of frequency l are multiplied by, made of a mixing variable.
    fn factor(&self, law: SpectralLaw, mixing: &[f64], l: usize) -> f64 {
        match law {
            SpectralLaw::Normal => 1.0,
            SpectralLaw::StudentT { degrees } => (f64::from(degrees) / mixing[l]).sqrt(),
            // No gamma law has such a shape: the kernel's own values are NaN, too.
            SpectralLaw::GammaMixture { shape } => {
                Gamma::new(shape, shape).map_or(f64::NAN, |g| g.inverse_cdf(mixing[l]).sqrt())
            }
        }
    }

    /// Adds the frequencies, in turns for a unit of each of the columns, to the rows of `turns` that `rows` names.
    pub(super) fn add_turns(&self, spectrum: &Spectrum, rows: &[usize], turns: &mut Mat<f64>) {
        let factor = |mixing: &[f64], l: usize| self.factor(spectrum.law, mixing, l);
        for l in 0..self.normals.ncols() {
            let shared = if self.mixing.len() == 1 { factor(&self.mixing[0], l) } else { 1.0 };
            for (d, (&row, lengthscale)) in rows.iter().zip(&spectrum.lengthscales).enumerate() {
                let support = self.support.as_ref().map_or(1.0, |support| support[(d, l)]);
                if support == 0.0 {
                    continue;
                }
                let own = if self.mixing.len() == 1 { shared } else { factor(&self.mixing[d], l) };
                let mean = self.signs.as_ref().map_or(0.0, |signs| signs[(d, l)] * spectrum.means[d]);
                turns[(row, l)] += own * self.normals[(d, l)] / (TAU * lengthscale) + mean / TAU;
            }
        }
    }
}
