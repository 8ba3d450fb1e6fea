//! **Computed tomography with error bars**: from a sinogram to a picture, to where the picture must not be trusted, to the angle at which to look next.
//!
//! Measurements are `y = T x + noise`: line integrals of an image `x` along the rays of a scan. Source of the whole: Antorán (2024), chapter 7.
