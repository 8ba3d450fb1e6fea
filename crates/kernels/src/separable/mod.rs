//! `k(x, z) R Rᵀ`: C functions that are alike, times how they hang together.

mod learned;

use crate::{BlockKernel, Kernel, Prepared};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::dense::product;
use posterior_optim::{Parameters, Segment, Transform};
use std::convert::Infallible;
use std::ops::Range;

/// What stands below the diagonal of a first R.
const BELOW: f64 = 0.367_879_441_171_442_33;

/// A kernel of one function for C outputs: independent, or with a covariance `R Rᵀ` between them (R lower triangular, learned). White noise in it is left out, as in all kernels of several
/// functions.
///
/// Its parameters are those of the kernel, then `output_covariance` (R packed by rows). The overall amplitude belongs to the model that uses it: the first variance of a kernel
/// with one entry is fixed where it stands (in `a * b + c`, whose variances are relative to each other, one is one too many), and R begins with 1 on its diagonal and exp(-1) below it
/// (spec `fixed_mean_gp`, section 3).
#[derive(Debug)]
pub struct Separable<T: Real> {
    kernel: Box<dyn Kernel<T>>,
    outputs: usize,
    /// R by rows, packed.
    factor: Option<Vec<f64>>,
}

impl<T: Real> Clone for Separable<T> {
    fn clone(&self) -> Self {
        Self { kernel: self.kernel.clone_box(), outputs: self.outputs, factor: self.factor.clone() }
    }
}

impl<T: Real> Separable<T> {
    /// For independent outputs.
    pub fn independent(kernel: Box<dyn Kernel<T>>, outputs: usize) -> Self {
        Self { kernel, outputs, factor: None }
    }

    /// With a covariance between the outputs that is learned.
    pub fn correlated(kernel: Box<dyn Kernel<T>>, outputs: usize) -> Self {
        let row = |i: usize| (0..=i).map(move |j| if j < i { BELOW } else { 1.0 });
        Self { kernel, outputs, factor: Some((0..outputs).flat_map(row).collect()) }
    }

    /// The kernel of one function.
    pub fn kernel(&self) -> &dyn Kernel<T> {
        &*self.kernel
    }

    /// Gives all lengthscales one value.
    pub fn set_lengthscales(&mut self, lengthscale: f64) {
        let (mut values, mut start) = (self.kernel.values(), 0);
        for segment in self.kernel.segments() {
            if segment.name.ends_with(".lengthscale") {
                values[start..start + segment.len()].fill(lengthscale);
            }
            start += segment.len();
        }
        self.kernel.set_values(&values);
    }

    /// R, C x C.
    fn root(&self) -> Mat<T> {
        let c = self.outputs;
        match &self.factor {
            None => Mat::identity(c, c),
            Some(packed) => {
                Mat::from_fn(
                    c,
                    c,
                    |i, j| {
                        if j <= i { T::from_f64(packed[i * (i + 1) / 2 + j]) } else { T::ZERO }
                    },
                )
            }
        }
    }

    /// The kernel of one function between points.
    fn values_between(&self, x: &SeparablePoints<T>, z: &SeparablePoints<T>) -> Mat<T> {
        let mut k = Mat::zeros(x.x.nrows(), z.x.nrows());
        let (rows, columns) = (x.prepared.block(0..k.nrows()), z.prepared.block(0..k.ncols()));
        self.kernel.prepared_tile(rows, columns, None, k.as_mut());
        k
    }

    /// The kernel of one function of each point with itself, without white noise.
    fn values_at(&self, x: &SeparablePoints<T>) -> Vec<T> {
        let mut own = vec![T::ZERO; x.x.nrows()];
        self.kernel.values_at(x.prepared.block(0..own.len()), &mut own);
        own
    }
}

/// Rows of a matrix, with the directions in which outputs are looked at.
#[derive(Clone, Debug)]
pub struct SeparablePoints<T> {
    x: Mat<T>,
    prepared: Prepared<T>,
    /// The directions, None for each output.
    along: Option<Mat<T>>,
    /// Directions times R: C x C where all points look at each output, else one row for each direction.
    turned: Mat<T>,
    width: usize,
}

impl<T: Real> SeparablePoints<T> {
    /// The row of `turned` that row `i` of a tile belongs to.
    #[inline(always)]
    fn direction(&self, i: usize) -> usize {
        if self.along.is_some() { i } else { i % self.width }
    }

    /// The rows of `turned` that belong to point `i`.
    #[inline(always)]
    fn directions(&self, i: usize) -> Range<usize> {
        let first = if self.along.is_some() { i * self.width } else { 0 };
        first..first + self.width
    }

