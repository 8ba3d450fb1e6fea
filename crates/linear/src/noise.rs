//! **The precision `B` of the observations**, block diagonal over examples, and its root.
//!
//! Everything uses a root `B_i = R_i R_i'` instead of the inverse or a factor, because the curvature of a softmax is singular. With
//! `Q = R' Phi` the curvature of the model is `M = Q' Q`, and `R e` for white noise `e` is a draw of covariance `B`.
//!
//! Source: spec `linearised_laplace`, sections 2.1 and 5.11.

use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::dense::{Eigen, eigen};

/// The precision of each example's observation, `B_i` of C x C.
#[derive(Clone, Debug)]
pub struct Noise {
    outputs: usize,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// The same diagonal for every example.
    Diagonal { precisions: Vec<f64>, roots: Vec<f64> },
    /// One root per example, row by row (C² numbers each).
    Blocks { roots: Vec<f64> },
}

impl Noise {
    /// `b I` for every example: noise of variance `1/b` on each of `outputs` outputs.
    ///
    /// # Errors
    /// [`LinearError::NotPositive`], [`LinearError::Empty`].
    pub fn uniform(precision: f64, outputs: usize) -> Result<Self, LinearError> {
        check::size("the noise precisions", outputs, 1, check::BUFFER_LIMIT)?;
        Self::per_output(vec![precision; outputs])
    }

    /// `diag(b)` for every example, one precision per output.
    ///
    /// # Errors
    /// [`LinearError::NotPositive`], [`LinearError::Empty`].
    pub fn per_output(precisions: Vec<f64>) -> Result<Self, LinearError> {
        if precisions.is_empty() {
            return Err(LinearError::Empty { what: "outputs" });
        }
        check::positive("noise precision", &precisions)?;
        let roots = precisions.iter().map(|b| b.sqrt()).collect();
        Ok(Self { outputs: precisions.len(), form: Form::Diagonal { precisions, roots } })
    }

    /// One positive semi-definite block per example, `C²` numbers each, row by row, one example after another.
    ///
    /// Roots are taken by eigendecomposition, `R_i = U diag(sqrt(lambda))`; eigenvalues below `1e-12` of the largest count as zero.
    /// Prefer [`Noise::from_roots`] where a root is known in closed form.
    ///
    /// # Errors
    /// [`LinearError::Indefinite`], [`LinearError::NotFinite`], [`LinearError::Shape`], [`LinearError::Empty`].
    pub fn from_blocks(outputs: usize, blocks: &[f64]) -> Result<Self, LinearError> {
        Self::check_blocks(outputs, blocks)?;
        let mut roots = vec![0.0; blocks.len()];
        for (example, block) in blocks.chunks_exact(outputs * outputs).enumerate() {
            let matrix = Mat::from_fn(outputs, outputs, |i, j| {
                0.5 * (block[i * outputs + j] + block[j * outputs + i])
            });
            let Eigen { values, vectors } =
                eigen(matrix.as_ref()).map_err(|_| LinearError::Eigen { dimension: outputs })?;
            let largest = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            if let Some(&eigenvalue) = values.iter().find(|&&v| v < -1e-10 * largest) {
                return Err(LinearError::Indefinite { example, eigenvalue, largest });
            }
            let kept: Vec<f64> = values.iter().map(|&v| if v > 1e-12 * largest { v } else { 0.0 }).collect();
            for i in 0..outputs {
                for j in 0..outputs {
                    roots[(example * outputs + i) * outputs + j] = vectors[(i, j)] * kept[j].sqrt();
                }
            }
        }
        Ok(Self { outputs, form: Form::Blocks { roots } })
    }

    /// One root per example, `B_i = R_i R_i'`, `C²` numbers each, row by row.
    ///
    /// # Errors
    /// [`LinearError::NotFinite`], [`LinearError::Shape`], [`LinearError::Empty`].
    pub fn from_roots(outputs: usize, roots: Vec<f64>) -> Result<Self, LinearError> {
        Self::check_blocks(outputs, &roots)?;
        Ok(Self { outputs, form: Form::Blocks { roots } })
    }

    fn check_blocks(outputs: usize, blocks: &[f64]) -> Result<(), LinearError> {
        if outputs == 0 {
            return Err(LinearError::Empty { what: "outputs" });
        }
        check::size("one noise block", outputs, outputs, check::BUFFER_LIMIT)?;
        let size = outputs * outputs;
        check::same("numbers in the noise blocks", blocks.len().div_ceil(size) * size, blocks.len())?;
        check::finite("number of the noise blocks,", blocks)
    }

