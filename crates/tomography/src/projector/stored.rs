//! The weights of all rays, kept.

use super::{Projector, fill};
use crate::TomographyError;
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{LinearOperator, check_apply, check_apply_transpose};
use posterior_linalg::sparse::SparseRows;
use rayon::prelude::*;

/// Rows that one task multiplies.
const ROWS: usize = 64;

/// T and T' as sparse rows: products cost a read of every weight, about 12 bytes each, both ways. For small pictures that are projected many thousand times; on the fly is as fast where weights do not fit the caches.
#[derive(Clone, Debug)]
pub struct StoredProjector {
    forward: SparseRows<f64>,
    backward: SparseRows<f64>,
}

impl StoredProjector {
    /// Bytes that the weights of a scan will take at most.
    pub fn bytes(projector: &Projector) -> u64 {
        let rows = (projector.geometry().measurements() + projector.geometry().pixels()) as u64;
        projector.weights().saturating_mul(2 * 12).saturating_add(8 * rows)
    }

    /// Of a scan.
    ///
    /// # Errors
    /// [`TomographyError::Geometry`] for pictures of more pixels than 32 bits can count.
    pub fn new(projector: &Projector) -> Result<Self, TomographyError> {
        let (per_angle, c) =
            (projector.geometry().measurements_per_angle(), projector.geometry().measurements());
        let pixels = projector.geometry().pixels();
        let wide =
            |e: posterior_linalg::sparse::SparseError| TomographyError::Geometry { problem: e.to_string() };
        let rows: Vec<Vec<(u32, f64)>> = (0..c)
            .into_par_iter()
            .map(|row| {
                let mut own = Vec::new();
                projector.visit_ray(row / per_angle, row % per_angle, &mut |pixel, weight| {
                    own.push((pixel as u32, weight));
                });
                own.sort_unstable_by_key(|(pixel, _)| *pixel);
                own
            })
            .collect();
        let forward = compressed(pixels, &rows).map_err(wide)?;
        let mut columns = vec![Vec::new(); pixels];
        for (row, own) in rows.iter().enumerate() {
            own.iter().for_each(|(pixel, weight)| columns[*pixel as usize].push((row as u32, *weight)));
        }
        drop(rows);
        let backward = compressed(c, &columns).map_err(wide)?;
        Ok(Self { forward, backward })
    }

    /// Weights that are not zero.
    pub fn weights(&self) -> usize {
        self.forward.entries()
    }
}

fn compressed(
    columns: usize,
    rows: &[Vec<(u32, f64)>],
) -> Result<SparseRows<f64>, posterior_linalg::sparse::SparseError> {
    let mut offsets = vec![0];
    let total = rows.iter().map(Vec::len).sum();
    let (mut indices, mut values) = (Vec::with_capacity(total), Vec::with_capacity(total));
    for row in rows {
        for (index, value) in row {
            indices.push(*index);
            values.push(*value);
        }
        offsets.push(values.len());
    }
    SparseRows::new(columns, offsets, indices, values)
}

/// Sparse rows times dense columns.
fn multiply<T: Real>(rows: &SparseRows<f64>, input: MatRef<'_, T>, output: &mut MatMut<'_, T>) {
    let columns: Vec<Vec<T>> = (0..input.ncols())
        .into_par_iter()
        .map(|j| {
            let own: Vec<f64> = input.col(j).iter().map(|v| v.to_f64()).collect();
            let mut out = vec![T::ZERO; rows.rows()];
            out.par_chunks_mut(ROWS).enumerate().for_each(|(task, out)| {
                for (i, out) in out.iter_mut().enumerate() {
                    let (indices, values) = rows.row(task * ROWS + i);
                    let sum: f64 = indices.iter().zip(values).map(|(c, v)| v * own[*c as usize]).sum();
                    *out = T::from_f64(sum);
                }
            });
            out
        })
        .collect();
    fill(output, &columns);
}

impl<T: Real> LinearOperator<T> for StoredProjector {
    fn shape(&self) -> (usize, usize) {
        (self.forward.rows(), self.forward.columns())
    }

    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        check_apply(LinearOperator::<T>::shape(self), input, &output);
        multiply(&self.forward, input, &mut output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        check_apply_transpose(LinearOperator::<T>::shape(self), input, &output);
        multiply(&self.backward, input, &mut output);
    }
}
