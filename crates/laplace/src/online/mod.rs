//! **Hyperparameters while training**: online Laplace (Immer et al. 2021; Lin et al. 2023).
//!
//! Every few epochs the curvature is summed at the current weights `v` and the precisions of the prior (and the noise) climb the Laplace evidence `G_v`. The prior then acts as the
//! weight decay of the next epochs, so that network and hyperparameters fit each other when training ends: what is post hoc a mismatch between the trained weights and the prior
//! does not arise.
//!
//! A precision `a` is the weight decay `a / n` of the mean negative log-likelihood; for the mean square over examples and `C` outputs, `2 s^2 / (n C)` times the negative
//! log-likelihood, it is `2 s^2 a / (n C)`.
//!
//! While `v` is not at a minimum, `G_v` is a lower bound: with the gradient `q` of the regularised loss the tangent model's evidence under Gaussian noise is exactly
//! `G_v + 1/2 q^T H^-1 q`. The last term is an option.
//!
//! | file | what |
//! |---|---|
//! | `options` | what is learned, how often, which weights are kept |
//! | `evidence` | the evidence with its first-order term, and one step up |
//! | `likelihood` | losses as likelihoods, precisions as weight decay |
//! | `hook` | what happens between epochs |
//! | `report` | what was learned, epoch by epoch |

mod evidence;
mod hook;
mod likelihood;
mod options;
mod report;

pub use evidence::TangentEvidence;
pub use options::{HyperparameterRule, OnlineOptions, Select};
pub use report::{OnlineReport, OnlineStep};

use crate::LaplaceError;
use crate::run::{Run, Stage};
use hook::OnlineHook;
use posterior_linalg::compiled_here;
use posterior_networks::train::{Examples, TrainOptions, TrainState, Trained, train_with};
use posterior_networks::{Network, PerNetworkPrecision, Precision};
use posterior_optim::{Observer, Signal};

/// Trains a network and its hyperparameters. `observer` sees every step of the network, `stages` the passes between epochs; either may stop the run, whose state can be saved and
/// resumed bit for bit.
///
/// Cost beside training: a curvature pass every few epochs, `C` passes back for the exact one, one for sampled or empirical Fisher matrices.
///
/// # Errors
/// Settings that do not fit each other, data that do not fit the loss, more memory than allowed, a loss that is not finite.
pub fn train_online<T: Precision>(
    network: Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    options: &TrainOptions,
    online: &OnlineOptions,
    state: Option<TrainState<T>>,
    observer: &mut Observer<'_, TrainState<T>>,
    stages: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<(Trained<T>, OnlineReport), LaplaceError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a, 'c: 'a] train, (
        network: Network<T> = network,
        examples: &'a dyn Examples<T> = examples,
        validation: Option<&'a dyn Examples<T>> = validation,
        options: &'a TrainOptions = options,
        online: &'a OnlineOptions = online,
        state: Option<TrainState<T>> = state,
        observer: &'a mut Observer<'b, TrainState<T>> = observer,
        stages: &'a mut (dyn FnMut(Stage, usize, usize) -> Signal + 'c) = stages,
    ) -> Result<(Trained<T>, OnlineReport), LaplaceError>)
}

fn train<T: Precision>(
    network: Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    options: &TrainOptions,
    online: &OnlineOptions,
    state: Option<TrainState<T>>,
    observer: &mut Observer<'_, TrainState<T>>,
    stages: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<(Trained<T>, OnlineReport), LaplaceError> {
    online.check(options, validation.is_some())?;
    let mut hook = OnlineHook::new(&network, examples, options, online, Run::new(stages))?;
    let trained = train_with(network, examples, validation, options, Some(&mut hook), state, observer)?;
    let report = hook.report(&trained)?;
    Ok((trained, report))
}
