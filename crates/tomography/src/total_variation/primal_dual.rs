//! The minimum by a primal-dual method, with a bound on what is left.

use super::value::TotalVariation;
use crate::TomographyError;
use faer::{Mat, MatRef};
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::solve::largest_eigenvalue;
use posterior_optim::{Iteration, Progress, Reason, Run, Step};
use serde::{Deserialize, Serialize};

/// Steps between two looks at the gap.
const LOOK: usize = 20;

/// Power iterations for the norm of the projector, and what its estimate is raised by: it comes from below.
const POWER: (usize, f64) = (30, 1.05);

/// How far the minimum is pursued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrimalDualOptions {
    /// Largest gap relative to the loss at which the search ends.
    pub tolerance: f64,
    /// Steps at most.
    pub iterations: usize,
    /// Largest value of a pixel. Pixels are not below zero; the bound on the gap needs a largest value, and every picture has one.
    pub largest: Option<f64>,
}

impl Default for PrimalDualOptions {
    fn default() -> Self {
        Self { tolerance: 1e-3, iterations: 5000, largest: None }
    }
}

/// Where a search stands: plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimalDualState {
    /// The picture.
    pub picture: Vec<f64>,
    /// Twice it minus the one before.
    pub ahead: Vec<f64>,
    /// Dual variables of the measurements.
    pub measured: Vec<f64>,
    /// Dual variables of the differences, axis by axis.
    pub differences: Vec<Vec<f64>>,
    /// Steps taken.
    pub step: usize,
    /// The gap relative to the loss when it was looked at last; infinite before.
    pub gap: f64,
    /// The loss then.
    pub loss: f64,
}

/// `min over 0 <= x <= m of 1/c |T x - y|² + lambda TV(x)` by the method of Chambolle and Pock: projections and differences alone, no smoothing, no step size to choose.
///
/// The gap between the loss and what its dual proves about the minimum bounds how far the picture is from it. For pixels in `[0, m]` the dual is `-c/4 |p|² - y'p - m sum_i max(0, -(T'p + D'q)_i)`, finite for every p.
///
/// Cost of a step: a projection and a back-projection. Source: Chambolle and Pock (2011), algorithm 1.
pub struct PrimalDual<'a> {
    projector: &'a dyn LinearOperator<f64>,
    sinogram: &'a [f64],
    total_variation: TotalVariation,
    /// lambda times the share of the sum.
    weight: f64,
    largest: f64,
    step_size: f64,
    tolerance: f64,
    state: PrimalDualState,
}

impl<'a> PrimalDual<'a> {
    /// From a picture or a state. Cost: the power iterations.
    ///
    /// # Errors
    /// [`TomographyError::Shape`], [`TomographyError::Option`], [`TomographyError::Solve`].
    pub fn new(
        projector: &'a dyn LinearOperator<f64>,
        sinogram: &'a [f64],
        total_variation: TotalVariation,
        weight: f64,
        start: &[f64],
        options: &PrimalDualOptions,
        saved: Option<PrimalDualState>,
    ) -> Result<Self, TomographyError> {
        let (c, pixels) = projector.shape();
        crate::error::same_count("measurements", c, sinogram.len())?;
        crate::error::same_count("pixels", pixels, total_variation.pixels())?;
        crate::error::same_count("pixels of the first picture", pixels, start.len())?;
        let refuse = |name, value, expected| Err(TomographyError::Option { name, value, expected });
        if !(weight >= 0.0 && weight.is_finite()) {
            return refuse("total_variation", weight, "a finite weight of at least 0");
        }
        if !(options.tolerance > 0.0 && options.tolerance.is_finite()) {
            return refuse("tolerance", options.tolerance, "positive and finite");
        }
        let axes = total_variation.shape().len();
        // A picture is no brighter than twice what one pixel would be that made the back-projection's first guess.
        let brightest = start.iter().copied().fold(0.0, f64::max);
        let largest = options.largest.unwrap_or(4.0 * brightest.max(f64::MIN_POSITIVE));
        if !(largest > 0.0 && largest.is_finite()) {
            return refuse("largest", largest, "positive and finite");
        }
        let squared = largest_eigenvalue(&Normal(projector), POWER.0, 0)?;
        // Differences have a norm of at most 4 for each axis, squared.
        let norm = (POWER.1 * squared + 4.0 * axes as f64).sqrt();
        let state = match saved {
            Some(state) => {
                crate::error::same_count("pixels of the saved picture", pixels, state.picture.len())?;
                crate::error::same_count("measurements of the saved state", c, state.measured.len())?;
                crate::error::same_count("axes of the saved state", axes, state.differences.len())?;
                state
            }
            None => {
                let picture: Vec<f64> = start.iter().map(|v| v.clamp(0.0, largest)).collect();
                PrimalDualState {
                    ahead: picture.clone(),
                    picture,
                    measured: vec![0.0; c],
                    differences: vec![vec![0.0; pixels]; axes],
                    step: 0,
                    gap: f64::INFINITY,
                    loss: f64::NAN,
                }
            }
        };
        let weight = weight * total_variation.share();
        Ok(Self {
            projector,
            sinogram,
            total_variation,
            weight,
            largest,
            step_size: 1.0 / norm,
            tolerance: options.tolerance,
            state,
        })
    }