    /// Adds to the packed gradient of R what a gradient of `turned` contributes.
    fn add_root(&self, toward_turned: &Mat<T>, packed: &mut [f64]) {
        let own = match &self.along {
            None => toward_turned.clone(),
            Some(along) => product(along.transpose(), toward_turned.as_ref()),
        };
        for i in 0..own.nrows() {
            for j in 0..=i {
                packed[i * (i + 1) / 2 + j] += own[(i, j)].to_f64();
            }
        }
    }
}

impl<T: Real> Parameters for Separable<T> {
    fn segments(&self) -> Vec<Segment> {
        let mut out = self.kernel.segments();
        let amplitude = out.iter_mut().find(|s| s.name.ends_with(".variance") && s.len() == 1);
        if let Some(amplitude) = amplitude {
            amplitude.transform = Transform::Fixed;
        }
        if self.factor.is_some() {
            let shape = vec![self.outputs, self.outputs];
            out.push(Segment { name: "output_covariance".into(), shape, transform: Transform::Triangular });
        }
        out
    }

    fn values(&self) -> Vec<f64> {
        let mut out = self.kernel.values();
        out.extend(self.factor.iter().flatten());
        out
    }

    fn set_values(&mut self, values: &[f64]) {
        let (kernel, factor) = values.split_at(self.kernel.parameter_count());
        self.kernel.set_values(kernel);
        match &mut self.factor {
            Some(own) => own.copy_from_slice(factor),
            None => assert!(factor.is_empty(), "independent outputs have no covariance"),
        }
    }
}

impl<T: Real> BlockKernel<T> for Separable<T> {
    /// One point a row.
    type Points = Mat<T>;
    type Prepared = SeparablePoints<T>;
    type Error = Infallible;

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn count(&self, x: &Mat<T>) -> usize {
        x.nrows()
    }

    fn points_at_once(&self, width: usize) -> usize {
        (1024 / width.max(1)).max(1)
    }

    fn prepare(
        &self,
        x: &Mat<T>,
        points: Range<usize>,
        along: Option<MatRef<'_, T>>,
    ) -> Result<SeparablePoints<T>, Infallible> {
        let x = x.as_ref().subrows(points.start, points.len()).to_owned();
        let root = self.root();
        let width = along.map_or(self.outputs, |along| along.nrows() / points.len().max(1)).max(1);
        let turned = along.map_or_else(|| root.clone(), |along| product(along, root.as_ref()));
        let along = along.map(|along| along.to_owned());
        Ok(SeparablePoints { prepared: self.kernel.prepare(x.as_ref()), x, along, turned, width })
    }

    fn tile(&self, x: &SeparablePoints<T>, z: &SeparablePoints<T>) -> Mat<T> {
        let mut k = self.values_between(x, z);
        let between = product(x.turned.as_ref(), z.turned.transpose());
        if (x.width, z.width) == (1, 1) {
            for j in 0..k.ncols() {
                let between = between.col_as_slice(z.direction(j));
                let k = k.col_as_slice_mut(j).iter_mut();
                match x.along {
                    Some(_) => k.zip(between).for_each(|(k, b)| *k *= *b),
                    None => k.for_each(|k| *k *= between[0]),
                }
            }
            return k;
        }
        let mut out = Mat::zeros(x.x.nrows() * x.width, z.x.nrows() * z.width);
        for j in 0..out.ncols() {
            let between = between.col_as_slice(z.direction(j));
            let out = out.col_as_slice_mut(j).chunks_exact_mut(x.width);
            for (i, (out, k)) in out.zip(k.col_as_slice(j / z.width)).enumerate() {
                out.iter_mut().zip(&between[x.directions(i)]).for_each(|(out, b)| *out = *b * *k);
            }
        }
        out
    }

    fn diagonal(&self, x: &SeparablePoints<T>) -> Vec<T> {
        let w = x.width;
        let blocks = self.values_at(x).into_iter().enumerate();
        let dot = |a: usize, b: usize| -> T {
            (0..self.outputs).map(|c| x.turned[(a, c)] * x.turned[(b, c)]).sum()
        };
        blocks
            .flat_map(|(i, k)| (0..w * w).map(move |e| (i, k, e)))
            .map(|(i, k, e)| k * dot(x.direction(i * w + e / w), x.direction(i * w + e % w)))
            .collect()
    }

    fn pullback(
        &self,
        x: &SeparablePoints<T>,
        z: &Mat<T>,
        along: Option<MatRef<'_, T>>,
        adjoint: MatRef<'_, T>,
    ) -> Result<Mat<T>, Infallible> {
        let prepared = BlockKernel::prepare(self, z, 0..z.nrows(), along)?;
        let gradient = self.pull(x, &prepared, adjoint, true, &mut []);
        Ok(gradient.unwrap_or_else(|| Mat::zeros(z.nrows(), z.ncols())))
    }
}
