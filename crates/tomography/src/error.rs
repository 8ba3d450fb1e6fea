//! What can be wrong with a scan, and what to do about it.

/// What can go wrong in tomography. Every message says what is wrong, where, and what helps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TomographyError {
    /// Measurements that are not those of the geometry.
    #[error(
        "the sinogram is {found:?} and the geometry wants {expected:?} ({axes}): {axis} differ; give the file that belongs to this scan, transpose it, or change the geometry"
    )]
    SinogramShape {
        /// The shape that was given.
        found: Vec<usize>,
        /// The shape of the geometry's measurements.
        expected: Vec<usize>,
        /// What its axes are.
        axes: &'static str,
        /// Which of them do not agree.
        axis: String,
    },
    /// An image that is not one of the geometry.
    #[error("the image is {found:?} and the geometry wants {expected:?}; resample one or change the other")]
    ImageShape {
        /// The shape (or the number of pixels) that was given.
        found: Vec<usize>,
        /// The shape of the geometry's images.
        expected: Vec<usize>,
    },
    /// A measurement that is no number.
    #[error(
        "the sinogram is {value} at angle {angle}, detector element {detector} (counted from 0): leave out that angle, or repair the element from its neighbours"
    )]
    NotFinite {
        /// The measurement.
        value: f64,
        /// Its angle's number.
        angle: usize,
        /// Its number among the angle's detector elements.
        detector: usize,
    },
    /// A count below zero.
    #[error(
        "{negative} counts are negative, the first ({value}) at angle {angle}, detector element {detector} (counted from 0): counts of photons are not; subtract no more than the dark field, or give line integrals instead of counts"
    )]
    NegativeCount {
        /// How many.
        negative: usize,
        /// The first.
        value: f64,
        /// Its angle's number.
        angle: usize,
        /// Its number among the angle's detector elements.
        detector: usize,
    },
    /// No angles.
    #[error("a scan has at least one angle: give `count` or a `list` of them")]
    NoAngles,
    /// An angle that is no number.
    #[error("angle {index} (counted from 0) is {value}: angles are finite")]
    Angle {
        /// Its number.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// An angle that there is none of.
    #[error("there is no angle {index} among {angles}, counted from 0")]
    AngleIndex {
        /// The number asked for.
        index: usize,
        /// How many there are.
        angles: usize,
    },
    /// Sizes of zero, or more than can be meant.
    #[error("{what} is {value}: it lies between 1 and {largest}")]
    Size {
        /// Which size.
        what: &'static str,
        /// Its value.
        value: usize,
        /// The largest that is taken.
        largest: usize,
    },
    /// Sizes that are fine one by one, and too much together.
    #[error(
        "{what} are {sizes:?}, together more than {largest}: no memory was taken; check the sizes, or bin detector elements and pixels"
    )]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The sizes that multiply.
        sizes: Vec<usize>,
        /// The largest product that is taken.
        largest: u64,
    },
    /// A length or distance that is not positive and finite.
    #[error("{what} is {value}: {expected}")]
    Length {
        /// Which one.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A description of a geometry that does not read.
    #[error("the geometry does not read: {0}")]
    Description(String),
    /// Something that this geometry does not have.
    #[error("{what} is not there for {geometry}: {instead}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// Which kind of geometry or scan.
        geometry: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// An option outside its range.
    #[error("{name} is {value}: {expected}")]
    Option {
        /// Which option.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A saved state of another problem.
    #[error("the saved state does not fit: {0}; start again without it")]
    State(String),
    /// The optimiser's own failure.
    #[error("the reconstruction failed: {0}")]
    Optimiser(String),
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
    /// Measurements of a prior failed.
    #[error(transparent)]
    Measured(#[from] crate::measured::MeasuredError),
    /// A prior over pixels failed.
    #[error(transparent)]
    Prior(#[from] crate::priors::PriorError),
    /// A design failed.
    #[error(transparent)]
    Design(#[from] crate::design::DesignError),
    /// A score of patches failed.
    #[error(transparent)]
    Patch(#[from] crate::patches::PatchError),
    /// Patches that do not fit the picture.
    #[error(transparent)]
    Tiling(#[from] crate::patches::TilingError),
    /// A calibration failed.
    #[error(transparent)]
    Calibration(#[from] crate::calibration::CalibrationError),
    /// A search failed.
    #[error(transparent)]
    Search(#[from] posterior_optim::OptimError),
}

/// Refuses two counts that differ.
pub(crate) fn same_count(what: &'static str, expected: usize, found: usize) -> Result<(), TomographyError> {
    if expected == found { Ok(()) } else { Err(TomographyError::Shape { what, expected, found }) }
}
