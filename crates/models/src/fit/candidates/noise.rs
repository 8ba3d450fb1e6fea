//! Other noise than equal Gaussian noise, where residuals ask for it.

use super::{Candidates, by_folds, found, gain, record};
use crate::fit::signs;
use crate::method::inference::{Judged, with_outliers};
use crate::method::noise;
use crate::options::{HETEROSCEDASTIC, LikelihoodName, Limits, OutputRequest, TargetTransformName};
use crate::prepare::OriginalRows;
use crate::record::OUTLIERS;
use crate::rows::worse_by;
use crate::text::number;
use crate::{FitRecord, FitRequest, Model, ModelError, Observed, Predicted, TrainingRows};
use faer::Mat;
use posterior_data::Standardisation;
use posterior_gp::Observations;
use posterior_notes::fixes::{EXACT, LIKELIHOOD_GAUSSIAN};
use std::f64::consts::PI;

/// The share of rows above which those far away are no outliers.
const MANY: f64 = 0.05;

/// Outliers that are named one by one.
const NAMED: usize = 5;

/// Training rows of a model, each as the others predict it.
struct LeftOutRows {
    means: Vec<f64>,
    /// Residuals in predicted standard deviations.
    residuals: Vec<f64>,
    /// `-log p(y)` in nats, in the target's units.
    surprises: Vec<f64>,
}

impl LeftOutRows {
    fn of(model: &Model, y: &[f64]) -> Option<Self> {
        let process = model.process()?;
        let known = process.predictor.training()?;
        let found = process.predictor.leave_one_out()?();
        let standard = &process.inputs.standardisation;
        let means: Vec<f64> = found.mean.col(0).iter().copied().collect();
        let truths = known.targets().col(0);
        let residuals: Vec<f64> =
            (0..means.len()).map(|i| (truths[i] - means[i]) / found.variance[i].sqrt()).collect();
        let surprise = |i: usize| {
            0.5 * ((2.0 * PI * found.variance[i]).ln() + residuals[i] * residuals[i])
                - standard.log_slope(y[i])
        };
        let surprises = (0..means.len()).map(surprise).collect();
        Some(Self { means, residuals, surprises })
    }
}

impl Candidates<'_, '_> {
    /// Another noise, where residuals ask for one: residuals whose size depends on an input have outliers as well, and outliers draw predictions near to them, so that sizes seem to depend on inputs. Whatever predicts best is kept.
    pub(super) fn noise_of_residuals(&mut self) -> Result<(), ModelError> {
        let Some(own) = LeftOutRows::of(&self.best, &self.originals.y) else { return Ok(()) };
        let plain = (self.request.clone(), self.choice());
        let surprises = self.student_t(&own)?.unwrap_or_else(|| own.surprises.clone());
        let x = self.prepared.data.inputs();
        let seen = Mat::from_fn(x.nrows(), x.ncols() + 1, |i, j| match j < x.ncols() {
            true => x[(i, j)],
            false => own.means[i],
        });
        if signs::noise_depends_on(&own.residuals, seen.as_ref()) {
            self.heteroscedastic(plain, &surprises)?;
        }
        if let Some(own) = LeftOutRows::of(&self.best, &self.originals.y)
            && let Some(text) = self.outliers(&own.residuals)
            && let Some(check) = self.check()
        {
            check.warnings.push(text);
        }
        Ok(())
    }

    /// Heteroscedastic noise beside the plain request (with why its method was chosen), kept where it predicts better than the best model, which is so surprised.
    fn heteroscedastic(
        &mut self,
        (plain, choice): (FitRequest, String),
        surprises: &[f64],
    ) -> Result<(), ModelError> {
        if self.prepared.data.rows() < noise::LEAST_ROWS {
            return Ok(());
        }
        let changed = self.changed(|own| {
            let limits = Limits { time: own.limits.time, ..plain.limits };
            *own = FitRequest { limits, validation: own.validation, ..plain };
            own.columns.noise = Some(HETEROSCEDASTIC.into());
        });
        let Some(request) = changed else { return Ok(()) };
        let Some(mut model) = self.fitted(&request)? else { return Ok(()) };
        let Some(other) = LeftOutRows::of(&model, &self.originals.y) else { return Ok(()) };
        if worse_by(surprises, &other.surprises).is_none() {
            return Ok(());
        }
        // The noise has seen the rows that it is judged by so far.
        let found = by_folds(&mut model, &request, self.observer)?;
        if let Some([gain, error]) = gain(&self.surprises, &found).filter(|[gain, error]| gain > error) {
            if let Some(FitRecord::Gaussian(fit)) = record(&mut model) {
                fit.choice = format!(
                    "{choice}; heteroscedastic noise, because its cross-validated NLL is {gain:.3} +- {error:.3} below that of equal noise ({EXACT} keeps the latter)"
                );
            }
            (self.best, self.request, self.surprises) = (model, request, found);
        }
        Ok(())
    }

