//! What chosen images are as pictures, whatever chose them.

use super::chosen::Under;
use super::classes::ClassImages;
use crate::kinds::prelude::*;
use posterior_kernels::{Columns, Linear};

/// Numbers of a choice of one class.
pub(crate) struct Pixels {
    /// The share of the variance of the class's pixels, summed over pixels, that is in the span of the chosen images (all about the class's mean).
    pub(crate) explained: f64,
    /// The mean pixel of the chosen images over that of the class.
    pub(crate) ink: f64,
    /// The variance of pixels between the chosen images, summed over pixels, over that of the class.
    pub(crate) spread: f64,
}

/// The class's images about their mean, by which many choices are judged.
pub(crate) struct Reference {
    centred: Mat<f64>,
    /// The mean of each pixel.
    mean: Vec<f64>,
}

impl Reference {
    /// Of a class.
    pub(crate) fn of(images: &ClassImages, class: usize) -> Self {
        let mut centred = images.inputs(class);
        let n = centred.nrows() as f64;
        let mean: Vec<f64> = (0..centred.ncols()).map(|j| centred.col(j).iter().sum::<f64>() / n).collect();
        for (j, mean) in mean.iter().enumerate() {
            centred.col_mut(j).iter_mut().for_each(|value| *value -= mean);
        }
        Self { centred, mean }
    }

    /// What some of the images are.
    ///
    /// # Errors
    /// Images of which none differs from the class's mean.
    pub(crate) fn judge(&self, rows: &[usize]) -> Result<Pixels> {
        let kernel = Linear::new("linear", Columns::all(self.centred.ncols()), false, 1.0);
        let x = self.centred.as_ref();
        let chosen = rows.len() as f64;
        let (mut sum, mut spread) = (0.0, 0.0);
        for j in 0..x.ncols() {
            let of = || rows.iter().map(|&i| x[(i, j)]);
            let mean = of().sum::<f64>() / chosen;
            sum += mean;
            spread += of().map(|value| (value - mean) * (value - mean)).sum::<f64>() / chosen;
        }
        let all: f64 = self.mean.iter().sum();
        let variance = self.centred.squared_norm_l2() / x.nrows() as f64;
        Ok(Pixels {
            explained: Under::of(&kernel, x, rows)?.explained,
            ink: 1.0 + sum / all,
            spread: spread / variance,
        })
    }
}
