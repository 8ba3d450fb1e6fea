//! Numbers, tables and figures.

use super::settings::{Axis, Entry, Quantity, Settings};
use super::trajectory::{Errors, Trajectory};
use crate::ExperimentError;
use crate::measured::{Measured, NumberTable};
use crate::numbers::put;
use posterior_report::{Curves, Item, Line, SummaryRow};
use serde_json::{Map, Value, json};

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
    numbers: Map<String, Value>,
    series: Map<String, Value>,
    tables: Vec<NumberTable>,
    figures: Vec<Item>,
    pub(super) facts: Vec<SummaryRow>,
}

/// Means over folds. A method that diverged on any of them has no errors.
fn summary(
    courses: &[Trajectory],
    exact: &[(Errors, f64)],
    settings: &Settings,
) -> Result<Value, ExperimentError> {
    let column = |value: &dyn Fn(&Trajectory) -> f64| courses.iter().map(value).collect::<Vec<f64>>();
    let mut out = Map::new();
    put(&mut out, "seconds", &column(&|c| c.seconds))?;
    put(&mut out, "steps", &column(&|c| c.steps as f64))?;
    put(&mut out, "rise", &column(&|c| c.rise))?;
    put(&mut out, "diverged", &column(&|c| f64::from(u8::from(c.diverged))))?;
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
    let residuals = settings.goals.iter().enumerate().map(|(i, &goal)| {
        (goal_key(i), courses.iter().map(|c| c.passes_to(goal)).collect::<Vec<(f64, bool)>>())
    });
    let densities = settings.nll_goals.iter().enumerate().map(|(i, &goal)| {
        let above =
            |(c, exact): (&Trajectory, &(Errors, f64))| c.passes_to_nll(exact.0.of(Quantity::Nll) + goal);
        (nll_goal_key(i), courses.iter().zip(exact).map(above).collect())
    });
    for (key, passes) in residuals.chain(densities) {
        // What is never reached has the passes that were made, which are fewer than it takes; what diverged has none.
        if diverged {
            out.insert(format!("{key}_shown"), json!("diverged"));
            continue;
        }
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

/// What the passes to a goal are called.
fn goal_key(index: usize) -> String {
    format!("passes_to_{}", index + 1)
}

/// The same for negative log densities.
fn nll_goal_key(index: usize) -> String {
    format!("passes_to_nll_{}", index + 1)
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
        Self {
            settings,
            numbers: Map::new(),
            series: Map::new(),
            tables: Vec::new(),
            figures: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// The results of a set.
    pub(super) fn add(&mut self, set: &str, by_noise: Vec<WithNoise>) -> Result<(), ExperimentError> {
        let (mut own, mut series) = (Map::new(), Map::new());
        for found in by_noise {
            let (mut exact, mut methods, mut curves) = (Map::new(), Map::new(), Map::new());
            for (quantity, key) in [(Quantity::Rmse, "rmse"), (Quantity::Nll, "nll")] {
                put(&mut exact, key, &found.exact.iter().map(|e| e.0.of(quantity)).collect::<Vec<f64>>())?;
            }
            put(&mut exact, "seconds", &found.exact.iter().map(|e| e.1).collect::<Vec<f64>>())?;
            for (entry, courses) in self.settings.methods.iter().zip(&found.courses) {
                methods.insert(entry.method.name.clone(), summary(courses, &found.exact, self.settings)?);
                curves.insert(entry.method.name.clone(), json!(courses));
            }
            self.draw(set, &found);
            own.insert(found.name.clone(), json!({"exact": exact, "methods": methods}));
            series.insert(found.name, Value::Object(curves));
        }
        self.numbers.insert(set.into(), Value::Object(own));
        self.series.insert(set.into(), Value::Object(series));
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
            let mut columns: Vec<(String, &str)> =
                Quantity::ALL.iter().map(|(_, key, title)| (format!("{key}_shown"), *title)).collect();
            columns.extend([
                ("step_size_shown".into(), "βn"),
                ("steps_shown".into(), "steps"),
                ("seconds_shown".into(), "seconds"),
            ]);
            let residuals = settings.goals.iter().enumerate().map(|(i, goal)| {
                (format!("{}_shown", goal_key(i)), format!("passes to a residual of {goal:e}"))
            });
            let densities = settings.nll_goals.iter().enumerate().map(|(i, goal)| {
                let title = format!("passes to {goal} nats above the exact NLL");
                (format!("{}_shown", nll_goal_key(i)), title)
            });
            let goals: Vec<(String, String)> = residuals.chain(densities).collect();
            columns.extend(goals.iter().map(|(key, title)| (key.clone(), title.as_str())));
            if searched {
                columns.push(("largest_step_shown".into(), "largest stable βn"));
                columns.push(("limit_shown".into(), "in closed form"));
            }
            let columns: Vec<(&str, &str)> =
                columns.iter().map(|(key, title)| (key.as_str(), *title)).collect();
            self.tables.push(NumberTable::by_name(
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
                    self.figures.push(
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

    pub(super) fn finish(self) -> Measured {
        Measured {
            numbers: json!({ "sets": self.numbers }),
            series: Value::Object(self.series),
            tables: self.tables,
            figures: self.figures,
            facts: self.facts,
            notes: Vec::new(),
        }
    }
}