    /// Student-t noise where there are outliers among residuals: where it predicts better it is kept, and how surprised it is comes back.
    fn student_t(&mut self, own: &LeftOutRows) -> Result<Option<Vec<f64>>, ModelError> {
        let asked = self.asked;
        let open = asked.output == OutputRequest::default()
            && asked.output.target_transform == TargetTransformName::Auto
            && asked.columns.exposure.is_none()
            && self.prepared.transform.support.is_everywhere();
        // A map may have been chosen for the sake of outliers, which it hides.
        let hidden =
            self.prepared.transform.chosen.is_some() && !signs::outliers(&self.originals.y).is_empty();
        if !open || !hidden && !signs::has_heavy_tails(&own.residuals) {
            return Ok(None);
        }
        let changed = self.changed(|own| {
            (own.prior.noise_floor, own.prior.initial_noise) =
                (asked.prior.noise_floor, asked.prior.initial_noise);
            own.output.likelihood = LikelihoodName::StudentT;
        });
        let Some(request) = changed else { return Ok(None) };
        let observed = self.observed()?;
        let found = found(Model::fit_judged(observed, &request, self.observer))?;
        let Some((mut model, Some(judged))) = found else { return Ok(None) };
        let Some((gain, error)) = worse_by(&own.surprises, &judged.surprises) else {
            self.drop_warning(OUTLIERS);
            return Ok(None);
        };
        let outliers = self.outliers(&residuals_of(&judged));
        if let Some(FitRecord::Likelihood(fit)) = record(&mut model) {
            fit.likelihood_choice = format!(
                "student-t, because its NLL on left-out rows is {gain:.3} +- {error:.3} below that of Gaussian noise ({LIKELIHOOD_GAUSSIAN} takes the latter)"
            );
            fit.odd.extend(outliers);
        }
        (self.best, self.request) = (model, request);
        Ok(Some(judged.surprises))
    }

    /// The rows in units that outliers do not decide, and under Student-t noise.
    fn observed(&self) -> Result<Observed, ModelError> {
        let OriginalRows { x, y, .. } = &*self.originals;
        let (mean, scale) = self.prepared.standardisation.target_in_units();
        let (likelihood, target) = with_outliers(y, [mean, scale * scale])?;
        let (shift, scale) = target.units();
        let y: Vec<f64> = y.iter().map(|y| (y - shift) / scale).collect();
        let column = Mat::from_fn(y.len(), 1, |i, _| y[i]);
        Ok(Observed {
            schema: self.prepared.schema.clone(),
            standardisation: Standardisation {
                target_mean: 0.0,
                target_scale: 1.0,
                transform: None,
                ..self.prepared.standardisation.clone()
            },
            data: Observations::new(self.prepared.data.inputs().to_owned(), column, None)?,
            target,
            likelihood,
            why: String::new(),
            notes: self.prepared.notes.clone(),
            odd: Vec::new(),
            training: TrainingRows::of_table(x.as_ref(), &y),
            input_ranges: self.prepared.input_ranges.clone(),
        })
    }

    /// Names the rows whose residuals are outliers; none where there are none.
    fn outliers(&self, residuals: &[f64]) -> Option<String> {
        let far = signs::outliers(residuals);
        // What many rows are is no error, nor is what lies off a mass of equal targets.
        if far.len() as f64 > MANY * residuals.len() as f64 || self.prepared.transform.on_bounds > 0.0 {
            return None;
        }
        let OriginalRows { numbers, y, .. } = &*self.originals;
        let name = |&i: &usize| format!("row {} ({})", numbers[i] + 1, number(y[i]));
        let named: Vec<String> = far.iter().take(NAMED).map(name).collect();
        let more = match far.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!named.is_empty()).then(|| {
            format!(
                "`{}` is far from what the other rows predict, beyond any normal noise, in {}{more}: check them",
                self.prepared.schema.target,
                named.join(", ")
            )
        })
    }
}

/// Residuals of judged numbers, in the target's units.
fn residuals_of(judged: &Judged) -> Vec<f64> {
    let Some(rows) = &judged.rows else { return Vec::new() };
    match &rows.predicted {
        Predicted::Moments { mean, .. } => rows.truths.iter().zip(mean).map(|(y, m)| y - m).collect(),
        Predicted::Classes(_) | Predicted::Events(_) => Vec::new(),
    }
}
