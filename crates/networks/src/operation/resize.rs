//! Interpolation along spatial axes.

use super::layer::Prepared;
use super::sparse::{positions, sparse};
use crate::array::Precision;
use serde::{Deserialize, Serialize};

/// Enlarges (or shrinks) the spatial axes by interpolation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    /// New lengths of the spatial axes (all but the first).
    pub sizes: Vec<usize>,
    /// Which values are taken.
    pub interpolation: Interpolation,
    /// Input length over output length by axis, where it is not the ratio of the lengths; not for [`Interpolation::LinearAligned`].
    #[serde(default)]
    pub scales: Option<Vec<f64>>,
}

/// How a value between the grid's is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// The value at `floor(position * ratio)`.
    Nearest,
    /// Linear along each axis between pixel centres (`align_corners = false`).
    Linear,
    /// Linear along each axis with the corner pixels in place (`align_corners = true`).
    LinearAligned,
}

impl Resize {
    /// `(source, weight)` of each position of axis `axis`, which goes from `from` to `to` pixels.
    pub fn axis(&self, from: usize, to: usize, axis: usize) -> Vec<Vec<(usize, f64)>> {
        let ratio = self.scales.as_ref().map_or(from as f64 / to as f64, |s| s[axis]);
        (0..to)
            .map(|i| {
                let position = match self.interpolation {
                    // In whole numbers where the lengths decide: 100 * (58 / 200) is 28.999... in floating point.
                    Interpolation::Nearest if self.scales.is_none() => return vec![(i * from / to, 1.0)],
                    Interpolation::Nearest => {
                        return vec![(((i as f64 * ratio).floor() as usize).min(from - 1), 1.0)];
                    }
                    Interpolation::Linear => ((i as f64 + 0.5) * ratio - 0.5).clamp(0.0, (from - 1) as f64),
                    Interpolation::LinearAligned if to == 1 => 0.0,
                    Interpolation::LinearAligned => i as f64 * (from - 1) as f64 / (to - 1) as f64,
                };
                let low = (position.floor() as usize).min(from - 1);
                let part = position - low as f64;
                if part > 0.0 && low + 1 < from {
                    vec![(low, 1.0 - part), (low + 1, part)]
                } else {
                    vec![(low, 1.0)]
                }
            })
            .collect()
    }
}

impl Resize {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        let Some((&channels, spatial)) = shape.split_first() else {
            return Err("resizing needs channels and spatial axes".into());
        };
        if self.sizes.len() != spatial.len() || self.sizes.contains(&0) || spatial.contains(&0) {
            return Err(format!(
                "`sizes` {:?} must give a length for each spatial axis of {shape:?}",
                self.sizes
            ));
        }
        if let Some(scales) = &self.scales
            && (scales.len() != spatial.len() || scales.iter().any(|s| !(s.is_finite() && *s > 0.0)))
        {
            return Err(format!(
                "`scales` {scales:?} must give a positive number for each spatial axis of {shape:?}"
            ));
        }
        if self.scales.is_some() && self.interpolation == Interpolation::LinearAligned {
            return Err(
                "`scales` mean nothing where corners are aligned (linear_aligned): leave them out".into()
            );
        }
        let output: Vec<usize> = [channels].into_iter().chain(self.sizes.iter().copied()).collect();
        super::check_size(&output)?;
        let terms = if self.interpolation == Interpolation::Nearest { 1 } else { 1 << spatial.len().min(32) };
        let flops = if terms == 1 { 0 } else { 2 * super::count(&output).saturating_mul(terms) };
        let (config, spatial) = (self.clone(), spatial.to_vec());
        sparse(1, shape, output, terms, flops, move |entries| {
            let axes: Vec<_> = spatial
                .iter()
                .zip(&config.sizes)
                .enumerate()
                .map(|(i, (&from, &to))| config.axis(from, to, i))
                .collect();
            positions(&config.sizes, |to, at| {
                let mut terms = vec![(0, 1.0)];
                for (axis, (&i, &length)) in axes.iter().zip(at.iter().zip(&spatial)) {
                    terms = terms
                        .iter()
                        .flat_map(|&(from, weight)| {
                            axis[i].iter().map(move |&(j, w)| (from * length + j, weight * w))
                        })
                        .collect();
                }
                entries.extend(terms.into_iter().map(|(from, weight)| (to as u32, from as u32, weight)));
            });
        })
    }
}
