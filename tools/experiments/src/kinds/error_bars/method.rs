//! What is fitted to a task, and its scores.

use super::beyond::{Beyond, predictive};
use super::members::MemberSettings;
use super::scores::Scored;
use super::task::Task;
use crate::fit_options::overlaid;
use crate::gaussian::{Covariance, Job, MethodSettings as ProcessSettings};
use crate::kinds::prelude::*;
use posterior_laplace::fixed_mean::FixedMeanOptions;
use posterior_laplace::gwi::GwiOptions;
use posterior_laplace::{Approximation, FitOptions};
use posterior_models::laplace::{Arrays, DataSource, InMemory, LaplaceRequest, Preprocess};
use posterior_models::options::CalibrateName;
use posterior_models::{
    Model, OutOfDistribution, Predictive, Question, peak_memory_bytes, reset_peak_memory,
};
use posterior_networks::Network;
use posterior_optim::Signal;
use std::time::Instant;
use toml::Table;

/// What is predicted without the fit's posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Baseline {
    /// The network alone, with noise from its training rows.
    Network,
    /// All networks of the task together, each alone.
    Ensemble,
}

/// Settings of processes whose mean is the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Preset {
    /// For tables.
    FixedMeanTable,
    /// For images.
    FixedMeanImages,
    /// The same as published.
    FixedMeanImagesPublished,
    /// The tangent kernel, from the closed form on.
    Valla,
    /// The tangent kernel in closed form.
    VallaInClosedForm,
    /// Gaussian Wasserstein inference, for tables.
    GwiTable,
    /// For images.
    GwiImages,
}

impl Preset {
    /// The preset with `changes` to its settings, for the method of this name.
    fn approximation(self, changes: &Table, name: &str) -> Result<Approximation> {
        let own = match self {
            Self::FixedMeanTable => FixedMeanOptions::fixed_mean_table(),
            Self::FixedMeanImagesPublished => FixedMeanOptions::fixed_mean_images_published(),
            Self::FixedMeanImages => FixedMeanOptions::fixed_mean_images(),
            Self::Valla => FixedMeanOptions::valla(),
            Self::VallaInClosedForm => FixedMeanOptions::valla_in_closed_form(),
            Self::GwiTable => return Ok(Approximation::Gwi(overlaid(GwiOptions::table(), changes, name)?)),
            Self::GwiImages => return Ok(Approximation::Gwi(overlaid(GwiOptions::images(), changes, name)?)),
        };
        Ok(Approximation::FixedMean(overlaid(own, changes, name)?))
    }
}

/// One `[[method]]`: `options` are those of a fit, laid over its defaults.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct MethodSettings {
    /// Its name in tables.
    pub(super) name: String,
    /// The tasks that it is for; all if absent.
    pub(super) tasks: Option<Vec<String>>,
    /// Learns from the first so many examples only, where all would take too long; all if absent.
    examples: Option<usize>,
    baseline: Option<Baseline>,
    /// Functions drawn for joint scores, where its posterior has fewer than the task asks for; as many as that if absent.
    draws: Option<usize>,
    /// Further networks of an ensemble, which are trained on the task's images; none if absent.
    members: Option<MemberSettings>,
    /// A process on the table's rows, as `[[method]]` of experiments on processes.
    process: Option<ProcessSettings>,
    options: Option<Table>,
    /// A process whose mean is the network, with `changes` to its settings.
    preset: Option<Preset>,
    changes: Option<Table>,
}

/// What a method found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) scored: Scored,
    foreign_auc: Option<f64>,
    pub(super) beyond: Option<Beyond>,
    fit_seconds: f64,
    predict_seconds: f64,
    memory: Option<u64>,
    notes: Vec<String>,
}

