//! Further rows for a saved exact process: the posterior afterwards is that of all rows together, under the hyperparameters that the earlier ones chose.

use crate::method::regression::{each_from_the_others, recalibrate};
use crate::model::Source;
use crate::options::{CalibrateName, Validation};
use crate::prepare::densest_place;
use crate::rows::LeftOut;
use crate::speed::{dense_rate, seconds_of_pair};
use crate::text::{time, work};
use crate::{
    CheckedOn, ContinuedRows, FitRecord, FitRequest, Model, ModelError, Predictor, Process, TableSource, Want,
};
use faer::Mat;
use posterior_data::{Extracted, Notes, RowFingerprints, Schema, Table, Unseen, table_fingerprints};
use posterior_gp::Observations;
use posterior_gp::exact::{ExactPosterior, Plan};
use posterior_notes::fixes::{FIT, MEMORY, SDD, STREAM_MODEL};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a number.
const NUMBER: u64 = 8;

/// Kernel tiles, panels of the inverse.
const WORKING_BYTES: u64 = 32 << 20;

/// New rows fit where chance explains their errors, 199 times in 200: so many deviations of a normal distribution.
const DEVIATIONS: f64 = 2.576;

impl ContinuedRows {
    /// Whether the hyperparameters that were kept explain the added rows as well as chance allows.
    pub fn fit(&self) -> bool {
        self.squared_error <= self.squared_error_explained
    }

    /// What was done.
    pub fn sentence(&self) -> String {
        let repeated = match self.repeated {
            0 => String::new(),
            count => {
                format!(", {count} of which equal rows that were there and count once more")
            }
        };
        format!(
            "{} to {}, hyperparameters kept{repeated}; log predictive density {:.3} a row before they were learned ({:.3} of the others)",
            self.rows_added, self.rows_before, self.log_density, self.log_density_before
        )
    }

    /// What is to be said where they do not fit.
    pub fn warning(&self) -> Option<String> {
        if self.fit() {
            return None;
        }
        Some(format!(
            "{} rows that were added do not fit what was learned before: their squared errors are {:.2} predicted variances on average ({:.2} of the {} rows before; chance explains {:.2}), their log density is {:.3} ({:.3}). Hyperparameters were kept: fit all rows anew",
            self.rows_added,
            self.squared_error,
            self.squared_error_before,
            self.rows_before,
            self.squared_error_explained,
            self.log_density,
            self.log_density_before
        ))
    }

    /// Of `(z, log density)` of the rows that were there and of those that were added.
    fn of(before: &[(f64, f64)], added: &[(f64, f64)], repeated: usize) -> Self {
        let mean = |rows: &[(f64, f64)], of: &dyn Fn(&(f64, f64)) -> f64| {
            rows.iter().map(of).sum::<f64>() / rows.len().max(1) as f64
        };
        let square = |row: &(f64, f64)| row.0 * row.0;
        let (squared_error, squared_error_before) = (mean(added, &square), mean(before, &square));
        let spread = mean(before, &|row| (square(row) - squared_error_before).powi(2));
        Self {
            rows_before: before.len(),
            rows_added: added.len(),
            repeated,
            log_density: mean(added, &|row| row.1),
            log_density_before: mean(before, &|row| row.1),
            squared_error,
            squared_error_before,
            squared_error_explained: explained(added.len(), squared_error_before, spread),
        }
    }
}

/// The largest mean of `count` squared errors that chance explains. Under the model their sum is `χ²` with as many degrees of freedom; a model that was too sure of its own rows, or whose errors have heavier tails,
/// has a mean `m > 1` or a variance `v > 2 m²` there, and the sum is taken as `v / 2m` times `χ²` with `2 m² count / v` degrees of freedom (Satterthwaite). Its quantile is Wilson and Hilferty's.
fn explained(count: usize, mean: f64, variance: f64) -> f64 {
    let mean = mean.max(1.0);
    let variance = variance.max(2.0 * mean * mean);
    let freedom = 2.0 * mean * mean * count as f64 / variance;
    let part = 2.0 / (9.0 * freedom);
    mean * (1.0 - part + DEVIATIONS * part.sqrt()).max(1.0).powi(3)
}

/// What adding rows takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContinuationPlan {
    /// Rows that are there.
    pub rows_before: usize,
    /// Rows that are added.
    pub rows_added: usize,
    /// Bytes at the peak, the model's own factor included.
    pub peak_bytes: u64,
    /// Floating-point operations, about.
    pub flops: f64,
    /// Seconds on this machine, about.
    pub seconds: f64,
}

