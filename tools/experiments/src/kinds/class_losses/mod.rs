//! Classifiers trained with several losses on the same rows: cross-entropy, classes as Gaussian numbers under several matchings and pseudo-counts, squares on one-hot labels.
//!
//! Serves figures 2, 9 and 10 and the form of tables 1 and 4 of Bui, *Likelihood approximations via Gaussian approximate inference* (spec `likelihood_approximations`).
//! Probabilities are the softmax of the outputs, whatever the loss. All methods begin with the same weights and see the rows in the same order.
//!
//! | file | what |
//! |---|---|
//! | `data` | points of the plane, images, features of a trained network |
//! | `scored` | one classifier, trained and scored |
//! | `figures` | scores by epoch, decision maps |

mod data;
mod figures;
mod scored;

use crate::kinds::prelude::*;
use crate::training::{TrainingSettings, architecture};
use data::{DataSettings, Problem, open_images};
use posterior_networks::Precision;
use posterior_networks::train::Loss;
use scored::{Found, score};
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: DataSettings,
    network: Table,
    training: TrainingSettings,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

/// One `[[method]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct MethodSettings {
    /// Its name in tables.
    name: String,
    /// What its network minimises.
    loss: Loss,
}

impl MethodSettings {
    /// Methods of one family differ in their pseudo-count.
    fn family(&self) -> &'static str {
        match self.loss {
            Loss::Gaussianised(own) => own.matching().name(),
            loss => loss.name(),
        }
    }
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("method", self.methods.iter().map(|m| m.name.as_str()))?;
        self.data.check()?;
        if let Some(method) = self.methods.iter().find(|m| !m.loss.takes_classes()) {
            return refused(format!("[[method]] `{}`: the loss is not one of classes", method.name));
        }
        let outputs: usize = architecture(&self.network)?.graph()?.output_shape().iter().product();
        if outputs != self.data.classes() {
            return refused(format!("[network] has {outputs} outputs for {} classes", self.data.classes()));
        }
        Ok(())
    }
}

/// By what one of a family is chosen.
const CHOICES: [(&str, &str); 2] =
    [("by_train_nll", "least NLL of the training labels"), ("by_accuracy", "highest accuracy on test rows")];

/// Trains and scores every method.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    match &settings.data {
        DataSettings::Points(own) => run_in::<f64>(settings, context, &mut |_| own.open()),
        DataSettings::Images(own) => run_in::<f32>(settings, context, &mut |c| open_images(own, c.folder)),
        DataSettings::Features(own) => run_in::<f64>(settings, context, &mut |c| own.open(c)),
    }
}

