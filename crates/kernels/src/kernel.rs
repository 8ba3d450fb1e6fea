//! The word that every covariance function speaks.

use crate::additive::Decomposed;
use crate::features::{FeatureError, FeatureRecipe};
use crate::infinite::ClippedCorrelations;
use crate::{Prepared, PreparedBlock, TILE};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_optim::Parameters;
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// Two sets of points, given as blocks of rows, whose kernel matrix is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a, T> {
    /// First points, n x D: rows of the matrix.
    pub x: MatRef<'a, T>,
    /// Second points, m x D: columns of the matrix.
    pub z: MatRef<'a, T>,
    /// `Some((i, j))` when both are blocks of rows of one set, beginning at its rows i and j. Then equal rows are one
    /// observation: white noise appears, and distances are exactly zero.
    pub same: Option<(usize, usize)>,
}

impl<T> Pair<'_, T> {
    /// `(row, column)` of the entries at which both points are one observation.
    pub fn identical(&self) -> impl Iterator<Item = (usize, usize)> + use<T> {
        let (rows, columns) = (self.x.nrows(), self.z.nrows());
        let range = self.same.map(|(i, j)| (i.max(j)..(i + rows).min(j + columns), i, j));
        range.into_iter().flat_map(|(both, i, j)| both.map(move |k| (k - i, k - j)))
    }
}

/// Which adjoints a pullback should compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Of the natural parameters.
    pub parameters: bool,
    /// Of the first points.
    pub x: bool,
    /// Of the second points.
    pub z: bool,
}

impl Request {
    /// Everything.
    pub const ALL: Self = Self { parameters: true, x: true, z: true };
    /// The parameters only.
    pub const PARAMETERS: Self = Self { parameters: true, x: false, z: false };
}

/// Adjoints that a pullback accumulates into.
#[derive(Clone, Debug, PartialEq)]
pub struct Adjoints<T> {
    /// Of the natural parameters, in the order of the kernel's segments; empty when not requested.
    pub parameters: Vec<f64>,
    /// Of the first points, n x D.
    pub x: Option<Mat<T>>,
    /// Of the second points, m x D.
    pub z: Option<Mat<T>>,
}

impl<T: Real> Adjoints<T> {
    /// Zeros for what is requested.
    pub fn zeros(request: Request, parameters: usize, rows: usize, columns: usize, dimension: usize) -> Self {
        Self {
            parameters: vec![0.0; if request.parameters { parameters } else { 0 }],
            x: request.x.then(|| Mat::zeros(rows, dimension)),
            z: request.z.then(|| Mat::zeros(columns, dimension)),
        }
    }

    /// What these adjoints ask for.
    pub fn request(&self) -> Request {
        Request { parameters: !self.parameters.is_empty(), x: self.x.is_some(), z: self.z.is_some() }
    }

    /// Calls `work` with adjoints whose parameters are only those in `range`, for one part of a composite kernel.
    pub(crate) fn with_parameters<R>(&mut self, range: Range<usize>, work: impl FnOnce(&mut Self) -> R) -> R {
        if self.parameters.is_empty() {
            return work(self);
        }
        let whole = std::mem::take(&mut self.parameters);
        self.parameters = whole[range.clone()].to_vec();
        let result = work(self);
        let part = std::mem::replace(&mut self.parameters, whole);
        self.parameters[range].copy_from_slice(&part);
        result
    }
}

/// One of the independent functions that a process is a sum of.
#[derive(Debug)]
pub struct Component<T: Real> {
    /// What the kernel's parameters are called by.
    pub label: String,
    /// Of an additive kernel: how many columns it depends on together.
    pub order: Option<usize>,
    /// The columns that it depends on alone, where that is why it stands apart.
    pub columns: Vec<usize>,
    /// Its covariance, amplitude included.
    pub kernel: Box<dyn Kernel<T>>,
    /// What it is a sum of itself.
    pub parts: Vec<Self>,
    /// The kernel that it is the part of one order of, which knows the effects of columns that are apart from each other.
    pub part_of: Option<Arc<dyn Decomposed<T>>>,
}

