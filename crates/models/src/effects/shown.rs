//! Effects as pictures of a report.

use super::dependence::{Averaged, Dependence, Place, PlaceUnit};
use super::{Effects, RowsOf};
use posterior_report::{Curves, Item, Line, NamedValue, NamedValues};

impl Effects {
    /// Rows, in words.
    fn rows(&self, count: usize) -> String {
        let whose = match self.rows_of {
            RowsOf::Training => "training rows",
            RowsOf::Given => "rows given",
        };
        if count < self.of { format!("{count} of {} {whose}", self.of) } else { format!("{count} {whose}") }
    }

    /// Importance of columns, then what the most important ones do to `target`.
    pub fn items(&self, target: &str) -> Vec<Item> {
        if let Some(why) = &self.left_out {
            return vec![Item::Text(format!(
                "Importance of columns and curves of them are left out: {why}."
            ))];
        }
        let importance = self.importance.iter().map(|one| {
            let half = super::Z95 * one.standard_error;
            NamedValue {
                name: one.column.clone(),
                value: 100.0 * one.share,
                interval: [one.share - half, one.share + half].map(|end| 100.0 * end.max(0.0)),
            }
        });
        let importance = NamedValues {
            title: "Which columns matter".into(),
            x: "share of the variance (%)".into(),
            bars: true,
            rows: importance.collect(),
            caption: format!(
                "Total effects: half the mean squared change when a row gets the cell of another row in this column (with all features made of it), over {}. What several columns do together counts for each of them, so that shares may add up to more \
                 than 100 %; columns that go together are exchanged as if they did not. Lines are 95 % intervals of the chance in {}.",
                self.variance_of,
                self.rows(self.rows)
            ),
        };
        let mut out = vec![importance.into()];
        for one in &self.dependence {
            out.extend(one.curves(target, self));
            out.extend(one.categories(target, self));
        }
        out
    }
}

impl Dependence {
    fn caption(&self, effects: &Effects) -> String {
        let rows = effects.rows(effects.averaged_rows);
        let mut text = match effects.averaged_rows {
            1 => "The function, which has no other column; 95 % intervals of it, without noise.".to_string(),
            _ => format!(
                "The average of the function over {rows} with all other columns as they are there; 95 % intervals of that average, without noise."
            ),
        };
        if self.unit != PlaceUnit::Column {
            text += " What else was made of the time stays as it is in the rows.";
        }
        if self.categories_left_out > 0 {
            text += &format!(" {} less frequent categories are not shown.", self.categories_left_out);
        }
        text
    }

    /// The name of the axis, and a number as it stands there.
    fn axis(&self) -> (String, fn(f64) -> f64) {
        let Self { column, unit, .. } = self;
        match unit {
            PlaceUnit::Column => (column.clone(), |v| v),
            // Days from 1970 are no axis for people, nor are years with a mark between thousands.
            PlaceUnit::Days => (format!("{column} (years after 2000)"), |days| days / 365.2425 - 30.0),
            PlaceUnit::HoursOfDay => (format!("{column} (hours of the day)"), |v| v),
            PlaceUnit::MonthsOfYear => (format!("{column} (months of the year passed)"), |v| v),
            PlaceUnit::DaysOfWeek => (format!("{column} (days of the week passed, from Monday)"), |v| v),
        }
    }

    /// Of one output the target is the axis, of several each has its name.
    fn named<'a>(&'a self, target: &'a str, output: &'a Averaged) -> &'a str {
        if self.outputs.len() == 1 { target } else { &output.name }
    }

    fn y<'a>(&'a self, target: &'a str) -> &'a str {
        match &self.outputs[..] {
            [only] => &only.name,
            _ => target,
        }
    }

    /// Along numbers, where there are some.
    fn curves(&self, target: &str, effects: &Effects) -> Option<Item> {
        let (x, to_axis) = self.axis();
        let numbers: Vec<(usize, f64)> = self
            .at
            .iter()
            .enumerate()
            .filter_map(|(i, place)| match place {
                Place::Number(v) => Some((i, to_axis(*v))),
                Place::Category(_) => None,
            })
            .collect();
        if numbers.len() < 2 {
            return None;
        }
        let line = |output: &Averaged| {
            let pick = |of: &[f64]| numbers.iter().map(|(i, _)| of[*i]).collect::<Vec<f64>>();
            let ends = pick(&output.lower).into_iter().zip(pick(&output.upper));
            let places = numbers.iter().map(|(_, v)| *v).collect();
            let line = Line::new(self.named("average", output), places, pick(&output.mean));
            Line { band: ends.map(|(low, high)| [low, high]).collect(), ..line }
        };
        let curves = Curves::new(
            format!("What {} does to {target}", self.column),
            x,
            self.y(target),
            self.outputs.iter().map(line).collect(),
        );
        Some(curves.captioned(self.caption(effects)).into())
    }

    /// Of categories and gaps, where there are some.
    fn categories(&self, target: &str, effects: &Effects) -> Option<Item> {
        let rows = self.at.iter().enumerate().filter_map(|(i, place)| match place {
            Place::Category(name) => Some((i, name)),
            Place::Number(_) => None,
        });
        let rows = rows.flat_map(|(i, name)| {
            self.outputs.iter().map(move |output| NamedValue {
                name: match self.outputs.len() {
                    1 => name.clone(),
                    _ => format!("{name}: {}", output.name),
                },
                value: output.mean[i],
                interval: [output.lower[i], output.upper[i]],
            })
        });
        let rows: Vec<NamedValue> = rows.collect();
        if rows.is_empty() {
            return None;
        }
        // Beside a curve of numbers there is nothing but their gap.
        let gap =
            if self.at.iter().any(|place| matches!(place, Place::Number(_))) { "a gap in " } else { "" };
        Some(
            NamedValues {
                title: format!("What {gap}{} does to {target}", self.column),
                x: self.y(target).into(),
                bars: false,
                rows,
                caption: self.caption(effects),
            }
            .into(),
        )
    }
}
