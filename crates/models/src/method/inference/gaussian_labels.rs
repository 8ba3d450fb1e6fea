//! Gaussian label approximation: what Gaussianised inference learns from, in standard units.

use super::observed::Observed;
use crate::{ModelError, Prepared};
use faer::Mat;
use posterior_data::Standardisation;
use posterior_gp::exact::SeveralObservations;
use posterior_gp::gaussianised::GaussianLabels as RawGaussianLabels;
use posterior_gp::{MeanForm, Observations};
use posterior_likelihoods::OutputLikelihood;
use posterior_likelihoods::gaussianised::Gaussianised;
use posterior_notes::fixes::{INFERENCE_LAPLACE, INFERENCE_VARIATIONAL, KERNEL, MEAN_ZERO};

/// The variance of the noise that all rows have beside their own, in standard units: nothing, which a Gaussian likelihood cannot say.
pub(crate) const NO_NOISE: f64 = 1e-9;

/// Pseudo-observations of the latent functions: one of events and counts, one for each class.
#[derive(Clone, Debug)]
pub(crate) struct GaussianLabels {
    /// Targets of each function in standard units.
    targets: Vec<Vec<f64>>,
    /// Noise variances of each, in squared standard units.
    variances: Vec<Vec<f64>>,
    /// Prior mean of each function, in its own units (log-odds, log-rates).
    pub(crate) offsets: Vec<f64>,
    /// What a standard unit is, the same for all.
    pub(crate) scale: f64,
}

impl GaussianLabels {
    /// Of all rows, with prior means and a unit from themselves.
    ///
    /// The prior means are the logarithms of the classes' shares, moved so that they are right on average (Milios et al., *Dirichlet-based Gaussian processes for large-scale calibrated
    /// classification*, NeurIPS 2018, as their software has it); of events the log-odds, of counts the mean of the targets by precision. Zero where that is asked for.
    ///
    /// # Errors
    /// [`ModelError::Request`] for a linear prior mean; [`ModelError::Gp`] for likelihoods that have no pseudo-targets.
    pub(crate) fn of(
        observed: &Observed,
        gaussianised: &Gaussianised,
        mean: MeanForm,
    ) -> Result<Self, ModelError> {
        let raw = RawGaussianLabels::of(&observed.likelihood, gaussianised, &observed.data)?;
        let (rows, functions) = raw.targets.shape();
        let y = observed.targets();
        let weight = |i: usize| observed.data.weights().map_or(1.0, |w| w[i]);
        let total: f64 = (0..rows).map(weight).sum();
        let share = |class: f64| (0..rows).filter(|&i| y[i] == class).map(weight).sum::<f64>() / total;
        let mut offsets: Vec<f64> = Vec::new();
        match &observed.likelihood {
            OutputLikelihood::Bernoulli(_) => offsets.push((share(1.0) / share(0.0)).ln()),
            OutputLikelihood::Categorical(_) => {
                offsets.extend((0..functions).map(|class| share(class as f64).max(0.5 / total).ln()));
                let own = |k: usize| mean_of(raw.targets.col_as_slice(k)) - offsets[k];
                let shift = (0..functions).map(own).sum::<f64>() / functions as f64;
                offsets.iter_mut().for_each(|o| *o += shift);
            }
            _ => {
                let (targets, variances) = (raw.targets.col_as_slice(0), raw.variances.col_as_slice(0));
                let precision: f64 = variances.iter().map(|v| 1.0 / v).sum();
                let sum: f64 = targets.iter().zip(variances).map(|(m, v)| m / v).sum();
                offsets.push(sum / precision);
            }
        }
        match mean {
            MeanForm::Zero => offsets.fill(0.0),
            MeanForm::Constant => {}
            MeanForm::Linear => {
                return Err(ModelError::Request(format!(
                    "gaussianised inference has a constant prior mean, or none ({MEAN_ZERO}): a linear trend is a part of the kernel ({KERNEL} \"... + linear\"), or take {INFERENCE_LAPLACE} or {INFERENCE_VARIATIONAL:-}"
                )));
            }
        }
        let square: f64 = (0..functions).map(|k| square_of(raw.targets.col_as_slice(k), offsets[k])).sum();
        let scale = (square / functions as f64).sqrt();
        let scale = if scale > 0.0 && scale.is_finite() { scale } else { 1.0 };
        Ok(Self::placed(&raw, offsets, scale))
    }

    /// Of all rows, with prior means and a unit that are known.
    ///
    /// # Errors
    /// [`ModelError::Gp`] for likelihoods that have no pseudo-targets.
    pub(crate) fn with(
        observed: &Observed,
        gaussianised: &Gaussianised,
        (offsets, scale): (Vec<f64>, f64),
    ) -> Result<Self, ModelError> {
        let raw = RawGaussianLabels::of(&observed.likelihood, gaussianised, &observed.data)?;
        Ok(Self::placed(&raw, offsets, scale))
    }

    fn placed(raw: &RawGaussianLabels, offsets: Vec<f64>, scale: f64) -> Self {
        let target = |k: usize| raw.targets.col_as_slice(k).iter().copied();
        let targets = offsets.iter().enumerate();
        let targets = targets.map(|(k, o)| target(k).map(|m| (m - o) / scale).collect()).collect();
        let variances = (0..offsets.len()).map(|k| raw.variances.col_as_slice(k));
        let variances = variances.map(|own| own.iter().map(|v| v / (scale * scale)).collect()).collect();
        Self { targets, variances, offsets, scale }
    }

    /// Number of latent functions.
    pub(crate) fn count(&self) -> usize {
        self.targets.len()
    }

    /// What the functions are observed as, on the given rows.
    pub(crate) fn on(&self, observed: &Observed, rows: &[usize]) -> Result<SeveralObservations, ModelError> {
        let x = observed.data.inputs();
        let inputs = Mat::from_fn(rows.len(), x.ncols(), |i, j| x[(rows[i], j)]);
        let pick = |of: &[Vec<f64>]| Mat::from_fn(rows.len(), of.len(), |i, k| of[k][rows[i]]);
        Ok(SeveralObservations::new(inputs, pick(&self.targets), pick(&self.variances))?)
    }

    /// The same of one function and all rows as a process on a table learns from them: the units of its predictions are those of the function.
    pub(crate) fn prepared(&self, observed: &Observed, k: usize) -> Result<Prepared, ModelError> {
        let targets = Mat::from_fn(observed.rows(), 1, |i, _| self.targets[k][i]);
        let noise = Some(self.variances[k].clone());
        Ok(Prepared {
            schema: observed.schema.clone(),
            standardisation: Standardisation {
                target_mean: self.offsets[k],
                target_scale: self.scale,
                ..observed.standardisation.clone()
            },
            data: Observations::new(observed.data.inputs().to_owned(), targets, noise)?,
            notes: posterior_data::Notes::default(),
            originals: None,
            training: crate::TrainingRows::default(),
            input_ranges: observed.input_ranges.clone(),
            transform: crate::TransformChoice::default(),
        })
    }
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean square about `centre`.
fn square_of(values: &[f64], centre: f64) -> f64 {
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / values.len() as f64
}
