//! Optimisers and averages on dense gradients.

use crate::GpError;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::solve::SolveError;
use posterior_linalg::vectorised::{add_scaled, dispatch};
use serde::{Deserialize, Serialize};

/// How a gradient becomes a step. Gradients are divided by the number of rows, and the step size is βn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DescentRule {
    /// `v <- ρ v - β g(α + ρ v)`, `α <- α + v`.
    Nesterov {
        /// ρ
        momentum: f64,
    },
    /// `v <- ρ v - β g(α)`, `α <- α + v`.
    HeavyBall {
        /// ρ
        momentum: f64,
    },
    /// `α <- α - β g`.
    Plain,
    /// `G <- G + g²`, `α <- α - β g / (√G + ε)`.
    AdaGrad,
    /// `G <- 0.9 G + 0.1 g²`, `α <- α - β g / (√G + ε)`.
    RmsProp,
    /// Bias-corrected moments with decays 0.9 and 0.999.
    Adam,
}

/// ε of the rules that divide by a root of squared gradients.
const EPSILON: f64 = 1e-8;

impl DescentRule {
    /// ρ of the rules with momentum, else 0.
    pub fn momentum(self) -> f64 {
        match self {
            Self::Nesterov { momentum } | Self::HeavyBall { momentum } => momentum,
            _ => 0.0,
        }
    }
}

/// Which iterate is returned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Averaging {
    /// The last.
    None,
    /// The mean of all iterates after a step (Polyak and Ruppert); the last iterate before.
    Arithmetic {
        /// Steps that are left out.
        from: usize,
    },
    /// `ᾱ <- χ α + (1 - χ) ᾱ` with `χ = 100 / steps`, at most 1.
    Geometric,
}

/// Everything that an engine is told once.
#[derive(Clone, Copy, Debug)]
pub(in crate::iterative) struct EngineSettings {
    pub(in crate::iterative) rule: DescentRule,
    pub(in crate::iterative) averaging: Averaging,
    /// Largest Euclidean norm of a column's gradient divided by the number of data rows.
    pub(in crate::iterative) clip: Option<f64>,
    /// Terms of the objective's sum.
    pub(in crate::iterative) data_rows: usize,
    pub(in crate::iterative) planned: usize,
}

impl EngineSettings {
    /// # Errors
    /// [`SolveError::Setting`] for a momentum outside [0, 1) or a clip that is not positive.
    pub(in crate::iterative) fn check(&self) -> Result<(), GpError> {
        let momentum = self.rule.momentum();
        let bad = |what, value, needed| Err(SolveError::Setting { what, value, needed }.into());
        if !(0.0..1.0).contains(&momentum) {
            return bad("the momentum", momentum, "at least 0 and below 1");
        }
        match self.clip {
            Some(clip) if clip.is_nan() || clip <= 0.0 => bad("the clipping norm", clip, "positive"),
            _ => Ok(()),
        }
    }
}

/// Names of an engine's blocks.
pub(in crate::iterative) const BLOCKS: [&str; 4] = ["iterate", "first", "second", "average"];

/// Iterate, the rule's two memories, and average; all k columns move independently.
#[derive(Clone, Debug)]
pub(in crate::iterative) struct Engine<T: Real> {
    settings: EngineSettings,
    pub(in crate::iterative) blocks: [Mat<T>; 4],
    pub(in crate::iterative) step: usize,
    pub(in crate::iterative) from_zero: bool,
}

impl<T: Real> Engine<T> {
    /// At rest at `start`, or at zero (m x k).
    pub(in crate::iterative) fn new(
        settings: EngineSettings,
        shape: (usize, usize),
        start: Option<MatRef<'_, T>>,
    ) -> Self {
        let zero = Mat::zeros(shape.0, shape.1);
        let place = start.map_or_else(|| zero.clone(), |s| s.to_owned());
        let blocks = [place.clone(), zero.clone(), zero, place];
        Self { settings, blocks, step: 0, from_zero: start.is_none() }
    }

    /// As it was.
    pub(in crate::iterative) fn resumed(
        settings: EngineSettings,
        blocks: [Mat<T>; 4],
        step: usize,
        from_zero: bool,
    ) -> Self {
        Self { settings, blocks, step, from_zero }
    }

    /// Where the next gradient is wanted.
    pub(in crate::iterative) fn point(&self) -> Mat<T> {
        let [alpha, velocity, ..] = &self.blocks;
        match self.settings.rule {
            DescentRule::Nesterov { momentum } => {
                let (rho, mut point) = (T::from_f64(momentum), alpha.clone());
                dispatch(
                    #[inline(always)]
                    || {
                        for j in 0..point.ncols() {
                            add_scaled(rho, velocity.col_as_slice(j), point.col_as_slice_mut(j));
                        }
                    },
                );
                point
            }
            _ => alpha.clone(),
        }
    }

