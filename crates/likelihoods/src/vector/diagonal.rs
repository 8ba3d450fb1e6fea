//! What likelihoods with independent outputs share: a diagonal `B`, whose root is its square root.

/// Writes a diagonal matrix of dimension `n` (row-major).
pub(super) fn matrix(n: usize, out: &mut [f64], entry: impl Fn(usize) -> f64) {
    assert_eq!(out.len(), n * n, "a matrix of the outputs has C x C numbers");
    out.fill(0.0);
    for i in 0..n {
        out[i * n + i] = entry(i);
    }
}

/// Writes `diag(entry) u`.
pub(super) fn product(u: &[f64], out: &mut [f64], entry: impl Fn(usize) -> f64) {
    assert_eq!(u.len(), out.len(), "a diagonal matrix keeps the length");
    for (i, (out, u)) in out.iter_mut().zip(u).enumerate() {
        *out = entry(i) * u;
    }
}

/// The methods of [`crate::VectorLikelihood`] that follow from `self.curvature_entry(y, f, i)`, the i-th diagonal entry of `B`.
macro_rules! diagonal_curvature {
    () => {
        fn curvature(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
            self.assert_lengths(y, f);
            super::diagonal::matrix(self.outputs(), out, |i| self.curvature_entry(y, f, i));
        }
        fn curvature_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]) {
            self.assert_lengths(y, f);
            assert_eq!(u.len(), self.outputs(), "B multiplies C numbers");
            super::diagonal::product(u, out, |i| self.curvature_entry(y, f, i));
        }
        fn root_width(&self) -> usize {
            self.outputs()
        }
        fn root(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
            self.assert_lengths(y, f);
            super::diagonal::matrix(self.outputs(), out, |i| self.curvature_entry(y, f, i).sqrt());
        }
        fn root_product(&self, y: &[f64], f: &[f64], e: &[f64], out: &mut [f64]) {
            self.assert_lengths(y, f);
            assert_eq!(e.len(), self.outputs(), "the root multiplies S = C numbers");
            super::diagonal::product(e, out, |i| self.curvature_entry(y, f, i).sqrt());
        }
        fn root_transpose_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]) {
            self.root_product(y, f, u, out);
        }
    };
}
/// The contract on lengths, shared by all methods of [`crate::VectorLikelihood`].
macro_rules! assert_lengths {
    () => {
        fn assert_lengths(&self, y: &[f64], f: &[f64]) {
            assert_eq!(y.len(), crate::VectorLikelihood::target_width(self), "the width of a target");
            assert_eq!(f.len(), crate::VectorLikelihood::outputs(self), "the number of latent values");
        }
    };
}
pub(super) use {assert_lengths, diagonal_curvature};
