//! **Orders of Rényi's divergence that kernels admit**: above order 1 it is infinite, and has no slope that led out of there, from [`Divergence::largest_variance`] on. Training that begins there never leaves, so it is refused at once.

use super::divergence::Divergence;
use super::error::GeneralisedError;
use super::model::GeneralisedGp;
use super::reference::Mode;
use super::regulariser::{Regulariser, inducing};
use crate::GpError;
use faer::MatRef;

/// Rows that are looked at.
const ROWS: usize = 1024;

impl Regulariser {
    /// Refuses an order under which it is infinite at the first rows of x (of inducing values, at all) as the process is now. Cost that of their variances.
    ///
    /// # Errors
    /// [`GeneralisedError::Order`], with the orders that are admitted.
    pub(super) fn check_order(&self, model: &GeneralisedGp, x: MatRef<'_, f64>) -> Result<(), GpError> {
        let (Self::Projected(divergence) | Self::Inducing(divergence)) = *self else { return Ok(()) };
        let Divergence::Renyi { order } = divergence else { return Ok(()) };
        if order < 1.0 {
            return Ok(());
        }
        let refused = |seen: String, admitted: f64| -> Result<(), GpError> {
            let family = model.kernels()[0].family();
            let wide = match model.references().iter().any(|reference| reference.mode() == Mode::Posterior) {
                true => "the prior as reference, which is wider",
                false => "a cholesky or sparse-posterior kernel, which begin no wider than the prior",
            };
            Err(GeneralisedError::Order { order, family: format!("{family}"), seen, admitted, wide }.into())
        };
        if matches!(self, Self::Inducing(_)) {
            return match inducing(divergence, model)?.value.is_finite() {
                true => Ok(()),
                false => refused("the covariance of inducing values".into(), 1.0),
            };
        }
        let x = x.subrows(0, x.nrows().min(ROWS));
        let known = model.known(x)?;
        let evaluated = model.evaluated(&known, x)?;
        let mut worst: Option<(f64, usize)> = None;
        for (c, own) in evaluated.iter().enumerate() {
            let prior = &known.marginals[model.place(c)].variances;
            for (i, (&q, &p)) in own.variances.iter().zip(prior).enumerate() {
                if q >= divergence.largest_variance(p) && worst.is_none_or(|(times, _)| q / p > times) {
                    worst = Some((q / p, i));
                }
            }
        }
        match worst {
            Some((times, row)) => {
                refused(format!("{times:.3} times the variance of P in row {row}"), times / (times - 1.0))
            }
            None => Ok(()),
        }
    }
}
