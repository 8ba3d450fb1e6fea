//! The weights as compressed rows of `T` and of `Tᵀ`.

use super::Projector;
use crate::{Geometry, TomographyError};
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{LinearOperator, check_apply, check_apply_transpose};
use posterior_linalg::parallel;
use posterior_linalg::sparse::{SparseError, SparseRows};

/// A [`Projector`] whose weights are stored, twice, by rows and by columns, so that both products are sums along rows.
///
/// It reads a dozen bytes for every weight: a projector on the fly is several times faster forward, and about as fast backward. Stored weights serve fans and cones, whose backward
/// products make weights one by one, and whatever needs the rows themselves.
#[derive(Clone, Debug)]
pub struct StoredProjector<T> {
    geometry: Geometry,
    rows: SparseRows<T>,
    columns: SparseRows<T>,
}

/// Rows whose weights are gathered by one task.
const PIECE: usize = 64;

impl<T: Real> StoredProjector<T> {
    /// Bytes that the stored weights take at most: for each of two copies `4 + size of T` for a weight and 8 for a row, with `2 max(h, w)` weights a measurement
    /// (twice that for cones). Nothing is allocated to tell.
    pub fn bytes(projector: &Projector) -> u64 {
        let (measurements, pixels) =
            (projector.geometry.measurements() as u64, projector.geometry.pixels() as u64);
        let weights = measurements.saturating_mul(projector.rays.most_weights() as u64);
        weights
            .saturating_mul(2 * (4 + size_of::<T>() as u64))
            .saturating_add(8 * (measurements + pixels + 2))
    }

    /// Stores the weights of a projector. While it works it takes twice the memory that remains.
    ///
    /// # Errors
    /// [`TomographyError::TooLarge`] where [`Self::bytes`] says more than `most_bytes`, or where there are more than 2³² measurements, before memory is taken.
    pub fn new(projector: &Projector, most_bytes: u64) -> Result<Self, TomographyError> {
        let geometry = projector.geometry.clone();
        let (measurements, pixels) = (geometry.measurements(), geometry.pixels());
        let refuse = |what, largest| {
            let sizes = vec![measurements, projector.rays.most_weights()];
            Err(TomographyError::TooLarge { what, sizes, largest })
        };
        if Self::bytes(projector) > most_bytes {
            return refuse("measurements and the weights of each, in bytes,", most_bytes);
        }
        if measurements > u32::MAX as usize {
            return refuse("measurements", u64::from(u32::MAX));
        }
        let places = places(projector);
        let parts: Vec<_> = places.chunks(PIECE).collect();
        let pieces: Vec<Vec<Vec<(u32, T)>>> = parallel::map(parts.len(), 1, |part| {
            parts[part].iter().map(|place| one_row(projector, *place)).collect()
        });
        let all: usize = pieces.iter().flatten().map(Vec::len).sum();
        let (mut offsets, mut indices, mut values) =
            (vec![0], Vec::with_capacity(all), Vec::with_capacity(all));
        for row in pieces.into_iter().flatten() {
            for (pixel, weight) in row {
                indices.push(pixel);
                values.push(weight);
            }
            offsets.push(values.len());
        }
        let rows = SparseRows::new(pixels, offsets, indices, values).map_err(broken)?;
        Self::of_rows(geometry, rows)
    }

    fn of_rows(geometry: Geometry, rows: SparseRows<T>) -> Result<Self, TomographyError> {
        let columns = transposed(&rows)?;
        Ok(Self { geometry, rows, columns })
    }

    /// The geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The rows of T.
    pub fn rows(&self) -> &SparseRows<T> {
        &self.rows
    }

    /// The operator at some of the angles, from the weights that are there.
    ///
    /// # Errors
    /// Those of [`Geometry::at_angles`].
    pub fn at_angles(&self, chosen: &[usize]) -> Result<Self, TomographyError> {
        let geometry = self.geometry.at_angles(chosen)?;
        let per_angle = geometry.measurements_per_angle();
        let rows: Vec<usize> =
            chosen.iter().flat_map(|angle| angle * per_angle..(angle + 1) * per_angle).collect();
        Self::of_rows(geometry, self.rows.select(&rows))
    }
}

/// Rows and columns exchanged. Cost: two passes over the weights.
fn transposed<T: Real>(rows: &SparseRows<T>) -> Result<SparseRows<T>, TomographyError> {
    // Where each row of the transpose begins: counted, then summed.
    let mut begin = vec![0usize; rows.columns() + 1];
    for row in 0..rows.rows() {
        rows.row(row).0.iter().for_each(|column| begin[*column as usize + 1] += 1);
    }
    for column in 0..rows.columns() {
        begin[column + 1] += begin[column];
    }
    let mut next = begin.clone();
    let (mut indices, mut values) = (vec![0u32; rows.entries()], vec![T::ZERO; rows.entries()]);
    for row in 0..rows.rows() {
        let (columns, weights) = rows.row(row);
        for (&column, &weight) in columns.iter().zip(weights) {
            let to = &mut next[column as usize];
            (indices[*to], values[*to]) = (row as u32, weight);
            *to += 1;
        }
    }
    SparseRows::new(rows.rows(), begin, indices, values).map_err(broken)
}

/// Compressed rows are made whole here, so that this is never seen.
fn broken(error: SparseError) -> TomographyError {
    TomographyError::Description(error.to_string())
}

/// Of every measurement: bundle, position of its ray in the plane, slice or panel row.
fn places(projector: &Projector) -> Vec<(usize, usize, usize)> {
    let rays = &projector.rays;
    let (rows, columns) = projector.geometry.detector_shape();
    let mut places = vec![(0, 0, 0); projector.geometry.measurements()];
    for (angle, bundles) in rays.of_angle.iter().enumerate() {
        for bundle in bundles.clone() {
            for (q, p) in rays.bundles[bundle].positions.clone().enumerate() {
                for row in 0..rows {
                    let measurement = (angle * rows + row) * columns + rays.bundles[bundle].detector(q);
                    places[measurement] = (bundle, p, row);
                }
            }
        }
    }
    places
}

fn one_row<T: Real>(projector: &Projector, (bundle, p, slice): (usize, usize, usize)) -> Vec<(u32, T)> {
    let rays = &projector.rays;
    let mut row = Vec::new();
    rays.each_weight(&rays.bundles[bundle], p, slice, |pixel, weight| {
        row.push((pixel as u32, T::from_f64(weight)));
    });
    row.sort_unstable_by_key(|(pixel, _)| *pixel);
    row
}

impl<T: Real> LinearOperator<T> for StoredProjector<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows.rows(), self.rows.columns())
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(self.shape(), input, &output);
        multiply(&self.rows, input, output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(self.shape(), input, &output);
        multiply(&self.columns, input, output);
    }
}

/// Rows times columns, each entry one sum in the order of the row.
fn multiply<T: Real>(rows: &SparseRows<T>, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
    for column in 0..input.ncols() {
        let vector: Vec<T> = input.col(column).iter().copied().collect();
        let mut out = vec![T::ZERO; rows.rows()];
        parallel::chunks(&mut out, PIECE, 1, |piece, out| {
            for (at, sum) in out.iter_mut().enumerate() {
                let (indices, weights) = rows.row(piece * PIECE + at);
                for (&i, &weight) in indices.iter().zip(weights) {
                    *sum += weight * vector[i as usize];
                }
            }
        });
        output.as_mut().col_mut(column).iter_mut().zip(out).for_each(|(o, v)| *o = v);
    }
}
