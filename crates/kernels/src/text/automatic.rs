//! What the word `auto` stands for: a kernel by what a table's columns are.

use super::{Kind, parse};

/// The word.
pub(super) const NAME: &str = "auto";
/// Where all columns are numbers.
pub(super) const NUMBERS: &str = "matern32(ard)";

/// Columns of categories, in order: those that became several features `COLUMN=CATEGORY`.
fn categories(features: &[String]) -> Vec<&str> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for column in features.iter().filter_map(|feature| feature.split_once('=')).map(|(column, _)| column) {
        match counts.iter_mut().find(|(known, _)| *known == column) {
            Some((_, count)) => *count += 1,
            None => counts.push((column, 1)),
        }
    }
    // No text can name a column with a backquote.
    let several = counts.into_iter().filter(|(column, count)| *count > 1 && !column.contains('`'));
    several.map(|(column, _)| column).collect()
}

/// Its text for these feature columns. A category of one kernel has one correlation with all others, where 0/1 columns under ARD would have a lengthscale each, which few rows tell.
pub(super) fn of_table(features: &[String]) -> String {
    let columns = categories(features);
    let of = |column: &&str| format!("categorical({})", parse::quoted(Kind::Categorical, column));
    let categorical: Vec<String> = columns.iter().map(of).collect();
    let of_category =
        |feature: &String| feature.split_once('=').is_some_and(|(column, _)| columns.contains(&column));
    let mut factors: Vec<String> = Vec::new();
    if !features.iter().all(of_category) || columns.is_empty() {
        factors.push(NUMBERS.into());
    }
    factors.extend(categorical.iter().cloned());
    let mut terms = vec![factors.join(" * ")];
    if factors.len() > 1 {
        terms.extend(categorical);
    }
    terms.join(" + ")
}