impl Found {
    /// Its numbers, with the difference to another's.
    pub(super) fn numbers(&self, other: &Self) -> Value {
        let mut out = self.scored.numbers();
        out["nll_difference"] = (self.scored.nll - other.scored.nll).into();
        out["fit_seconds"] = self.fit_seconds.into();
        out["predict_seconds"] = self.predict_seconds.into();
        if let Some(auc) = self.foreign_auc {
            out["foreign_auc"] = auc.into();
        }
        if let Some(beyond) = &self.beyond {
            beyond.add_to(&mut out);
        }
        if let Some(bytes) = self.memory {
            out["memory_megabytes"] = (bytes as f64 / f64::from(1 << 20)).into();
        }
        out
    }

    /// What the fit had to say.
    pub(super) fn remarks(&self, stage: &str) -> Vec<Note> {
        self.notes.iter().map(|n| Note::information(format!("{stage}: {n}"))).collect()
    }
}

impl MethodSettings {
    /// Whether it is the network alone.
    pub(super) fn is_network(&self) -> bool {
        self.baseline == Some(Baseline::Network)
    }

    /// Whether a task is among its own.
    pub(super) fn is_for(&self, task: &str) -> bool {
        self.tasks.as_ref().is_none_or(|tasks| tasks.iter().any(|t| t == task))
    }

    pub(super) fn check(&self) -> Result<()> {
        let ways = [self.process.is_some(), self.options.is_some(), self.preset.is_some()];
        if ways.into_iter().filter(|way| *way).count() != 1
            || (self.process.is_some() && self.baseline.is_some())
            || (self.changes.is_some() && self.preset.is_none())
        {
            return refused(format!(
                "[[method]] `{}` has one of `process`, `options` and `preset`, which may have `changes`",
                self.name
            ));
        }
        if let Some(members) = &self.members {
            if self.baseline != Some(Baseline::Ensemble) {
                return refused(format!("[[method]] `{}`: `members` belong to an ensemble", self.name));
            }
            members.check()?;
        }
        if self.draws == Some(0) {
            return refused(format!("[[method]] `{}`: `draws` is at least 1", self.name));
        }
        if self.examples == Some(0) || (self.examples.is_some() && self.process.is_some()) {
            return refused(format!(
                "[[method]] `{}`: `examples` is at least 1, and not for a process",
                self.name
            ));
        }
        self.fit_options(0).map(|_| ())
    }

    /// The options of its fit.
    fn fit_options(&self, seed: u64) -> Result<FitOptions> {
        let mut own = FitOptions { seed, ..FitOptions::default() };
        if let Some(preset) = self.preset {
            let changes = self.changes.clone().unwrap_or_default();
            own.approximation = preset.approximation(&changes, &self.name)?;
        }
        match &self.options {
            Some(over) => overlaid(own, over, &self.name),
            None => Ok(own),
        }
    }

    pub(super) fn run(&self, task: &Task, stage: &str, context: &mut Context<'_>) -> Result<Found> {
        let mut networks = task.networks.clone();
        if let Some(members) = &self.members {
            networks.extend(members.networks(stage, task, context)?);
        }
        reset_peak_memory();
        let clock = Instant::now();
        if let Some(process) = &self.process {
            return self.process(process, task, stage, context);
        }
        let model = match self.baseline {
            Some(Baseline::Ensemble) => {
                let names = (0..networks.len()).map(|k| format!("network {k}")).collect();
                let mut members = Vec::new();
                for network in &networks {
                    members.push(self.fit(task, network, stage, context)?);
                }
                Model::ensemble(members, names, true)?
            }
            _ => self.fit(task, &task.networks[0], stage, context)?,
        };
        let fit_seconds = clock.elapsed().as_secs_f64();
        let question = Question { truth: true, memory: 4 << 30, ..Question::default() };
        let clock = Instant::now();
        let mut own = model.predictive(&task.test, &question)?;
        let predict_seconds = clock.elapsed().as_secs_f64();
        if self.is_network() {
            own = model.baseline(&task.test, &own)?.1;
            own.truth.clone_from(&task.test.truth);
        }
        let memory = peak_memory_bytes();
        let foreign_auc = match &task.foreign {
            None => None,
            Some(foreign) => {
                let question = Question { truth: false, ..question.clone() };
                let other = predictive(&model, foreign, &question, self.is_network())?;
                Some(OutOfDistribution::of(&own, &other)?.entropy)
            }
        };
        let beyond = match &task.beyond {
            None => None,
            Some(beyond) => {
                let mut watch = |done, all| context.step(&format!("{stage}: beyond"), done, all);
                let beyond = beyond.with_draws(self.draws);
                Some(beyond.ask(&model, &task.test, self.is_network(), &question, &mut watch)?)
            }
        };
        let scored = Scored::of(own)?;
        let notes = model.notes().into_iter().map(|n| n.text()).collect();
        Ok(Found { scored, foreign_auc, beyond, fit_seconds, predict_seconds, memory, notes })
    }

