//! One pass over the data in blocks of rows: what of them the bound and the posterior need.

use super::CollapsedGp;
use crate::inducing::plan::block_rows;
use crate::{GpError, Observations, RowSource};
use posterior_kernels::diagonal;
use posterior_kernels::inducing::Whitening;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::tiles::pieces;
use posterior_linear::low_rank::{EvidenceSums, ScaledRows, SolvedEvidence};
use posterior_optim::Signal;
use std::ops::Range;

/// Sums over all rows.
pub(super) struct Accumulated {
    pub(super) whitening: Whitening,
    /// In the whitened features, with the trace of what they cannot say.
    pub(super) evidence: SolvedEvidence,
}

impl Accumulated {
    pub(super) fn of(whitening: Whitening, sums: EvidenceSums) -> Result<Self, GpError> {
        Ok(Self { whitening, evidence: sums.solve(1.0, JitterPolicy::NONE)? })
    }
}

impl CollapsedGp {
    /// The blocks in which so many rows are looked at.
    pub(super) fn blocks(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        pieces(rows, block_rows(self.inducing.nrows()))
    }

    /// What these rows, all that there are of a block, say in the whitened features.
    pub(super) fn scaled(&self, block: &Observations, whitening: &Whitening) -> Result<ScaledRows, GpError> {
        block.plain()?;
        let (x, own) = (block.inputs(), self.likelihood.noise_variance());
        let noise = (0..block.rows()).map(|i| own + block.noise_variances().map_or(0.0, |v| v[i])).collect();
        let features = whitening.features(self.kernel(), self.inducing(), x);
        let residuals = block.targets() - self.mean.evaluate(x);
        Ok(ScaledRows::new(features, residuals, noise, diagonal(self.kernel(), x)))
    }

    /// `2 n m²` flops besides the kernel.
    pub(super) fn accumulate(&self, data: &dyn RowSource) -> Result<Accumulated, GpError> {
        let (whitening, sums, _) = self.sums(data, &mut |_| Signal::Continue)?;
        Accumulated::of(whitening, sums)
    }

    /// Sums as far as `watch`, which is told how many rows have been seen, lets them go, and what it said last.
    pub(super) fn sums(
        &self,
        data: &dyn RowSource,
        watch: &mut dyn FnMut(usize) -> Signal,
    ) -> Result<(Whitening, EvidenceSums, Signal), GpError> {
        self.check_widths(data)?;
        let whitening = self.whitening()?;
        let mut sums = EvidenceSums::new(self.inducing.nrows(), data.widths()[1]);
        let mut signal = Signal::Continue;
        for rows in self.blocks(data.rows()) {
            let seen = rows.end;
            sums.add(&self.scaled(&data.block(rows)?, &whitening)?);
            signal = watch(seen);
            if signal == Signal::Stop {
                break;
            }
        }
        Ok((whitening, sums, signal))
    }
}
