//! The kinds of experiments.

mod bands;
mod conjugate;
mod convergence;
mod effective_dimension;
mod evidence;
mod fingerprints;
mod images;
mod plain;
mod regression;
mod scale;
mod scaling;
mod spectral;
mod thompson;
mod toy_processes;

use super::ExperimentError;
use super::context::Context;
use super::measured::Measured;
use serde::de::DeserializeOwned;
use toml::Table;

/// Code that runs experiments.
pub(crate) struct Kind {
    /// Its name in files.
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
    /// Whether settings are those of this kind.
    pub(crate) check: fn(&Table) -> Result<(), toml::de::Error>,
    /// Runs one seed.
    pub(crate) run: fn(&Table, &mut Context<'_>) -> Result<Measured, ExperimentError>,
}

/// All of them.
pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "bands",
        about: "error bars of several posteriors on a problem in one dimension, side by side",
        check: check::<bands::Settings>,
        run: bands::run,
    },
    Kind {
        name: "evidence",
        about: "the evidence along one prior precision, published updates of it, and brute force",
        check: check::<evidence::Settings>,
        run: evidence::run,
    },
    Kind {
        name: "effective-dimension",
        about: "estimators of the effective dimension from few samples, against closed forms",
        check: check::<effective_dimension::Settings>,
        run: effective_dimension::run,
    },
    Kind {
        name: "scale",
        about: "error bars after multiplying normalised weights, and the scales of the Jacobian",
        check: check::<scale::Settings>,
        run: scale::run,
    },
    Kind {
        name: "plain-laplace",
        about: "the network at sampled weights against its tangent",
        check: check::<plain::Settings>,
        run: plain::run,
    },
    Kind {
        name: "images",
        about: "classifiers of images: whose norm the evidence charges for, one precision or one for each layer",
        check: check::<images::Settings>,
        run: images::run,
    },
    Kind {
        name: "regression",
        about: "tables in standard folds: errors, log densities and seconds of Gaussian processes by several methods",
        check: check::<regression::Settings>,
        run: regression::run,
    },
    Kind {
        name: "thompson",
        about: "parallel Thompson sampling: the best value found, by step and by second",
        check: check::<thompson::Settings>,
        run: thompson::run,
    },
    Kind {
        name: "spectral",
        about: "what stochastic solvers have not converged in: along the inputs and by eigendirection",
        check: check::<spectral::Settings>,
        run: spectral::run,
    },
    Kind {
        name: "convergence",
        about: "errors of a mean's weights along the way of several solvers, in three norms and at test points",
        check: check::<convergence::Settings>,
        run: convergence::run,
    },
    Kind {
        name: "toy-processes",
        about: "approximate posteriors in one dimension beside the exact one: dense data, large domains, starved features",
        check: check::<toy_processes::Settings>,
        run: toy_processes::run,
    },
    Kind {
        name: "scaling",
        about: "time to a fixed error and memory against the number of rows",
        check: check::<scaling::Settings>,
        run: scaling::run,
    },
    Kind {
        name: "fingerprints",
        about: "the Tanimoto kernel on made-up fingerprints, against brute force and the truth",
        check: check::<fingerprints::Settings>,
        run: fingerprints::run,
    },
];

/// Names of the kinds with what they do.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().map(|k| (k.name, k.about))
}

fn check<S: DeserializeOwned>(settings: &Table) -> Result<(), toml::de::Error> {
    settings.clone().try_into::<S>().map(|_| ())
}

/// The settings of a kind, checked when the file was read.
fn settings<S: DeserializeOwned>(table: &Table) -> Result<S, ExperimentError> {
    table.clone().try_into::<S>().map_err(|e| ExperimentError::Setting(e.message().to_string()))
}
