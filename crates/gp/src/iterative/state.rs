//! Where an interrupted solve stands, as plain data.

use crate::GpError;
use faer::Mat;
use posterior_linalg::Real;
use serde::{Deserialize, Serialize};

/// The small part of a state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateHeader {
    /// Which method it belongs to.
    pub method: String,
    /// Steps taken.
    pub step: usize,
    /// Seconds spent, earlier runs included.
    pub seconds: f64,
    /// Step size times the number of rows; 0 for methods without.
    pub step_size: f64,
    /// How often it began anew with a smaller step.
    pub restarts: usize,
    /// Further numbers of the method.
    pub scalars: Vec<f64>,
    /// Further whole numbers of the method.
    pub integers: Vec<u64>,
}

/// Everything that a solver needs to go on exactly where it was: a small header and named n x s blocks, which a caller may store
/// as they are, or through serde in any format (single precision widens to double without loss).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "", into = "Stored", try_from = "Stored")]
pub struct SolverState<T: Real> {
    /// The small part.
    pub header: StateHeader,
    /// Named blocks, in the method's order.
    pub blocks: Vec<(String, Mat<T>)>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    header: StateHeader,
    blocks: Vec<StoredBlock>,
}

#[derive(Serialize, Deserialize)]
struct StoredBlock {
    name: String,
    rows: usize,
    columns: usize,
    /// By columns.
    values: Vec<f64>,
}

impl<T: Real> From<SolverState<T>> for Stored {
    fn from(state: SolverState<T>) -> Self {
        let blocks = state.blocks.into_iter().map(|(name, block)| StoredBlock {
            name,
            rows: block.nrows(),
            columns: block.ncols(),
            values: (0..block.ncols())
                .flat_map(|j| block.col_as_slice(j).iter().map(|v| v.to_f64()))
                .collect(),
        });
        Self { header: state.header, blocks: blocks.collect() }
    }
}

impl<T: Real> TryFrom<Stored> for SolverState<T> {
    type Error = GpError;

    fn try_from(stored: Stored) -> Result<Self, GpError> {
        let blocks = stored.blocks.into_iter().map(|block| {
            let expected = block.rows.saturating_mul(block.columns);
            if expected != block.values.len() {
                let actual = block.values.len();
                return Err(GpError::Shape { what: "numbers of a stored block", expected, actual });
            }
            let value = |i, j| T::from_f64(block.values[j * block.rows + i]);
            Ok((block.name, Mat::from_fn(block.rows, block.columns, value)))
        });
        Ok(Self { header: stored.header, blocks: blocks.collect::<Result<_, _>>()? })
    }
}

impl<T: Real> SolverState<T> {
    /// Takes the blocks called `names`, each of `shape`, for a solver of the given method.
    pub(super) fn open<const N: usize>(
        self,
        method: &str,
        names: [&str; N],
        shape: (usize, usize),
    ) -> Result<(StateHeader, [Mat<T>; N]), GpError> {
        let wrong = |problem: String| GpError::State { problem };
        if self.header.method != method {
            return Err(wrong(format!("it is of method `{}`, not `{method}`", self.header.method)));
        }
        let found: Vec<&str> = self.blocks.iter().map(|(name, _)| name.as_str()).collect();
        if found != names {
            return Err(wrong(format!("its blocks are {found:?} instead of {names:?}")));
        }
        if let Some((name, block)) = self.blocks.iter().find(|(_, block)| block.shape() != shape) {
            let (rows, columns) = block.shape();
            return Err(wrong(format!(
                "block `{name}` is {rows} x {columns} instead of {} x {}",
                shape.0, shape.1
            )));
        }
        let blocks: Vec<Mat<T>> = self.blocks.into_iter().map(|(_, block)| block).collect();
        let blocks = blocks.try_into().map_err(|_| wrong("a block is missing".into()))?;
        Ok((self.header, blocks))
    }
}
