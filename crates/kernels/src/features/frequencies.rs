//! Frequencies of random waves, drawn at lengthscale 1.

use super::FrequencyDraw;
use super::halton::halton;
use super::recipe::SpectralLaw;
use faer::Mat;
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use statrs::distribution::{ContinuousCDF, Gamma, Normal};

/// What the frequencies of one spectrum are made of, whatever its lengthscales.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// Standard normal directions, D x L.
    normals: Mat<f64>,
    /// What makes the factor that all coordinates of a frequency share (L): a χ² variable for Student's t, a uniform one for the gamma
    /// mixture, nothing for the normal law.
    mixing: Vec<f64>,
}

/// Bases of all spectra, and phases in turns.
pub(super) struct Drawn {
    pub(super) bases: Vec<Base>,
    pub(super) phases: Vec<f64>,
}

/// Draws L frequencies for spectra with the given laws and numbers of columns, and L phases.
pub(super) fn draw(
    spectra: &[(SpectralLaw, usize)],
    count: usize,
    how: FrequencyDraw,
    streams: Streams,
) -> Drawn {
    if how == FrequencyDraw::QuasiRandom {
        return quasi_random(spectra, count, streams);
    }
    let bases = spectra
        .iter()
        .enumerate()
        .map(|(index, &(law, dimension))| {
            let mut rng = streams.stream(&format!("kernels/frequencies#{index}"));
            let normals = match how {
                FrequencyDraw::Orthogonal => orthogonal(dimension, count, &mut rng),
                _ => Mat::from_fn(dimension, count, |_, _| StandardNormal.sample(&mut rng)),
            };
            let mut rng = streams.stream(&format!("kernels/mixing#{index}"));
            let mixing = match law {
                SpectralLaw::Normal => Vec::new(),
                SpectralLaw::StudentT { degrees } => {
                    let law =
                        ChiSquared::new(f64::from(degrees.max(1))).expect("a positive number of degrees");
                    (0..count).map(|_| law.sample(&mut rng)).collect()
                }
                SpectralLaw::GammaMixture { .. } => (0..count).map(|_| rng.random()).collect(),
            };
            Base { normals, mixing }
        })
        .collect();
    let mut rng = streams.stream("kernels/phases");
    Drawn { bases, phases: (0..count).map(|_| rng.random()).collect() }
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
fn quasi_random(spectra: &[(SpectralLaw, usize)], count: usize, streams: Streams) -> Drawn {
    let extra = |law: SpectralLaw| match law {
        SpectralLaw::Normal => 0,
        SpectralLaw::StudentT { degrees } => degrees as usize,
        SpectralLaw::GammaMixture { .. } => 1,
    };
    let total: usize = spectra.iter().map(|&(law, dimension)| dimension + extra(law)).sum();
    let points = halton(total + 1, count, &mut streams.stream("kernels/halton"));
    let standard = Normal::standard();
    let mut first = 0;
    let bases = spectra
        .iter()
        .map(|&(law, dimension)| {
            let normals = Mat::from_fn(dimension, count, |d, l| standard.inverse_cdf(points[l][first + d]));
            let after = first + dimension;
            let mixing = match law {
                SpectralLaw::Normal => Vec::new(),
                SpectralLaw::StudentT { degrees } => points
                    .iter()
                    .map(|p| {
                        (0..degrees as usize).map(|k| standard.inverse_cdf(p[after + k]).powi(2)).sum::<f64>()
                    })
                    .collect(),
                SpectralLaw::GammaMixture { .. } => points.iter().map(|p| p[after]).collect(),
            };
            first = after + extra(law);
            Base { normals, mixing }
        })
        .collect();
    Drawn { bases, phases: points.iter().map(|p| p[total]).collect() }
}

impl Base {
    /// Adds the frequencies, in turns for a unit of each of the columns, to the rows of `turns` that `rows` names.
    pub(super) fn add_turns(
        &self,
        law: SpectralLaw,
        lengthscales: &[f64],
        rows: &[usize],
        turns: &mut Mat<f64>,
    ) {
        let gamma = match law {
            SpectralLaw::GammaMixture { shape } => Gamma::new(shape, shape).ok(),
            _ => None,
        };
        for l in 0..self.normals.ncols() {
            let factor = match law {
                SpectralLaw::Normal => 1.0,
                SpectralLaw::StudentT { degrees } => (f64::from(degrees) / self.mixing[l]).sqrt(),
                // No gamma law has such a shape: the kernel's own values are NaN, too.
                SpectralLaw::GammaMixture { .. } => {
                    gamma.map_or(f64::NAN, |g| g.inverse_cdf(self.mixing[l]).sqrt())
                }
            };
            for (d, (&row, lengthscale)) in rows.iter().zip(lengthscales).enumerate() {
                turns[(row, l)] += factor * self.normals[(d, l)] / (std::f64::consts::TAU * lengthscale);
            }
        }
    }
}
