//! Numbers, tables and pictures of streams.

use super::method::{MethodSettings, Point, Shared, VariantResult};
use super::stream::{Stream, StreamSettings};
use crate::kinds::prelude::*;
use posterior_report::{Plane, PlaneKind, PlanePanel};

/// A method's courses by the number of each variant.
pub(super) struct Own<'a> {
    pub(super) method: &'a MethodSettings,
    pub(super) courses: Vec<(f64, VariantResult)>,
}

impl Own<'_> {
    /// The variant that predicted the first rows best.
    fn chosen(&self) -> &(f64, VariantResult) {
        &self.courses[self.best()]
    }

    /// Its place among the variants.
    pub(super) fn best(&self) -> usize {
        let of = |i: &usize| self.courses[*i].1.ahead;
        let best = (0..self.courses.len()).max_by(|a, b| of(a).total_cmp(&of(b)).then(b.cmp(a)));
        best.unwrap_or(0)
    }
}

/// What all methods did on one stream.
pub(super) struct Found<'a> {
    stream: &'a StreamSettings,
    methods: Vec<Own<'a>>,
    planes: Vec<Plane>,
}

impl<'a> Found<'a> {
    pub(super) fn new(
        stream: &'a StreamSettings,
        methods: Vec<Own<'a>>,
        plane: Option<(&Stream, Vec<VariantResult>)>,
    ) -> Result<Self> {
        if methods.iter().flat_map(|m| &m.courses).any(|(_, course)| course.points.is_empty()) {
            return refused(format!("[[stream]] `{}` is shorter than the first of `points`", stream.name));
        }
        let planes =
            plane.map_or_else(Vec::new, |(plane, maps)| planes(&stream.name, &methods, plane, &maps));
        Ok(Self { stream, methods, planes })
    }

    fn name(&self) -> &str {
        &self.stream.name
    }
}

/// Names in paths have no points.
fn key(value: f64) -> String {
    value.to_string().replace('.', "_")
}

fn at(point: &Point) -> String {
    format!("n {}", point.rows)
}

fn numbers(course: &VariantResult) -> Map<String, Value> {
    let scores = |accuracy: f64, log_likelihood: f64| json!({ "accuracy": accuracy, "log_likelihood": log_likelihood });
    let mut out: Map<String, Value> =
        course.points.iter().map(|p| (at(p), scores(p.accuracy, p.log_likelihood))).collect();
    let count = course.points.len() as f64;
    let mean = |of: &dyn Fn(&Point) -> f64| course.points.iter().map(of).sum::<f64>() / count;
    out.insert("average".into(), scores(mean(&|p| p.accuracy), mean(&|p| p.log_likelihood)));
    if let Some(last) = course.points.last() {
        out.insert("last".into(), scores(last.accuracy, last.log_likelihood));
    }
    let best = course.points.iter().map(|p| p.log_likelihood).fold(f64::NEG_INFINITY, f64::max);
    out.insert("best_log_likelihood".into(), json!(best));
    out.insert("ahead".into(), json!(course.ahead));
    out.insert("skipped".into(), json!(course.skipped));
    out.insert("seconds".into(), json!(course.seconds));
    out
}

pub(super) fn measured(all: &[Found<'_>], shared: &Shared) -> Measured {
    let mut out = Measured::default();
    let (mut streams, mut series) = (Map::new(), Map::new());
    for found in all {
        let (mut methods, mut lines) = (Map::new(), Map::new());
        for own in &found.methods {
            let (value, course) = own.chosen();
            let mut entry = numbers(course);
            entry.insert("chosen".into(), json!(value));
            let variants: Map<String, Value> =
                own.courses.iter().map(|(v, c)| (key(*v), Value::Object(numbers(c)))).collect();
            entry.insert("variants".into(), Value::Object(variants));
            methods.insert(own.method.name.clone(), Value::Object(entry));
            let variants = own.courses.iter().map(|(v, c)| (key(*v), json!(c.points)));
            lines.insert(own.method.name.clone(), Value::Object(variants.collect()));
            let skipped = course.skipped;
            if skipped > 0 {
                out.notes.push(Note::information(format!(
                    "`{}`, {}: {skipped} updates of single functions were passed over, whose moments were none",
                    found.name(),
                    own.method.name
                )));
            }
        }
        streams.insert(found.name().into(), Value::Object(methods));
        series.insert(found.name().into(), Value::Object(lines));
        out.figures.extend(curves(found, shared));
        out.figures.extend(found.planes.iter().cloned().map(Item::Plane));
        out.tables.extend(tables(found));
    }
    out.numbers = json!({ "streams": streams });
    out.series = Value::Object(series);
    out
}

/// Accuracy and log likelihood of the chosen variants by rows seen.
fn curves(found: &Found<'_>, shared: &Shared) -> Vec<Item> {
    let lines = |of: &dyn Fn(&Point) -> f64| -> Vec<Line> {
        let line = |own: &Own<'_>| {
            let (value, course) = own.chosen();
            let points = course.points.iter().map(|p| (p.rows as f64, of(p)));
            through(format!("{} ({} {value})", own.method.name, own.method.parameter()), points)
        };
        found.methods.iter().map(line).collect()
    };
    let caption = format!(
        "Each row is seen once. Of each method the variant that predicted the first {} rows best before it learned them.",
        shared.choose_rows
    );
    let likelihood = lines(&|p| p.log_likelihood);
    let top = likelihood.iter().flat_map(|l| &l.y).copied().fold(f64::NEG_INFINITY, f64::max);
    let picture = |title: &str, y: &str, lines: Vec<Line>| {
        Curves::new(format!("{}: {title}", found.name()), "rows seen", y, lines)
            .logarithmic(true, false)
            .captioned(&caption)
    };
    let mut second = picture("log likelihood", "mean log probability of test rows, nats", likelihood);
    // Methods that are sure and wrong would press all others together.
    second.y_range = Some((top - 2.5, top + 0.1));
    vec![picture("accuracy", "accuracy on test rows", lines(&|p| p.accuracy)).into(), second.into()]
}

