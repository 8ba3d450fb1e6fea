//! Images of each class that are chosen as inducing points: by chance, and by greedy variance under kernels on pixels or behind networks, which may have learned to tell the classes apart. Pictures of what was chosen, and what it explains of the rest.
//!
//! Serves figures 3.1, 5.1, 5.2 and 5.3 of Wu's *Generalised variational inference for Gaussian processes* (spec `generalised_variational_inference`, sections 16.2 and 16.3).
//!
//! | file | idea |
//! |---|---|
//! | `classes` | images, class by class |
//! | `method` | ways to choose: kernels on pixels, kernels behind networks |
//! | `chosen` | choices, and what they are under the kernel that made them |
//! | `pixels` | what they are as pictures, whatever chose them |
//! | `mosaic` | the figure |

mod chosen;
mod classes;
mod method;
mod mosaic;
mod pixels;

use crate::kinds::prelude::*;
use crate::numbers::averages;
use chosen::{Chosen, Learned};
use classes::{ClassImages, DataSettings};
use method::MethodSettings;
use pixels::Reference;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: DataSettings,
    /// Images chosen of each class.
    points: usize,
    /// Networks by name, each a description as in architecture files.
    #[serde(default)]
    networks: Table,
    learning: LearningSettings,
    /// Ways to choose, one after the other.
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

/// The table `[learning]`, of methods with `epochs`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct LearningSettings {
    /// Turns of learning; images are chosen before each and after the last.
    turns: usize,
    /// The step size of AdaBelief.
    rate: f64,
    /// The mean negative log probability of labels at which a turn ends.
    least_risk: f64,
    /// How often a label is wrong.
    error_rate: f64,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        self.data.check()?;
        let (points, images) = (self.points, self.data.images);
        if points == 0 || points > images {
            return refused(format!(
                "`points` is {points}: at least one image of a class is chosen, and no more than the {images} that there are ([data]: `images`)"
            ));
        }
        let LearningSettings { turns, rate, least_risk, error_rate } = self.learning;
        if !((1..=100).contains(&turns) && positive(rate)) || least_risk.is_nan() {
            return refused(
                "[learning]: `turns` are from 1 to 100, `rate` is positive, `least_risk` a number",
            );
        }
        if !(error_rate > 0.0 && error_rate < 1.0) {
            return refused("[learning]: `error_rate` is between 0 and 1");
        }
        if !each_once(&self.methods.iter().map(|m| &m.name).collect::<Vec<_>>()) {
            return refused("there is at least one [[method]], and no `name` twice");
        }
        self.methods.iter().try_for_each(|method| method.check(&self.networks))
    }
}

/// What a method chose of every class, and what its learning came to.
struct Gallery {
    chosen: Vec<Chosen>,
    learned: Vec<Learned>,
}

impl Gallery {
    fn of(
        settings: &Settings,
        method: &MethodSettings,
        images: &ClassImages,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        let (chosen, learned) = match method.epochs {
            Some(_) => chosen::learn(settings, method, images, context)?,
            None => (chosen::choose(settings, method, images, context)?, Vec::new()),
        };
        Ok(Self { chosen, learned })
    }

    /// Numbers, on average over classes and class by class.
    fn numbers(&self, settings: &Settings, references: &[Reference], streams: Streams) -> Result<Value> {
        let mut classes = Vec::new();
        for (class, (choice, reference)) in self.chosen.iter().zip(references).enumerate() {
            let found = reference.judge(&choice.rows)?;
            let chance = chosen::by_chance(settings.data.images, settings.points, (class, streams));
            let shared = choice.rows.iter().filter(|row| chance.contains(row)).count();
            let by_chance = reference.judge(&chance)?;
            let mut own = json!({
                "points": choice.rows.len() as f64,
                "pixels_explained": found.explained,
                "pixels_over_random": found.explained / by_chance.explained,
                "ink": found.ink,
                "spread": found.spread,
                "shared_with_random": shared as f64,
            });
            if let Some([chosen, chance]) = choice.judged {
                own["explained"] = chosen.explained.into();
                own["explained_by_random"] = chance.explained.into();
                own["worst"] = chosen.worst.into();
                own["worst_by_random"] = chance.worst.into();
                own["correlation"] = chosen.correlation.into();
                own["correlation_by_random"] = chance.correlation.into();
            }
            classes.push(own);
        }
        let (mut out, _) = averages(&classes);
        let each = classes.into_iter().enumerate().map(|(class, own)| (class.to_string(), own));
        out["classes"] = Value::Object(each.collect());
        if let (Some(first), Some(last)) = (self.learned.first(), self.learned.last()) {
            out["first_risk"] = first.risk.into();
            out["risk"] = last.risk.into();
            out["kept"] = first.kept.into();
            out["steps"] = self.learned.iter().map(|turn| turn.steps).sum::<usize>().into();
        }
        Ok(out)
    }
}