    /// A network of the task with error bars.
    fn fit(
        &self,
        task: &Task,
        network: &Network<f64>,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Model> {
        let most = self.examples.unwrap_or(usize::MAX);
        let memory = InMemory {
            network: Some(network.clone()),
            data: Some(Arrays {
                inputs: task.data.inputs.first(most),
                targets: task.data.targets.first(most),
            }),
            unseen: Some(task.unseen.clone()),
        };
        let none: [&str; 0] = [];
        let mut request = LaplaceRequest::new("", none, none, task.likelihood);
        request.numbers = task.numbers;
        // Methods are compared as they are.
        request.validation.calibrate = CalibrateName::None;
        request.options = self.fit_options(context.seed)?;
        (request.seed, request.limits.memory) = (context.seed, request.limits.memory);
        if !task.channels.0.is_empty() {
            let (mean, deviation) = task.channels.clone();
            request.data = DataSource { preprocess: Preprocess::Pixels, mean, deviation, ..request.data };
        }
        let mut stop = false;
        let fitted = Model::fit_laplace_with(&request, &memory, &mut |_| {}, &mut |s, done, total| {
            let signal = context.tell(&format!("{stage}: {}", s.describe()), done, total);
            stop |= signal == Signal::Stop;
            signal
        });
        match fitted {
            Err(_) if stop => Err(ExperimentError::Interrupted),
            other => Ok(other?),
        }
    }

    fn process(
        &self,
        process: &ProcessSettings,
        task: &Task,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Found> {
        let Some(data) = &task.observations else {
            return refused(format!("[[method]] `{}`: processes are for tables", self.name));
        };
        let clock = Instant::now();
        // `auto` learns its own hyperparameters; others are told these.
        let covariance = Covariance::matern32(1.0, &vec![1.0; data.inputs().ncols()])?;
        let job =
            Job { covariance: &covariance, noise_variance: 0.1, data, time_budget: None, seed: context.seed };
        let run = process.fit(&job, stage, context)?;
        let fit_seconds = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        let x = task.test.inputs.to_f64();
        let prediction =
            run.predict(faer::MatRef::from_row_major_slice(&x, task.test.len(), data.inputs().ncols()))?;
        let predict_seconds = clock.elapsed().as_secs_f64();
        let mean: Vec<f64> = prediction.mean.col(0).iter().copied().collect();
        let deviation: Vec<f64> = prediction.observed_variance().iter().map(|v| v.sqrt()).collect();
        let latent: Vec<f64> = prediction.latent_variance.iter().map(|v| v.sqrt()).collect();
        let truth = task.test.truth.clone();
        let values = match &truth {
            Some(posterior_models::Truth::Values { values, .. }) => values.clone(),
            _ => return refused("processes predict numbers"),
        };
        let own = Predictive { truth, ..Predictive::gaussian(mean, &deviation, latent, Some(&values)) };
        let memory = peak_memory_bytes();
        let scored = Scored::of(own)?;
        Ok(Found {
            scored,
            foreign_auc: None,
            beyond: None,
            fit_seconds,
            predict_seconds,
            memory,
            notes: Vec::new(),
        })
    }
}
