//! Variances and lengthscales along a search, by the evidence alone and with the prior that expects smooth pictures.

use super::roughness::LazyModel;
use super::stored::{Correlation, StoredModel};
use crate::kinds::prelude::*;
use posterior_optim::{Adaptive, Objective};
use posterior_tomography::TomographyError;
use posterior_tomography::linearised::{
    ChargedWeights, EvidenceSearch, ImageHyperparameters, LEAST_LOG_VARIANCE, LearnedHyperparameters,
    RoughnessTerms,
};

/// The table `[roughness.traces]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct TraceSettings {
    /// Steps of Adam.
    steps: usize,
    learning_rate: f64,
    /// Weight of the prior over lengthscales.
    weight: f64,
}

impl TraceSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if self.steps == 0 || !positive(self.learning_rate) || !positive(self.weight) {
            return refused(
                "[roughness.traces]: `steps` are at least 1, `learning_rate` and `weight` positive",
            );
        }
        Ok(())
    }
}

/// One search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trace {
    pub(crate) name: String,
    /// Blocks whose filters have several positions, and so a lengthscale.
    blocks: Vec<String>,
    /// After each step, for each of those blocks.
    log_variances: Vec<Vec<f64>>,
    log_lengthscales: Vec<Vec<f64>>,
    log_noise: Vec<f64>,
    /// What is maximised.
    values: Vec<f64>,
    /// Where it ended, all blocks.
    end: ImageHyperparameters,
}

/// Names of the two searches.
const NAMES: [&str; 2] = ["marginal likelihood", "type-II MAP"];

/// Both searches from the same start.
///
/// # Errors
/// What fails or is interrupted.
pub(crate) fn run(
    settings: &TraceSettings,
    stored: &mut LazyModel<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Trace>> {
    let mut out = Vec::new();
    let (learner, image) = (stored.learner, &stored.subject.name);
    for name in NAMES {
        let stage = format!("{image}: search by {name}");
        let depends = (learner.depends(), image, settings, name);
        out.push(context.once(&stage, &depends, |context| {
            let (model, terms) = stored.get(context)?;
            search(settings, name, model, terms, context)
        })?);
    }
    Ok(out)
}

fn search(
    settings: &TraceSettings,
    name: &str,
    model: &StoredModel,
    terms: &RoughnessTerms,
    context: &mut Context<'_>,
) -> Result<Trace> {
    let roughness = (name == NAMES[1]).then_some((terms, settings.weight));
    let evidence = model.evidence(ChargedWeights::Optimum, roughness);
    let (learned, held) = (LearnedHyperparameters::default(), model.start(Correlation::Matern));
    let mut objective = EvidenceSearch { evidence: &evidence, learned, held: &held };
    let wide: Vec<usize> =
        (0..model.weights.blocks().len()).filter(|k| model.weights.blocks()[*k].positions() > 1).collect();
    let mut out = Trace {
        name: name.into(),
        blocks: wide.iter().map(|k| model.weights.blocks()[*k].name.clone()).collect(),
        log_variances: Vec::new(),
        log_lengthscales: Vec::new(),
        log_noise: Vec::new(),
        values: Vec::new(),
        end: held.clone(),
    };
    let mut theta = learned.pack(&held);
    let mut gradient = vec![0.0; theta.len()];
    let mut adam = Adaptive::adam(settings.learning_rate);
    for step in 0..settings.steps {
        context.step(name, step, settings.steps)?;
        let value = objective
            .value_and_gradient(&theta, &mut gradient)
            .map_err(|e| TomographyError::Optimiser(e.to_string()))?;
        let own = learned.unpack(&theta, &held);
        out.log_variances.push(wide.iter().map(|k| own.filters.log_variances[*k]).collect());
        out.log_lengthscales.push(wide.iter().map(|k| own.filters.log_lengthscales[*k]).collect());
        out.log_noise.push(own.log_noise_variance);
        out.values.push(-value);
        adam.step(&mut theta, &gradient, settings.steps);
    }
    out.end = learned.unpack(&theta, &held);
    Ok(out)
}

impl Trace {
    /// Hyperparameters of all blocks after the last step.
    pub(crate) fn end(&self) -> &ImageHyperparameters {
        &self.end
    }

    /// Variances and lengthscales by step.
    pub(crate) fn figures(&self) -> Vec<Item> {
        let drawn = |title: &str, rows: &[Vec<f64>]| -> Item {
            let line = |(k, block): (usize, &String)| by_step(block, rows.iter().map(|row| row[k].exp()));
            let lines = self.blocks.iter().enumerate().map(line).collect();
            let title = format!("{title} by {}", self.name);
            Curves::new(title, "steps", "", lines).logarithmic(false, true).into()
        };
        vec![drawn("Lengthscales", &self.log_lengthscales), drawn("Prior variances", &self.log_variances)]
    }
}

/// Where the searches ended.
pub(crate) fn numbers(traces: &[Trace]) -> Value {
    let mut out = Map::new();
    for trace in traces {
        let last = |rows: &[Vec<f64>]| rows.last().cloned().unwrap_or_default();
        let variances = last(&trace.log_variances);
        let gone = variances.iter().filter(|v| **v <= LEAST_LOG_VARIANCE).count();
        let own = json!({
            "log_lengthscale": mean(last(&trace.log_lengthscales)),
            "log_variance": mean(variances.iter().copied()),
            "least_variances": gone,
            "log_noise": trace.log_noise.last(),
            "value": trace.values.last(),
        });
        out.insert(trace.name.clone(), own);
    }
    Value::Object(out)
}

/// The same as a table.
pub(crate) fn table() -> NumberTable {
    NumberTable::by_name(
        "Where searches end",
        "search",
        "roughness.traces",
        NAMES,
        &[
            ("log_lengthscale", "mean log lengthscale"),
            ("log_variance", "mean log variance"),
            ("least_variances", "variances at their least"),
            ("log_noise", "log noise variance"),
            ("value", "what was maximised, nats"),
        ],
        "Blocks with filters of several positions. The two maximise different sums and their values cannot be compared.",
    )
}