fn run_in<T: Precision>(
    settings: &Settings,
    context: &mut Context<'_>,
    open: &mut dyn FnMut(&mut Context<'_>) -> Result<Problem<T>>,
) -> Result<Measured> {
    let recipe = (&settings.network, &settings.training);
    let classes = settings.data.classes();
    // Read when the first part asks for it: a run that has all its parts needs none, but for the points of a map.
    let mut problem = None;
    let mut scored: Vec<(&MethodSettings, Found)> = Vec::new();
    for method in &settings.methods {
        let depends = (&settings.data, recipe, method);
        let found = context.once(&method.name, &depends, |context| {
            let problem = made(&mut problem, || open(context))?;
            score(problem, recipe, method, classes, context)
        })?;
        scored.push((method, found));
    }
    let numbers: Map<String, Value> =
        scored.iter().map(|(method, found)| (method.name.clone(), json!(found.scores))).collect();
    let best = best(&scored);
    if scored.iter().any(|(_, found)| found.map.is_some()) {
        made(&mut problem, || open(context))?;
    }
    let plane = problem.and_then(|problem| problem.plane);
    let mut figures = figures::by_epoch(&scored, &best);
    figures.extend(plane.and_then(|grid| figures::maps(&scored, grid)));
    let series = scored.iter().map(|(m, f)| (m.name.clone(), json!(f.epochs)));
    Ok(Measured {
        numbers: json!({"methods": numbers, "best": chosen(&scored, &best)}),
        series: Value::Object(series.collect()),
        tables: tables(&scored, &best),
        figures,
        facts: vec![SummaryRow::new("Network", settings.network.to_string().trim().replace('\n', ", "))],
        ..Measured::default()
    })
}

/// Families in the order of the file, with the method that each choice takes.
fn best(scored: &[(&MethodSettings, Found)]) -> Vec<(&'static str, [usize; 2])> {
    let mut families: Vec<(&'static str, [usize; 2])> = Vec::new();
    for (i, (method, found)) in scored.iter().enumerate() {
        match families.iter_mut().find(|f| f.0 == method.family()) {
            None => families.push((method.family(), [i; 2])),
            Some((_, [by_nll, by_accuracy])) => {
                if found.scores.train_nll < scored[*by_nll].1.scores.train_nll {
                    *by_nll = i;
                }
                if found.scores.accuracy > scored[*by_accuracy].1.scores.accuracy {
                    *by_accuracy = i;
                }
            }
        }
    }
    families
}

/// The numbers of what is chosen.
fn chosen(scored: &[(&MethodSettings, Found)], best: &[(&'static str, [usize; 2])]) -> Value {
    let family = |(name, own): &(&'static str, [usize; 2])| {
        let each = CHOICES.iter().zip(own).map(|((key, _), i)| {
            let (method, found) = &scored[*i];
            let mut numbers = json!(found.scores);
            numbers["method"] = method.name.clone().into();
            if let Loss::Gaussianised(loss) = method.loss {
                numbers["pseudo_count"] = loss.pseudo_count().into();
            }
            ((*key).to_string(), numbers)
        });
        ((*name).to_string(), Value::Object(each.collect()))
    };
    Value::Object(best.iter().map(family).collect())
}

fn tables(scored: &[(&MethodSettings, Found)], best: &[(&'static str, [usize; 2])]) -> Vec<NumberTable> {
    let foreign = scored.first().into_iter().flat_map(|(_, found)| found.scores.foreign.keys());
    let foreign: Vec<(String, String)> = foreign
        .flat_map(|name| {
            [("by_probability", "probability"), ("by_logit", "logit")]
                .map(|(key, what)| (format!("foreign.{name}.{key}"), format!("{name}: AUC by {what}")))
        })
        .collect();
    let mut columns = vec![
        ("accuracy", "accuracy"),
        ("nll", "NLL"),
        ("ece", "ECE"),
        ("confidence", "mean confidence"),
        ("ceiling", "ceiling"),
        ("train_nll", "NLL of training labels"),
    ];
    columns.extend(foreign.iter().map(|(key, head)| (key.as_str(), head.as_str())));
    let names = scored.iter().map(|(m, _)| m.name.as_str());
    let caption = "Test rows after the last epoch. ECE: 15 bins by mean confidence. The ceiling is the confidence of a network that meets its targets. AUC: foreign inputs told from test rows by a small largest probability, or a small largest output.";
    let mut tables = vec![NumberTable::by_name("All losses", "loss", "methods", names, &columns, caption)];
    if best.len() < scored.len() {
        columns.insert(0, ("pseudo_count", "pseudo-count"));
        for (choice, words) in CHOICES {
            let title = format!("Of each loss the pseudo-count with the {words}");
            let keys: Vec<String> = columns.iter().map(|(key, _)| format!("{choice}.{key}")).collect();
            let own: Vec<(&str, &str)> =
                keys.iter().map(String::as_str).zip(columns.iter().map(|c| c.1)).collect();
            let caption = match choice {
                "by_accuracy" => {
                    "As the published tables choose: test rows have a say, which flatters a little."
                }
                _ => "No test row has a say.",
            };
            let families = best.iter().map(|(name, _)| *name);
            tables.push(NumberTable::by_name(&title, "loss", "best", families, &own, caption));
        }
    }
    tables
}