/// A covariance function in precision `T`. Implementations are serial and see one tile at a time;
/// [`crate::cross`] and its siblings tile and parallelise for all of them. Whoever saves one that is no text asks which it is ([`Any`]).
pub trait Kernel<T: Real>: Any + Parameters + Debug + Send + Sync {
    /// Writes `k(x_i, z_j)` for one tile (n x m, column-major).
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>);

    /// Writes `k(x_i, x_i)`.
    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]);

    /// Adds to `adjoints` what an `adjoint` (n x m, column-major) of the tile contributes, and returns `Σ_ij adjoint_ij k(x_i, z_j)`.
    /// That sum falls out on the way; it is the adjoint of a variance in front ([`crate::composite::Scaled`]).
    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64;

    /// The points as [`Self::prepared_tile`] wants them: what tiles would otherwise repeat (scaling, say), done once, O(nD).
    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        Prepared::plain(x)
    }

    /// [`Self::cross_tile`] for prepared points; `same` as in [`Pair::same`].
    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        same: Option<(usize, usize)>,
        out: MatMut<'_, T>,
    ) {
        self.cross_tile(Pair { x: x.matrix(), z: z.matrix(), same }, out);
    }

    /// Writes `k(x_i, x_i)` without white noise, as between two observations at the same place. Point by point, unless a kernel knows better.
    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        for (i, value) in out.iter_mut().enumerate() {
            let value = MatMut::from_column_major_slice_mut(std::slice::from_mut(value), 1, 1);
            self.prepared_tile(x.point(i), x.point(i), None, value);
        }
    }

    /// Adds to `parameters` (the natural ones, in their order) what an `adjoint` of [`Self::values_at`] contributes. Point by point, unless a kernel knows better.
    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        for (i, adjoint) in adjoint.iter().enumerate() {
            let point = x.subrows(i, 1);
            let mut one = Adjoints::zeros(Request::PARAMETERS, parameters.len(), 1, 1, x.ncols());
            let adjoint = MatRef::from_column_major_slice(std::slice::from_ref(adjoint), 1, 1);
            self.pullback_tile(Pair { x: point, z: point, same: None }, adjoint, &mut one);
            parameters.iter_mut().zip(one.parameters).for_each(|(p, a)| *p += a);
        }
    }

    /// Adds to `out` (n x D) what an `adjoint` of [`Self::values_at`] contributes to the points. Point by point, unless a kernel knows better.
    fn pullback_values_to_points(&self, x: MatRef<'_, T>, adjoint: &[T], out: &mut Mat<T>) {
        let request = Request { parameters: false, x: true, z: true };
        for (i, adjoint) in adjoint.iter().enumerate() {
            let point = x.subrows(i, 1);
            let mut one = Adjoints::zeros(request, 0, 1, 1, x.ncols());
            let adjoint = MatRef::from_column_major_slice(std::slice::from_ref(adjoint), 1, 1);
            self.pullback_tile(Pair { x: point, z: point, same: None }, adjoint, &mut one);
            for side in [one.x, one.z].into_iter().flatten() {
                (0..x.ncols()).for_each(|d| out[(i, d)] += side[(0, d)]);
            }
        }
    }

    /// Whether an observation has more variance than two at its place have in common ([`Self::values_at`]): white noise is in it.
    fn is_noisy(&self) -> bool {
        false
    }

    /// Correlations between points of x and of z that rounding puts above 1 inside of kernels that count them as 1 ([`crate::infinite`]); others have none. Costs some three times what the matrix does, on one thread.
    fn clipped_correlations(&self, x: MatRef<'_, T>, z: MatRef<'_, T>) -> ClippedCorrelations {
        let _ = (x, z);
        ClippedCorrelations::default()
    }

    /// Takes the values that a search for such targets begins with, one for each row of x: where a kernel's evidence has many maxima, near one of them. Nothing by default, whose usual values do.
    fn begin(&mut self, x: MatRef<'_, T>, targets: &[f64]) {
        let _ = (x, targets);
    }

    /// What random features of this kernel are made of.
    ///
    /// # Errors
    /// [`FeatureError`] for kernels that have none, as all have unless they say otherwise.
    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        // A kernel's type is called as the kernel is.
        let text = format!("{self:?}");
        let name: String = text.chars().take_while(|c| c.is_alphanumeric()).collect();
        Err(FeatureError::NoFeatures { kernel: name.to_lowercase() })
    }

    /// The independent functions whose sum the process is: itself, unless a kernel knows better. Their kernels add up to this one.
    fn components(&self) -> Vec<Component<T>> {
        let label = self.segments().first().map(|s| s.name.clone()).unwrap_or_default();
        let label = label.rsplit_once('.').map_or(label.as_str(), |(label, _)| label).to_string();
        vec![Component {
            label,
            order: None,
            columns: Vec::new(),
            kernel: self.clone_box(),
            parts: Vec::new(),
            part_of: None,
        }]
    }

    /// Rows and columns of the tiles that whole matrices are computed in: fewer than usual where entries cost so much that few tiles would leave threads without work.
    fn tile(&self) -> usize {
        TILE
    }

    /// A copy behind a new box.
    fn clone_box(&self) -> Box<dyn Kernel<T>>;

    /// Number of natural parameters.
    fn parameter_count(&self) -> usize {
        self.segments().iter().map(posterior_optim::Segment::len).sum()
    }
}

/// The entries of column `j`, which the driver guarantees to be contiguous.
#[inline(always)]
pub(crate) fn entries<T>(matrix: MatRef<'_, T>, j: usize) -> &[T] {
    matrix.col(j).try_as_col_major().expect("tiles are column-major").as_slice()
}

/// The entries of column `j`, which the driver guarantees to be contiguous, to write to.
#[inline(always)]
pub(crate) fn column<'a, T>(matrix: &'a mut MatMut<'_, T>, j: usize) -> &'a mut [T] {
    let column = matrix.as_mut().col_mut(j);
    column.try_as_col_major_mut().expect("tiles are column-major").as_slice_mut()
}