impl fmt::Display for ContinuationPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "adding {} rows to {} needs {:.1} MB of memory and {}, about {} on this machine",
            self.rows_added,
            self.rows_before,
            self.peak_bytes as f64 / 1e6,
            work(self.flops),
            time(self.seconds)
        )
    }
}

/// Rows of a table as a model sees them, to be added to it.
#[derive(Clone, Debug)]
pub struct NewRows {
    data: Observations,
    /// In their own units.
    x: Mat<f64>,
    fingerprints: Vec<u64>,
    notes: Notes,
    table_bytes: u64,
    /// The least of their targets, in its own units.
    least: f64,
}

impl NewRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.data.rows()
    }

    /// Whether there are none; there always are.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was left out of the table, filled in and taken for what.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }
}

/// Why a model takes no further rows, and the way out: bounds of numbers go on learning from streams.
fn not_exact(method: &str, predictor: Option<&dyn Predictor>) -> ModelError {
    let streams = predictor.is_some_and(|own| own.process().is_some() && !own.inducing().is_empty());
    ModelError::Usage(match streams {
        true => format!(
            "rows are added to exact processes, and this one was fitted by {method}: `{STREAM_MODEL:#}` goes on learning with it"
        ),
        false => format!(
            "rows are added to exact processes, and this one was fitted by {method}: fit all rows anew (`{FIT:#}`)"
        ),
    })
}

impl Process<'_> {
    /// Refuses models that take no further rows, before any are read.
    ///
    /// # Errors
    /// [`ModelError::Usage`] with the way out, for all but exact processes.
    pub fn check_continued(&self) -> Result<(), ModelError> {
        match self.record.fit.weights() {
            Some(_) => Err(ModelError::Usage(format!(
                "this model weighs its rows (--row-weights), and further ones have no weights: fit all rows anew (`{FIT:#}`)"
            ))),
            None => self.exact().map(|_| ()),
        }
    }

    /// What takes further rows.
    fn exact(&self) -> Result<&ExactPosterior, ModelError> {
        self.predictor.exact().ok_or_else(|| not_exact(&self.record.method, Some(self.predictor())))
    }

    /// The given rows of a table with targets, read as the model's own were: the same columns, categories, gaps and units.
    ///
    /// # Errors
    /// [`ModelError::Data`] naming the cell or the column; [`ModelError::Gp`].
    pub fn new_rows(&self, table: &Table, rows: &[usize]) -> Result<NewRows, ModelError> {
        self.numbers()?;
        // All that are unknown would be learned as one.
        let schema = Schema { unseen: Unseen::Error, ..self.inputs.schema.clone() };
        let extracted = self.extract_by(&schema, table, rows, true)?;
        let (data, y) = self.observations(&extracted)?;
        let fingerprints = table_fingerprints(extracted.x.as_ref(), &y);
        Ok(NewRows {
            data,
            x: extracted.x,
            fingerprints,
            notes: extracted.notes,
            table_bytes: table.memory(),
            least: y.iter().copied().fold(f64::INFINITY, f64::min),
        })
    }

    /// Rows with targets in the model's units, and these targets in their own.
    pub(crate) fn observations(&self, extracted: &Extracted) -> Result<(Observations, Vec<f64>), ModelError> {
        let standard = &self.inputs.standardisation;
        let x = self.inputs.standard(extracted);
        let y = extracted.y.clone().unwrap_or_default();
        let targets = Mat::from_fn(y.len(), 1, |i, _| standard.target(y[i]));
        let square = standard.target_scale * standard.target_scale;
        let noise = match self.heteroscedastic_noise() {
            None => extracted.noise.as_ref().map(|v| v.iter().map(|v| v / square).collect()),
            Some(own) => {
                let mean = self.predictor.latent(x.as_ref().into(), &Want::default())?.mean;
                Some(own.variances(x.as_ref(), &mean)?)
            }
        };
        Ok((Observations::new(x, targets, noise)?, y))
    }

    /// What [`Model::continued`] takes for these rows, with the table that they are from beside it.
    ///
    /// # Errors
    /// As [`Process::check_continued`]; [`ModelError::Request`] where it does not fit `memory` bytes.
    pub fn continuation_plan(&self, new: &NewRows, memory: u64) -> Result<ContinuationPlan, ModelError> {
        let posterior = self.exact()?;
        let (peak_bytes, flops) = need(posterior, new);
        let (n, k) = (posterior.data().rows(), new.len());
        let pair = seconds_of_pair(posterior.model().kernel(), posterior.data().inputs(), 1);
        let plan = ContinuationPlan {
            rows_before: n,
            rows_added: k,
            peak_bytes,
            flops,
            seconds: flops / dense_rate() + pair * ((n + k) * k) as f64,
        };
        match plan.peak_bytes <= memory {
            true => Ok(plan),
            false => Err(ModelError::Request(format!(
                "{plan}, above the limit of {:.1} MB: allow more memory ({MEMORY}), add fewer rows, or fit all rows anew by a method for large tables (fit {SDD})",
                memory as f64 / 1e6
            ))),
        }
    }
}

