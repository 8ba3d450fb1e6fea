//! Labels as numbers with noise of their own: what Gaussianised inference learns from, in standard units.

use super::observed::Observed;
use crate::ModelError;
use crate::process::Prepared;
use faer::Mat;
use posterior_data::Standardisation;
use posterior_gp::exact::SeveralObservations;
use posterior_gp::{MeanForm, Observations};
use posterior_likelihoods::OutputLikelihood;
use posterior_likelihoods::gaussianised::{Gaussianised, PseudoObservation};

/// The variance of the noise that all rows have beside their own, in standard units: nothing, which a Gaussian likelihood cannot say.
pub(in crate::process) const NO_NOISE: f64 = 1e-9;

/// What a label says of each latent function.
pub(in crate::process) struct LabelStandIns {
    gaussianised: Gaussianised,
    kind: LabelKind,
}

enum LabelKind {
    /// It did not happen, it did.
    Event([PseudoObservation; 2]),
    /// Another class, this class; and how many classes there are.
    Class([PseudoObservation; 2], usize),
    Count,
}

impl LabelStandIns {
    /// # Errors
    /// [`ModelError::Request`] for likelihoods that have no stand-ins; [`ModelError::Likelihood`].
    pub(in crate::process) fn new(
        likelihood: &OutputLikelihood,
        gaussianised: &Gaussianised,
    ) -> Result<Self, ModelError> {
        let kind = match likelihood {
            OutputLikelihood::Bernoulli(_) => {
                LabelKind::Event([gaussianised.event(false)?, gaussianised.event(true)?])
            }
            OutputLikelihood::Categorical(categorical) => {
                LabelKind::Class([gaussianised.class(false), gaussianised.class(true)], categorical.classes())
            }
            OutputLikelihood::Poisson(_) => LabelKind::Count,
            other => {
                return Err(ModelError::Request(format!(
                    "{} has no Gaussian stand-in: take --inference laplace or variational",
                    other.name()
                )));
            }
        };
        Ok(Self { gaussianised: *gaussianised, kind })
    }

    /// Number of latent functions.
    fn functions(&self) -> usize {
        if let LabelKind::Class(_, classes) = self.kind { classes } else { 1 }
    }

    /// What a target as the likelihood takes it says of function k, in the function's own units; counts have an exposure, 1 where rows are alike.
    ///
    /// # Errors
    /// [`ModelError::Likelihood`] for what is no count.
    pub(in crate::process) fn of(
        &self,
        y: f64,
        k: usize,
        exposure: f64,
    ) -> Result<PseudoObservation, ModelError> {
        Ok(match &self.kind {
            LabelKind::Event(sides) => sides[usize::from(y > 0.5)],
            LabelKind::Class(sides, _) => sides[usize::from(y == k as f64)],
            LabelKind::Count => self.gaussianised.count(y, exposure)?,
        })
    }
}

/// Pseudo-observations of the latent functions: one of events and counts, one for each class.
#[derive(Clone, Debug)]
pub(super) struct StandIns {
    /// Targets of each function in standard units.
    targets: Vec<Vec<f64>>,
    /// Noise variances of each, in squared standard units.
    variances: Vec<Vec<f64>>,
    /// Prior mean of each function, in its own units (log-odds, log-rates).
    pub(super) offsets: Vec<f64>,
    /// What a standard unit is, the same for all.
    pub(super) scale: f64,
}

