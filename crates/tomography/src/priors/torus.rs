//! **Images on a torus**, where a stationary covariance is a filter: multiplied with the eigenvalues between two Fourier transforms.
//!
//! An image of h x w pixels lies in the corner of a closed grid of P x Q. Displacements of up to h - 1 rows are the same on both once `P >= 2(h - 1)`, so cropping a product on the torus gives the
//! product on the image exactly. Source: Dietrich and Newsam (1997), *Fast and exact simulation of stationary Gaussian processes through circulant embedding*.
//!
//! Filters are real and symmetric, so the two columns that one complex transform can carry (as real and imaginary part) do not mix. Cost of a filter: about `10 PQ log₂(PQ)` flops for two columns, less what zero rows save.

use faer::{ColMut, ColRef, MatMut, MatRef};
use posterior_linalg::parallel;
use rustfft::num_complex::Complex64;
use rustfft::{Fft, FftPlanner};
use std::fmt;
use std::sync::Arc;

/// A closed grid of `rows x columns` with an image of `height x width` in its corner.
#[derive(Clone)]
pub struct Torus {
    height: usize,
    width: usize,
    rows: usize,
    columns: usize,
    /// Transforms along rows (of length `columns`) and along columns (of length `rows`), forwards and back.
    along_rows: [Arc<dyn Fft<f64>>; 2],
    along_columns: [Arc<dyn Fft<f64>>; 2],
}

impl fmt::Debug for Torus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { height, width, rows, columns, .. } = self;
        write!(f, "Torus({height} x {width} in {rows} x {columns})")
    }
}

/// Which pixels a side of a product has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Those of the image.
    Image,
    /// Those of the whole torus.
    Torus,
}

/// The next number that is even and has no factors but 2, 3 and 5: lengths of fast transforms.
fn fast_length(least: usize) -> usize {
    let smooth = |mut n: usize| {
        for factor in [2, 3, 5] {
            while n.is_multiple_of(factor) {
                n /= factor;
            }
        }
        n == 1
    };
    (least.max(2)..).find(|&n| n.is_multiple_of(2) && smooth(n)).unwrap_or(least)
}

impl Torus {
    /// A torus on which displacements within the image are what they are on the image, `growth` (at least 1) times as large as needed in each direction.
    pub fn around(height: usize, width: usize, growth: f64) -> Self {
        let length =
            |n: usize| fast_length((growth.max(1.0) * (2 * n.saturating_sub(1)) as f64).ceil() as usize);
        let (rows, columns) = (length(height), length(width));
        let mut planner = FftPlanner::new();
        let mut both = |n| [planner.plan_fft_forward(n), planner.plan_fft_inverse(n)];
        let (along_rows, along_columns) = (both(columns), both(rows));
        Self { height, width, rows, columns, along_rows, along_columns }
    }

    /// Rows and columns of the torus.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// Pixels of a side.
    pub(super) fn pixels(&self, side: Side) -> usize {
        match side {
            Side::Image => self.height * self.width,
            Side::Torus => self.rows * self.columns,
        }
    }

    /// Rows and columns of a side.
    fn extent(&self, side: Side) -> (usize, usize) {
        match side {
            Side::Image => (self.height, self.width),
            Side::Torus => (self.rows, self.columns),
        }
    }

    /// The eigenvalues of a covariance that is a function of the distance (in pixels, the shorter way round): rows x columns, transposed, where [`Self::filter`] wants them.
    pub(super) fn eigenvalues(&self, covariance: impl Fn(f64) -> f64) -> Vec<f64> {
        let around = |i: usize, n: usize| i.min(n - i) as f64;
        let mut grid: Vec<Complex64> = (0..self.rows * self.columns)
            .map(|at| {
                let (i, j) = (at / self.columns, at % self.columns);
                Complex64::from(covariance(around(i, self.rows).hypot(around(j, self.columns))))
            })
            .collect();
        let mut turned = vec![Complex64::default(); grid.len()];
        self.forwards(&mut grid, self.rows, &mut turned);
        turned.iter().map(|value| value.re).collect()
    }

    /// The transform of `grid`, of which only the first `occupied` rows are not zero, transposed into `turned`.
    fn forwards(&self, grid: &mut [Complex64], occupied: usize, turned: &mut [Complex64]) {
        self.along_rows[0].process(&mut grid[..occupied * self.columns]);
        transpose(grid, turned, self.rows, self.columns);
        self.along_columns[0].process(turned);
    }

    /// `output <- crop(filter(pad(input)))`, one image a column: multiplied by `eigenvalues` between the transforms. The sides say what is padded and cropped. Columns go in pairs, in parallel.
    pub(super) fn filter(
        &self,
        eigenvalues: &[f64],
        (input, from): (MatRef<'_, f64>, Side),
        (output, to): (MatMut<'_, f64>, Side),
    ) {
        let scale = 1.0 / (self.rows * self.columns) as f64;
        parallel::column_chunks(output, 2, |pair, mut output| {
            let mut grid = vec![Complex64::default(); self.rows * self.columns];
            let mut turned = grid.clone();
            let first = 2 * pair;
            let second = (output.ncols() == 2).then(|| input.col(first + 1));
            self.pad(&mut grid, input.col(first), second, from);
            self.forwards(&mut grid, self.extent(from).0, &mut turned);
            turned.iter_mut().zip(eigenvalues).for_each(|(value, lambda)| *value *= lambda * scale);
            self.along_columns[1].process(&mut turned);
            transpose(&turned, &mut grid, self.columns, self.rows);
            let rows = self.extent(to).0;
            self.along_rows[1].process(&mut grid[..rows * self.columns]);
            self.crop(&grid, output.as_mut().col_mut(0), to, |value| value.re);
            if output.ncols() == 2 {
                self.crop(&grid, output.col_mut(1), to, |value| value.im);
            }
        });
    }

    fn pad(
        &self,
        grid: &mut [Complex64],
        real: ColRef<'_, f64>,
        imaginary: Option<ColRef<'_, f64>>,
        side: Side,
    ) {
        let (rows, columns) = self.extent(side);
        for i in 0..rows {
            for (j, value) in grid[i * self.columns..][..columns].iter_mut().enumerate() {
                let pixel = i * columns + j;
                *value = Complex64::new(real[pixel], imaginary.map_or(0.0, |column| column[pixel]));
            }
        }
    }

    fn crop(
        &self,
        grid: &[Complex64],
        mut out: ColMut<'_, f64>,
        side: Side,
        part: impl Fn(&Complex64) -> f64,
    ) {
        let (rows, columns) = self.extent(side);
        for i in 0..rows {
            for (j, value) in grid[i * self.columns..][..columns].iter().enumerate() {
                out[i * columns + j] = part(value);
            }
        }
    }
}

/// `to <- fromᵀ` for `from` of rows x columns, by squares that stay in the first-level cache.
fn transpose(from: &[Complex64], to: &mut [Complex64], rows: usize, columns: usize) {
    const SIDE: usize = 16;
    for top in (0..rows).step_by(SIDE) {
        for left in (0..columns).step_by(SIDE) {
            for i in top..rows.min(top + SIDE) {
                for j in left..columns.min(left + SIDE) {
                    to[j * rows + i] = from[i * columns + j];
                }
            }
        }
    }
}
