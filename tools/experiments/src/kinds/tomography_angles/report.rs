//! Means over images: numbers, tables and curves by number of angles.

use super::scores::ScoredDesign;
use super::settings::{Choice, MethodSettings, Settings};
use crate::kinds::prelude::*;
use posterior_metrics::Average;
use posterior_tomography::design::Acquisition;
use std::collections::BTreeSet;

/// PSNR by number of angles of one course.
type Curve = Vec<(usize, f64)>;

/// A way to score a course.
struct Way {
    key: &'static str,
    title: &'static str,
    of: fn(&ScoredDesign) -> Curve,
}

/// All of them.
const WAYS: [Way; 4] = [
    Way { key: "total_variation", title: "total variation", of: |c| c.total_variation.clone() },
    Way { key: "linearised", title: "linear model of the pilot's network", of: |c| c.linearised.clone() },
    Way {
        key: "network",
        title: "deep image prior at its lowest loss",
        of: |c| c.networks.iter().map(|n| (n.angles, n.quality)).collect(),
    },
    Way {
        key: "network_with_truth",
        title: "deep image prior, its best iterate chosen with the truth",
        of: |c| c.networks.iter().map(|n| (n.angles, n.quality_with_truth)).collect(),
    },
];

/// The value of a curve at a number of angles, on the line between its neighbours where there is none.
pub(super) fn interpolated(curve: &[(usize, f64)], angles: usize) -> Option<f64> {
    let before = curve.iter().rev().find(|(n, _)| *n <= angles)?;
    let after = curve.iter().find(|(n, _)| *n >= angles)?;
    let width = after.0 - before.0;
    let share = if width == 0 { 0.0 } else { (angles - before.0) as f64 / width as f64 };
    Some(before.1 + share * (after.1 - before.1))
}

/// Values at a number of angles, image by image, of those images that have one.
fn at(courses: &[ScoredDesign], of: fn(&ScoredDesign) -> Curve, angles: usize) -> Vec<(usize, f64)> {
    let value =
        |course: &ScoredDesign| of(course).iter().find(|(n, _)| *n == angles).map(|(_, value)| *value);
    courses.iter().enumerate().filter_map(|(image, course)| Some((image, value(course)?))).collect()
}

/// Numbers of angles that any image has a score at.
fn counts(courses: &[ScoredDesign], of: fn(&ScoredDesign) -> Curve) -> BTreeSet<usize> {
    courses.iter().flat_map(of).map(|(angles, _)| angles).collect()
}

/// PSNR, and what it is above that of equidistant angles on the same images, by way, method and number of angles.
///
/// # Errors
/// Numbers that are not finite.
pub(super) fn numbers(settings: &Settings, all: &[Vec<ScoredDesign>]) -> Result<Value> {
    let even = settings.methods.iter().position(|m| m.choice == Choice::Equidistant);
    let mut out = Map::new();
    for way in &WAYS {
        let mut methods = Map::new();
        for (method, courses) in settings.methods.iter().zip(all) {
            let mut own = Map::new();
            for angles in counts(courses, way.of) {
                let values = at(courses, way.of, angles);
                let only: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
                put(&mut own, &format!("angles_{angles}"), &only)?;
                let Some(even) = even.filter(|_| method.choice != Choice::Equidistant) else { continue };
                let margin = |(image, value): &(usize, f64)| {
                    let course = all[even].get(*image)?;
                    Some(value - interpolated(&(way.of)(course), angles)?)
                };
                let margins: Vec<f64> = values.iter().filter_map(margin).collect();
                if !margins.is_empty() {
                    put(&mut own, &format!("margin_{angles}"), &margins)?;
                }
            }
            methods.insert(method.name.clone(), Value::Object(own));
        }
        out.insert(way.key.into(), Value::Object(methods));
    }
    let mut designs = Map::new();
    for (method, courses) in settings.methods.iter().zip(all) {
        let mut own = Map::new();
        put(&mut own, "seconds", &courses.iter().map(|c| c.seconds).collect::<Vec<f64>>())?;
        designs.insert(method.name.clone(), Value::Object(own));
    }
    out.insert("designs".into(), Value::Object(designs));
    Ok(Value::Object(out))
}

/// One table for each way of scoring, and one of seconds.
pub(super) fn tables(settings: &Settings) -> Vec<NumberTable> {
    let keys: Vec<(String, String)> = (settings.scores.table.iter())
        .flat_map(|n| {
            let shown = |what: &str| format!("{what}_{n}_shown");
            [(shown("angles"), format!("{n} angles")), (shown("margin"), format!("{n}: margin"))]
        })
        .collect();
    let columns: Vec<(&str, &str)> = keys.iter().map(|(key, head)| (key.as_str(), head.as_str())).collect();
    let names = || settings.methods.iter().map(|m| m.name.as_str());
    let caption = "PSNR in dB, means over images with standard errors; margins are over equidistant angles on the same images, whose curve is drawn straight between the counts that have an equidistant scan.";
    let of = |way: &Way| {
        let title = format!("Pictures by {}", way.title);
        NumberTable::by_name(&title, "angles by", way.key, names(), &columns, caption)
    };
    let mut tables: Vec<NumberTable> = WAYS.iter().map(of).collect();
    let columns = [("seconds_shown", "seconds of a design")];
    tables.push(NumberTable::by_name("Cost", "angles by", "designs", names(), &columns, "What methods share (the pilot's network, a stored covariance) is in the seconds of the first that asked for it."));
    tables
}

/// Mean curves: methods without a prior beside those of one acquisition.
///
/// # Errors
/// Numbers that are not finite.
pub(super) fn curves(settings: &Settings, all: &[Vec<ScoredDesign>]) -> Result<Vec<Item>> {
    let acquisitions = [
        (Acquisition::Variance, "angles by variance"),
        (Acquisition::Information, "angles by information"),
        (Acquisition::DiagonalInformation, "angles by diagonal information"),
    ];
    let mut out = Vec::new();
    for way in &WAYS {
        for (acquisition, name) in acquisitions {
            if !settings.methods.iter().any(|m| m.acquisition == Some(acquisition)) {
                continue;
            }
            let wanted = |m: &MethodSettings| m.acquisition.is_none_or(|own| own == acquisition);
            let mut lines = Vec::new();
            for (method, courses) in settings.methods.iter().zip(all).filter(|(m, _)| wanted(m)) {
                let mut line = Line { name: method.name.clone(), ..Line::default() };
                for angles in counts(courses, way.of) {
                    let values: Vec<f64> = at(courses, way.of, angles).iter().map(|v| v.1).collect();
                    let Average { mean, standard_error } = Average::of(&values)?;
                    line.x.push(angles as f64);
                    line.y.push(mean);
                    line.error.push(standard_error.unwrap_or(0.0));
                }
                lines.push(line);
            }
            let caption = "Means over images; bands are standard errors. A method that was followed on fewer images has its mean over these.";
            let title = format!("{}, {name}", way.title);
            out.push(Curves::new(title, "angles", "PSNR, dB", lines).captioned(caption).into());
        }
    }
    Ok(out)
}

/// Every course, for whoever draws them anew.
pub(super) fn series(settings: &Settings, all: &[Vec<ScoredDesign>]) -> Value {
    let of = |course: &ScoredDesign| {
        json!({
            "angles": course.design.chosen,
            "total_variation": course.total_variation,
            "linearised": course.linearised,
            "network": course.networks,
        })
    };
    let each = settings.methods.iter().zip(all);
    let lists =
        each.map(|(method, courses)| (method.name.clone(), Value::Array(courses.iter().map(of).collect())));
    Value::Object(lists.collect())
}
