//! What a fit needs, known before it starts.

use super::options::EllaOptions;
use crate::plan::needs::Needs;
use crate::plan::workspace::{Use, Workspace};
use crate::problem::Size;
use posterior_networks::Precision;

/// Numbers of the landmarks' rows that are held at one time.
const HELD: u64 = 1 << 25;

/// What [`Ella::fit`](super::Ella::fit) needs: landmarks, directions and curvature; one batch; work.
pub fn plan<T: Precision>(size: &Size<'_, T>, options: &EllaOptions) -> Needs {
    let &Size { network, selection, examples, likelihood, .. } = size;
    let space = Workspace::of(size);
    let (d, m) = (selection.len() as u64, options.landmarks(examples).min(examples) as u64);
    let (k, number) = ((options.features as u64).min(m), size_of::<T>() as u64);
    let squares = |n: u64| n.saturating_mul(n).saturating_mul(8);
    // Kernel, its vectors and what finds them; rows over some weights, their gradients, and a product's buffers; the directions in doubles, as made, and kept.
    let kernel = squares(m).saturating_mul(4);
    let rows = HELD.min(m.saturating_mul(d)).saturating_mul(8);
    let directions = d.saturating_mul(k).saturating_mul(8 + 3 * number);
    let bytes = kernel.saturating_add(rows).saturating_add(directions).saturating_add(squares(k) * 40);
    // Rows over a stretch of the weights are counted above; here are the passes of the landmarks that they come from.
    let landmarks = Workspace { examples: m, ..space };
    let space = Workspace::of(size);
    let batch =
        landmarks.batch_bytes(1, Use::Factors).max(space.one_way(k)).saturating_add(16 * examples as u64);
    let (flops, n) = (network.graph().flops() as f64, examples as f64);
    let (d, m, k) = (d as f64, m as f64, k as f64);
    let passes = (m * d / HELD as f64).ceil().max(1.0);
    let landmarks = 3.0 * m * flops * passes + m * m * d + 9.0 * m.powi(3) + m * flops * (1.0 + 2.0 * k);
    let pass = n * (flops * (1.0 + 2.0 * k) + k * k * likelihood.root_width() as f64);
    Needs { curvature_bytes: bytes, batch_bytes: batch, flops: landmarks + pass }
}
