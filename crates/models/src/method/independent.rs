//! Functions that are independent of each other, each with a posterior of its own: Gaussian label approximation.

use super::{PredictorHeader, READERS, Read, blocks_of_points, row_effort};
use crate::predictor::{Samples, StreamOf};
use crate::{Batch, Cost, Latent, ModelError, Predictor, TableSource, Want};
use faer::{Mat, MatRef};
use posterior_gp::inducing::InducingPosterior;
use posterior_store::{StoreError, Tensors};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A predictor for each function, in standard units.
#[derive(Debug)]
pub struct IndependentFunctions {
    /// The predictors.
    pub members: Vec<Arc<dyn Predictor>>,
    /// Mean of each function.
    pub offsets: Vec<f64>,
    /// Their common scale.
    pub scale: f64,
}

pub(crate) const KIND: &str = "independent functions";

/// What a file has of it besides arrays; processes of the functions are described in the record of the fit.
#[derive(Serialize, Deserialize)]
struct Settings {
    offsets: Vec<f64>,
    scale: f64,
    members: Vec<PredictorHeader>,
}

/// What stands before the names of a function's arrays.
fn prefix(function: usize) -> String {
    format!("function.{function}.")
}

impl Predictor for IndependentFunctions {
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        let x = x.rows()?;
        let Self { members, offsets, scale } = self;
        let (mut mean, mut variance) =
            (Mat::zeros(x.nrows(), members.len()), Mat::zeros(x.nrows(), members.len()));
        let mut clipped = 0;
        let mut put = |k: usize, i: usize, m: f64, v: f64| {
            mean[(i, k)] = offsets[k] + scale * m;
            variance[(i, k)] = scale * scale * v;
        };
        let inducing = self.inducing();
        if inducing.len() == members.len() {
            want.variances.check_closed_form()?;
            // Features that they share are computed once.
            for (k, found) in InducingPosterior::latent_of_all(&inducing, x)?.iter().enumerate() {
                clipped += found.clipped;
                (0..x.nrows()).for_each(|i| put(k, i, found.mean[(i, 0)], found.variance[(i, 0)]));
            }
        } else {
            for (k, member) in members.iter().enumerate() {
                let found = member.latent(x.into(), want)?;
                clipped += found.clipped;
                (0..x.nrows()).for_each(|i| put(k, i, found.mean_at(i)[0], found.variance(i, 0)));
            }
        }
        Ok(Latent::independent(&mean, &variance, clipped))
    }

    fn samples(&self, x: MatRef<'_, f64>, count: usize, stream: StreamOf<'_>) -> Samples {
        let mut out = Vec::with_capacity(self.members.len());
        for (c, member) in self.members.iter().enumerate() {
            for draws in member.samples(x, count, &|_| stream(c))? {
                out.push(Mat::from_fn(draws.nrows(), count, |i, j| {
                    self.offsets[c] + self.scale * draws[(i, j)]
                }));
            }
        }
        Ok(out)
    }

    fn support(&self) -> usize {
        let Some(first) = self.members.first() else { return 0 };
        match first.inducing().first() {
            Some(posterior) => posterior.inducing().nrows(),
            None => first.training().map_or(0, |data| data.rows()),
        }
    }

    fn cost(&self, rows: usize) -> Cost {
        let n = self.support() as u64;
        blocks_of_points(rows, self.support(), self.latents() as f64 * (n * n) as f64)
    }

    fn effort(&self, inputs: usize) -> [f64; 2] {
        let (n, c) = (self.support() as f64, self.latents() as f64);
        let row = row_effort(self.support(), inputs);
        match self.members.iter().all(|own| own.training().is_some()) {
            true => [c * row, c * (row + n * n)],
            false => [c * (row + 3.0 * n * n); 2],
        }
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError> {
        let (offsets, scale) = (self.offsets.clone(), self.scale);
        let mut members = Vec::with_capacity(self.members.len());
        for (k, member) in self.members.iter().enumerate() {
            let mut own = Tensors::default();
            members.push(PredictorHeader::write(&**member, &mut own)?);
            out.extend_under(&prefix(k), own);
        }
        Ok(posterior_store::to_value(&Settings { offsets, scale, members })?)
    }

    fn latents(&self) -> usize {
        self.members.len()
    }

    fn means(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, ModelError> {
        let each = self.members.iter().map(|own| own.means(x)).collect::<Result<Vec<_>, _>>()?;
        Ok(Mat::from_fn(x.nrows(), each.len(), |i, c| each[c][(i, 0)]))
    }

    fn stored_samples(&self) -> Option<usize> {
        self.members.iter().filter_map(|own| own.stored_samples()).min()
    }

    fn training_inputs(&self) -> Option<MatRef<'_, f64>> {
        self.members.first()?.training_inputs()
    }

    fn inducing(&self) -> Vec<&InducingPosterior> {
        let all: Vec<_> = self.members.iter().flat_map(|own| own.inducing()).collect();
        if all.len() == self.members.len() { all } else { Vec::new() }
    }

    fn with_inducing(&self, new: Vec<InducingPosterior>) -> Option<Arc<dyn Predictor>> {
        let members: Vec<Arc<dyn Predictor>> = new.into_iter().map(|own| Arc::new(own) as _).collect();
        Some(Arc::new(Self { members, offsets: self.offsets.clone(), scale: self.scale }))
    }
}

/// Inputs of the functions are those of the model.
pub(crate) fn read(settings: Value, source: &TableSource, tensors: &mut Tensors) -> Read {
    let Settings { offsets, scale, members: headers } = super::settings(settings, tensors)?;
    let Some(described) = source.record.fit.likelihood().and_then(|fit| fit.gaussian_labels.as_ref()) else {
        return Err(tensors.corrupt("its latent functions are not described"));
    };
    let (functions, outputs) = (&described.members, source.output.functions());
    if [headers.len(), functions.len(), offsets.len()] != [outputs; 3] || scale <= 0.0 {
        return Err(tensors.corrupt("its latent functions are not those of its likelihood"));
    }
    let mut members = Vec::with_capacity(outputs);
    for (k, (header, function)) in headers.into_iter().zip(functions).enumerate() {
        let mut own = tensors.take_under(&prefix(k));
        if function.inputs.schema != source.inputs.schema {
            return Err(own.corrupt("a latent function has other columns than the model"));
        }
        members.push(header.read(READERS, function, &mut own)?);
    }
    Ok(Arc::new(IndependentFunctions { members, offsets, scale }))
}
