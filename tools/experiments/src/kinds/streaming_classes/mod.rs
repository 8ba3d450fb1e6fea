//! Classifiers that see every row of a stream once: accuracy and log likelihood of test rows by the number of rows seen.
//!
//! Each method has one number to be set (pseudo-count, noise, damping, step size). Which of its variants stands for it is chosen by how well it predicts the stream's own first rows before it learns them; test rows have no part in it.
//!
//! Serves figures 4, 14 and 15 of *Likelihood approximations via Gaussian approximate inference*.
//!
//! | file | what |
//! |---|---|
//! | `stream` | rows and their features |
//! | `method` | what learns, and how it is scored on the way |
//! | `report` | numbers, tables and pictures |

mod assumed_density;
mod descent;
mod labels;
mod method;
mod report;
mod stream;

use crate::kinds::prelude::*;
use method::{MethodSettings, Shared};
use report::{Found, Own};
use stream::StreamSettings;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Everyone is scored after so many rows, ascending; a stream that is shorter ends at the last of them that it has.
    points: Vec<usize>,
    /// Variants are chosen on so many first rows of a stream, by which its features are scaled, too.
    choose_rows: usize,
    /// Rows that are predicted there before they are learned together.
    batch: usize,
    /// Prior variance of each function, at features of mean square 1.
    prior_variance: f64,
    #[serde(rename = "stream")]
    streams: Vec<StreamSettings>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("stream", self.streams.iter().map(|s| s.name.as_str()))?;
        check_names("method", self.methods.iter().map(|m| m.name.as_str()))?;
        self.streams.iter().try_for_each(StreamSettings::check)?;
        self.methods.iter().try_for_each(MethodSettings::check)?;
        if self.points.first().is_none_or(|n| *n == 0) || !self.points.is_sorted_by(|a, b| a < b) {
            return refused("`points` are numbers of rows, ascending, at least one");
        }
        if self.choose_rows == 0 || self.batch == 0 {
            return refused("`choose_rows` and `batch` are at least 1");
        }
        if !positive(self.prior_variance) {
            return refused("`prior_variance` is positive");
        }
        Ok(())
    }
}

/// All methods on all streams.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let shared = Shared {
        points: settings.points.clone(),
        choose_rows: settings.choose_rows,
        batch: settings.batch,
        prior_variance: settings.prior_variance,
    };
    let mut all = Vec::new();
    for stream in &settings.streams {
        let mut opened = None;
        let mut methods = Vec::new();
        for method in &settings.methods {
            let mut courses = Vec::new();
            for (value, variant) in method.variants()? {
                let stage = format!("`{}`: {} {value}", stream.name, method.name);
                let depends = (stream, &shared, variant);
                let course = context.once(&stage, &depends, |context| {
                    let stream = made(&mut opened, || stream.open(shared.choose_rows, context))?;
                    variant.course(stream, &shared, false, &stage, context)
                })?;
                courses.push((value, course));
            }
            methods.push(Own { method, courses });
        }
        let mut plane = None;
        if stream.is_plane() {
            // Once more, for the pictures of those that were chosen.
            let opened = made(&mut opened, || stream.open(shared.choose_rows, context))?;
            let mut maps = Vec::new();
            for own in &methods {
                let (value, variant) = own.method.variants()?[own.best()];
                let stage = format!("`{}`: picture of {} {value}", stream.name, own.method.name);
                maps.push(context.once(&stage, &(stream, &shared, variant), |context| {
                    variant.course(opened, &shared, true, &stage, context)
                })?);
            }
            plane = Some((&*opened, maps));
        }
        all.push(Found::new(stream, methods, plane)?);
    }
    Ok(report::measured(&all, &shared))
}