    /// Takes a step of size `times_rows` (βn) against the gradient of the whole sum at [`Engine::point`].
    pub(in crate::iterative) fn step_along(&mut self, gradient: &Mat<T>, times_rows: f64) {
        self.step += 1;
        let n = self.settings.data_rows as f64;
        let rule = self.settings.rule;
        let rho = T::from_f64(rule.momentum());
        let rate = T::from_f64(times_rows);
        let epsilon = T::from_f64(EPSILON);
        let power = self.step.min(i32::MAX as usize) as i32;
        let corrections = [0.9f64, 0.999].map(|decay| T::from_f64(1.0 / (1.0 - decay.powi(power))));
        let weight = self.weight();
        let chi = T::from_f64(weight);
        let [alpha, first, second, average] = &mut self.blocks;
        for j in 0..gradient.ncols() {
            let column = gradient.col_as_slice(j);
            let mut scale = 1.0 / n;
            if let Some(clip) = self.settings.clip {
                let norm = column.iter().map(|g| g.to_f64() * g.to_f64()).sum::<f64>().sqrt() / n;
                if norm > clip {
                    scale *= clip / norm;
                }
            }
            let scale = T::from_f64(scale);
            let (alpha, first) = (alpha.col_as_slice_mut(j), first.col_as_slice_mut(j));
            let (second, average) = (second.col_as_slice_mut(j), average.col_as_slice_mut(j));
            for i in 0..column.len() {
                let g = column[i] * scale;
                let step = match rule {
                    DescentRule::Nesterov { .. } | DescentRule::HeavyBall { .. } => {
                        first[i] = rho * first[i] - rate * g;
                        first[i]
                    }
                    DescentRule::Plain => -(rate * g),
                    DescentRule::AdaGrad => {
                        second[i] += g * g;
                        -(rate * g) / (Real::sqrt(second[i]) + epsilon)
                    }
                    DescentRule::RmsProp => {
                        second[i] += T::from_f64(0.1) * (g * g - second[i]);
                        -(rate * g) / (Real::sqrt(second[i]) + epsilon)
                    }
                    DescentRule::Adam => {
                        first[i] += T::from_f64(0.1) * (g - first[i]);
                        second[i] += T::from_f64(0.001) * (g * g - second[i]);
                        let size = Real::sqrt(second[i] * corrections[1]) + epsilon;
                        -(rate * first[i] * corrections[0]) / size
                    }
                };
                alpha[i] += step;
                average[i] += chi * (alpha[i] - average[i]);
            }
        }
    }

    /// Weight of the newest iterate in the average.
    fn weight(&self) -> f64 {
        match self.settings.averaging {
            Averaging::None => 1.0,
            Averaging::Geometric => (100.0 / self.settings.planned.max(1) as f64).min(1.0),
            Averaging::Arithmetic { from } => 1.0 / self.step.saturating_sub(from).max(1) as f64,
        }
    }

    /// The average, m x k; with the weight that a start at zero still has in a geometric one taken out.
    pub(in crate::iterative) fn average(&self) -> Mat<T> {
        let mut out = self.blocks[3].clone();
        if self.settings.averaging == Averaging::Geometric && self.from_zero && self.step > 0 {
            let bias = -(self.step as f64 * (-self.weight()).ln_1p()).exp_m1();
            out *= faer::Scale(T::from_f64(1.0 / bias));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(rule: DescentRule, averaging: Averaging, clip: Option<f64>) -> Engine<f64> {
        let settings = EngineSettings { rule, averaging, clip, data_rows: 2, planned: 1000 };
        Engine::new(settings, (2, 1), None)
    }

    fn column(values: [f64; 2]) -> Mat<f64> {
        Mat::from_fn(2, 1, |i, _| values[i])
    }

    #[test]
    fn two_steps_of_every_rule_by_hand() {
        let cases: [(DescentRule, f64); 6] = [
            // g/n = 1, then 2, with β n = 0.1 and ρ = 0.5
            (DescentRule::Nesterov { momentum: 0.5 }, -0.1 - 0.25),
            (DescentRule::HeavyBall { momentum: 0.5 }, -0.1 - 0.25),
            (DescentRule::Plain, -0.3),
            (DescentRule::AdaGrad, -0.1 - 0.2 / 5f64.sqrt()),
            (DescentRule::RmsProp, -0.1 / 0.1f64.sqrt() - 0.2 / 0.49f64.sqrt()),
            // m: 0.1 then 0.29, corrected by 0.1 and 0.19; v: 0.001 then 0.004999, by 0.001 and 0.001999
            (DescentRule::Adam, -0.1 - 0.1 * (0.29 / 0.19) / (0.004999f64 / 0.001999).sqrt()),
        ];
        for (rule, expected) in cases {
            let mut engine = engine(rule, Averaging::None, None);
            engine.step_along(&column([2.0, 0.0]), 0.1);
            engine.step_along(&column([4.0, 0.0]), 0.1);
            assert!((engine.average()[(0, 0)] - expected).abs() < 1e-6, "{rule:?}");
            assert_eq!(engine.average()[(1, 0)], 0.0);
        }
        let mut nesterov = engine(DescentRule::Nesterov { momentum: 0.5 }, Averaging::None, None);
        nesterov.step_along(&column([2.0, 0.0]), 0.1);
        assert!((nesterov.point()[(0, 0)] + 0.15).abs() < 1e-15);
    }

    #[test]
    fn averages_and_clipping() {
        let mut arithmetic = engine(DescentRule::Plain, Averaging::Arithmetic { from: 1 }, None);
        let mut geometric = engine(DescentRule::Plain, Averaging::Geometric, None);
        for _ in 0..3 {
            arithmetic.step_along(&column([2.0, 0.0]), 1.0);
            geometric.step_along(&column([2.0, 0.0]), 1.0);
        }
        assert!((arithmetic.average()[(0, 0)] + 2.5).abs() < 1e-14);
        let weights = [0.81, 0.9, 1.0];
        let expected = -(0.81 + 1.8 + 3.0) / weights.iter().sum::<f64>();
        assert!((geometric.average()[(0, 0)] - expected).abs() < 1e-13);
        let mut clipped = engine(DescentRule::Plain, Averaging::None, Some(0.5));
        clipped.step_along(&column([6.0, 8.0]), 1.0);
        assert!((clipped.average()[(0, 0)] + 0.3).abs() < 1e-15);
    }
}
