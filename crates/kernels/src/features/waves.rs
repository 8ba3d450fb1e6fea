//! One stationary term: cosines of random frequencies.

use super::categories::{CategoryFeatures, Modulation, least_waves};
use super::frequencies::draw;
use super::recipe::Spectrum;
use super::turns::sin_cos;
use super::{FeatureForm, FeatureSettings};
use crate::kernel::{column, entries};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use posterior_linalg::vectorised::dispatch;

/// `a cos(2π(x·f_l + τ_l))`, or `a cos(2π x·f_l)` for all l followed by `a sin(2π x·f_l)` for all l; times factors of the categories, where there are any.
#[derive(Clone, Debug)]
pub(super) struct Waves<T> {
    /// Columns that any of the spectra looks at.
    columns: Vec<usize>,
    /// Frequencies in turns, columns x L.
    turns: Mat<T>,
    /// Phases in turns (L); none in the paired form.
    phases: Option<Vec<T>>,
    /// One for each frequency.
    amplitudes: Vec<T>,
    modulations: Vec<Modulation<T>>,
}

impl<T: Real> Waves<T> {
    pub(super) fn new(
        root: f64,
        spectra: &[Spectrum],
        categories: &[CategoryFeatures],
        settings: &FeatureSettings,
        streams: Streams,
    ) -> Self {
        let frequencies = match settings.form {
            FeatureForm::Phase => settings.count,
            FeatureForm::Paired => settings.count.div_ceil(2),
        };
        let frequencies = frequencies.max(least_waves(categories));
        let drawn = draw(spectra, frequencies, settings.frequencies, streams);
        let mut columns: Vec<usize> = spectra.iter().flat_map(|s| s.columns.iter().copied()).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut turns = Mat::zeros(columns.len(), frequencies);
        for (base, spectrum) in drawn.bases.iter().zip(spectra) {
            let rows: Vec<usize> =
                spectrum.columns.iter().filter_map(|c| columns.binary_search(c).ok()).collect();
            base.add_turns(spectrum, &rows, &mut turns);
        }
        let phases = drawn.phases.iter().map(|&p| T::from_f64(p)).collect();
        // √(2/d) for d phases; √(1/L) for L pairs.
        let share = if settings.form == FeatureForm::Phase { 2.0 } else { 1.0 } / frequencies as f64;
        let weight = |l: usize| drawn.weights.as_ref().map_or(1.0, |weights| weights[l]);
        Self {
            turns: Mat::from_fn(turns.nrows(), turns.ncols(), |d, l| T::from_f64(turns[(d, l)])),
            columns,
            phases: (settings.form == FeatureForm::Phase).then_some(phases),
            amplitudes: (0..frequencies).map(|l| T::from_f64(root * (share * weight(l)).sqrt())).collect(),
            modulations: Modulation::all(categories, frequencies, streams),
        }
    }

    /// The product of what categories make of each wave, of all columns of categories but one (None: of all); nothing where there are no categories.
    fn factors(modulations: &[Mat<T>], without: Option<usize>) -> Option<Mat<T>> {
        let mut rest = modulations.iter().enumerate().filter(|(k, _)| Some(*k) != without).map(|(_, m)| m);
        let mut product = rest.next()?.clone();
        for other in rest {
            multiply(product.as_mut(), other.as_ref());
        }
        Some(product)
    }

    fn modulations(&self, x: MatRef<'_, T>) -> Vec<Mat<T>> {
        self.modulations.iter().map(|m| m.values(x)).collect()
    }

    pub(super) fn count(&self) -> usize {
        if self.phases.is_some() { self.turns.ncols() } else { 2 * self.turns.ncols() }
    }

    /// Angles in turns, phases included.
    fn angles(&self, x: MatRef<'_, T>, mut out: MatMut<'_, T>) {
        let points = Mat::from_fn(x.nrows(), self.columns.len(), |i, d| x[(i, self.columns[d])]);
        matmul(out.as_mut(), Accum::Replace, &points, &self.turns, T::ONE, Par::Seq);
        for (l, &phase) in self.phases.iter().flatten().enumerate() {
            column(&mut out, l).iter_mut().for_each(|v| *v += phase);
        }
    }

