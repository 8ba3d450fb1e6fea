//! The tangent kernel of all examples with themselves.

use faer::{Mat, MatMut, MatRef};
use posterior_linalg::parallel;
use posterior_linalg::tiles::pieces;
use posterior_linear::LinearError;
use posterior_networks::derivatives::{TurnedFeatures, tangent_feature_size};
use posterior_networks::train::Examples;
use posterior_networks::{Array, Network, Outputs, Precision, Selection, TangentFeatures};
use posterior_optim::Signal;
use std::ops::Range;

/// Numbers of the rows that stay while all before them pass, in doubles: 512 MB.
const HELD: usize = 1 << 26;

/// Numbers of the rows that are made at one time: 128 MB.
const MADE: usize = 1 << 24;

/// How the rows of a kernel between all outputs of all examples come by, known before they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GramPlan {
    /// Examples whose rows are made at one time.
    pub at_once: usize,
    /// Such pieces that stay while all before them pass.
    pub held: usize,
    /// Numbers of one row.
    pub row: usize,
    /// Outputs.
    pub outputs: usize,
    /// Examples.
    pub examples: usize,
}

impl GramPlan {
    /// For so many examples.
    pub fn new<T: Precision>(network: &Network<T>, selection: &Selection, examples: usize) -> Self {
        let row = tangent_feature_size(network.graph(), selection).max(1);
        let outputs = network.graph().output_shape().iter().product::<usize>().max(1);
        let most = (network.examples_at_once() / outputs).max(1);
        let at_once = (MADE / (row * outputs)).clamp(1, most).min(examples.max(1));
        let held = (HELD / (at_once * row * outputs)).clamp(1, examples.div_ceil(at_once).max(1));
        Self { at_once, held, row, outputs, examples }
    }

    /// Bytes of the rows at their peak, beside the kernel: those that stay, and one more piece as it was made, in doubles, and turned for a product; and of the tiles of one piece with all that stay.
    pub fn bytes(&self) -> u64 {
        let (rows, held) = ((self.at_once * self.outputs) as u64, self.held as u64);
        let piece = rows.saturating_mul(self.row as u64);
        piece.saturating_mul(8 * (held + 3)).saturating_add(rows * rows * 16 * held)
    }

    /// Examples whose rows are made, those that are made again counted again.
    pub fn made(&self) -> u64 {
        let (n, held) = (self.examples as u64, (self.held * self.at_once) as u64);
        // Each stretch of those that stay, and all before it.
        (0..n.div_ceil(held)).map(|k| n.min((k + 1) * held)).sum()
    }
}

/// `J J'` between all outputs of all examples (nC x nC, row `i C + c`), in doubles from rows in the network's own precision: positive semidefinite up to the rounding of doubles, because the features are the same wherever
/// they are used.
///
/// Cost: `(nC)²` multiplications and additions for each number of a row ([`tangent_feature_size`]), and a pass back for each row that [`GramPlan::made`] counts. Memory: the kernel and [`GramPlan::bytes`]; never all rows.
/// The observer is told entries that are done and all of them.
///
/// # Errors
/// Those of the network; [`LinearError::Interrupted`].
pub fn tangent_gram<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: &dyn Examples<T>,
    observer: &mut dyn FnMut(usize, usize) -> Signal,
) -> Result<Mat<f64>, LinearError> {
    by_plan(&GramPlan::new(network, selection, examples.len()), network, selection, examples, observer)
}

/// Examples and their rows.
type Held = (Range<usize>, TangentFeatures<f64>);

