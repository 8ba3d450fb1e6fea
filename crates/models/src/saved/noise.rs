//! The arrays of heteroscedastic noise.

use crate::method::noise::{names, own_kernel};
use crate::method::read_process as read_laplace;
use crate::output::NoiseProcess;
use crate::{NoiseSummary, Predictor};
use posterior_gp::MeanForm;
use posterior_gp::laplace::LaplaceGp;
use posterior_likelihoods::ScaledChiSquared;
use posterior_optim::Parameters;
use posterior_store::{StoreError, Tensors};

/// What its tensors' names begin with.
const PREFIX: &str = "noise_process.";

/// Adds them.
pub(crate) fn write(own: &NoiseProcess, tensors: &mut Tensors) -> Result<(), StoreError> {
    let mut arrays = Tensors::default();
    own.posterior.write(&mut arrays)?;
    tensors.extend_under(PREFIX, arrays);
    Ok(())
}

/// The process that a summary and its arrays describe, of a model with these features.
pub(crate) fn read(
    summary: &NoiseSummary,
    features: &[String],
    tensors: &mut Tensors,
) -> Result<NoiseProcess, StoreError> {
    let NoiseSummary { columns, kernel, hyperparameters, rows, .. } = summary;
    let ascending = columns.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascending || columns.last().is_some_and(|last| *last >= features.len()) {
        return Err(tensors.corrupt("the columns of its noise are none of its features"));
    }
    let own = names(columns, features);
    if *kernel != own_kernel().map_err(|e| tensors.corrupt(e))? {
        return Err(tensors.corrupt("the kernel of its noise is none that is learned"));
    }
    let kernel = kernel.build(&own).map_err(|e| tensors.corrupt(e))?;
    let mut model = LaplaceGp::new(kernel, MeanForm::Constant, Box::new(ScaledChiSquared), own.len());
    let segments = model.segments();
    let fits = segments.len() == hyperparameters.len()
        && segments.iter().zip(hyperparameters).all(|(segment, own)| {
            (&segment.name, segment.len()) == (&own.name, own.values.len())
                && own.out_of_range(segment).is_none()
        });
    if !fits {
        return Err(tensors.corrupt("the hyperparameters of its noise are not those of its kernel"));
    }
    let values: Vec<f64> = hyperparameters.iter().flat_map(|h| h.values.iter().copied()).collect();
    model.set_values(&values);
    let posterior = read_laplace((*rows, own.len()), model, &mut tensors.take_under(PREFIX))?;
    Ok(NoiseProcess { columns: columns.clone(), posterior })
}