/// The chosen variants along the way; all variants at the end.
fn tables(found: &Found<'_>) -> Vec<NumberTable> {
    let points: Vec<&Point> =
        found.methods.first().map_or_else(Vec::new, |m| m.chosen().1.points.iter().collect());
    // The first, the last, and three between them.
    let mut shown: Vec<usize> = (0..5).map(|k| k * points.len().saturating_sub(1) / 4).collect();
    shown.dedup();
    let prefix = |own: &Own<'_>| format!("streams.{}.{}", found.name(), own.method.name);
    let mut head: Vec<String> = vec!["method".into(), "chosen".into()];
    for i in &shown {
        head.push(format!("accuracy after {}", points[*i].rows));
        head.push("log likelihood".into());
    }
    head.extend(["of the first rows, ahead".into(), "seconds to learn".into()]);
    let row = |own: &Own<'_>| {
        let prefix = prefix(own);
        let mut cells = vec![format!("{prefix}.chosen")];
        for i in &shown {
            let at = at(points[*i]);
            cells.extend([format!("{prefix}.{at}.accuracy"), format!("{prefix}.{at}.log_likelihood")]);
        }
        cells.extend([format!("{prefix}.ahead"), format!("{prefix}.seconds")]);
        (format!("{} ({})", own.method.name, own.method.parameter()), cells)
    };
    let chosen = NumberTable {
        title: format!("{}: along the way", found.name()),
        head,
        rows: found.methods.iter().map(row).collect(),
        caption: "Log likelihoods are means over test rows, nats.".into(),
    };
    let variant = |own: &Own<'_>| -> Vec<(String, Vec<String>)> {
        let each = |(value, _): &(f64, VariantResult)| {
            let prefix = format!("{}.variants.{}", prefix(own), key(*value));
            let columns = ["last.accuracy", "last.log_likelihood", "best_log_likelihood", "ahead"];
            let cells = columns.iter().map(|c| format!("{prefix}.{c}")).collect();
            (format!("{}, {} {value}", own.method.name, own.method.parameter()), cells)
        };
        own.courses.iter().map(each).collect()
    };
    let texts = [
        "variant",
        "accuracy at the end",
        "log likelihood at the end",
        "at its best",
        "of the first rows, ahead",
    ];
    let variants = NumberTable {
        title: format!("{}: all variants", found.name()),
        head: texts.map(String::from).to_vec(),
        rows: found.methods.iter().flat_map(variant).collect(),
        caption: "Ahead: each of the first rows was predicted before it was learned. The largest of a method chooses its variant.".into(),
    };
    vec![chosen, variants]
}

/// Entropies over the plane at three points of the way, a panel for each method.
fn planes(name: &str, methods: &[Own<'_>], stream: &Stream, maps: &[VariantResult]) -> Vec<Plane> {
    let (Some(grid), Some(points)) = (&stream.grid, &stream.points) else { return Vec::new() };
    let count = methods.first().map_or(0, |m| m.chosen().1.points.len());
    let mut shown = vec![0, count / 2, count.saturating_sub(1)];
    shown.dedup();
    let plane = |&i: &usize| {
        let rows = methods[0].chosen().1.points[i].rows;
        let panel = |(own, map): (&Own<'_>, &VariantResult)| {
            let entropies = map.entropies.get(i).cloned().unwrap_or_default();
            PlanePanel::new(own.method.name.clone(), PlaneKind::Amount, entropies)
        };
        Plane {
            title: format!("{name}: entropy after {rows} rows"),
            x: "first coordinate".into(),
            y: "second coordinate".into(),
            grid_x: grid.axis.clone(),
            grid_y: grid.axis.clone(),
            panels: methods.iter().zip(maps).map(panel).collect(),
            points_x: (0..rows).map(|r| points[(r, 0)]).collect(),
            points_y: (0..rows).map(|r| points[(r, 1)]).collect(),
            points_class: stream.labels[..rows].to_vec(),
            caption: "Entropy of the predicted class: where nothing was seen, a method that knows what it does not know is not sure.".into(),
        }
    };
    if count == 0 { Vec::new() } else { shown.iter().map(plane).collect() }
}