    pub(super) fn evaluate(&self, x: MatRef<'_, T>, out: MatMut<'_, T>) {
        let (mut cosines, mut sines) = out.split_at_col_mut(self.turns.ncols());
        self.angles(x, cosines.as_mut());
        let paired = self.phases.is_none();
        dispatch(
            #[inline(always)]
            || {
                for l in 0..cosines.ncols() {
                    let amplitude = self.amplitudes[l];
                    let cosines = column(&mut cosines, l);
                    if paired {
                        let sines = &mut column(&mut sines, l)[..cosines.len()];
                        for i in 0..cosines.len() {
                            let (s, c) = sin_cos(cosines[i]);
                            (cosines[i], sines[i]) = (amplitude * c, amplitude * s);
                        }
                    } else {
                        for v in cosines {
                            *v = amplitude * sin_cos(*v).1;
                        }
                    }
                }
            },
        );
        if let Some(factors) = Self::factors(&self.modulations(x), None) {
            multiply(cosines, factors.as_ref());
            if paired {
                multiply(sines, factors.as_ref());
            }
        }
    }

    /// What `slopes` contribute to the columns of categories.
    fn pull_categories(
        &self,
        x: MatRef<'_, T>,
        modulations: &[Mat<T>],
        slopes: MatRef<'_, T>,
        mut out: MatMut<'_, T>,
    ) {
        let waves = self.turns.ncols();
        let mut adjoint = Mat::zeros(x.nrows(), waves);
        self.angles(x, adjoint.as_mut());
        for l in 0..waves {
            for (i, value) in adjoint.col_as_slice_mut(l).iter_mut().enumerate() {
                let (s, c) = sin_cos(*value);
                let paired = if self.phases.is_none() { s * slopes[(i, waves + l)] } else { T::ZERO };
                *value = self.amplitudes[l] * (c * slopes[(i, l)] + paired);
            }
        }
        for (k, modulation) in self.modulations.iter().enumerate() {
            let mut own = adjoint.clone();
            if let Some(others) = Self::factors(modulations, Some(k)) {
                multiply(own.as_mut(), others.as_ref());
            }
            modulation.pullback(own.as_ref(), out.as_mut());
        }
    }

    /// `out_id += Σ_l slopes_il ∂φ_l(x_i)/∂x_id`
    pub(super) fn pullback(&self, x: MatRef<'_, T>, slopes: MatRef<'_, T>, mut out: MatMut<'_, T>) {
        let waves = self.turns.ncols();
        let modulations = self.modulations(x);
        if !modulations.is_empty() {
            self.pull_categories(x, &modulations, slopes, out.as_mut());
        }
        let mut angles = Mat::zeros(x.nrows(), waves);
        self.angles(x, angles.as_mut());
        let paired = self.phases.is_none();
        dispatch(
            #[inline(always)]
            || {
                for l in 0..waves {
                    let factor = self.amplitudes[l] * T::from_f64(std::f64::consts::TAU);
                    let angles = angles.col_as_slice_mut(l);
                    let cosine = &entries(slopes, l)[..angles.len()];
                    if paired {
                        let sine = &entries(slopes, waves + l)[..angles.len()];
                        for i in 0..angles.len() {
                            let (s, c) = sin_cos(angles[i]);
                            angles[i] = factor * (c * sine[i] - s * cosine[i]);
                        }
                    } else {
                        for i in 0..angles.len() {
                            angles[i] = -(factor * sin_cos(angles[i]).0 * cosine[i]);
                        }
                    }
                }
            },
        );
        if let Some(factors) = Self::factors(&modulations, None) {
            multiply(angles.as_mut(), factors.as_ref());
        }
        let mut toward = Mat::zeros(x.nrows(), self.columns.len());
        matmul(toward.as_mut(), Accum::Replace, &angles, self.turns.transpose(), T::ONE, Par::Seq);
        for (d, &c) in self.columns.iter().enumerate() {
            out.as_mut().col_mut(c).iter_mut().zip(toward.col_as_slice(d)).for_each(|(o, &t)| *o += t);
        }
    }
}

/// `target *= other`, entry by entry.
fn multiply<T: Real>(mut target: MatMut<'_, T>, other: MatRef<'_, T>) {
    for l in 0..other.ncols() {
        column(&mut target, l).iter_mut().zip(entries(other, l)).for_each(|(t, &o)| *t *= o);
    }
}
