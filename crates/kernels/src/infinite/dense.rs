//! The kernel of a network of fully connected layers.

use super::inner;
use super::scales::Scales;
use super::stack::Stack;
use super::{Activation, ClippedCorrelations};
use crate::features::{FeatureError, FeatureRecipe};
use crate::inputs::Columns;
use crate::kernel::{Adjoints, Kernel, Pair, column};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment};

/// A network of infinitely wide, fully connected layers before training, as a covariance function. The recursion stands in the guide of
/// [`crate::infinite`]; Lee and others, "Deep neural networks as Gaussian processes" (2018); Williams (1997) for one layer.
///
/// Parameters, positive (biases may all be 0, and are held there then): `LABEL.weight` and `LABEL.bias`, the standard deviations of weights and biases, one of each for every layer from the first to
/// the last, which is the read-out layer unless that is switched off. Only their squares enter. With (leaky) ReLU throughout, a factor moves from the scales of one layer to the
/// next weight's without a change of the kernel, so that data determine only some products of them.
///
/// A tile of n x m costs `nm` times 2D flops and, for each hidden layer, about 60 (ReLU), 40 (erf) or 60 (sine), the pullback some three times that; variances of points
/// through all layers are computed once for a set of points (`prepare`), `n (D + 2 depth + 1)` numbers.
///
/// Precision: values err by some ε of the variances. Inputs of size 1e6 that are close to each other lose digits, because `c` is rounded before `a + b - 2c` or `ab - c²` is
/// small: with the error function about 1e-10 in f64, with the sine as many digits as `a` has before its point. Correlations that rounding puts above 1 count as 1, and
/// an observation with itself has its exact values.
#[derive(Clone, Debug)]
pub struct InfiniteNetwork {
    pub(super) columns: Columns,
    pub(super) stack: Stack,
    pub(super) scales: Scales,
}

impl InfiniteNetwork {
    /// A network on `columns` with a hidden layer for each activation, first to last, and a read-out layer behind them when `readout`; all layers begin with the same
    /// standard deviations of weights and biases.
    ///
    /// # Panics
    /// When there is no activation, or a deviation is not positive (that of biases: negative).
    pub fn new(
        label: impl Into<String>,
        columns: Columns,
        activations: Vec<Activation>,
        readout: bool,
        weight: f64,
        bias: f64,
    ) -> Self {
        assert!(!activations.is_empty(), "a network has at least one hidden layer");
        let (share, first_column) = (1.0 / columns.count() as f64, columns.count());
        let stack = Stack { activations, readout, first_layer: 0, share, first_column };
        let layers = stack.layers();
        Self { columns, stack, scales: Scales::new(label, vec![weight; layers], vec![bias; layers]) }
    }

    /// The same network with standard deviations of its own for each layer, first to last. There is a read-out layer where there is one more of them than activations.
    ///
    /// # Panics
    /// When their numbers are not those of the layers, with or without read-out, one is not positive, or some biases are 0 and others not.
    pub fn with_scales(mut self, weights: Vec<f64>, biases: Vec<f64>) -> Self {
        let hidden = self.stack.depth();
        assert!(
            weights.len() == biases.len() && (hidden..=hidden + 1).contains(&weights.len()),
            "one deviation of weights and one of biases for each layer, not {} and {} for {hidden} hidden layers",
            weights.len(),
            biases.len()
        );
        self.stack.readout = weights.len() > hidden;
        self.scales = self.scales.replaced(weights, biases);
        self
    }

    /// Activations of the hidden layers, first to last.
    pub fn activations(&self) -> &[Activation] {
        &self.stack.activations
    }

    /// Whether a layer without activation stands at the end.
    pub fn has_readout(&self) -> bool {
        self.stack.readout
    }

    /// Correlations between points of x (n x D) and of z (m x D) that rounding puts above 1 in some layer, where they count as 1. Costs what [`crate::cross`] does, on one thread.
    pub fn clipped_correlations<T: Real>(&self, x: MatRef<'_, T>, z: MatRef<'_, T>) -> ClippedCorrelations {
        let (x, z): (Prepared<T>, Prepared<T>) = (self.prepare(x), self.prepare(z));
        let (x, z) = (x.block(0..x.rows()), z.block(0..z.rows()));
        let mut clipped = ClippedCorrelations::default();
        let (rows, mut state) = (0..x.rows(), Mat::zeros(x.rows(), 1));
        for j in 0..z.rows() {
            inner::fill(self.columns.count(), x, z.point(j), std::iter::empty(), state.as_mut());
            let state = state.col_as_slice_mut(0);
            self.stack.clipped_column(&self.scales, (x, z), (&rows, j), state, &mut clipped);
        }
        clipped
    }

    /// `|x|²` of prepared points.
    pub(super) fn squares<T: Real>(&self, points: PreparedBlock<'_, T>) -> Vec<T> {
        inner::squares(points.rows(), self.columns.count(), |d| points.column(d))
    }
}

impl Parameters for InfiniteNetwork {
    fn segments(&self) -> Vec<Segment> {
        self.scales.segments()
    }

    fn values(&self) -> Vec<f64> {
        self.scales.values()
    }

    fn set_values(&mut self, values: &[f64]) {
        self.scales.set_values(values);
    }
}

impl<T: Real> Kernel<T> for InfiniteNetwork {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        let (x, z): (Prepared<T>, Prepared<T>) = (self.prepare(pair.x), self.prepare(pair.z));
        self.prepared_tile(x.block(0..x.rows()), z.block(0..z.rows()), pair.same, out);
    }

    /// Chosen columns; for each hidden layer, the variance before its activation and what the dual map makes of that; `k(x, x)`.
    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        let (n, count) = (x.nrows(), self.columns.count());
        let mut own = Mat::zeros(n, count + self.stack.columns());
        for (d, &c) in self.columns.indices().iter().enumerate() {
            own.col_as_slice_mut(d).iter_mut().zip(x.col(c).iter()).for_each(|(o, &v)| *o = v);
        }
        let squares = inner::squares(n, count, |d| own.col_as_slice(d));
        self.stack.prepare(&self.scales, squares, &mut own);
        Prepared::own(own)
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        same: Option<(usize, usize)>,
        mut out: MatMut<'_, T>,
    ) {
        let identical = Pair { x: x.matrix(), z: z.matrix(), same }.identical();
        inner::fill(self.columns.count(), x, z, identical, out.as_mut());
        let rows = 0..x.rows();
        dispatch(
            #[inline(always)]
            || {
                for j in 0..out.ncols() {
                    self.stack.column(&self.scales, (x, z), (&rows, j), column(&mut out, j));
                }
            },
        );
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        let points: Prepared<T> = self.prepare(x);
        self.values_at(points.block(0..points.rows()), out);
    }

    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        out.copy_from_slice(self.stack.own_values(x));
    }

    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        self.pull_own(x, adjoint, parameters);
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        self.pull_tile(pair, adjoint, adjoints)
    }

    fn clipped_correlations(&self, x: MatRef<'_, T>, z: MatRef<'_, T>) -> ClippedCorrelations {
        Self::clipped_correlations(self, x, z)
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Err(FeatureError::NoFeatures { kernel: "nngp".into() })
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
