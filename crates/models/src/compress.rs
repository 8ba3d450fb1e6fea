//! Models of many rows, carried by fewer points: predictions that cost as many kernel values as there are points.

use crate::method::COMPARED;
use crate::prepare::CANDIDATES;
use crate::record::CONVERGED;
use crate::speed::dense_rate;
use crate::text::{time, work};
use crate::{Compression, FitRecord, Guarantee, Model, ModelError, Process, Question, Solver, TableSource};
use posterior_gp::iterative::InducingDescentOptions;
use posterior_notes::fixes::{COMPRESS_INDUCING, MEMORY, SAP};
use serde::Serialize;
use std::fmt;

/// Rounds in which points become centres of clusters, as in most of our runs; there may be a hundred.
const ROUNDS: f64 = 20.0;

impl Compression {
    /// What is said of one that is coarse.
    pub fn warning(&self) -> String {
        format!(
            "means moved by {:.2} standard deviations, more than {CONVERGED}: take more points ({COMPRESS_INDUCING:#})",
            self.mean_error
        )
    }

    /// Whether means moved by more than a solver that has converged leaves open.
    pub fn is_coarse(&self) -> bool {
        self.mean_error > CONVERGED
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, points, compared, mean_error, largest_mean_error, deviation_error, .. } = self;
        write!(
            f,
            "{points} points carry what {rows} rows carried: on {compared} of these rows means moved by {mean_error:.3} standard deviations (at most {largest_mean_error:.2}), and deviations by {:.1} %",
            100.0 * deviation_error
        )
    }
}

/// What a compression takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompressionPlan {
    /// Rows that carry the functions.
    pub rows: usize,
    /// Points that will.
    pub points: usize,
    /// Bytes at the peak, beside the model.
    pub peak_bytes: u64,
    /// Floating-point operations, about.
    pub flops: f64,
    /// Seconds on this machine, about.
    pub seconds: f64,
}

impl fmt::Display for CompressionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, points, peak_bytes, flops, seconds } = self;
        write!(
            f,
            "{points} points instead of {rows} rows need {:.1} MB of memory and {}, about {} on this machine",
            *peak_bytes as f64 / 1e6,
            work(*flops),
            time(*seconds)
        )
    }
}

/// What is said of models that have nothing to compress.
fn closed() -> ModelError {
    ModelError::Usage(format!(
        "only models whose weights stand at their rows are compressed (sdd, sap, cg, sgd): predictions of others cost what their inducing points or features do already, and those of exact fits need their factor (fit with {SAP} instead)"
    ))
}

impl<'a> Process<'a> {
    /// What [`Self::compressed`] takes.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where there is nothing to compress, [`ModelError::Request`] where it does not fit `memory` bytes.
    pub fn compression_plan(&self, points: usize, memory: u64) -> Result<CompressionPlan, ModelError> {
        let rows = self.carried_by_rows(points)?;
        let (m, d) = (points as u64, self.inputs.schema.features.len() as u64);
        // Both models predict rows to be compared by, and the one that is there predicts the points.
        let question = Question { memory: u64::MAX, timed: true, ..Question::default() };
        let predicted = self.plan_of((points.saturating_add(2 * COMPARED.min(rows)), 0), &question, 0)?;
        // Rows in units of lengthscales, as they are clustered; the points' matrix twice.
        let bytes = (rows as u64).saturating_mul(3 * 8 * (d + 1)).saturating_add(3 * 8 * m.saturating_mul(m));
        let own =
            (points as f64).powi(3) / 3.0 + ROUNDS * 2.0 * (rows.min(CANDIDATES) * points) as f64 * d as f64;
        let plan = CompressionPlan {
            rows,
            points,
            peak_bytes: predicted.peak_bytes.saturating_add(bytes),
            flops: predicted.flops + own,
            seconds: predicted.seconds.unwrap_or(0.0) + own / dense_rate(),
        };
        match plan.peak_bytes <= memory {
            true => Ok(plan),
            false => Err(ModelError::Request(format!(
                "{plan}, above the limit of {:.1} MB: allow more memory ({MEMORY}), or take fewer points ({COMPRESS_INDUCING})",
                memory as f64 / 1e6
            ))),
        }
    }

    /// The same model with functions that `points` points carry instead of all rows: their projections in the norm of the kernel's space ([`posterior_gp::iterative::PathwisePosterior::compressed`]), centres of clusters of the rows being the points. Its error is measured on a thousand training rows and recorded in its header. Scores on validation rows stay those of the model that was compressed. Recalibrated intervals keep their factor and lose their guarantee.
    ///
    /// # Errors
    /// [`ModelError::Usage`] for models that have no weights at rows, that are compressed already, and for as many points as rows; [`ModelError::Inducing`]; [`ModelError::Gp`].
    pub fn compressed(&self, points: usize, seed: u64) -> Result<Model, ModelError> {
        self.carried_by_rows(points)?;
        let found = self.predictor.compressed(points, seed);
        let (predictor, compression) = found.ok_or_else(closed)??;
        let (inputs, output, mut record) = (self.inputs.clone(), self.output.clone(), self.record.clone());
        if let FitRecord::Gaussian(fit) = &mut record.fit {
            if let Some(recalibration) = &mut fit.recalibration {
                recalibration.guarantee = Guarantee::Compressed;
            }
            if let Some(summary) = &mut fit.scalable {
                summary.solver = Solver::Inducing(InducingDescentOptions::default());
                summary.inducing = compression.points;
                summary.compressed = Some(compression);
            }
        }
        let source = TableSource { inputs, output, record };
        Ok(Model::of_table(source, predictor, self.calibration.clone(), self.training.clone()))
    }

    /// How far it is from the model that it was compressed from, if it was.
    pub fn compression(&self) -> Option<&'a Compression> {
        self.record.fit.scalable()?.compressed.as_ref()
    }

    /// Rows that carry the functions, where they are more than `points`.
    fn carried_by_rows(&self, points: usize) -> Result<usize, ModelError> {
        let summary = self.record.fit.scalable();
        let Some(summary) = summary.filter(|own| matches!(own.solver, Solver::Rows(_))) else {
            let why = match summary.and_then(|own| own.compressed.as_ref()) {
                Some(own) => {
                    ModelError::Usage(format!("this model is compressed already, to {} points", own.points))
                }
                None => closed(),
            };
            return Err(why);
        };
        let rows = self.record.rows;
        if points == 0 || points >= rows || summary.inducing > 0 {
            return Err(ModelError::Usage(format!(
                "{points} points instead of {rows} rows: give at least 1 and fewer than there are rows ({COMPRESS_INDUCING})"
            )));
        }
        Ok(rows)
    }
}