impl Model {
    /// The same model with further rows: to rounding that of all rows under the same hyperparameters, columns and units. Leave-one-out scores and recalibration are of all rows; the header says what was added ([`ContinuedRows`]).
    ///
    /// Cost `(n³ + (n + k)³) / 3 + n²k` flops for k rows added to n, most of it leave-one-out predictions; `8 (n² + (n + k)²)` bytes.
    ///
    /// # Errors
    /// As [`Process::check_continued`]; [`ModelError::Gp`] when the new rows make the kernel matrix indefinite; [`ModelError::Metrics`].
    pub fn continued(self, new: NewRows, calibrate: CalibrateName) -> Result<Self, ModelError> {
        let started = Instant::now();
        let request = FitRequest {
            validation: Validation { calibrate, ..Validation::default() },
            ..FitRequest::default()
        };
        let Self { source: Source::Table(source), mut predictor, training, .. } = self else {
            return Err(not_exact("network", None));
        };
        let TableSource { mut inputs, output, mut record } = *source;
        crate::calibration::check(calibrate, record.rows + new.len(), true)?;
        let (FitRecord::Gaussian(fit), Some(observed)) = (&mut record.fit, output.gaussian()) else {
            return Err(not_exact(&record.method, Some(&*predictor)));
        };
        if Arc::get_mut(&mut predictor).is_none()
            && let Some(shared) = predictor.exact()
        {
            // A posterior that others hold as well is theirs.
            let own: Arc<dyn Predictor> = Arc::new(shared.clone());
            predictor = own;
        }
        let Some(posterior) = Arc::get_mut(&mut predictor).and_then(|own| own.exact_mut()) else {
            return Err(not_exact(&record.method, Some(&*predictor)));
        };
        let (n, k) = (posterior.data().rows(), new.len());
        let (peak_bytes, flops_per_evaluation) = need(posterior, &new);
        let before = left_out(posterior);
        let repeated = repeated(posterior.data(), &new.data);
        posterior.append(&new.data)?;
        let ahead = posterior.one_step_ahead(n);
        let added: Vec<(f64, f64)> = ahead.residuals.into_iter().zip(ahead.log_densities).collect();
        record.continued.push(ContinuedRows::of(&before, &added, repeated));

        let data = posterior.data();
        let y: Vec<f64> = data.targets().col(0).iter().copied().collect();
        let judged = each_from_the_others(posterior, (&inputs, observed, &**fit))?;
        let (check, residuals) = judged.map(|own| (own.check, own.residuals)).unzip();
        let least = &mut fit.transform.least;
        *least = least.map(|known| new.least.min(known));
        fit.data.count(&new.notes);
        fit.data = std::mem::take(&mut fit.data).of_all(data.inputs(), &y, &inputs.schema.feature_names());
        // Rows that were held back lay within the ranges as well.
        let judged = fit.check.as_ref().filter(|check| check.on == CheckedOn::HeldBack);
        let known = n + judged.map_or(0, |check| check.rows);
        inputs.input_ranges = inputs.input_ranges.with(known, new.x.as_ref());
        if inputs.densest.is_some() {
            let standard = &inputs.standardisation;
            let back = |j: usize, v: f64| standard.feature_back(j, v);
            inputs.densest = densest_place(data.inputs()).map(|[a, b]| [back(0, a), back(1, b)]);
        }
        record.rows = n + k;
        record.cholesky = Some(posterior.info());
        fit.log_evidence = Some(posterior.log_evidence());
        // Nothing was maximised for these rows.
        fit.criterion_value = None;
        fit.hyperparameter_source = Some(match fit.hyperparameter_source.take() {
            None => format!("kept from the fit to {n} rows"),
            Some(earlier) if earlier.starts_with("kept from the fit") => earlier,
            Some(earlier) => format!("kept from the fit to {n} rows: {earlier}"),
        });
        (fit.check, fit.recalibration) = (check, None);
        let calibration = recalibrate(&request, fit, residuals.unwrap_or_default())?;
        let columns = data.inputs().ncols();
        fit.plan = Plan { rows: n + k, inputs: columns, targets: 1, peak_bytes, flops_per_evaluation };
        fit.seconds = started.elapsed().as_secs_f64();
        // Without the rows that were there, nothing can be said of which are known.
        let training = training.with(new.fingerprints);
        Ok(Self::of_table(TableSource { inputs, output, record }, predictor, calibration, training))
    }
}

