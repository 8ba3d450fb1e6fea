//! **Rows that are predicted from the others, under hyperparameters that their own half had no part in.**
//!
//! Predicting a row from the others has a closed form under given hyperparameters. Where these were learned on the same rows, the row has had a say in them: with a lengthscale for each of many
//! columns, such scores are far too good (0.475 nats a row beside 0.590 on new rows, for 61 columns and 666 rows of credit ratings), and they prefer what fits more closely. So the rows are parted in two
//! halves, each with its share of every class; hyperparameters are learned on one half, and every row of the other is predicted from all others under them. A search on half the rows costs an eighth of one on
//! all, twice that a quarter.

use super::observed::Observed;
use crate::ModelError;
use crate::latent::Latent;
use crate::output::Target;
use posterior_data::Split;
use posterior_linalg::random::Streams;

/// Rows below which halves say nothing of hyperparameters.
const FEWEST: usize = 8;

/// The latent values of `rows`, as `predict` gives them for all rows under hyperparameters of those at some places in `rows`: of each half, those that the other half chose. Of very few rows, and where hyperparameters are
/// given (not `learned`), under those of all rows.
pub(super) fn crossed(
    observed: &Observed,
    rows: &[usize],
    (learned, seed): (bool, u64),
    mut predict: impl FnMut(&[usize]) -> Result<Latent, ModelError>,
) -> Result<Latent, ModelError> {
    if !learned || rows.len() < FEWEST {
        return predict(&(0..rows.len()).collect::<Vec<_>>());
    }
    let classes: Option<Vec<usize>> = match &observed.target {
        Target::Classes { .. } => {
            let all = observed.targets();
            Some(rows.iter().map(|&row| all[row] as usize).collect())
        }
        _ => None,
    };
    let half = |k| {
        let streams = Streams::new(seed).child("model/halves", 0);
        Split::fold(rows.len(), (2, k), classes.as_deref(), streams).map_err(ModelError::Request)
    };
    let first = half(0)?;
    let mut out = predict(&first.train)?;
    out.take(&predict(&half(1)?.train)?, &first.train);
    Ok(out)
}
