//! Brightness.

/// Share of the pixels that may be brighter than 1.
const BRIGHTER: f64 = 0.005;

/// A sinogram in units in which its picture is about 1 bright: weights of total variation, step sizes and the first weights of networks mean the same for every scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled {
    /// What the sinogram was divided by, and pictures are multiplied by.
    pub unit: f64,
    /// Measurements in these units.
    pub sinogram: Vec<f64>,
    /// A first picture in these units.
    pub first: Vec<f64>,
}

impl Scaled {
    /// Of a sinogram and a first picture of it. A picture without anything bright keeps its units.
    pub fn of(sinogram: &[f64], first: &[f64]) -> Self {
        let mut sorted: Vec<f64> = first.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let place = ((1.0 - BRIGHTER) * sorted.len().saturating_sub(1) as f64) as usize;
        let unit = sorted.get(place).copied().filter(|v| *v > 0.0).unwrap_or(1.0);
        let divided = |values: &[f64]| values.iter().map(|v| v / unit).collect();
        Self { unit, sinogram: divided(sinogram), first: divided(first) }
    }
}
