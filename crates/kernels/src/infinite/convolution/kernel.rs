//! The kernel of a network of convolutional layers.

use super::forward::Pass;
use super::lanes::{LANES, Lanes, One, load, load_one, present};
use super::layers::{ImageLayer, ImageLayerError};
use super::plan::Plan;
use super::pullback::{pull_tile, pull_values};
use crate::features::{FeatureError, FeatureRecipe};
use crate::infinite::ClippedCorrelations;
use crate::infinite::scales::Scales;
use crate::infinite::stack::Stack;
use crate::inputs::Columns;
use crate::kernel::{Adjoints, Kernel, Pair, column};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment};
use std::sync::Arc;

/// Second images whose numbers are collected at a time.
const TOGETHER: usize = 8;

/// A network of infinitely many channels in each layer before training, on images, as a covariance function of rows of pixels. The recursion and what it costs stand in the guide of
/// [`super`].
///
/// Rows hold one image each, in the order channels, height, width (`[channels, height, width]`, as everywhere in this project), row by row from the top left.
///
/// Parameters, positive (biases may all be 0, and are held there then): `LABEL.weight` and `LABEL.bias`, the standard deviations of weights and biases, one of each for every convolution and fully connected layer from the first to the
/// last, which is the read-out layer unless that is switched off. A filter of S taps on C channels has weights `~ N(0, w²/(S C))`.
///
/// `k(x, z)` and `k(z, x)` differ by rounding: windows of pools are summed in the order of the first image's positions.
#[derive(Clone, Debug)]
pub struct ConvolutionalNetwork {
    pub(super) columns: Columns,
    layers: Vec<ImageLayer>,
    pub(super) plan: Arc<Plan>,
    pub(super) stack: Stack,
    pub(super) scales: Scales,
}

impl ConvolutionalNetwork {
    /// A network on images whose pixels are `columns`, in the order channels, height, width, with some layers, first to last, and a read-out layer behind them when `readout`; all layers begin
    /// with the same standard deviations of weights and biases. Positions are averaged before the first fully connected layer, or at the end.
    ///
    /// # Errors
    /// [`ImageLayerError`] for layers that do not fit the images or one another.
    ///
    /// # Panics
    /// When a deviation is not positive (that of biases: negative).
    pub fn new(
        label: impl Into<String>,
        columns: Columns,
        shape: [usize; 3],
        layers: Vec<ImageLayer>,
        readout: bool,
        weight: f64,
        bias: f64,
    ) -> Result<Self, ImageLayerError> {
        super::layers::check(shape, &layers)?;
        if shape.iter().product::<usize>() != columns.count() {
            return Err(ImageLayerError::Columns { shape, columns: columns.count() });
        }
        let plan = Plan::new(shape, &layers)?;
        let stack = Stack {
            activations: plan.dense.clone(),
            readout,
            first_layer: plan.convolutions(),
            share: 1.0,
            // Behind the mean over positions of each image with itself.
            first_column: plan.columns + 1,
        };
        let count = stack.first_layer + stack.layers();
        let scales = Scales::new(label, vec![weight; count], vec![bias; count]);
        Ok(Self { columns, layers, plan: Arc::new(plan), stack, scales })
    }

    /// The same network with standard deviations of its own for each layer with parameters, first to last.
    ///
    /// # Panics
    /// When their numbers are not those of the layers, one is not positive, or some biases are 0 and others not.
    pub fn with_scales(mut self, weights: Vec<f64>, biases: Vec<f64>) -> Self {
        assert!(
            weights.len() == self.scales.layers() && biases.len() == weights.len(),
            "one deviation of weights and one of biases for each of {} layers, not {} and {}",
            self.scales.layers(),
            weights.len(),
            biases.len()
        );
        self.scales = self.scales.replaced(weights, biases);
        self
    }

    /// Channels, height and width of its images.
    pub fn shape(&self) -> [usize; 3] {
        self.plan.shape
    }

    /// Its layers, first to last, without the read-out layer.
    pub fn layers(&self) -> &[ImageLayer] {
        &self.layers
    }

    /// Whether a layer without activation stands at the end.
    pub fn has_readout(&self) -> bool {
        self.stack.readout
    }

    /// Covariances that are computed for one pair of images: pairs of positions, summed over the layers with an activation.
    pub fn entries(&self) -> usize {
        let activated = self.plan.segments.iter().filter(|segment| segment.activation.is_some());
        activated.map(|segment| segment.pairs[0].len() * segment.pairs[1].len()).sum()
    }

