//! The layer of all operations that are sparse linear maps of an example.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved};
use crate::array::{Array, Precision, SparseMap};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Most entries of a sparse map: while it is built they take two gigabytes.
const MOST_ENTRIES: u64 = 1 << 26;

/// Appends `(output, input, weight)` for every entry of a map.
type Entries = dyn Fn(&mut Vec<(u32, u32, f64)>) + Send + Sync;

/// The layer of a map with these entries, at most `terms` for each output value and `flops` multiplications and additions for each example. The
/// map is the same for all positions of the first `same` axes and is stored once: its entries count positions within the other axes.
///
/// The entries are worked out when numbers first pass through: to put a graph together costs nothing, whatever sizes a file declares.
pub(super) fn sparse<T: Precision>(
    same: usize,
    input: &[usize],
    output: Vec<usize>,
    terms: u64,
    flops: u64,
    entries: impl Fn(&mut Vec<(u32, u32, f64)>) + Send + Sync + 'static,
) -> Result<Prepared<T>, String> {
    sparse_filled(same, input, output, terms, flops, 0.0, entries)
}

/// The same with `empty` as the value of outputs that have no entry.
pub(super) fn sparse_filled<T: Precision>(
    same: usize,
    input: &[usize],
    output: Vec<usize>,
    terms: u64,
    flops: u64,
    empty: f64,
    entries: impl Fn(&mut Vec<(u32, u32, f64)>) + Send + Sync + 'static,
) -> Result<Prepared<T>, String> {
    super::check_size(input)?;
    super::check_size(&output)?;
    let blocks: usize = input[..same].iter().product();
    let inner = |shape: &[usize]| shape.iter().product::<usize>() / blocks.max(1);
    if (inner(&output) as u64).saturating_mul(terms) > MOST_ENTRIES {
        return Err(format!(
            "{output:?} from {input:?} needs up to {terms} terms for each value, more than {MOST_ENTRIES} entries in all"
        ));
    }
    let layer = Sparse {
        map: OnceLock::new(),
        entries: Box::new(entries),
        sizes: [inner(input), inner(&output)],
        blocks,
        empty,
        input: input.to_vec(),
        output: output.clone(),
    };
    Ok(Prepared { shape: output, parameters: vec![], flops, layer: Arc::new(layer) })
}

/// Calls `visit(flat position, coordinates)` for every entry of a shape.
pub(super) fn positions(shape: &[usize], mut visit: impl FnMut(usize, &[usize])) {
    let mut at = vec![0; shape.len()];
    for flat in 0..shape.iter().product() {
        visit(flat, &at);
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            if at[axis] < shape[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
}

/// Flat position of coordinates.
pub(super) fn flat(shape: &[usize], at: impl Iterator<Item = usize>) -> u32 {
    shape.iter().zip(at).fold(0, |sum, (&length, i)| sum * length + i) as u32
}

struct Sparse {
    map: OnceLock<SparseMap>,
    entries: Box<Entries>,
    /// Inputs and outputs of the map.
    sizes: [usize; 2],
    /// Parts of a row that the map is applied to, one after another.
    blocks: usize,
    /// What outputs without an entry are.
    empty: f64,
    input: Vec<usize>,
    output: Vec<usize>,
}

impl fmt::Debug for Sparse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sparse")
            .field("input", &self.input)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

impl Sparse {
    fn map(&self) -> &SparseMap {
        self.map.get_or_init(|| {
            let mut list = Vec::new();
            (self.entries)(&mut list);
            SparseMap::new(self.sizes[0], self.sizes[1], list)
        })
    }
}

impl<T: Precision> Layer<T> for Sparse {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (self.map().apply(inputs[0], self.blocks, &self.output, T::from_f64(self.empty)), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        self.map().apply(tangent, self.blocks, &self.output, T::ZERO)
    }

    fn vjp_input(&self, _: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        self.map().apply_transposed(cotangent, self.blocks, &self.input)
    }
}
