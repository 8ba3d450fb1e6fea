//! Pullbacks of tiles and of values at points: pairs of images side by side through the fully connected layers and back, then through the layers with positions and back, and in the end what
//! belongs to each image alone.

use super::backward::PassBack;
use super::kernel::ConvolutionalNetwork;
use super::lanes::{Each, LANES, Lanes, One, load, load_one, present};
use crate::infinite::pullback::{StackPullback, pull_values as pull_stack_values};
use crate::infinite::scales::LayerAdjoints;
use crate::kernel::{Adjoints, Kernel, Pair, entries};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;

/// [`Kernel::pullback_tile`].
pub(super) fn pull_tile<T: Real>(
    kernel: &ConvolutionalNetwork,
    pair: Pair<'_, T>,
    adjoint: MatRef<'_, T>,
    adjoints: &mut Adjoints<T>,
) -> f64 {
    let request = adjoints.request();
    let (plan, count) = (&*kernel.plan, kernel.plan.columns);
    let (x, z): (Prepared<T>, Prepared<T>) = (kernel.prepare(pair.x), kernel.prepare(pair.z));
    let (x, z) = (x.block(0..x.rows()), z.block(0..z.rows()));
    let mut stack = StackPullback::new((&kernel.stack, &kernel.scales), (x, z), LANES);
    let mut layers = LayerAdjoints::new(kernel.scales.layers());
    let mut pass = PassBack::new(plan, &kernel.scales, request.x || request.z);
    // Adjoints of the numbers of all images.
    let mut toward = [Mat::<T>::zeros(x.rows(), count), Mat::<T>::zeros(z.rows(), count)];
    let (mut first, mut second) = (vec![[T::ZERO; LANES]; count], vec![T::ZERO; count]);
    for i in (0..x.rows()).step_by(LANES) {
        let here = present(x.rows(), i);
        load(x, i, &mut first);
        pass.toward[0].fill([T::ZERO; LANES]);
        for j in 0..z.rows() {
            load_one(z, j, &mut second);
            pass.toward[1].fill([T::ZERO; LANES]);
            // Lanes beyond the last image have the adjoint 0.
            let mut g = [T::ZERO; LANES];
            g[..here].copy_from_slice(&pass.forth.mean(&first, One(&second))[..here]);
            let rows = i..i + here;
            dispatch(
                #[inline(always)]
                || stack.column(&rows, j, &entries(adjoint, j)[rows.clone()], &mut g[..here]),
            );
            pass.pull(&first, One(&second), g, &mut layers);
            for (d, lanes) in pass.toward[1].iter().enumerate() {
                toward[1][(j, d)] += lanes.iter().copied().sum::<T>();
            }
        }
        store(&pass.toward[0], i, &mut toward[0]);
    }
    let carries = stack.points([kernel.own_means(x), kernel.own_means(z)]);
    for ((points, carry), toward) in [x, z].into_iter().zip(&carries).zip(&mut toward) {
        pull_points(&mut pass, points, carry, toward, &mut layers);
    }
    if !adjoints.parameters.is_empty() {
        layers.add(&stack.layers);
        add_layers(kernel, &layers, &mut adjoints.parameters);
    }
    for (target, toward) in [&mut adjoints.x, &mut adjoints.z].into_iter().zip(&toward) {
        let Some(target) = target else { continue };
        for (d, &c) in kernel.columns.indices().iter().enumerate() {
            let (target, toward) = (target.col_as_slice_mut(c), toward.col_as_slice(d));
            target.iter_mut().zip(toward).for_each(|(t, &v)| *t += v);
        }
    }
    stack.total
}

/// [`Kernel::pullback_values_at`].
pub(super) fn pull_values<T: Real>(
    kernel: &ConvolutionalNetwork,
    x: MatRef<'_, T>,
    adjoint: &[T],
    parameters: &mut [f64],
) {
    let points: Prepared<T> = kernel.prepare(x);
    let points = points.block(0..points.rows());
    let mut layers = LayerAdjoints::new(kernel.scales.layers());
    let stack = (&kernel.stack, &kernel.scales);
    let carry = pull_stack_values(stack, points, kernel.own_means(points), adjoint, &mut layers);
    let mut pass = PassBack::new(&kernel.plan, &kernel.scales, false);
    pull_points(&mut pass, points, &carry, &mut Mat::zeros(points.rows(), kernel.plan.columns), &mut layers);
    add_layers(kernel, &layers, parameters);
}

/// Takes adjoints of the means over positions of images with themselves, and of their variances before each activation (in `toward`), to parameters and pixels (of `toward`).
fn pull_points<T: Real>(
    pass: &mut PassBack<'_, T>,
    points: PreparedBlock<'_, T>,
    carry: &[T],
    toward: &mut Mat<T>,
    layers: &mut LayerAdjoints,
) {
    let count = toward.ncols();
    let (mut images, mut outside) = (vec![[T::ZERO; LANES]; count], vec![[T::ZERO; LANES]; count]);
    for first in (0..points.rows()).step_by(LANES) {
        let here = present(points.rows(), first);
        load(points, first, &mut images);
        for (d, lanes) in outside.iter_mut().enumerate() {
            *lanes = [T::ZERO; LANES];
            lanes[..here].copy_from_slice(&toward.col_as_slice(d)[first..first + here]);
        }
        let mut g = [T::ZERO; LANES];
        g[..here].copy_from_slice(&carry[first..first + here]);
        pass.toward.iter_mut().for_each(|toward| toward.fill([T::ZERO; LANES]));
        pass.forth.mean(&images, Each(&images));
        pass.pull_own(&images, g, &outside, layers);
        for own in &pass.toward {
            store(own, first, toward);
        }
    }
}

/// Adds numbers of images side by side to rows from `first` on.
fn store<T: Real>(lanes: &[Lanes<T>], first: usize, target: &mut Mat<T>) {
    let here = present(target.nrows(), first);
    for (d, lanes) in lanes.iter().enumerate() {
        let column = &mut target.col_as_slice_mut(d)[first..first + here];
        column.iter_mut().zip(lanes).for_each(|(t, &v)| *t += v);
    }
}

fn add_layers(kernel: &ConvolutionalNetwork, layers: &LayerAdjoints, parameters: &mut [f64]) {
    let convolutions = kernel.plan.convolutions();
    let share = |layer: usize| match layer.checked_sub(convolutions) {
        Some(dense) => kernel.stack.share(dense),
        None => kernel.plan.share(layer),
    };
    layers.add_to(&kernel.scales, share, parameters);
}