    /// Correlations between positions of images of x (n x D) and of z (m x D) that rounding puts above 1 in some layer, where they count as 1. Costs some three times what
    /// [`crate::cross`] does, on one thread.
    pub fn clipped_correlations<T: Real>(&self, x: MatRef<'_, T>, z: MatRef<'_, T>) -> ClippedCorrelations {
        let (x, z): (Prepared<T>, Prepared<T>) = (self.prepare(x), self.prepare(z));
        let (x, z) = (x.block(0..x.rows()), z.block(0..z.rows()));
        let mut clipped = ClippedCorrelations::default();
        let mut pass = Pass::new(&self.plan, &self.scales);
        let (mut first, mut second) =
            (vec![[T::ZERO; LANES]; self.plan.columns], vec![T::ZERO; self.plan.columns]);
        for i in (0..x.rows()).step_by(LANES) {
            let here = present(x.rows(), i);
            load(x, i, &mut first);
            for j in 0..z.rows() {
                load_one(z, j, &mut second);
                let mut mean = pass.clipped_mean(&first, One(&second), here, &mut clipped);
                let (rows, state) = (i..i + here, &mut mean[..here]);
                self.stack.clipped_column(&self.scales, (x, z), (&rows, j), state, &mut clipped);
            }
        }
        clipped
    }

    /// The mean over positions of each image with itself.
    pub(super) fn own_means<'a, T: Real>(&self, points: PreparedBlock<'a, T>) -> &'a [T] {
        points.column(self.plan.columns)
    }

    /// Means over positions of all pairs of images, `write(i, j, mean)`: those of x side by side.
    fn means<T: Real>(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        mut write: impl FnMut(usize, usize, T),
    ) {
        let count = self.plan.columns;
        let mut pass = Pass::new(&self.plan, &self.scales);
        let mut first = vec![[T::ZERO; LANES]; count];
        let mut second = vec![T::ZERO; count * TOGETHER];
        for start in (0..z.rows()).step_by(TOGETHER) {
            let together = start..z.rows().min(start + TOGETHER);
            for (j, point) in together.clone().zip(second.chunks_mut(count)) {
                load_one(z, j, point);
            }
            for i in (0..x.rows()).step_by(LANES) {
                load(x, i, &mut first);
                for (j, point) in together.clone().zip(second.chunks(count)) {
                    let mean = pass.mean(&first, One(point));
                    (0..present(x.rows(), i)).for_each(|lane| write(i + lane, j, mean[lane]));
                }
            }
        }
    }
}

impl Parameters for ConvolutionalNetwork {
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

impl<T: Real> Kernel<T> for ConvolutionalNetwork {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        let (x, z): (Prepared<T>, Prepared<T>) = (self.prepare(pair.x), self.prepare(pair.z));
        self.prepared_tile(x.block(0..x.rows()), z.block(0..z.rows()), pair.same, out);
    }

    /// Pixels; for each activation the variance at each position, and what the dual map makes of that; the mean over positions; the same of the fully connected layers.
    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        let (n, pixels) = (x.nrows(), self.columns.count());
        let mut own = Mat::zeros(n, self.plan.columns + 1 + self.stack.columns());
        for (d, &c) in self.columns.indices().iter().enumerate() {
            own.col_as_slice_mut(d).iter_mut().zip(x.col(c).iter()).for_each(|(o, &v)| *o = v);
        }
        let mut pass = Pass::new(&self.plan, &self.scales);
        let mut images: Vec<Lanes<T>> = vec![[T::ZERO; LANES]; self.plan.columns];
        let mut means = vec![T::ZERO; n];
        for first in (0..n).step_by(LANES) {
            let count = present(n, first);
            for (d, lanes) in images[..pixels].iter_mut().enumerate() {
                let column = &own.col_as_slice(d)[first..first + count];
                *lanes = [column[count - 1]; LANES];
                lanes[..count].copy_from_slice(column);
            }
            let mean = pass.own_mean(&mut images);
            means[first..first + count].copy_from_slice(&mean[..count]);
            for d in pixels..self.plan.columns {
                own.col_as_slice_mut(d)[first..first + count].copy_from_slice(&images[d][..count]);
            }
        }
        own.col_as_slice_mut(self.plan.columns).copy_from_slice(&means);
        self.stack.prepare(&self.scales, means, &mut own);
        Prepared::own(own)
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        _same: Option<(usize, usize)>,
        mut out: MatMut<'_, T>,
    ) {
        // Few images on the first side, and more on the second: those stand side by side.
        if x.rows() < LANES && z.rows() > x.rows() {
            self.means(z, x, |j, i, mean| out[(i, j)] = mean);
        } else {
            self.means(x, z, |i, j, mean| out[(i, j)] = mean);
        }
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
        pull_values(self, x, adjoint, parameters);
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        pull_tile(self, pair, adjoint, adjoints)
    }

    fn clipped_correlations(&self, x: MatRef<'_, T>, z: MatRef<'_, T>) -> ClippedCorrelations {
        Self::clipped_correlations(self, x, z)
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Err(FeatureError::NoFeatures { kernel: "nngp-conv".into() })
    }

    /// 64 x 64 entries take about as long as a million of cheap kernels; preparing their points once more adds a thirtieth.
    fn tile(&self) -> usize {
        4 * LANES
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
