//! Values around an example: constants, or its own values reflected, repeated or wrapped around.

use super::layer::Prepared;
use super::sparse::{flat, positions, sparse, sparse_filled};
use crate::array::Precision;
use serde::{Deserialize, Serialize};

/// Adds values around an example: zeros, unless `mode` or `value` says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// Values before each axis.
    pub before: Vec<usize>,
    /// Values behind each axis.
    pub after: Vec<usize>,
    /// What they are.
    #[serde(default, skip_serializing_if = "PadMode::is_constant")]
    pub mode: PadMode,
    /// The constant, where they are one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub value: f64,
}

/// What padding consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PadMode {
    /// A constant.
    #[default]
    Constant,
    /// The values reflected at the outermost ones, which are not repeated.
    Reflect,
    /// The outermost values.
    Edge,
    /// The values of the other end.
    Wrap,
}

impl PadMode {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_constant(&self) -> bool {
        *self == Self::Constant
    }

    /// Which of `length` values stands `at` places behind the first one (before it where negative); None for the constant.
    fn source(self, at: isize, length: usize) -> Option<usize> {
        let last = length as isize - 1;
        let found = match self {
            Self::Constant => at,
            Self::Edge => at.clamp(0, last),
            Self::Wrap => at.rem_euclid(last + 1),
            Self::Reflect if last == 0 => 0,
            Self::Reflect => last - (last - at.rem_euclid(2 * last)).abs(),
        };
        usize::try_from(found).ok().filter(|&i| i < length)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Pad {
    /// Zeros.
    pub fn zeros(before: Vec<usize>, after: Vec<usize>) -> Self {
        Self { before, after, ..Self::default() }
    }

    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        if self.before.len() != shape.len() || self.after.len() != shape.len() {
            return Err(format!("`before` and `after` need one entry for each axis of {shape:?}"));
        }
        if !self.value.is_finite() {
            return Err(format!("the value {} around an example is not finite", self.value));
        }
        if self.mode != PadMode::Constant && !is_zero(&self.value) {
            return Err("a `value` needs the mode \"constant\"".into());
        }
        let sizes = || shape.iter().zip(self.before.iter().zip(&self.after));
        if self.mode == PadMode::Reflect && sizes().any(|(&s, (&b, &a))| b.max(a) >= s.max(1)) {
            return Err(format!(
                "{shape:?} is too short to be reflected so far: at most one less than each length"
            ));
        }
        let output: Option<Vec<usize>> =
            sizes().map(|(&s, (&b, &a))| s.checked_add(b)?.checked_add(a)).collect();
        let output = output.ok_or("the padding is too large")?;
        super::check_size(shape)?;
        super::check_size(&output)?;
        let same = self.before.iter().zip(&self.after).take_while(|&(&b, &a)| b == 0 && a == 0).count();
        let (inner, before) = (shape[same..].to_vec(), self.before[same..].to_vec());
        let (mode, around) = (self.mode, output[same..].to_vec());
        if mode == PadMode::Constant {
            return sparse_filled(same, shape, output, 1, 0, self.value, move |entries| {
                positions(&inner, |from, at| {
                    let to = flat(&around, at.iter().zip(&before).map(|(&i, &b)| i + b));
                    entries.push((to, from as u32, 1.0));
                });
            });
        }
        sparse(same, shape, output, 1, 0, move |entries| {
            positions(&around, |to, at| {
                let from: Option<Vec<usize>> = (0..at.len())
                    .map(|a| mode.source(at[a] as isize - before[a] as isize, inner[a]))
                    .collect();
                if let Some(from) = from {
                    entries.push((to as u32, flat(&inner, from.into_iter()), 1.0));
                }
            });
        })
    }
}
