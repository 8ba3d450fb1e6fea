//! Frequencies from wider laws than their own, and the weights that make up for it.

use super::frequencies::Base;
use super::recipe::Spectrum;

/// By how many factors a law is stretched.
const STRETCHES: usize = 12;

/// Coordinates that are drawn together, independently of others: all of a spectrum, or one alone where a frequency has some columns only.
struct Block {
    spectrum: usize,
    coordinate: Option<usize>,
}

/// How one of the laws that are mixed differs from the frequencies' own: by how far (0: not at all), and in which of the blocks (None: in all).
#[derive(Clone, Copy)]
struct Law {
    stretch: usize,
    block: Option<usize>,
}

/// Stretches half of the L frequencies, an equal number by each of some factors and, where a frequency has several independent blocks of coordinates, in all of them or in one; returns what each wave's power has to be multiplied by for it, at most 2.
///
/// Blocks matter where tails are heavy: of a product of Matérn kernels, what is far out is far out in one factor, mostly. A frequency's own factor (χ², gamma) is as drawn: what is weighted is its density with the factor integrated out. Costs `12 m L` densities for m blocks.
pub(super) fn widen(bases: &mut [Base], spectra: &[Spectrum], count: usize) -> Option<Vec<f64>> {
    let blocks = |bases: &[Base], l: usize| -> Vec<Block> {
        let of_one = |(spectrum, base): (usize, &Base)| -> Vec<Block> {
            match &base.support {
                _ if base.normals.nrows() == 0 => Vec::new(),
                None => vec![Block { spectrum, coordinate: None }],
                Some(support) => (0..base.normals.nrows())
                    .filter(|&d| support[(d, l)] != 0.0)
                    .map(|d| Block { spectrum, coordinate: Some(d) })
                    .collect(),
            }
        };
        bases.iter().enumerate().flat_map(of_one).collect()
    };
    // Every frequency has as many.
    let each = if count > 0 { blocks(bases, 0).len() } else { 0 };
    if each == 0 {
        return None;
    }
    let alone = (0..each).filter(|_| each > 1).map(Some);
    let wider: Vec<Law> = std::iter::once(None)
        .chain(alone)
        .flat_map(|block| (1..=STRETCHES).map(move |stretch| Law { stretch, block }))
        .collect();
    let own = count.div_ceil(2);
    let which = |l: usize| (l >= own).then(|| (l - own) * wider.len() / (count - own));
    let mut counts = vec![0usize; wider.len()];
    (0..count).filter_map(which).for_each(|k| counts[k] += 1);

    let dimension = |block: &Block| match block.coordinate {
        None => spectra[block.spectrum].columns.len(),
        Some(_) => 1,
    };
    let factor = |block: &Block, stretch: usize| {
        let reach = spectra[block.spectrum].law.reach(dimension(block));
        reach.powf(stretch as f64 / STRETCHES as f64)
    };
    let weight = |l: usize| {
        let blocks = blocks(bases, l);
        if let Some(k) = which(l) {
            let Law { stretch, block } = wider[k];
            for (_, part) in blocks.iter().enumerate().filter(|(b, _)| block.is_none_or(|only| only == *b)) {
                let t = factor(part, stretch);
                let column = bases[part.spectrum].normals.col_as_slice_mut(l);
                match part.coordinate {
                    None => column.iter_mut().for_each(|g| *g *= t),
                    Some(d) => column[d] *= t,
                }
            }
        }
        // By how much a stretched law is denser there, as a logarithm, for each block and factor.
        let relative: Vec<[f64; STRETCHES]> = blocks
            .iter()
            .map(|block| {
                let (base, law) = (&bases[block.spectrum], spectra[block.spectrum].law);
                let normals = base.normals.col_as_slice(l);
                let (length, d) = match block.coordinate {
                    None => (normals.iter().map(|g| g * g).sum::<f64>().sqrt(), 0),
                    Some(d) => (normals[d].abs(), d),
                };
                let square = (length * base.factor_of(law, d, l)).powi(2);
                let dimension = dimension(block);
                let at = law.log_density(square, dimension);
                std::array::from_fn(|k| {
                    let t = factor(block, k + 1);
                    law.log_density(square / (t * t), dimension) - dimension as f64 * t.ln() - at
                })
            })
            .collect();
        let parts = wider.iter().zip(&counts).filter(|(_, n)| **n > 0).map(|(law, n)| {
            let k = law.stretch - 1;
            let log = match law.block {
                None => relative.iter().map(|r| r[k]).sum::<f64>(),
                Some(b) => relative[b][k],
            };
            *n as f64 * log.exp()
        });
        count as f64 / (own as f64 + parts.sum::<f64>())
    };
    Some((0..count).map(weight).collect())
}