    /// Outputs of each example, `C`.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Examples that have a block of their own; `None` when all share one.
    pub fn examples(&self) -> Option<usize> {
        match &self.form {
            Form::Diagonal { .. } => None,
            Form::Blocks { roots } => Some(roots.len() / (self.outputs * self.outputs)),
        }
    }

    /// Checks that there is a precision for each of `examples` examples with `outputs` outputs.
    pub(crate) fn check(&self, examples: usize, outputs: usize) -> Result<(), LinearError> {
        check::same("outputs of the noise precision", outputs, self.outputs)?;
        check::same("examples with a noise precision", examples, self.examples().unwrap_or(examples))
    }

    /// `B u` for the listed examples: `u` has one row per example and output (nC x k). Cost `4nC²k` flops, `nCk` when diagonal.
    ///
    /// # Panics
    /// When the shapes do not fit.
    pub fn apply(&self, examples: &[usize], u: MatRef<'_, f64>) -> Mat<f64> {
        match &self.form {
            Form::Diagonal { precisions, .. } => self.scale_rows(examples, u, precisions),
            Form::Blocks { .. } => self.color(examples, self.whiten(examples, u).as_ref()),
        }
    }

    /// `R' u`: observations in units of their noise.
    ///
    /// # Panics
    /// When the shapes do not fit.
    pub fn whiten(&self, examples: &[usize], u: MatRef<'_, f64>) -> Mat<f64> {
        match &self.form {
            Form::Diagonal { roots, .. } => self.scale_rows(examples, u, roots),
            Form::Blocks { roots, .. } => self.multiply_blocks(examples, u, roots, true),
        }
    }

    /// `R u`: of covariance `B` when `u` is white noise.
    ///
    /// # Panics
    /// When the shapes do not fit.
    pub fn color(&self, examples: &[usize], u: MatRef<'_, f64>) -> Mat<f64> {
        match &self.form {
            Form::Diagonal { roots, .. } => self.scale_rows(examples, u, roots),
            Form::Blocks { roots, .. } => self.multiply_blocks(examples, u, roots, false),
        }
    }

    /// `log det B` over `examples` examples (all of them, where each has a block of its own). Cost `C³` an example.
    ///
    /// # Errors
    /// [`LinearError::SingularNoise`] when a block is singular.
    pub fn log_determinant(&self, examples: usize) -> Result<f64, LinearError> {
        match &self.form {
            Form::Diagonal { precisions, .. } => {
                Ok(examples as f64 * precisions.iter().map(|b| b.ln()).sum::<f64>())
            }
            Form::Blocks { roots } => {
                let mut total = 0.0;
                for (example, root) in roots.chunks_exact(self.outputs * self.outputs).enumerate() {
                    let what = "the log determinant of B";
                    total += log_determinant_of_square(self.outputs, root)
                        .ok_or(LinearError::SingularNoise { what, example })?;
                }
                Ok(total)
            }
        }
    }

    fn scale_rows(&self, examples: &[usize], u: MatRef<'_, f64>, scales: &[f64]) -> Mat<f64> {
        let c = self.outputs;
        assert_eq!(u.nrows(), examples.len() * c, "a block of noise has one row per example and output");
        Mat::from_fn(u.nrows(), u.ncols(), |r, k| scales[r % c] * u[(r, k)])
    }

    fn multiply_blocks(
        &self,
        examples: &[usize],
        u: MatRef<'_, f64>,
        roots: &[f64],
        transposed: bool,
    ) -> Mat<f64> {
        let c = self.outputs;
        assert_eq!(u.nrows(), examples.len() * c, "a block of noise has one row per example and output");
        let mut out = Mat::zeros(u.nrows(), u.ncols());
        for k in 0..u.ncols() {
            for (position, &example) in examples.iter().enumerate() {
                let root = &roots[example * c * c..(example + 1) * c * c];
                for i in 0..c {
                    let entry = |j: usize| if transposed { root[j * c + i] } else { root[i * c + j] };
                    out[(position * c + i, k)] = (0..c).map(|j| entry(j) * u[(position * c + j, k)]).sum();
                }
            }
        }
        out
    }
}

