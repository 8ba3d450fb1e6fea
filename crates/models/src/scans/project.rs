//! The sinogram of a picture.

use super::error::{ScanError, refuse};
use super::scan::{read_geometry, read_truth};
use posterior_data::{ArrayValues, NumericArray, ReadOptions, write_npy, write_picture};
use posterior_linalg::random::Streams;
use posterior_notes::fixes::{MEMORY, PHANTOM_WALNUT};
use posterior_tomography::{Projector, phantom, simulate};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Phantoms by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum PhantomName {
    /// Ten ellipses of a head
    SheppLogan,
    /// Random ellipses, as for pretraining
    Ellipses,
    /// Three rectangles that are turned nearly the same way
    Rectangles,
    /// A digit in somebody's hand
    Digit,
    /// A shell, a folded kernel and gaps
    Walnut,
}

/// What is asked.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ProjectRequest {
    /// The scan: kind, height, width, angles (TOML)
    #[cfg_attr(feature = "clap", arg(value_name = "GEOMETRY"))]
    pub geometry: PathBuf,
    /// Picture or volume (.npy, .tiff, .png)
    #[cfg_attr(
        feature = "clap",
        arg(value_name = "IMAGE", conflicts_with = "phantom", required_unless_present = "phantom")
    )]
    pub image: Option<PathBuf>,
    /// Or a phantom
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "NAME"))]
    pub phantom: Option<PhantomName>,
    /// Standard deviation of the noise, as a share of the mean measurement
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", default_value_t = 0.05))]
    pub noise: f64,
    /// Seed of phantom and noise
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 0))]
    pub seed: u64,
    /// Where the sinogram goes
    #[cfg_attr(feature = "clap", arg(long = "output", short = 'o', id = "output", value_name = "FILE.npy"))]
    pub out: PathBuf,
    /// Where the picture goes (.npy, .tiff, .png)
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub image_out: Option<PathBuf>,
    /// Most memory.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub memory: u64,
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
pub struct ProjectOutcome {
    /// Shape of the sinogram.
    pub shape: Vec<usize>,
    /// Shape of the picture.
    pub image_shape: Vec<usize>,
    /// Standard deviation of the noise.
    pub noise: f64,
    /// Seconds of the projection.
    pub seconds: f64,
    /// Pixels of the picture that were cut to its format's range.
    pub clipped_pixels: usize,
    /// What looks wrong.
    pub warnings: Vec<String>,
}

/// Projects a picture or phantom, with noise where it is asked for.
///
/// # Errors
/// [`ScanError`].
pub fn project(request: &ProjectRequest) -> Result<ProjectOutcome, ScanError> {
    let (geometry, warnings) = read_geometry(&request.geometry)?;
    let shape = geometry.image_shape();
    let values =
        geometry.measurements().saturating_mul(2).saturating_add(geometry.pixels().saturating_mul(4));
    let bytes = (values as u64).saturating_mul(8);
    if bytes > request.memory {
        return refuse(format!(
            "picture and sinogram take {bytes} bytes, above the limit of {}: allow more ({MEMORY}) or scan fewer angles",
            request.memory
        ));
    }
    let options = ReadOptions::limited(request.memory);
    let streams = Streams::new(request.seed);
    let picture = match (&request.image, request.phantom) {
        (Some(path), None) => read_truth(&geometry, path, &options)?,
        (None, Some(name)) => {
            let [height, width] = shape[shape.len() - 2..] else { unreachable!("pictures have two axes") };
            match (name, shape.len()) {
                (PhantomName::Walnut, 3) => phantom::walnut_volume([shape[0], height, width], streams),
                (_, 3) => {
                    return refuse(format!(
                        "of the phantoms only the walnut is a volume: give an image, or {PHANTOM_WALNUT}"
                    ));
                }
                (PhantomName::SheppLogan, _) => phantom::shepp_logan(height, width),
                (PhantomName::Ellipses, _) => phantom::random_ellipses(height, width, 0.4745, streams, 0),
                (PhantomName::Rectangles, _) => phantom::random_rectangles(height, width, streams, 0),
                (PhantomName::Digit, _) => phantom::random_digit(height, width, streams, request.seed),
                (PhantomName::Walnut, _) => phantom::walnut_slice(height, width, streams),
            }
        }
        _ => return refuse("give either an image or --phantom"),
    };
    let projector = Projector::new(geometry)?;
    let begun = std::time::Instant::now();
    let scanned = simulate(&projector, &picture, request.noise, streams)?;
    let seconds = begun.elapsed().as_secs_f64();
    let sinogram_shape = projector.geometry().sinogram_shape();
    let array = NumericArray::new(sinogram_shape.clone(), ArrayValues::F64(scanned.sinogram))?;
    write_npy(&request.out, &array)?;
    let clipped_pixels = match &request.image_out {
        Some(path) => write_picture(path, &shape, &picture)?,
        None => 0,
    };
    Ok(ProjectOutcome {
        shape: sinogram_shape,
        image_shape: shape,
        noise: scanned.noise,
        seconds,
        clipped_pixels,
        warnings,
    })
}