    /// Where it stands.
    pub fn state(&self) -> &PrimalDualState {
        &self.state
    }

    /// The state, given away.
    pub fn into_state(self) -> PrimalDualState {
        self.state
    }

    fn project(&self, picture: &[f64]) -> Mat<f64> {
        self.projector.multiply(MatRef::from_column_major_slice(picture, picture.len(), 1))
    }

    /// `T' p + D' q`.
    fn pulled(&self) -> Vec<f64> {
        let measured = &self.state.measured;
        let back =
            self.projector.multiply_transpose(MatRef::from_column_major_slice(measured, measured.len(), 1));
        let mut out = back.col_as_slice(0).to_vec();
        for (axis, dual) in self.state.differences.iter().enumerate() {
            self.total_variation.add_transposed(axis, dual, &mut out);
        }
        out
    }

    /// Loss and gap of the picture. Cost: a projection and a back-projection.
    fn look(&mut self) {
        let c = self.sinogram.len() as f64;
        let projected = self.project(&self.state.picture);
        let squares: f64 =
            projected.col_as_slice(0).iter().zip(self.sinogram).map(|(a, y)| (a - y).powi(2)).sum();
        let rough = self.total_variation.value(&self.state.picture) / self.total_variation.share();
        let loss = squares / c + self.weight * rough;
        let pulled = self.pulled();
        let p = &self.state.measured;
        let dual = -0.25 * c * p.iter().map(|p| p * p).sum::<f64>()
            - p.iter().zip(self.sinogram).map(|(p, y)| p * y).sum::<f64>()
            - self.largest * pulled.iter().map(|v| (-v).max(0.0)).sum::<f64>();
        self.state.loss = loss;
        self.state.gap = (loss - dual).max(0.0) / loss.max(f64::MIN_POSITIVE);
    }
}

/// `T' T`.
struct Normal<'a>(&'a dyn LinearOperator<f64>);

impl LinearOperator<f64> for Normal<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.0.shape().1, self.0.shape().1)
    }
    fn apply(&self, input: MatRef<'_, f64>, output: faer::MatMut<'_, f64>) {
        self.0.apply_transpose(self.0.multiply(input).as_ref(), output);
    }
    fn apply_transpose(&self, input: MatRef<'_, f64>, output: faer::MatMut<'_, f64>) {
        self.apply(input, output);
    }
}

impl Iteration for PrimalDual<'_> {
    type Error = TomographyError;

    fn progress(&self) -> Progress {
        Progress {
            step: self.state.step,
            value: Some(self.state.loss).filter(|l| l.is_finite()),
            residual: Some(self.state.gap).filter(|g| g.is_finite()),
            ..Progress::default()
        }
    }

    fn converged(&self) -> Option<Reason> {
        (self.state.gap <= self.tolerance).then_some(Reason::Tolerance)
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, TomographyError> {
        let (s, c) = (self.step_size, self.sinogram.len() as f64);
        let projected = self.project(&self.state.ahead);
        // The proximal map of the conjugate of 1/c |. - y|².
        let shrink = 1.0 / (1.0 + 0.5 * s * c);
        for ((p, a), y) in self.state.measured.iter_mut().zip(projected.col_as_slice(0)).zip(self.sinogram) {
            *p = (*p + s * (a - y)) * shrink;
        }
        let mut moved = vec![0.0; self.state.picture.len()];
        for (axis, dual) in self.state.differences.iter_mut().enumerate() {
            self.total_variation.differences(axis, &self.state.ahead, &mut moved);
            for (q, d) in dual.iter_mut().zip(&moved) {
                *q = (*q + s * d).clamp(-self.weight, self.weight);
            }
        }
        let pulled = self.pulled();
        let PrimalDualState { picture, ahead, .. } = &mut self.state;
        for ((x, next), v) in picture.iter_mut().zip(ahead).zip(&pulled) {
            let new = (*x - s * v).clamp(0.0, self.largest);
            *next = 2.0 * new - *x;
            *x = new;
        }
        self.state.step += 1;
        if self.state.step % LOOK == 0 || self.state.step == run.steps_planned() {
            self.look();
            if !self.state.loss.is_finite() {
                return Err(TomographyError::Diverged { what: "total variation", step: self.state.step });
            }
        }
        Ok(Step::Taken)
    }
}