/// Bytes and operations of adding rows.
fn need(posterior: &ExactPosterior, new: &NewRows) -> (u64, f64) {
    let (n, k) = (posterior.data().rows() as u64, new.len() as u64);
    let (d, all) = (posterior.data().inputs().ncols() as u64, n + k);
    let square = |a: u64, b: u64| NUMBER.saturating_mul(a).saturating_mul(b);
    let sum = |parts: &[u64]| parts.iter().fold(0, |a: u64, b| a.saturating_add(*b));
    // Factors of both, the block between them twice, the corner three times; later the factor's triangle on its way to the file.
    let growing = sum(&[square(n, n), square(all, all), square(2 * n, k), square(3 * k, k)]);
    let saving = sum(&[square(all, all), square(all, all + 1) / 2]);
    // Inputs, targets, weights, fingerprints: old, new, stacked, in the file.
    let rows = square(4 * all, d + 6);
    let [m, added, total] = [n as f64, k as f64, all as f64];
    // Each old row from the others, the block, its corner, each row from the others.
    let flops = (m.powi(3) + total.powi(3)) / 3.0 + m * m * added + m * added * added + added.powi(3) / 3.0;
    (sum(&[growing.max(saving), rows, new.table_bytes, WORKING_BYTES]), flops)
}

/// `((y - μ) / s, log density)` of each row, predicted from all others.
fn left_out(posterior: &ExactPosterior) -> Vec<(f64, f64)> {
    let LeftOut { mean, variance, truths, .. } = LeftOut::each(posterior);
    let row = |((y, mean), variance): ((&f64, &f64), &f64)| {
        let z = (y - mean) / variance.sqrt();
        (z, -0.5 * (z * z + (2.0 * std::f64::consts::PI * variance).ln()))
    };
    truths.iter().zip(&mean).zip(&variance).map(row).collect()
}

/// Rows among the new ones that equal one that was there, or one before them.
fn repeated(known: &Observations, new: &Observations) -> usize {
    let prints = |data: &Observations| {
        let y: Vec<f64> = data.targets().col(0).iter().copied().collect();
        table_fingerprints(data.inputs(), &y)
    };
    let (known, new) = (RowFingerprints::new(prints(known)), prints(new));
    let mut seen = std::collections::HashSet::new();
    new.into_iter().filter(|print| known.contains(*print) || !seen.insert(*print)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_explains_is_a_quantile_of_chi_squared() {
        // At 0.995, from tables; within a hundredth of it.
        for (freedom, quantile) in [(1, 7.879), (2, 10.597), (10, 25.188), (100, 140.169)] {
            let found = explained(freedom, 1.0, 2.0) * freedom as f64;
            assert!((found / quantile - 1.0).abs() < 0.01, "{freedom}: {found}");
            // A model that is not sure enough of its own rows explains no less.
            assert_eq!(explained(freedom, 0.3, 0.5), explained(freedom, 1.0, 2.0));
            // Errors of twice the size are those of another unit.
            let doubled = explained(freedom, 4.0, 32.0) * freedom as f64;
            assert!((doubled - 4.0 * found).abs() < 1e-9);
        }
        // Heavy tails explain more, and many rows leave nothing to chance.
        assert!(explained(50, 1.0, 20.0) > explained(50, 1.0, 2.0));
        assert!((explained(1_000_000, 1.3, 5.0) - 1.3).abs() < 0.01);
    }

    #[test]
    fn rows_that_fit_are_not_warned_of() {
        let rows = |z: f64, count: usize| -> Vec<(f64, f64)> {
            (0..count).map(|i| (if i % 2 == 0 { z } else { 0.5 * z }, -0.5 * z * z)).collect()
        };
        let told = ContinuedRows::of(&rows(1.1, 40), &rows(1.2, 20), 3);
        assert!(told.fit() && told.warning().is_none() && told.sentence().contains("3 of which equal"));
        assert!((told.squared_error - 0.625 * 1.44).abs() < 1e-12);
        let told = ContinuedRows::of(&rows(1.1, 40), &rows(3.0, 20), 0);
        let warning = told.warning().unwrap();
        assert!(!told.fit() && warning.contains("5.62") && !told.sentence().contains("equal"), "{warning}");
    }
}
