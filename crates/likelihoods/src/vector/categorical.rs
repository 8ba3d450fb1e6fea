//! One class of C: `p(y = c | f) = softmax(f)_c`.

use super::diagonal::assert_lengths;
use super::error::{check_each, check_outputs, check_width};
use super::softmax::{largest, log_softmax, softmax};
use crate::{LikelihoodError, VectorLikelihood};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

const NAME: &str = "categorical";

/// One class of several, by softmax. The target is the index of the class, from zero.
///
/// `B = diag(p) - p pᵀ` has rank C - 1 (a constant added to all latent values changes nothing), so `B⁻¹` does not exist; its
/// root is `R = diag(√p) - p √pᵀ`. Both are computed with the complement of the largest probability summed from the others,
/// so that they keep their relative accuracy when `p` is one-hot to rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct Categorical {
    classes: usize,
}

/// As written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    classes: usize,
}

impl TryFrom<Fields> for Categorical {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        Self::new(fields.classes)
    }
}

impl Categorical {
    /// So many classes.
    ///
    /// # Errors
    /// For fewer than two, or more than 2²⁴.
    pub fn new(classes: usize) -> Result<Self, LikelihoodError> {
        check_outputs(
            NAME,
            "classes",
            classes,
            2,
            "give at least two classes (for one event use `bernoulli`)",
        )?;
        Ok(Self { classes })
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The class that a target names, if there is one.
    pub(crate) fn class(&self, y: &[f64]) -> Option<usize> {
        match y {
            &[value] if value >= 0.0 && value < self.classes as f64 && value.fract() == 0.0 => {
                Some(value as usize)
            }
            _ => None,
        }
    }
    assert_lengths!();
}

impl VectorLikelihood for Categorical {
    fn outputs(&self) -> usize {
        self.classes
    }
    fn target_width(&self) -> usize {
        1
    }
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        check_width(NAME, 1, y)?;
        let remedy = format!(
            "classes are whole numbers from 0 to {}; renumber the labels or raise `classes`",
            self.classes - 1
        );
        check_each(NAME, y, |value| self.class(&[value]).is_some(), &remedy)
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        self.assert_lengths(y, f);
        self.class(y).map_or(f64::NAN, |class| log_softmax(f, class))
    }
    /// `e_y - p`.
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        let Some(class) = self.class(y) else { return out.fill(f64::NAN) };
        let peak = softmax(f, out);
        out.iter_mut().for_each(|p| *p = -*p);
        out[class] = if class == peak.class { peak.complement } else { 1.0 + out[class] };
    }
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.curvature(y, f, out);
    }
    fn curvature(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        assert_eq!(out.len(), self.classes * self.classes, "a matrix of the outputs has C x C numbers");
        let peak = softmax(f, &mut out[..self.classes]);
        // The first row holds p and is replaced last.
        for i in (0..self.classes).rev() {
            let p = out[i];
            for j in 0..self.classes {
                out[i * self.classes + j] = -p * out[j];
            }
            let complement = if i == peak.class { peak.complement } else { 1.0 - p };
            out[i * self.classes + i] = p * complement;
        }
    }
    /// `p ⊙ (u - pᵀu)`, with `u` counted from its entry at the peak so that nothing cancels.
    fn curvature_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        assert_eq!(u.len(), self.classes, "B multiplies C numbers");
        let peak = softmax(f, out);
        let origin = u[peak.class];
        let mean: f64 = out.iter().zip(u).map(|(p, u)| p * (u - origin)).sum();
        for (out, u) in out.iter_mut().zip(u) {
            *out *= (u - origin) - mean;
        }
    }
    fn root_width(&self) -> usize {
        self.classes
    }
    fn root(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        assert_eq!(out.len(), self.classes * self.classes, "the root has C x S numbers");
        let peak = softmax(f, &mut out[..self.classes]);
        // The first row holds √p and is replaced last: C square roots, not C².
        out[..self.classes].iter_mut().for_each(|p| *p = p.sqrt());
        for i in (0..self.classes).rev() {
            let root = out[i];
            let p = root * root;
            for j in 0..self.classes {
                out[i * self.classes + j] = -p * out[j];
            }
            let complement = if i == peak.class { peak.complement } else { 1.0 - p };
            out[i * self.classes + i] = root * complement;
        }
    }
    /// `√p ⊙ e - p (√pᵀe)`.
    fn root_product(&self, y: &[f64], f: &[f64], e: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        assert_eq!(e.len(), self.classes, "the root multiplies S = C numbers");
        let peak = softmax(f, out);
        let elsewhere: f64 = out
            .iter()
            .zip(e)
            .enumerate()
            .filter(|&(i, _)| i != peak.class)
            .map(|(_, (p, e))| p.sqrt() * e)
            .sum();
        let at_peak = out[peak.class].sqrt() * e[peak.class];
        for (i, (out, e)) in out.iter_mut().zip(e).enumerate() {
            *out = if i == peak.class {
                at_peak * peak.complement - *out * elsewhere
            } else {
                out.sqrt() * e - *out * (elsewhere + at_peak)
            };
        }
    }
    /// `√p ⊙ (u - pᵀu)`.
    fn root_transpose_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        assert_eq!(u.len(), self.classes, "the root multiplies C numbers");
        let peak = softmax(f, out);
        let origin = u[peak.class];
        let mean: f64 = out.iter().zip(u).map(|(p, u)| p * (u - origin)).sum();
        for (out, u) in out.iter_mut().zip(u) {
            *out = out.sqrt() * ((u - origin) - mean);
        }
    }
    fn curvature_needs_target(&self) -> bool {
        false
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.classes, 1), "latent values and target");
        let peak = f[largest(f)];
        let total: f64 = f.iter().map(|value| (value - peak).exp()).sum();
        let mut left = rng.random::<f64>() * total;
        // Rounding may leave a crumb after the last class; it belongs to the last one that can occur.
        let mut drawn = 0;
        for (class, value) in f.iter().enumerate() {
            let weight = (value - peak).exp();
            if weight > 0.0 {
                drawn = class;
                if left < weight {
                    break;
                }
                left -= weight;
            }
        }
        out[0] = if total.is_nan() { f64::NAN } else { drawn as f64 };
    }
}
