//! Kernels made of kernels: sums, products, multiples by a variance, and those of warped columns.

mod product;
mod scaled;
mod sum;
mod warped;

pub use product::Product;
pub use scaled::Scaled;
pub use sum::Sum;
pub use warped::Warped;

use crate::{Kernel, TILE};
use posterior_linalg::Real;
use posterior_optim::Segment;
use std::ops::Range;

/// The smallest tile that a part wants.
fn smallest_tile<T: Real>(parts: &[Box<dyn Kernel<T>>]) -> usize {
    parts.iter().map(|part| part.tile()).min().unwrap_or(TILE)
}

/// Parameters of the parts, end to end.
fn segments<T: Real>(parts: &[Box<dyn Kernel<T>>]) -> Vec<Segment> {
    parts.iter().flat_map(|p| p.segments()).collect()
}

fn values<T: Real>(parts: &[Box<dyn Kernel<T>>]) -> Vec<f64> {
    parts.iter().flat_map(|p| p.values()).collect()
}

fn set_values<T: Real>(parts: &mut [Box<dyn Kernel<T>>], values: &[f64]) {
    let mut rest = values;
    for part in parts {
        let (mine, others) = rest.split_at(part.parameter_count());
        part.set_values(mine);
        rest = others;
    }
    assert!(rest.is_empty(), "more numbers than parameters");
}

/// Each part with the range of its parameters.
fn ranges<T: Real>(parts: &[Box<dyn Kernel<T>>]) -> impl Iterator<Item = (&dyn Kernel<T>, Range<usize>)> {
    parts.iter().scan(0, |start, part| {
        let range = *start..*start + part.parameter_count();
        *start = range.end;
        Some((&**part, range))
    })
}

fn cloned<T: Real>(parts: &[Box<dyn Kernel<T>>]) -> Vec<Box<dyn Kernel<T>>> {
    parts.iter().map(|p| p.clone_box()).collect()
}