/// `log det (R R')` of a root given row by row; `None` when it is singular to rounding.
fn log_determinant_of_square(outputs: usize, root: &[f64]) -> Option<f64> {
    // The pivots of a rank-revealing QR, so that a singular root is recognised as such.
    let qr = Mat::from_fn(outputs, outputs, |i, j| root[i * outputs + j]).col_piv_qr();
    let pivots: Vec<f64> = (0..outputs).map(|i| qr.R()[(i, i)].abs()).collect();
    let threshold = 1e-12 * pivots[0];
    pivots.iter().map(|&p| (p > threshold).then(|| 2.0 * p.ln())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{normal, reference};

    #[test]
    fn the_root_squares_to_the_block_also_when_singular() {
        let p = [0.7f64, 0.2, 0.1];
        let b = Mat::from_fn(3, 3, |i, j| if i == j { p[i] } else { 0.0 } - p[i] * p[j]);
        let flat: Vec<f64> = (0..9).map(|k| b[(k / 3, k % 3)]).collect();
        let root: Vec<f64> = (0..9)
            .map(|k| if k / 3 == k % 3 { p[k / 3].sqrt() } else { 0.0 } - p[k / 3] * p[k % 3].sqrt())
            .collect();
        let u = normal(3, 2, "noise");
        let expected = &b * &u;
        for noise in [Noise::from_blocks(3, &flat).unwrap(), Noise::from_roots(3, root).unwrap()] {
            assert!((noise.apply(&[0], u.as_ref()) - &expected).norm_max() < 1e-14);
            let q = noise.whiten(&[0], u.as_ref());
            assert!((noise.color(&[0], q.as_ref()) - &expected).norm_max() < 1e-14);
            assert!((q.col(0).squared_norm_l2() - u.col(0).transpose() * expected.col(0)).abs() < 1e-14);
            assert!(matches!(noise.log_determinant(1), Err(LinearError::SingularNoise { example: 0, .. })));
        }
    }

    #[test]
    fn blocks_of_a_diagonal_are_the_diagonal() {
        let shared = Noise::per_output(vec![4.0, 0.25]).unwrap();
        let blocks = Noise::from_blocks(2, &[4.0, 0.0, 0.0, 0.25, 4.0, 0.0, 0.0, 0.25]).unwrap();
        let roots = Noise::from_roots(2, vec![2.0, 0.0, 0.0, 0.5, 2.0, 0.0, 0.0, 0.5]).unwrap();
        let u = normal(4, 3, "noise");
        for noise in [&blocks, &roots] {
            assert!(
                (noise.apply(&[0, 1], u.as_ref()) - shared.apply(&[0, 1], u.as_ref())).norm_max() < 1e-14
            );
            assert!((noise.log_determinant(2).unwrap() - shared.log_determinant(2).unwrap()).abs() < 1e-13);
        }
        assert!((shared.log_determinant(3).unwrap()).abs() < 1e-14);
    }

    #[test]
    fn examples_are_looked_up_by_number() {
        let (_, noise) = reference();
        let u = normal(4, 1, "noise");
        let whole = noise.apply(&[0, 1], u.as_ref());
        let swapped = noise.apply(&[1, 0], Mat::from_fn(4, 1, |i, _| u[((i + 2) % 4, 0)]).as_ref());
        assert!((Mat::from_fn(4, 1, |i, _| swapped[((i + 2) % 4, 0)]) - whole).norm_max() < 1e-15);
    }

    #[test]
    fn bad_precisions_are_refused() {
        assert!(matches!(Noise::uniform(0.0, 1), Err(LinearError::NotPositive { .. })));
        assert!(matches!(Noise::uniform(f64::NAN, 2), Err(LinearError::NotPositive { .. })));
        assert!(matches!(Noise::uniform(1.0, 0), Err(LinearError::Empty { .. })));
        assert!(matches!(Noise::uniform(1.0, usize::MAX), Err(LinearError::TooLarge { .. })));
        assert!(matches!(Noise::from_blocks(2, &[1.0; 5]), Err(LinearError::Shape { .. })));
        assert!(matches!(
            Noise::from_blocks(2, &[1.0, 2.0, 2.0, 1.0]),
            Err(LinearError::Indefinite { example: 0, .. })
        ));
        assert!(matches!(Noise::from_blocks(1, &[f64::INFINITY]), Err(LinearError::NotFinite { .. })));
        assert!(matches!(Noise::from_roots(usize::MAX, vec![1.0]), Err(LinearError::TooLarge { .. })));
    }
}
