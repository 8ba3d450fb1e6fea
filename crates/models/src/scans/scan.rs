//! A geometry and its sinogram.

use super::error::{ScanError, refuse};
use faer::Mat;
use posterior_data::{DataError, ReadOptions, read_array, read_picture};
use posterior_networks::safetensors::{ReadNetwork, read_network};
use posterior_networks::{Array, Network};
use posterior_store::numbers_digest;
use posterior_tomography::running::Plan;
use posterior_tomography::{Geometry, Projector};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Files of a scan.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ScanFiles {
    /// The scan (TOML)
    #[cfg_attr(feature = "clap", arg(value_name = "GEOMETRY"))]
    pub geometry: PathBuf,
    /// Measurements, angles first (.npy)
    #[cfg_attr(feature = "clap", arg(value_name = "SINOGRAM"))]
    pub sinogram: PathBuf,
    /// The measurements are counts of photons, not line integrals
    #[cfg_attr(feature = "clap", arg(long))]
    pub counts: bool,
}

/// What was measured, and how.
#[derive(Clone, Debug)]
pub struct Scan {
    /// T.
    pub projector: Projector,
    /// Measurements.
    pub sinogram: Vec<f64>,
    /// What looks wrong though it can be computed.
    pub warnings: Vec<String>,
}

/// Reads a geometry; what looks wrong comes with it.
pub(crate) fn read_geometry(path: &Path) -> Result<(Geometry, Vec<String>), ScanError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| DataError::Read { path: path.into(), source })?;
    let named = |source| ScanError::File { path: path.into(), source };
    let geometry = Geometry::from_toml(&text).map_err(named)?;
    let warnings = geometry.check().map_err(named)?;
    let told = warnings.iter().map(|w| format!("{}: {w}", path.display())).collect();
    Ok((geometry, told))
}

/// Reads a sinogram of a geometry. `counts` says that the file holds counts of photons, none of which is negative: they become line integrals by the logarithm of the largest; what that had to bend is said.
pub(crate) fn read_sinogram(
    geometry: &Geometry,
    path: &Path,
    counts: bool,
    options: &ReadOptions,
) -> Result<(Vec<f64>, Option<String>), ScanError> {
    let array = read_array(path, options)?;
    let mut values = array.to_f64();
    let checked = if counts {
        geometry.check_counts(array.shape(), &values)
    } else {
        geometry.check_sinogram(array.shape(), &values)
    };
    checked.map_err(|source| ScanError::File { path: path.into(), source })?;
    if !counts {
        return Ok((values, None));
    }
    let brightest = values.iter().copied().fold(0.0, f64::max);
    if brightest <= 0.0 {
        return refuse(format!("{}: no photon was counted", path.display()));
    }
    // A count of zero says no more than that it was less than one.
    let dark = values.iter().filter(|v| **v < 1.0).count();
    values.iter_mut().for_each(|v| *v = (brightest / v.max(1.0)).ln());
    let said = format!(
        "{dark} measurements counted less than one photon; they are taken for one, which bounds what they say"
    );
    Ok((values, (dark > 0).then_some(said)))
}

/// Reads a picture of a geometry: the truth, say.
pub(crate) fn read_truth(
    geometry: &Geometry,
    path: &Path,
    options: &ReadOptions,
) -> Result<Vec<f64>, ScanError> {
    let array = read_picture(path, options)?;
    if array.shape() != geometry.image_shape() {
        let source = posterior_tomography::TomographyError::ImageShape {
            found: array.shape().to_vec(),
            expected: geometry.image_shape(),
        };
        return Err(ScanError::File { path: path.into(), source });
    }
    array.require_finite(path)?;
    Ok(array.to_f64())
}

/// Reads the network of a scan: one that makes its pictures of its pictures.
pub(crate) fn read_scan_network(path: &Path, geometry: &Geometry) -> Result<ReadNetwork<f32>, ScanError> {
    let read = read_network::<f32>(path, None)?;
    let expected: Vec<usize> = [1].into_iter().chain(geometry.image_shape()).collect();
    let graph = read.network.graph();
    if graph.input_shape() != expected || graph.output_shape() != expected {
        return refuse(format!(
            "{}: the network makes {:?} of {:?}, but the scan's pictures are {expected:?}: give the network that `posterior tomography reconstruct` wrote for this scan",
            path.display(),
            graph.output_shape(),
            graph.input_shape(),
        ));
    }
    Ok(read)
}

/// What tells a network from others, to know whose checkpoint it is.
pub(crate) fn network_digest(network: &Network<f32>) -> String {
    let all = network.parameters().iter().flat_map(|p| p.values().iter().map(|v| f64::from(*v)));
    numbers_digest("network", &[&all.collect::<Vec<f64>>()])
}

impl Scan {
    /// Reads both; `counts` says that the file holds counts of photons.
    ///
    /// # Errors
    /// [`ScanError`] with the file.
    pub fn read(files: &ScanFiles, memory: u64) -> Result<Self, ScanError> {
        let options = ReadOptions::limited(memory);
        let (geometry, mut warnings) = read_geometry(&files.geometry)?;
        let (values, dark) = read_sinogram(&geometry, &files.sinogram, files.counts, &options)?;
        warnings.extend(dark);
        Ok(Self { projector: Projector::new(geometry)?, sinogram: values, warnings })
    }
}

/// What is planned, in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedWork {
    /// Bytes of the largest blocks together.
    pub bytes: u64,
    /// Floating-point operations, about.
    pub flops: u64,
    /// Seconds, from one projection, one pass through the network and one product of matrices on this machine; solvers may end sooner.
    pub seconds: f64,
    /// The blocks.
    pub blocks: Vec<(String, u64)>,
}

impl PlannedWork {
    /// Times a projection and a pass, and refuses what does not fit.
    ///
    /// # Errors
    /// [`ScanError::Tomography`] with the way out.
    pub(super) fn of(
        plan: &Plan,
        projector: &Projector,
        network: Option<(&Network<f32>, &Array<f32>)>,
        memory: u64,
        remedy: &str,
    ) -> Result<Self, ScanError> {
        plan.within(memory, remedy)?;
        let seconds = |work: &mut dyn FnMut()| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64()
        };
        let picture = vec![0.0; projector.geometry().pixels()];
        let projection = seconds(&mut || drop(std::hint::black_box(projector.project(&picture))));
        let pass = network.map_or(0.0, |(network, input)| {
            // The first pass asks the system for its memory.
            drop(std::hint::black_box(network.forward(input)));
            seconds(&mut || drop(std::hint::black_box(network.forward(input))))
        });
        // The rate of a product of dense matrices.
        const SIDE: usize = 192;
        let dense = match plan.dense_flops {
            0 => 0.0,
            flops => {
                let ones = Mat::<f64>::full(SIDE, SIDE, 1.0);
                let one = seconds(&mut || drop(std::hint::black_box(&ones * &ones)));
                one * flops as f64 / (2 * SIDE.pow(3)) as f64
            }
        };
        let all = plan.projections as f64 * projection + plan.network_passes as f64 * pass + dense;
        Ok(Self { bytes: plan.bytes(), flops: plan.flops, seconds: all, blocks: plan.blocks.clone() })
    }

    /// For people.
    pub fn describe(&self) -> String {
        format!(
            "at most {:.2} GB, about {:.3} TFLOP and {} on this machine",
            self.bytes as f64 / 1e9,
            self.flops as f64 / 1e12,
            crate::text::time(self.seconds)
        )
    }
}
