//! Numbers, tables and figures.

use super::settings::{Axis, Entry, Goal, Quantity, Settings};
use super::trajectory::{Errors, Trajectory};
use crate::kinds::prelude::*;
use crate::numbers;

/// What was found at one noise level of a set.
pub(super) struct WithNoise {
    name: String,
    /// Errors and seconds of the factorisation, fold by fold.
    pub(super) exact: Vec<(Errors, f64)>,
    /// Courses by method, fold by fold.
    courses: Vec<Vec<Trajectory>>,
}

impl WithNoise {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), exact: Vec::new(), courses: Vec::new() }
    }

    /// A place for each method of the file.
    pub(super) fn courses(&mut self, settings: &Settings) -> impl Iterator<Item = &mut Vec<Trajectory>> {
        self.courses.resize_with(settings.methods.len(), Vec::new);
        self.courses.iter_mut()
    }
}

/// Results as they come in.
pub(super) struct Report<'a> {
    settings: &'a Settings,
    pub(super) out: Measured,
}

/// What every method has, whether it diverged or not.
const QUANTITIES: [numbers::Quantity<Trajectory>; 4] = [
    ("rise", "", |c| Some(c.rise)),
    ("diverged", "", |c| Some(f64::from(u8::from(c.diverged)))),
    ("steps", "steps", |c| Some(c.steps as f64)),
    ("seconds", "seconds", |c| Some(c.seconds)),
];

/// Means over folds. A method that diverged on any of them has no errors.
fn summary(courses: &[Trajectory], exact: &[(Errors, f64)], settings: &Settings) -> Result<Value> {
    let mut out = Map::new();
    put_all(&mut out, "", courses, &QUANTITIES)?;
    for (key, value) in [
        ("step_size", courses.iter().map(|c| c.step_size).collect::<Option<Vec<f64>>>()),
        ("largest_step", courses.iter().map(|c| c.largest_step).collect()),
        ("limit", courses.iter().map(|c| c.limit).collect()),
    ] {
        if let Some(values) = value {
            put(&mut out, key, &values)?;
        }
    }
    let diverged = courses.iter().any(|c| c.diverged);
    for (key, _, goal) in settings.goals() {
        // What is never reached has the passes that were made, which are fewer than it takes; what diverged has none.
        if diverged {
            out.insert(format!("{key}_shown"), json!("diverged"));
            continue;
        }
        let passes: Vec<(f64, bool)> = courses
            .iter()
            .zip(exact)
            .map(|(c, exact)| match goal {
                Goal::Residual(goal) => c.passes_to(goal),
                Goal::Nll(goal) => c.passes_to_nll(exact.0.of(Quantity::Nll) + goal),
            })
            .collect();
        put(&mut out, &key, &passes.iter().map(|p| p.0).collect::<Vec<f64>>())?;
        if passes.iter().any(|p| !p.1) {
            out.insert(format!("{key}_shown"), json!("not reached"));
        }
    }
    for (quantity, key, _) in Quantity::ALL {
        let last = courses.iter().map(|c| Some(c.points.last()?.errors.of(quantity)));
        match last.collect::<Option<Vec<f64>>>() {
            Some(values) if !diverged => put(&mut out, key, &values)?,
            _ => {
                out.insert(format!("{key}_shown"), json!("diverged"));
            }
        }
    }
    Ok(Value::Object(out))
}

fn line(entry: &Entry, trajectory: &Trajectory, axis: Axis, quantity: Quantity) -> Line {
    let x = |p: &super::trajectory::Point| match axis {
        Axis::Steps => p.step as f64,
        Axis::Passes => p.passes,
        Axis::Seconds => p.seconds,
    };
    let diverged = if trajectory.diverged { " (diverged)" } else { "" };
    Line::new(
        format!("{}{diverged}", entry.method.name),
        trajectory.points.iter().map(x).collect(),
        trajectory.points.iter().map(|p| p.errors.of(quantity)).collect(),
    )
}

impl<'a> Report<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self { settings, out: Measured::default() }
    }

    /// The results of a set.
    pub(super) fn add(&mut self, set: &str, by_noise: Vec<WithNoise>) -> Result<()> {
        for found in by_noise {
            let mut exact = Map::new();
            for (quantity, key) in [(Quantity::Rmse, "rmse"), (Quantity::Nll, "nll")] {
                put(&mut exact, key, &found.exact.iter().map(|e| e.0.of(quantity)).collect::<Vec<f64>>())?;
            }
            put(&mut exact, "seconds", &found.exact.iter().map(|e| e.1).collect::<Vec<f64>>())?;
            for (entry, courses) in self.settings.methods.iter().zip(&found.courses) {
                let method = &entry.method.name;
                self.out.numbers["sets"][set][&found.name]["methods"][method] =
                    summary(courses, &found.exact, self.settings)?;
                self.out.series[set][&found.name][method] = json!(courses);
            }
            self.out.numbers["sets"][set][&found.name]["exact"] = Value::Object(exact);
            self.draw(set, &found);
        }
        Ok(())
    }

    /// Tables and figures of a set at one noise level, one for each group of methods.
    fn draw(&mut self, set: &str, found: &WithNoise) {
        let settings = self.settings;
        for group in settings.groups() {
            let of_group = || {
                let all = settings.methods.iter().zip(&found.courses);
                all.filter(|(entry, _)| entry.group == group)
            };
            let separated = if group.is_empty() { "" } else { ": " };
            let title = format!("{set}, {} noise{separated}{group}", found.name);
            let searched = of_group().any(|(entry, _)| entry.largest_step.is_some());
            let mut columns: Vec<(String, String)> = Quantity::ALL
                .iter()
                .map(|(_, key, title)| (*key, *title))
                .chain([("step_size", "βn")])
                .map(|(key, title)| (format!("{key}_shown"), title.to_string()))
                .collect();
            let told = shown_columns("", &QUANTITIES).into_iter();
            columns.extend(told.map(|(key, title)| (key, title.to_string())));
            columns.extend(settings.goals().map(|(key, title, _)| (format!("{key}_shown"), title)));
            if searched {
                columns.push(("largest_step_shown".into(), "largest stable βn".into()));
                columns.push(("limit_shown".into(), "in closed form".into()));
            }
            self.out.tables.push(NumberTable::by_name(
                &title,
                "method",
                &format!("sets.{set}.{}.methods", found.name),
                of_group().map(|(entry, _)| entry.method.name.as_str()),
                &columns,
                "At the last step, means over folds with standard errors. Errors at test points are in units of the target's standard deviation in training; those of weights are relative to the exact weights. \
                 Seconds are those of the solver alone: neither the kernel matrix nor looking at errors is counted.",
            ));
            for &quantity in &settings.quantities {
                for &axis in &settings.against {
                    let lines = of_group()
                        .filter_map(|(entry, courses)| Some(line(entry, courses.first()?, axis, quantity)))
                        .filter(|line| !line.x.is_empty());
                    self.out.figures.push(
                        Curves::new(
                            format!("{title}: {}", quantity.title()),
                            axis.title(),
                            quantity.title(),
                            lines.collect(),
                        )
                        // Nats may be negative.
                        .logarithmic(true, quantity != Quantity::Nll)
                        .captioned("On the first fold.")
                        .into(),
                    );
                }
            }
        }
    }
}
