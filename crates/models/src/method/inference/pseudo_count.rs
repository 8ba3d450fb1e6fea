//! **A pseudo-count that is learned** with hyperparameters and prior means: all of them by a bound on the evidence of the labels' own likelihood, whose posterior is that of regression on the pseudo-targets (`gp::gaussianised`).
//!
//! Bounds are comparable between matchings as well, so that the highest one chooses where none is named. They are maximised on all rows, and rows that are left out, which choose otherwise, only tell how good the choice is.

use super::check::{Judged, crossed};
use super::gaussian_labels::{GaussianLabels, NO_NOISE};
use super::gaussianised::{Chosen, FIRST, default_matchings, left_out, process, score};
use super::observed::Observed;
use super::search::Searching;
use crate::record::PSEUDO_COUNTS;
use crate::{BoundedPseudoCount, FitRequest, ModelError};
use posterior_gp::MeanForm;
use posterior_gp::exact::ExactGp;
use posterior_gp::gaussianised::GaussianisedGp;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_optim::Parameters;

/// What a search on some rows learned.
struct Learned {
    gaussianised: Gaussianised,
    /// Kernel values.
    kernel: Vec<f64>,
    offsets: Vec<f64>,
    bound: f64,
}

/// Learns on some rows, from the pseudo-targets' own prior means and unit on all.
fn learn(
    observed: &Observed,
    rows: Option<&[usize]>,
    (request, matching): (&FitRequest, Matching),
    (begun, start): (&ExactGp, &GaussianLabels),
    searching: &mut Searching<'_, '_>,
) -> Result<Learned, ModelError> {
    let inputs = observed.data.inputs().ncols();
    let kernel = begun.kernel().clone_box();
    let gaussian_labels = (matching, PSEUDO_COUNTS[FIRST]);
    let mut model = GaussianisedGp::new(
        kernel,
        request.prior.mean,
        observed.likelihood.clone(),
        gaussian_labels,
        inputs,
    )?
    .with_scale(start.scale);
    if request.prior.mean == MeanForm::Constant {
        model.mean_mut().set_values(&start.offsets);
    }
    let some = rows.map(|rows| observed.data.select(rows)).transpose()?;
    let data = some.as_ref().unwrap_or(&observed.data);
    let part = rows.map_or("all rows".into(), |rows| format!("a part with row {}", rows[0] + 1));
    let name = format!("{} learned, {part}", matching.name());
    let (model, bound) = searching.bound(&name, model, data, rows.is_some())?;
    let offsets = match request.prior.mean {
        MeanForm::Constant => model.mean().values(),
        _ => start.offsets.clone(),
    };
    Ok(Learned { gaussianised: model.gaussianised()?, kernel: model.kernel().values(), offsets, bound })
}

/// Every row predicted from the others, under what the other half of the rows learned.
fn check(
    observed: &Observed,
    (request, matching): (&FitRequest, Matching),
    (begun, start): (&ExactGp, &GaussianLabels),
    searching: &mut Searching<'_, '_>,
) -> Result<Option<Judged>, ModelError> {
    let rows: Vec<usize> = (0..observed.rows()).collect();
    if rows.len() < 2 {
        return Ok(None);
    }
    let latents = crossed(observed, &rows, (true, request.seed), |half| {
        let own = learn(observed, Some(half), (request, matching), (begun, start), searching)?;
        let gaussian_labels = GaussianLabels::with(observed, &own.gaussianised, (own.offsets, start.scale))?;
        let data = gaussian_labels.on(observed, &rows)?;
        let mut model = begun.clone();
        model.set_values(&[own.kernel, vec![NO_NOISE]].concat());
        let each = (0..data.functions()).map(|k| model.clone().condition(data.function(k)));
        let each = each.collect::<Result<Vec<_>, _>>()?;
        Ok(left_out(&data, each.iter(), &gaussian_labels)?)
    })?;
    score(observed, &rows, latents).map(Some)
}

/// Hyperparameters, prior means and pseudo-count by the highest bound.
pub(crate) fn choose(
    observed: &Observed,
    request: &FitRequest,
    searching: &mut Searching<'_, '_>,
) -> Result<Chosen, ModelError> {
    let begun = searching.begun(process(observed, request)?)?;
    let named = request.output.matching.map(|matching| [matching]);
    let matchings = named.as_ref().map_or_else(|| default_matchings(&observed.likelihood), |own| &own[..]);
    let mut bounds: Vec<BoundedPseudoCount> = Vec::new();
    let mut best: Option<(Matching, GaussianLabels, Learned)> = None;
    for &matching in matchings {
        if best.is_some() && searching.is_spent() {
            break;
        }
        let start = GaussianLabels::of(
            observed,
            &Gaussianised::new(matching, PSEUDO_COUNTS[FIRST])?,
            request.prior.mean,
        )?;
        let found = learn(observed, None, (request, matching), (&begun, &start), searching)?;
        let pseudo_count = found.gaussianised.pseudo_count();
        bounds.push(BoundedPseudoCount { matching, pseudo_count, bound: found.bound });
        if best.as_ref().is_none_or(|(_, _, other)| found.bound > other.bound) {
            best = Some((matching, start, found));
        }
    }
    let Some((matching, start, found)) = best else {
        return Err(ModelError::Request("no matching was tried".into()));
    };
    let judged = check(observed, (request, matching), (&begun, &start), searching)?;
    let gaussian_labels = GaussianLabels::with(observed, &found.gaussianised, (found.offsets, start.scale))?;
    let mut model = begun;
    model.set_values(&[found.kernel, vec![NO_NOISE]].concat());
    let source = match request.start.hyperparameters() {
        Some(_) => "given; prior means and pseudo-count by a bound on the evidence of the labels",
        None => "a bound on the evidence of the labels, together with prior means and pseudo-count",
    };
    let gaussianised = found.gaussianised;
    Ok(Chosen {
        gaussianised,
        gaussian_labels,
        model,
        source: source.into(),
        judged,
        tried: Vec::new(),
        bounds,
    })
}