impl StandIns {
    /// Of all rows. Weights divide noise variances: a weight of 2 is a row that occurs twice.
    ///
    /// The prior means are the logarithms of the classes' shares, moved so that they are right on average (Milios et al., *Dirichlet-based Gaussian processes for large-scale calibrated
    /// classification*, NeurIPS 2018, as their software has it); of events the log-odds, of counts the mean of the targets by precision. Zero where that is asked for.
    ///
    /// # Errors
    /// [`ModelError::Request`] for likelihoods that have no stand-ins, and for a linear prior mean; [`ModelError::Likelihood`].
    pub(super) fn of(
        observed: &Observed,
        gaussianised: &Gaussianised,
        mean: MeanForm,
    ) -> Result<Self, ModelError> {
        let y = observed.targets();
        let weight = |i: usize| observed.data.weights().map_or(1.0, |w| w[i]);
        let total: f64 = (0..y.len()).map(weight).sum();
        let share = |class: f64| (0..y.len()).filter(|&i| y[i] == class).map(weight).sum::<f64>() / total;
        let (mut targets, mut variances): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        let mut offsets: Vec<f64> = Vec::new();
        let labels = LabelStandIns::new(&observed.likelihood, gaussianised)?;
        for k in 0..labels.functions() {
            let each = y.iter().enumerate().map(|(i, y)| labels.of(*y, k, observed.exposure(i)));
            let each: Vec<_> = each.collect::<Result<_, _>>()?;
            targets.push(each.iter().map(|p| p.target).collect());
            variances.push(each.iter().map(|p| p.variance).collect());
        }
        match &observed.likelihood {
            OutputLikelihood::Bernoulli(_) => offsets.push((share(1.0) / share(0.0)).ln()),
            OutputLikelihood::Categorical(categorical) => {
                let classes = 0..categorical.classes();
                offsets.extend(classes.map(|class| share(class as f64).max(0.5 / total).ln()));
                let all: f64 = targets.iter().zip(&offsets).map(|(m, o)| mean_of(m) - o).sum();
                let shift = all / offsets.len() as f64;
                offsets.iter_mut().for_each(|o| *o += shift);
            }
            _ => {
                let (targets, variances) = (&targets[0], &variances[0]);
                let precision: f64 = (0..y.len()).map(|i| weight(i) / variances[i]).sum();
                let sum: f64 = (0..y.len()).map(|i| weight(i) * targets[i] / variances[i]).sum();
                offsets.push(sum / precision);
            }
        }
        match mean {
            MeanForm::Zero => offsets.fill(0.0),
            MeanForm::Constant => {}
            MeanForm::Linear => {
                return Err(ModelError::Request(
                    "gaussianised inference has a constant prior mean, or none (--mean zero): a linear trend is a part of the kernel (--kernel \"... + linear\"), or take --inference laplace or variational".into(),
                ));
            }
        }
        let square: f64 = targets.iter().zip(&offsets).map(|(m, o)| square_of(m, *o)).sum();
        let scale = (square / targets.len() as f64).sqrt();
        let scale = if scale > 0.0 && scale.is_finite() { scale } else { 1.0 };
        for (k, own) in targets.iter_mut().enumerate() {
            own.iter_mut().for_each(|m| *m = (*m - offsets[k]) / scale);
        }
        for own in &mut variances {
            own.iter_mut().enumerate().for_each(|(i, v)| *v /= scale * scale * weight(i));
        }
        Ok(Self { targets, variances, offsets, scale })
    }

    /// Number of latent functions.
    pub(super) fn count(&self) -> usize {
        self.targets.len()
    }

    /// What the functions are observed as, on the given rows.
    pub(super) fn on(&self, observed: &Observed, rows: &[usize]) -> Result<SeveralObservations, ModelError> {
        let x = observed.data.inputs();
        let inputs = Mat::from_fn(rows.len(), x.ncols(), |i, j| x[(rows[i], j)]);
        let pick = |of: &[Vec<f64>]| Mat::from_fn(rows.len(), of.len(), |i, k| of[k][rows[i]]);
        Ok(SeveralObservations::new(inputs, pick(&self.targets), pick(&self.variances))?)
    }

    /// The same of one function and all rows as a process on a table learns from them: the units of its predictions are those of the function.
    pub(super) fn prepared(&self, observed: &Observed, k: usize) -> Result<Prepared, ModelError> {
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
            fingerprints: posterior_data::RowFingerprints::default(),
            input_ranges: observed.input_ranges.clone(),
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