/// Chooses by every method and shows what was chosen.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let streams = Streams::new(context.seed);
    let images = settings.data.read(context.folder)?;
    // What does not fit is refused before anything is computed.
    for method in &settings.methods {
        method.prior(&settings.networks, &images, (0, streams))?;
    }
    let references: Vec<Reference> =
        (0..images.classes()).map(|class| Reference::of(&images, class)).collect();
    let mut measured = Measured::default();
    let (mut numbers, mut series) = (Map::new(), Map::new());
    for method in &settings.methods {
        let gallery = Gallery::of(settings, method, &images, context)?;
        numbers.insert(method.name.clone(), gallery.numbers(settings, &references, streams)?);
        let rows: Vec<&Vec<usize>> = gallery.chosen.iter().map(|choice| &choice.rows).collect();
        series.insert(method.name.clone(), json!(rows));
        measured.figures.push(mosaic::mosaic(&method.name, &images, &gallery.chosen, settings.points));
    }
    measured.tables = tables(settings);
    let [height, width] = images.sides;
    measured.facts.push(SummaryRow::new(
        "images",
        format!(
            "{} of each of {} classes, {height} x {width} pixels; {} chosen of each class",
            settings.data.images,
            images.classes(),
            settings.points
        ),
    ));
    measured.numbers = json!({ "methods": numbers });
    measured.series = Value::Object(series);
    Ok(measured)
}

fn tables(settings: &Settings) -> Vec<NumberTable> {
    let names = |with: &dyn Fn(&MethodSettings) -> bool| -> Vec<&str> {
        settings.methods.iter().filter(|m| with(m)).map(|m| m.name.as_str()).collect()
    };
    let mut out = vec![NumberTable::by_name(
        "What was chosen, as pictures",
        "method",
        "methods",
        names(&|_| true),
        &[
            ("points", "images"),
            ("pixels_explained", "explained variance of pixels"),
            ("pixels_over_random", "over that of chance"),
            ("ink", "mean pixel over the class's"),
            ("spread", "variance between them over the class's"),
            ("shared_with_random", "chosen by chance as well"),
        ],
        "On average over classes. Explained: the share of the variance of the class's pixels in the span of the chosen images, all about the class's mean.",
    )];
    let greedy = names(&|method| method.kernel.is_some());
    if !greedy.is_empty() {
        out.push(NumberTable::by_name(
            "What was chosen, under the kernel that chose",
            "method",
            "methods",
            greedy,
            &[
                ("explained", "explained trace"),
                ("explained_by_random", "by chance"),
                ("worst", "largest variance left"),
                ("worst_by_random", "by chance"),
                ("correlation", "largest correlation"),
                ("correlation_by_random", "by chance"),
            ],
            "On average over classes, beside as many images by chance under the same kernel. Explained: the share of the trace of the class's kernel matrix; if all images were uncorrelated, that of the chosen among them. The largest variance left is over the largest at first, and what greedy choice lowers; the largest correlation is between two of the chosen.",
        ));
    }
    let learned = names(&|method| method.epochs.is_some());
    if !learned.is_empty() {
        out.push(NumberTable::by_name(
            "Learning",
            "method",
            "methods",
            learned,
            &[
                ("first_risk", "risk of the first turn"),
                ("risk", "of the last"),
                ("steps", "steps"),
                ("kept", "images that were chosen before learning, too"),
            ],
            "The risk is the mean negative log probability of the labels of all inducing points under the processes on them.",
        ));
    }
    out
}

#[cfg(test)]
mod tests;
