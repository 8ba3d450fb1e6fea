//! Jacobian-vector products from **central differences**, for what has no tangent rule, and as a check on those that do.

use crate::array::{Array, Precision, batch_shape};
use crate::graph::{Network, NetworkError, Selection};

impl<T: Precision> Network<T> {
    /// `(g(v + h u) - g(v - h u)) / 2h`, approximately `J(x) u`, for each row `u` of `tangents`, with Andrei's step: `[k, selection] -> [examples * k, outputs...]`.
    ///
    /// `h = sqrt(eps) (1 + max |v|) / max |u|` with `eps` the precision's distance from 1 to the next number and `v` the selected weights; a tangent of zeros gives zeros.
    /// The error relative to the largest entry is around 1e-4 in single and 1e-8 in double precision; [`Trace::jvp`](crate::Trace::jvp) is exact, and cheaper once a
    /// trace is there. Cost: two forward passes and a copy of the weights for each tangent.
    ///
    /// Source: Andrei (2009); spec `linearised_laplace`, section 2.2.
    ///
    /// # Errors
    /// When the tangents do not fit the selection or are not finite, the inputs do not fit, or the network is in training mode.
    pub fn finite_difference_jvp(
        &self,
        x: &Array<T>,
        selection: &Selection,
        tangents: &Array<T>,
    ) -> Result<Array<T>, NetworkError> {
        self.require_evaluation("finite-difference products")?;
        if tangents.shape().len() != 2 || tangents.row_len() != selection.len() {
            let (expected, found) = (vec![tangents.rows(), selection.len()], tangents.shape().to_vec());
            return Err(NetworkError::Shape { what: "tangents", expected, found });
        }
        if let Some(position) = tangents.first_not_finite() {
            return Err(NetworkError::NotFinite { what: "a tangent".into(), position });
        }
        let (width, outputs) = (tangents.rows(), self.graph().output_shape().iter().product::<usize>());
        let weights = selection.flatten(self.parameters());
        let largest = |values: &[T]| values.iter().fold(0.0f64, |m, v| m.max(v.to_f64().abs()));
        let scale = T::EPSILON.to_f64().sqrt() * (1.0 + largest(&weights));
        let mut out = Array::zeros(batch_shape(x.rows() * width, self.graph().output_shape()));
        let mut moved = self.clone();
        for k in 0..width {
            let direction = tangents.row(k);
            let length = largest(direction);
            if length == 0.0 {
                continue;
            }
            let step = scale / length;
            let mut at = |step: f64| {
                let there: Vec<T> = weights
                    .iter()
                    .zip(direction)
                    .map(|(w, u)| T::from_f64(w.to_f64() + step * u.to_f64()))
                    .collect();
                selection.assign(&there, moved.parameters_mut());
                moved.forward(x)
            };
            let (up, down) = (at(step)?, at(-step)?);
            for n in 0..x.rows() {
                let place = &mut out.values_mut()[(n * width + k) * outputs..][..outputs];
                for ((o, a), b) in place.iter_mut().zip(up.row(n)).zip(down.row(n)) {
                    *o = T::from_f64((a.to_f64() - b.to_f64()) / (2.0 * step));
                }
            }
        }
        Ok(out)
    }
}
