//! What columns look like that nobody has said: names of groups that rows belong to, and numbers that are codes.

use super::{Feature, Schema};
use faer::MatRef;
use posterior_notes::fixes::{CATEGORIES, GROUPS};
use std::collections::{BTreeMap, HashMap};

/// Fewest groups, and fewest rows of each on average, that are worth a word.
const FEWEST_GROUPS: usize = 10;
const ROWS_EACH: usize = 2;
/// Distinct whole numbers that may be codes.
const CODES: std::ops::RangeInclusive<usize> = 5..=200;
/// Of the places between the least and the largest, so many times as many as there are values: counts and ages have fewer gaps.
const FAR_APART: f64 = 10.0;
/// Names of columns that say whose a row is.
const NAMES: [&str; 17] = [
    "id",
    "patient",
    "subject",
    "person",
    "participant",
    "respondent",
    "user",
    "customer",
    "client",
    "household",
    "family",
    "animal",
    "pen",
    "litter",
    "pupil",
    "student",
    "plot",
];

impl Schema {
    /// What columns look like that nobody has said, by training rows (n x D, in their own units), in sentences: names of groups, and numbers that are codes.
    pub fn hints(&self, x: MatRef<'_, f64>, parted: bool) -> Vec<String> {
        let (columns, n) = (columns(self, x), x.nrows());
        let mut out = Vec::new();
        if let Some((name, count)) = groups(&columns, n).filter(|_| !parted) {
            out.push(format!(
                "`{name}` looks like a column of groups ({count} groups, about {} rows each). If new rows will come from other groups, use {GROUPS} {name}: such rows may be predicted worse than this fit says",
                n / count
            ));
        }
        let codes = columns.iter().filter(|own| own.is_number && is_code(&own.values, n));
        let names: Vec<&str> = codes.map(|own| own.name).collect();
        if !names.is_empty() {
            let verb = if names.len() == 1 { "holds" } else { "hold" };
            out.push(format!(
                "`{}` {verb} whole numbers that look like codes (few values, far apart). If they are names and no quantities, use {CATEGORIES} {}",
                names.join("`, `"),
                names.join(",")
            ));
        }
        out
    }
}

/// A column of the table, by its cells as numbers: values, or places of categories.
struct Cells<'a> {
    name: &'a str,
    values: Vec<f64>,
    is_number: bool,
}

fn columns<'a>(schema: &'a Schema, x: MatRef<'_, f64>) -> Vec<Cells<'a>> {
    let mut out: Vec<Cells<'a>> = Vec::new();
    for (j, feature) in schema.features.iter().enumerate() {
        let name = feature.column();
        match (feature, out.last_mut()) {
            // Places in the year and the like are not of the table.
            (Feature::Number { reading, .. }, _) if reading.suffix().is_empty() => {
                let (values, is_number) = (x.col(j).iter().copied().collect(), reading.is_plain());
                out.push(Cells { name, values, is_number });
            }
            (Feature::Number { .. }, _) => {}
            (_, Some(last)) if last.name == name && !last.is_number => {
                last.values.iter_mut().zip(x.col(j).iter()).for_each(|(place, is)| *place += is * j as f64);
            }
            (Feature::Category { .. }, _) => {
                let values = x.col(j).iter().map(|is| is * j as f64).collect();
                out.push(Cells { name, values, is_number: false });
            }
            (Feature::Absent { .. }, _) => {}
        }
    }
    out
}

fn distinct(values: &[f64]) -> usize {
    values.iter().map(|v| v.to_bits()).collect::<std::collections::HashSet<_>>().len()
}

fn whole(values: &[f64]) -> bool {
    values.iter().all(|v| v.fract() == 0.0)
}

