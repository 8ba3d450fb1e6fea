//! What a fit around a network is planned to take, without its data.

use super::automatic::PATIENCE;
use super::fit::planned_selection;
use super::request::{CurvatureChoice, LaplaceRequest};
use crate::options::MethodName;
use crate::{FitCost, Model, ModelError};
use posterior_laplace::auto::planned;
use posterior_laplace::{Plan, Size};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::{Network, Precision};

impl Model {
    /// What a fit of `request` to `rows` rows is planned to take, with `unseen` validation rows. Of a comparison of several methods it is the largest memory and the sum of the run times of
    /// those that fit the memory limit and, after the first, the time. Files of the request are not read.
    ///
    /// # Errors
    /// When the network has no such weights, or no features that a kernel could see.
    pub fn network_fit_cost<T: Precision>(
        network: &Network<T>,
        likelihood: &OutputLikelihood,
        request: &LaplaceRequest,
        (rows, unseen): (usize, usize),
    ) -> Result<FitCost, ModelError> {
        let options = &request.options;
        let cost = |method: &str, bytes, seconds| FitCost { rows, method: method.into(), bytes, seconds };
        if request.curvature == CurvatureChoice::Options {
            let selection = planned_selection(network, options)?;
            let size = Size { network, selection: &selection, examples: rows, unseen, likelihood };
            let plan = Plan::new(&size, options)?;
            return Ok(cost(&plan.curvature, plan.bytes(), Some(plan.seconds())));
        }
        let (mut bytes, mut seconds) = (0, 0.0);
        let limit = request.limits.time.unwrap_or(PATIENCE.as_secs_f64());
        for (_, plan) in planned(network, likelihood, rows, Some(unseen), options)? {
            let first = bytes == 0 && request.limits.time.is_none();
            if plan.bytes() <= options.memory && (first || seconds + plan.seconds() <= limit) {
                bytes = plan.bytes().max(bytes);
                seconds += plan.seconds();
            }
        }
        Ok(cost(MethodName::Auto.as_str(), bytes, Some(seconds)))
    }
}
