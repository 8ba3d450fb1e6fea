//! **The angles of a scan**, chosen one by one by what is not known of the picture, against equidistant and random ones.
//!
//! Serves the choice of angles in Antorán's thesis (2024, section 7.5: figures 7.17 to 7.22; spec `tomography`, sections 9 and 10, E7): random rectangles, each with a direction of its own, a pilot scan of a few
//! equidistant angles, and designs by several priors. Whatever chose them, the measurements are then turned into pictures in the same three ways.
//!
//! | file | what |
//! |---|---|
//! | `settings` | what a file says |
//! | `problem` | an image, scanned once at all candidate angles |
//! | `network` | the deep image prior: trained, kept, and what tangents are taken of |
//! | `prior` | roots of covariances |
//! | `known` | what the methods of one image share |
//! | `design` | one design |
//! | `scores` | its pictures |
//! | `report`, `pictures` | means over images; one image |

mod design;
mod known;
mod network;
mod pictures;
mod prior;
mod problem;
mod report;
mod scores;
mod settings;
#[cfg(test)]
mod tests;

use crate::kinds::prelude::*;
use known::Known;
use scores::ScoredDesign;
pub(crate) use settings::Settings;

/// Every method on every image; each is a part that is kept.
///
/// # Errors
/// Those of the parts; interruption.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let mut all: Vec<Vec<ScoredDesign>> = vec![Vec::new(); settings.methods.len()];
    let (mut figures, common) = (Vec::new(), settings.common());
    for image in 0..settings.images {
        let mut known = Known::new(settings, context.seed, image)?;
        if image == 0 {
            let choices: Vec<_> = settings.methods.iter().map(|m| m.choice).collect();
            let stage = "image 0: its priors";
            let looks = context
                .once(stage, &(&common, choices), |context| pictures::looks(&mut known, stage, context))?;
            figures = looks.items(settings.scan.side);
        }
        for (method, courses) in settings.methods.iter().zip(&mut all) {
            if image >= settings.images_of(method) {
                continue;
            }
            let stage = format!("image {image}, {}", method.name);
            let depends = (image, method.choice, method.acquisition, &common);
            courses.push(
                context.once(&stage, &depends, |context| scores::run(&mut known, method, &stage, context))?,
            );
        }
    }
    figures.extend(report::curves(settings, &all)?);
    figures.push(pictures::first_angles(settings, &all));
    figures.extend(pictures::worth(settings, &all));
    let fact = |name: &str, value: String| SummaryRow::new(name, value);
    let (scan, design) = (&settings.scan, &settings.design);
    Ok(Measured {
        numbers: report::numbers(settings, &all)?,
        series: report::series(settings, &all),
        tables: report::tables(settings),
        figures,
        facts: vec![
            fact("Images", format!("{} of {} x {} pixels", settings.images, scan.side, scan.side)),
            fact("Angles", format!("{} to {} of {}", scan.pilot, design.most, scan.candidates)),
            fact("Draws", design.samples.to_string()),
        ],
        ..Measured::default()
    })
}
