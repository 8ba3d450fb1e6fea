//! What can go wrong in tomography, and what to do about it.

use std::path::PathBuf;

/// Why a scan could not be read, reconstructed or judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TomographyError {
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// What was counted.
        what: &'static str,
        /// What is needed.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A scan that cannot be.
    #[error("the geometry has no meaning: {problem}")]
    Geometry {
        /// What is wrong with it.
        problem: String,
    },
    /// A file that describes no scan.
    #[error(
        "the geometry cannot be read: {problem}; a small one is: kind = \"parallel\", height = 128, width = 128, angles = {{ count = 60 }}"
    )]
    GeometryFile {
        /// What is wrong with it.
        problem: String,
    },
    /// A sinogram of another scan.
    #[error(
        "{path} has the shape {found:?}, but the geometry measures {expected:?} (angles, then detectors): {axis}"
    )]
    Sinogram {
        /// The file.
        path: PathBuf,
        /// Its shape.
        found: Vec<usize>,
        /// That of the geometry.
        expected: Vec<usize>,
        /// Which axis differs, and what to do.
        axis: String,
    },
    /// A picture of other pixels.
    #[error(
        "{path} has the shape {found:?}, but the geometry's picture is {expected:?}: change `height` and `width` (and `depth`), or the picture"
    )]
    Picture {
        /// The file.
        path: PathBuf,
        /// Its shape.
        found: Vec<usize>,
        /// That of the geometry.
        expected: Vec<usize>,
    },
    /// A measurement that is none.
    #[error("{path}: the measurement at angle {angle}, detector element {element} is {value}: {remedy}")]
    Measurement {
        /// The file.
        path: PathBuf,
        /// The angle, from 0.
        angle: usize,
        /// The element, from 0; in space row by row.
        element: usize,
        /// What stands there.
        value: f64,
        /// What to do.
        remedy: &'static str,
    },
    /// More memory than allowed.
    #[error(
        "this takes {bytes} bytes, above the limit of {limit}; most of it is {largest} ({largest_bytes}): {remedy}"
    )]
    Memory {
        /// What is planned.
        bytes: u64,
        /// What is allowed.
        limit: u64,
        /// The largest part.
        largest: String,
        /// Its size.
        largest_bytes: u64,
        /// The way out.
        remedy: String,
    },
    /// Cones have no filtered back-projection here.
    #[error("there is no filtered back-projection of these rays here: use total variation, which needs none")]
    NoFilteredBackProjection,
    /// An option is outside its range.
    #[error("the option {name} is {value}: it must be {expected}")]
    Option {
        /// The option.
        name: &'static str,
        /// What it was set to.
        value: f64,
        /// What it may be.
        expected: &'static str,
    },
    /// What is computed stopped being a number.
    #[error(
        "step {step} of {what} is no finite number: check the sinogram for huge values, or take a smaller step size"
    )]
    Diverged {
        /// What was computed.
        what: &'static str,
        /// The step.
        step: usize,
    },
    /// A network without convolutions.
    #[error("the network has no convolutions, whose weights a linearised image prior is over: give a U-Net")]
    NoConvolutions,
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A file failed.
    #[error(transparent)]
    Store(#[from] posterior_store::StoreError),
    /// A network failed.
    #[error(transparent)]
    Network(#[from] posterior_networks::NetworkError),
    /// A training failed.
    #[error(transparent)]
    Train(#[from] posterior_networks::train::TrainError),
    /// A linear model failed.
    #[error(transparent)]
    Linear(#[from] posterior_linear::LinearError),
    /// Samples failed.
    #[error(transparent)]
    Sampled(#[from] posterior_linear::sampled::SampledError),
    /// A matrix that must be positive definite is not.
    #[error(transparent)]
    Cholesky(#[from] posterior_linalg::cholesky::CholeskyError),
    /// A solver failed.
    #[error(transparent)]
    Solve(#[from] posterior_linalg::solve::SolveError),
}

/// Refuses two counts that differ.
pub(crate) fn same_count(what: &'static str, expected: usize, found: usize) -> Result<(), TomographyError> {
    if expected == found { Ok(()) } else { Err(TomographyError::Shape { what, expected, found }) }
}
