//! From a table to a model.

use super::{FitSummary, Header, Hyperparameter, Model, ModelError};
use crate::{FitRequest, Method};
use faer::Mat;
use posterior_data::{Schema, Standardisation, Table};
use posterior_gp::exact::{ExactGp, Plan, fit};
use posterior_gp::{Hyperprior, Observations};
use posterior_likelihoods::Gaussian;
use posterior_optim::{Event, Parameters, Reason, Signal};
use std::time::Instant;

impl Model {
    /// What a fit to `rows` rows with `features` inputs would need, without reading more than the request.
    pub fn plan(request: &FitRequest, rows: usize, features: usize) -> Plan {
        match request.options.criterion {
            posterior_gp::exact::Criterion::Evidence => Plan::evidence(rows, features, 1),
            posterior_gp::exact::Criterion::LeaveOneOut => Plan::leave_one_out(rows, features, 1),
        }
    }

    /// Learns from the given rows of a table: schema, standardisation, hyperparameters, posterior.
    ///
    /// The observer is told the start and each step and may end the search; the model is then the best so far, and its
    /// summary says `interrupted`.
    ///
    /// # Errors
    /// [`ModelError`]: bad cells, a kernel that does not fit the table, not enough memory, no start that can be evaluated.
    pub fn fit(
        table: &Table,
        rows: &[usize],
        request: &FitRequest,
        observer: &mut dyn FnMut(usize, &Event) -> Signal,
    ) -> Result<Self, ModelError> {
        let started = Instant::now();
        check_noise(request)?;
        let schema = Schema::learn(table, &request.selection, rows)?;
        let extracted = schema.extract(table, rows, true)?;
        let y = extracted.y.unwrap_or_default();
        let standardisation = Standardisation::learn(extracted.x.as_ref(), &y);
        let x = standardisation.features(extracted.x.as_ref());
        let targets = Mat::from_fn(y.len(), 1, |i, _| standardisation.target(y[i]));
        let square = standardisation.target_scale * standardisation.target_scale;
        let noise = extracted.noise.map(|v| v.into_iter().map(|v| v / square).collect());
        let kernel = request.kernel.build(&schema.feature_names())?;
        let model = ExactGp::new(
            kernel,
            request.mean,
            Gaussian::new(request.initial_noise, request.noise_floor),
            x.ncols(),
            1,
        );
        let mut options = request.options.clone();
        if request.weak_lengthscale_prior {
            add_weak_priors(&mut options.hyperpriors, &model, schema.features.len());
        }
        let data = Observations::new(x, targets, noise)?;
        let fitted = fit(model, data, &options, observer)?;
        let model = fitted.posterior.model();
        let choice = match request.method {
            Method::Exact => "exact, as asked".to_string(),
            Method::Auto => format!("exact, because {} and the limit allows it", fitted.plan),
        };
        let header = Header {
            method: "exact".into(),
            rows: extracted.rows.len(),
            schema,
            standardisation,
            kernel: request.kernel.clone(),
            mean: request.mean,
            hyperparameters: named_values(model),
            noise_floor: request.noise_floor,
            cholesky: fitted.posterior.info(),
            seed: request.options.seed,
            fit: FitSummary {
                log_evidence: fitted.log_evidence,
                criterion: request.options.criterion,
                criterion_value: fitted.criterion,
                hyperpriors: options.hyperpriors,
                optimizer: request.options.optimizer,
                reason: fitted.reason,
                steps: fitted.steps,
                evaluations: fitted.evaluations,
                attempts: fitted.attempts,
                largest_jitter: fitted.largest_jitter,
                seconds: started.elapsed().as_secs_f64(),
                plan: fitted.plan,
                choice,
                data: extracted.notes,
            },
        };
        Ok(Self { header, posterior: fitted.posterior })
    }

    /// Whether the search was ended by its observer.
    pub fn was_interrupted(&self) -> bool {
        self.header.fit.reason == Reason::Interrupted
    }
}

fn check_noise(request: &FitRequest) -> Result<(), ModelError> {
    let (floor, initial) = (request.noise_floor, request.initial_noise);
    if !(floor.is_finite() && floor >= 0.0) {
        return Err(ModelError::Setting {
            what: "the noise floor",
            value: floor,
            expected: "finite and not negative",
        });
    }
    if !(initial.is_finite() && initial > floor) {
        return Err(ModelError::Setting {
            what: "the initial noise",
            value: initial,
            expected: "finite and above the noise floor",
        });
    }
    Ok(())
}

/// The weak belief for every lengthscale that the user says nothing about.
fn add_weak_priors(hyperpriors: &mut Vec<Hyperprior>, model: &ExactGp, features: usize) {
    for segment in model.segments().iter().filter(|s| s.name.ends_with(".lengthscale")) {
        // A periodic kernel's lengthscale measures angles, not distances.
        let spoken_for = hyperpriors.iter().any(|h| h.parameter == segment.name);
        if !spoken_for && !segment.name.starts_with("periodic") {
            hyperpriors.push(Hyperprior::weak_lengthscale(&segment.name, features));
        }
    }
}

/// The model's natural values under their names.
fn named_values(model: &ExactGp) -> Vec<Hyperparameter> {
    let values = model.values();
    let mut rest = values.as_slice();
    let take = |segment: posterior_optim::Segment| {
        let (mine, others) = rest.split_at(segment.len());
        rest = others;
        Hyperparameter { name: segment.name, values: mine.to_vec() }
    };
    model.segments().into_iter().map(take).collect()
}
