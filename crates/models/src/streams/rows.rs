//! Rows as Gaussian observations of the latent functions, in the posterior's own units and less the prior mean.

use crate::method::inference::NO_NOISE;
use crate::{GaussianLabelSummary, ModelError, Output, Process};
use faer::{Mat, MatRef};
use posterior_data::Table;
use posterior_gp::inducing::InducingPosterior;
use posterior_gp::inducing::streaming::{Sites, sites};
use posterior_likelihoods::OutputLikelihood;
use posterior_likelihoods::gaussianised::LabelApproximation;

/// Rows with their labels, as the posterior takes them.
pub(crate) struct LabelledRows {
    /// Standardised inputs, b x D.
    pub(crate) inputs: Mat<f64>,
    /// What they say.
    pub(crate) observed: Observed,
}

/// What rows say of the latent functions.
pub(crate) enum Observed {
    /// Whatever the functions are: targets and precisions, b x C.
    Gaussian { targets: Mat<f64>, precisions: Mat<f64> },
    /// As much as the likelihood makes of the targets (b) where the functions are, what is added to them for each row (b) included.
    Labels { targets: Vec<f64>, offsets: Vec<f64> },
}

impl LabelledRows {
    /// From rows of a table that have a target.
    pub(crate) fn of(model: &Process<'_>, table: &Table, rows: &[usize]) -> Result<Self, ModelError> {
        let extracted = model.extract(table, rows, true)?;
        let inputs = model.inputs.standard(&extracted);
        match &model.output {
            Output::Gaussian(_) => {
                let standard = &model.inputs.standardisation;
                let y = extracted.y.unwrap_or_default();
                let scale = standard.target_scale * standard.target_scale;
                let known = extracted.noise.map(|noise| noise.iter().map(|v| v / scale).collect::<Vec<_>>());
                let noise = model.predictor().noise_variance();
                let noise =
                    noise.ok_or_else(|| ModelError::Request("this process has no Gaussian noise".into()))?;
                let variance = |i: usize| noise + known.as_ref().map_or(0.0, |v| v[i]);
                Ok(Self {
                    inputs,
                    observed: Observed::Gaussian {
                        targets: Mat::from_fn(y.len(), 1, |i, _| standard.target(y[i])),
                        precisions: Mat::from_fn(y.len(), 1, |i, _| 1.0 / variance(i)),
                    },
                })
            }
            Output::Likelihood(output) => {
                let seen = model.offsets(&extracted);
                let y = extracted.y.unwrap_or_default();
                let offset = |i: usize| seen.as_ref().map_or(0.0, |offsets| offsets[i]);
                let gaussian_labels =
                    model.record.fit.likelihood().and_then(|fit| fit.gaussian_labels.as_ref());
                let Some(GaussianLabelSummary { gaussianised, offsets, scale, .. }) = gaussian_labels else {
                    let offsets = (0..y.len()).map(offset).collect();
                    return Ok(Self { inputs, observed: Observed::Labels { targets: y, offsets } });
                };
                let labels = LabelApproximation::new(&output.likelihood, gaussianised)?;
                let (mut targets, mut precisions) =
                    (Mat::zeros(y.len(), offsets.len()), Mat::zeros(y.len(), offsets.len()));
                for (i, y) in y.iter().enumerate() {
                    for (k, mean) in offsets.iter().enumerate() {
                        let own = labels.observation(&[*y], k, offset(i).exp())?;
                        targets[(i, k)] = (own.target - mean) / scale;
                        precisions[(i, k)] = 1.0 / (own.variance / (scale * scale) + NO_NOISE);
                    }
                }
                Ok(Self { inputs, observed: Observed::Gaussian { targets, precisions } })
            }
        }
    }
}

/// What labels say where the functions are: `marginals` holds means and variances, prior mean included.
pub(crate) fn sites_of(
    likelihood: &OutputLikelihood,
    y: &[f64],
    (means, variances): (MatRef<'_, f64>, MatRef<'_, f64>),
) -> Result<Sites, ModelError> {
    let targets = Mat::from_fn(y.len(), 1, |i, _| y[i]);
    Ok(sites(&**likelihood, targets.as_ref(), means, variances)?)
}

/// Prior means of all functions at some inputs, b x C.
pub(crate) fn prior_means(posteriors: &[&InducingPosterior], x: MatRef<'_, f64>) -> Mat<f64> {
    let each: Vec<Mat<f64>> = posteriors.iter().map(|p| p.mean().evaluate(x)).collect();
    let columns: Vec<(usize, usize)> =
        each.iter().enumerate().flat_map(|(p, m)| (0..m.ncols()).map(move |c| (p, c))).collect();
    Mat::from_fn(x.nrows(), columns.len(), |i, k| each[columns[k].0][(i, columns[k].1)])
}