fn by_plan<T: Precision>(
    plan: &GramPlan,
    network: &Network<T>,
    selection: &Selection,
    examples: &dyn Examples<T>,
    observer: &mut dyn FnMut(usize, usize) -> Signal,
) -> Result<Mat<f64>, LinearError> {
    let (c, n) = (plan.outputs, plan.examples);
    let made = |range: &Range<usize>| -> Result<TangentFeatures<T>, LinearError> {
        let numbers: Vec<usize> = range.clone().collect();
        let (x, _): (Array<T>, _) = examples.batch(&numbers, None);
        let rows = network.tangent_features(&x, selection, &Outputs::All);
        rows.map_err(|e| LinearError::Features(Box::new(e)))
    };
    let mut out = Mat::<f64>::zeros(n * c, n * c);
    let mut done = 0;
    for stretch in pieces(n, plan.held * plan.at_once) {
        let mut held: Vec<Held> = Vec::new();
        let mut meet = |held: &[Held], j: &Range<usize>, right: &TurnedFeatures<f64>| {
            let tiles = parallel::map(held.len(), 1, |i| held[i].1.kernel_turned(right));
            for ((i, _), tile) in held.iter().zip(&tiles) {
                place(out.as_mut(), (i.start * c, j.start * c), tile);
            }
        };
        for own in pieces(stretch.len(), plan.at_once) {
            let own = stretch.start + own.start..stretch.start + own.end;
            let rows = made(&own)?;
            let turned = rows.turned();
            held.push((own.clone(), rows.cast()));
            meet(&held, &own, &turned);
        }
        for j in pieces(stretch.start, plan.at_once) {
            let right = made(&j)?.turned();
            meet(&held, &j, &right);
            let so_far = done + j.end * stretch.len();
            if observer(so_far, n * n) == Signal::Stop {
                return Err(LinearError::Interrupted);
            }
        }
        done = stretch.end * stretch.end;
        if observer(done, n * n) == Signal::Stop {
            return Err(LinearError::Interrupted);
        }
    }
    Ok(out)
}

/// Writes a tile (row by row) and its transpose.
fn place(mut out: MatMut<'_, f64>, (row, column): (usize, usize), tile: &Array<f64>) {
    let tile = MatRef::from_row_major_slice(tile.values(), tile.rows(), tile.row_len());
    let (rows, columns) = tile.shape();
    out.as_mut().submatrix_mut(row, column, rows, columns).copy_from(tile);
    out.submatrix_mut(column, row, columns, rows).copy_from(tile.transpose());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TangentKernel;
    use posterior_kernels::BlockKernel;
    use posterior_networks::Architecture;
    use posterior_networks::train::{Tabular, Targets};

    #[test]
    fn pieces_make_the_kernel_of_all() {
        let text = "kind = 'perceptron'\ninputs = 3\nhidden = [5]\noutputs = 2\nactivation = 'tanh'";
        let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
        let network = Network::<f32>::initialised(graph, posterior_linalg::random::Streams::new(3)).unwrap();
        let selection = Selection::all(network.graph());
        let x = Array::new(vec![9, 3], (0..27).map(|k| (k as f32 * 0.37).sin()).collect());
        let examples = Tabular::new(x.clone(), Targets::Values(Array::zeros(vec![9, 2])));
        let found = tangent_gram(&network, &selection, &examples, &mut |_, _| Signal::Continue).unwrap();
        let wide = network.cast::<f64>().unwrap();
        let expected = TangentKernel::new(&wide, &selection).gram(&x.cast(), None).unwrap();
        assert!((&found - &expected).norm_max() < 1e-5 * expected.norm_max());
        // Stretches of 4, 4 and 1.
        let small = GramPlan { at_once: 2, held: 2, ..GramPlan::new(&network, &selection, 9) };
        let mut told = Vec::new();
        let by_stretches = by_plan(&small, &network, &selection, &examples, &mut |done, all| {
            told.push((done, all));
            Signal::Continue
        });
        assert!((by_stretches.unwrap() - &expected).norm_max() < 1e-5 * expected.norm_max());
        assert!(told.is_sorted() && told.last() == Some(&(81, 81)), "{told:?}");
        // Rounding of doubles alone keeps it from being semidefinite: 18 rows, 32 weights of which the last layer's are shared.
        let least = posterior_linalg::dense::eigenvalues(found.as_ref()).unwrap()[0];
        assert!(least > -1e-12 * expected.norm_max(), "{least}");
        let mut told = 0;
        let stopped = tangent_gram(&network, &selection, &examples, &mut |_, _| {
            told += 1;
            Signal::Stop
        });
        assert!(matches!(stopped, Err(LinearError::Interrupted)) && told == 1);
    }

    #[test]
    fn rows_are_made_again_for_every_stretch() {
        let plan = GramPlan { at_once: 2, held: 3, row: 10, outputs: 2, examples: 15 };
        // Stretches of 6, 6 and 3: 6, 12 and 15 examples.
        assert_eq!(plan.made(), 33);
        assert_eq!(plan.bytes(), 2 * 2 * 10 * 8 * 6 + 4 * 4 * 16 * 3);
    }
}
