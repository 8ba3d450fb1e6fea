//! What posteriors need that are found by a search of their own.

use super::needs::Needs;
use super::workspace::{Workspace, after};
use crate::LaplaceError;
use crate::fit::Approximation;
use crate::mean_field::MeanField;
use crate::problem::Size;
use crate::temperature::Temperature;
use crate::{ella, fixed_mean, gwi, sampled};
use posterior_networks::Precision;

/// What a search needs; None for curvatures.
///
/// # Errors
/// A kernel on features that are not there.
pub(super) fn searched<T: Precision>(
    size: &Size<'_, T>,
    approximation: &Approximation,
) -> Result<Option<Needs>, LaplaceError> {
    let &Size { network, examples, unseen, likelihood, .. } = size;
    // The first thing that a search does, by examples that are learned from and others: buffers of the ones wait while the others pass, in other sizes.
    let pass = [examples, unseen].map(|examples| Workspace::of(&Size { examples, ..*size }).pass());
    let pass = after(pass[0], pass[1]);
    let own = match approximation {
        Approximation::Temperature => Needs {
            curvature_bytes: 0,
            batch_bytes: Temperature::bytes(network, unseen, likelihood),
            // How well the network fits what it has learned from is told as well.
            flops: (examples + unseen) as f64 * network.graph().flops() as f64,
        },
        Approximation::MeanField(own) => MeanField::plan(size, own),
        Approximation::FixedMean(own) => fixed_mean::plan(size, own)?,
        Approximation::Gwi(own) => gwi::plan(size, own)?,
        // These count the pass themselves.
        Approximation::Ella(own) => return Ok(Some(ella::plan(size, own))),
        Approximation::Sampled(own) => return Ok(Some(sampled::plan(size, own))),
        _ => return Ok(None),
    };
    Ok(Some(Needs { batch_bytes: after(pass, own.batch_bytes), ..own }))
}
