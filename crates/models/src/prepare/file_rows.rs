//! Rows to learn from that stand in a file: standardised as they are read, so that they are those of memory bit for bit.

use crate::rows::{Prints, Split};
use faer::Mat;
use posterior_data::{RowFile, Split as DrawnSplit, Standardisation};
use posterior_gp::{GpError, Observations, RowSource};
use posterior_kernels::inducing::random_rows;
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_linalg::tiles::pieces;
use posterior_linear::LinearError;
use posterior_linear::low_rank::{LowRankRows, RowBlock};
use std::ops::Range;
use std::sync::Arc;

/// Rows that are looked at together in a pass over all.
const BLOCK: usize = 4096;

/// Rows of a file (inputs, target and perhaps a noise variance, in their own units) in standard units.
#[derive(Clone, Debug)]
pub struct FileRows {
    file: Arc<RowFile>,
    standardisation: Standardisation,
    /// Which rows of the file, ascending; all of them where nothing is said.
    kept: Option<Arc<Vec<usize>>>,
}

impl FileRows {
    pub(crate) fn new(file: RowFile, standardisation: Standardisation) -> Self {
        Self { file: Arc::new(file), standardisation, kept: None }
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Standardised inputs of all rows, n x D: for few columns.
    ///
    /// # Errors
    /// [`GpError::Rows`].
    pub(crate) fn inputs(&self) -> Result<Mat<f64>, GpError> {
        let mut x = Mat::zeros(self.rows(), self.widths()[0]);
        for rows in pieces(self.rows(), BLOCK) {
            let start = rows.start;
            let block = self.block(rows)?;
            x.as_mut().subrows_mut(start, block.rows()).copy_from(block.inputs());
        }
        Ok(x)
    }

    fn observed(&self, numbers: &[f64], count: usize) -> Result<Observations, GpError> {
        let (own, width) = (&self.standardisation, self.file.width());
        let inputs = own.feature_means.len();
        let raw = Mat::from_fn(count, inputs, |i, j| numbers[i * width + j]);
        let targets = Mat::from_fn(count, 1, |i, _| own.target(numbers[i * width + inputs]));
        let square = own.target_scale * own.target_scale;
        let noise = || (0..count).map(|i| numbers[i * width + inputs + 1] / square).collect();
        Observations::new(own.features(raw.as_ref()), targets, self.has_row_noise().then(noise))
    }
}

impl RowSource for FileRows {
    fn rows(&self) -> usize {
        self.kept.as_ref().map_or(self.file.rows(), |kept| kept.len())
    }

    fn widths(&self) -> [usize; 2] {
        [self.standardisation.feature_means.len(), 1]
    }

    fn has_row_noise(&self) -> bool {
        self.file.width() > self.widths()[0] + 1
    }

    fn in_memory(&self) -> bool {
        false
    }

    fn gather(&self, rows: &[usize]) -> Result<Observations, GpError> {
        let numbers = match &self.kept {
            Some(kept) => self.file.gather(&rows.iter().map(|&i| kept[i]).collect::<Vec<_>>()),
            None => self.file.gather(rows),
        };
        self.observed(&numbers.map_err(failed)?, rows.len())
    }

    fn block(&self, rows: Range<usize>) -> Result<Observations, GpError> {
        if self.kept.is_some() {
            return self.gather(&rows.collect::<Vec<_>>());
        }
        let count = rows.len();
        self.observed(&self.file.read(rows).map_err(failed)?, count)
    }
}

impl LowRankRows for FileRows {
    fn row_count(&self) -> usize {
        self.rows()
    }

    fn rows_in(&self, rows: Range<usize>) -> Result<RowBlock<'_>, LinearError> {
        copied(self.block(rows))
    }

    fn rows_at(&self, rows: &[usize]) -> Result<RowBlock<'_>, LinearError> {
        copied(self.gather(rows))
    }
}

fn copied(rows: Result<Observations, GpError>) -> Result<RowBlock<'static>, LinearError> {
    match rows {
        Ok(rows) => Ok(RowBlock::Copy(rows.into())),
        Err(GpError::Rows { reason }) => Err(LinearError::Rows { reason }),
        Err(other) => Err(LinearError::Rows { reason: other.to_string() }),
    }
}

fn failed(error: posterior_data::DataError) -> GpError {
    GpError::Rows { reason: error.to_string() }
}

/// Rows of a table, in memory or not, of which some are kept.
pub(crate) trait TableRows: RowSource + LowRankRows + Sized {
    /// Only the given rows, ascending.
    ///
    /// # Errors
    /// [`GpError::Empty`] for none.
    fn keep(&self, rows: Vec<usize>) -> Result<Self, GpError>;

    /// Rows to learn from, `count` rows that are drawn to judge by, and how these were parted.
    ///
    /// # Errors
    /// [`GpError::Empty`] where none is left, [`GpError::Rows`].
    fn parted(&self, count: usize, rng: &mut ChaCha8Rng) -> Result<(Self, Observations, Split), GpError> {
        let split = Split::drawn(&Prints::of(self)?, self.parting(), count, rng)?;
        Ok((self.keep(split.train.clone())?, self.gather(&split.validation)?, split))
    }
}

impl TableRows for Observations {
    fn keep(&self, rows: Vec<usize>) -> Result<Self, GpError> {
        self.select(&rows)
    }
}

impl TableRows for FileRows {
    fn keep(&self, mut rows: Vec<usize>) -> Result<Self, GpError> {
        if rows.is_empty() {
            return Err(GpError::Empty { what: "the set of rows to learn from" });
        }
        if let Some(kept) = &self.kept {
            rows.iter_mut().for_each(|i| *i = kept[*i]);
        }
        Ok(Self { kept: Some(Arc::new(rows)), ..self.clone() })
    }
}

/// Rows that inducing points are chosen among, where there are more: uniform ones, some hundreds for each point of the usual number.
pub(crate) const CANDIDATES: usize = 200_000;

/// Which rows inducing points are chosen among, of so many; none where these are all.
pub(crate) fn candidates(rows: usize, seed: u64) -> Option<Vec<usize>> {
    let streams = Streams::new(seed).child("model/inducing-candidates", 0);
    (rows > CANDIDATES).then(|| random_rows(rows, CANDIDATES, streams))
}

/// At most so many of the rows, drawn at random where there are more.
pub(crate) fn some_of(rows: usize, most: usize, streams: Streams) -> Vec<usize> {
    match most < rows {
        true => DrawnSplit::random(rows, most as f64 / rows as f64, streams).test,
        false => DrawnSplit::all(rows).train,
    }
}

/// Shows all rows, a few thousand at a time, with the number of the first.
pub(crate) fn in_blocks(
    data: &dyn RowSource,
    mut see: impl FnMut(usize, &Observations),
) -> Result<(), GpError> {
    for rows in pieces(data.rows(), BLOCK) {
        let start = rows.start;
        see(start, &data.block(rows)?);
    }
    Ok(())
}
