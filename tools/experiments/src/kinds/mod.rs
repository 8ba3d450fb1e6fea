//! The kinds of experiments.

mod active_learning;
mod along;
mod bands;
mod class_losses;
mod class_tables;
mod conjugate;
mod convergence;
mod counts;
mod deep_tables;
mod densities;
mod effective_dimension;
mod em_convergence;
mod em_illustration;
mod em_traces;
mod error_bars;
mod evidence;
mod evidence_choices;
mod fidelity;
mod fingerprints;
mod generalised_curves;
mod generalised_learning;
mod generalised_tempering;
mod images;
mod inducing_galleries;
mod landscape;
mod parts;
mod plain;
mod prelude;
mod regression;
mod sampling_objectives;
mod scale;
mod scaling;
mod slices;
mod spatial;
mod spectral;
mod step_function;
mod streaming_classes;
mod thompson;
mod tomography_angles;
mod tomography_priors;
mod toy_bound;
mod toy_processes;
mod weight_space;

use super::ExperimentError;
use super::context::Context;
use super::gaussian::share_options;
use super::measured::Measured;
use super::unknown_keys::read;
use serde::de::DeserializeOwned;
use toml::Table;

/// Code that runs experiments.
pub(crate) struct Kind {
    /// Its name in files.
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
    /// Whether settings are those of this kind.
    pub(crate) check: fn(&Table) -> Result<(), ExperimentError>,
    /// Runs one seed.
    pub(crate) run: fn(&Table, &mut Context<'_>) -> Result<Measured, ExperimentError>,
}

/// Writes the list of kinds: name, module (with `Settings` and `run`), what it does.
macro_rules! kinds {
    ($($name:literal $module:ident $about:literal)*) => {
        /// All of them.
        pub(crate) const KINDS: &[Kind] = &[$(Kind {
            name: $name,
            about: $about,
            check: |table| settings::<$module::Settings>(table).map(|_| ()),
            run: |table, context| $module::run(&settings(table)?, context),
        }),*];
    };
}

kinds! {
    "active-learning" active_learning "labels asked for where they tell most, against labels at random: scores by number of labels, and labels until a level"
    "error-bars" error_bars "error bars of trained networks by every method on the same rows: tables, and images with a network that came with them"
    "bands" bands "error bars of several posteriors on a problem in one dimension, side by side"
    "class-losses" class_losses "classifiers trained with several losses: cross-entropy, classes as Gaussian numbers by several matchings and pseudo-counts, one-hot squares"
    "evidence" evidence "the evidence along one prior precision, published updates of it, and brute force"
    "effective-dimension" effective_dimension "estimators of the effective dimension from few samples, against closed forms"
    "scale" scale "error bars after multiplying normalised weights, and the scales of the Jacobian"
    "loss-slices" slices "likelihood and posterior of a network and of its linear model over a plane of weights"
    "plain-laplace" plain "the network at sampled weights against its tangent"
    "images" images "classifiers of images: whose norm the evidence charges for, one precision or one for each layer"
    "evidence-choices" evidence_choices "classifiers of images: whose norm the evidence charges for, where the curvature is taken, and how long the network was trained"
    "fidelity" fidelity "classifiers of images: how far approximate posteriors are from the exact one of the tangent model"
    "em-convergence" em_convergence "classifiers of images: precisions by step of expectation maximisation, exact, approximate and sampled, and the bounds that they maximise"
    "em-illustration" em_illustration "one dimension: functions of the prior, samples on their way and error bars, before and after expectation maximisation"
    "em-traces" em_traces "a network that came with its weights: precision, effective dimension and norms by step of expectation maximisation, by number of samples"
    "sampling-objectives" sampling_objectives "classifiers of images: errors of posterior samples along descent on two objectives, by size of the batches"
    "regression" regression "tables in standard folds: errors, log densities and seconds of Gaussian processes by several methods"
    "thompson" thompson "parallel Thompson sampling: the best value found, by step and by second"
    "spectral" spectral "what stochastic solvers have not converged in: along the inputs and by eigendirection"
    "convergence" convergence "errors of a mean's weights along the way of several solvers, in three norms and at test points"
    "toy-processes" toy_processes "approximate posteriors in one dimension beside the exact one: dense data, large domains, starved features"
    "scaling" scaling "time to a fixed error and memory against the number of rows"
    "streaming-classes" streaming_classes "classifiers that see every row once: Gaussian labels by each matching, plain regression, assumed-density filtering, gradient descent"
    "densities" densities "Gamma and Beta densities in two bases, and the Gaussians that stand for them, with divergences"
    "landscape" landscape "log evidences over lengthscale and variance: of Gaussian pseudo-targets, of a bound, and of the likelihood itself by annealing"
    "class-tables" class_tables "tables of classes by sparse processes on Gaussian pseudo-targets, pseudo-counts by the likelihood of labels"
    "deep-tables" deep_tables "tables in random parts: deep kernels and other processes that learn everything themselves, by number of features as well"
    "step-function" step_function "a function with jumps in one dimension: posteriors, kernels as maps and scores of processes with and without learned features"
    "spatial" spatial "a quantity over the land: scores, maps of predictions and of what is near, by processes with and without learned features"
    "counts" counts "counts whose rates are known: what several inferences cover of rates and of new counts"
    "toy-bound" toy_bound "classes on a plane by a bound on their evidence with a learned pseudo-count, by matching"
    "generalised-curves" generalised_curves "curves with blocks cut out by generalised variational inference: every combination of priors, variational kernels, regularisers and step sizes, and the published winners"
    "generalised-learning" generalised_learning "a process and its inducing points learned in turns on a curve: what it believes after each"
    "generalised-tempering" generalised_tempering "a process before and after its variances are multiplied by a factor that rows held back choose"
    "inducing-galleries" inducing_galleries "images of each class that are chosen as inducing points, by chance and by greedy variance under several kernels, behind networks as well: pictures, and what the chosen explain"
    "tomography-angles" tomography_angles "the angles of a scan chosen by what is not known of the picture: designs by several priors against equidistant and random ones, and what three reconstructions make of them"
    "tomography-priors" tomography_priors "pictures of scans by priors of networks, of pixels and by dropped channels: evidence choices, scores of error bars, expected roughness by lengthscale"
    "weight-space" weight_space "linear models as functions: priors, posteriors of a few points, bounds on the evidence and where they would put the prior, parts of samples, samples that ask for the next point, classes by a line"
    "fingerprints" fingerprints "the Tanimoto kernel on made-up fingerprints, against brute force and the truth"
}

/// Names of the kinds with what they do.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().map(|k| (k.name, k.about))
}

/// Settings that know which numbers make sense.
trait Checked: DeserializeOwned {
    /// Refuses others.
    fn check(&self) -> Result<(), ExperimentError> {
        Ok(())
    }
}

/// The settings of a kind, checked.
fn settings<S: Checked>(table: &Table) -> Result<S, ExperimentError> {
    let mut table = table.clone();
    share_options(&mut table);
    let settings: S = read(&table)?;
    settings.check()?;
    Ok(settings)
}