/// The column of most groups and their number: whole numbers or texts that come several times each, and are called so or have the value of another column each.
fn groups<'a>(columns: &[Cells<'a>], n: usize) -> Option<(&'a str, usize)> {
    let mut best: Option<(&str, usize)> = None;
    for own in columns.iter().filter(|own| whole(&own.values)) {
        let count = distinct(&own.values);
        if count < FEWEST_GROUPS || n < ROWS_EACH * count || best.is_some_and(|(_, most)| most >= count) {
            continue;
        }
        let decided = |other: &&Cells<'_>| {
            let mut known: HashMap<u64, f64> = HashMap::with_capacity(count);
            let same = own
                .values
                .iter()
                .zip(&other.values)
                .all(|(g, v)| *known.entry(g.to_bits()).or_insert(*v) == *v);
            // A column of few values, or one that only counts the groups, decides nothing.
            same && distinct(&other.values) > 2
        };
        if named(own.name) || columns.iter().filter(|other| other.name != own.name).any(|o| decided(&o)) {
            best = Some((own.name, count));
        }
    }
    best
}

/// Whether a name, or its last word, is one of those that groups have.
fn named(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).next_back().is_some_and(|last| NAMES.contains(&last))
}

fn is_code(values: &[f64], n: usize) -> bool {
    if !whole(values) {
        return false;
    }
    let counts = values.iter().fold(BTreeMap::new(), |mut counts: BTreeMap<i64, usize>, v| {
        *counts.entry(*v as i64).or_default() += 1;
        counts
    });
    if !CODES.contains(&counts.len()) || n < ROWS_EACH * counts.len() {
        return false;
    }
    let places: Vec<i64> = counts.into_keys().collect();
    let steps = places.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).unsigned_abs());
    let step = steps.fold(0u64, |a, b| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    });
    let span = places[places.len() - 1] as f64 - places[0] as f64;
    span / step.max(1) as f64 >= FAR_APART * (places.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use crate::{Column, Schema, Selection, Table};

    /// What is said of columns of numbers, the last of which is the target.
    fn said(columns: &[(&str, &dyn Fn(usize) -> f64)]) -> String {
        let column =
            |(name, of): &(&str, &dyn Fn(usize) -> f64)| Column::numeric(*name, (0..240).map(of).collect());
        let table = Table::new("t", columns.iter().map(column).collect());
        let selection = Selection { target: "y".into(), ..Selection::default() };
        let rows: Vec<usize> = (0..table.rows()).collect();
        let schema = Schema::learn(&table, &selection, &rows).unwrap();
        let x = schema.extract(&table, &rows, false).unwrap().x;
        schema.hints(x.as_ref(), false).join("; ")
    }

    const SCATTERED: fn(usize) -> f64 = |i| (i as f64 * 0.618_034) % 1.0;

    #[test]
    fn columns_of_groups_are_named() {
        // By another column that each group has one value of.
        let height = |i: usize| ((i / 8 * 37) % 30) as f64 + 0.5;
        let own: &[(&str, &dyn Fn(usize) -> f64)] = &[
            ("tree", &|i| (i / 8) as f64),
            ("height", &height),
            ("year", &|i| (i % 8) as f64),
            ("y", &SCATTERED),
        ];
        let text = said(own);
        assert!(
            text.contains("`tree` looks like a column of groups (30 groups, about 8 rows each)"),
            "{text}"
        );
        // By its name, whatever else is there.
        for (name, named) in [("patient", true), ("Animal ID", true), ("dose", false)] {
            let own: &[(&str, &dyn Fn(usize) -> f64)] =
                &[(name, &|i| (i % 12) as f64), ("x", &SCATTERED), ("y", &SCATTERED)];
            assert_eq!(said(own).contains("looks like a column of groups"), named, "{name}");
        }
        // Each once.
        assert_eq!(said(&[("id", &|i| i as f64), ("y", &SCATTERED)]), "");
    }

    #[test]
    fn codes_are_told_from_quantities() {
        let of = |value: &dyn Fn(usize) -> f64| said(&[("x", value), ("y", &SCATTERED)]);
        // Postal codes.
        assert!(of(&|i| (10_000 + (i % 40) * (i % 40) * 53 + i % 40 * 7) as f64).contains("--categories"));
        // Ages, years, round salaries, measurements.
        assert_eq!(of(&|i| (18 + i * 7 % 60) as f64), "");
        assert_eq!(of(&|i| (1990 + i % 30) as f64), "");
        assert_eq!(of(&|i| (20_000 + 5_000 * (i % 25)) as f64), "");
        assert_eq!(of(&SCATTERED), "");
    }
}
