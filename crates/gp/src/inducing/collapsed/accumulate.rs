//! One pass over the data in blocks of rows: what of them the bound and the posterior need.

use super::CollapsedGp;
use crate::inducing::plan::block_rows;
use crate::{GpError, Observations};
use posterior_kernels::diagonal;
use posterior_kernels::inducing::Whitening;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::tiles::pieces;
use posterior_linear::low_rank::{EvidenceSums, ScaledRows, SolvedEvidence};
use std::ops::Range;

/// Sums over all rows.
pub(super) struct Accumulated {
    pub(super) whitening: Whitening,
    /// In the whitened features, with the trace of what they cannot say.
    pub(super) evidence: SolvedEvidence,
}

impl CollapsedGp {
    pub(super) fn blocks(&self, data: &Observations) -> impl Iterator<Item = Range<usize>> + use<> {
        pieces(data.rows(), block_rows(self.inducing.nrows()))
    }

    pub(super) fn block(&self, data: &Observations, whitening: &Whitening, rows: Range<usize>) -> ScaledRows {
        let x = data.inputs().subrows(rows.start, rows.len());
        let noise = rows
            .clone()
            .map(|i| self.likelihood.noise_variance() + data.noise_variances().map_or(0.0, |v| v[i]))
            .collect();
        let features = whitening.features(self.kernel(), self.inducing(), x);
        let residuals = data.targets().subrows(rows.start, rows.len()) - self.mean.evaluate(x);
        ScaledRows::new(features, residuals, noise, diagonal(self.kernel(), x))
    }

    /// `2 n m²` flops besides the kernel.
    pub(super) fn accumulate(&self, data: &Observations) -> Result<Accumulated, GpError> {
        self.check_widths(data)?;
        let whitening = Whitening::new(self.kernel(), self.inducing(), self.jitter, self.policy)?;
        let mut sums = EvidenceSums::new(self.inducing.nrows(), data.targets().ncols());
        for rows in self.blocks(data) {
            sums.add(&self.block(data, &whitening, rows));
        }
        Ok(Accumulated { whitening, evidence: sums.solve(1.0, JitterPolicy::NONE)? })
    }
}
