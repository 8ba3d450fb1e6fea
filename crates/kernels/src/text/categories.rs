//! What is particular to `categorical`: one column of text, which is as many features as it has categories.

use super::build::listed;
use super::parse::nearest;
use super::{Kind, Leaf};

/// The largest rank. More columns would be more numbers for each category than rows usually tell.
pub(super) const LARGEST_RANK: f64 = 64.0;

/// Indices of the features that a column's categories were turned into: `COLUMN=CATEGORY`.
pub(super) fn features_of(column: &str, features: &[String]) -> Vec<usize> {
    let of_column = |feature: &String| feature.strip_prefix(column).is_some_and(|rest| rest.starts_with('='));
    (0..features.len()).filter(|&j| of_column(&features[j])).collect()
}

/// A column that has no categories among the features.
pub(super) fn no_categories(column: &str, features: &[String]) -> String {
    if features.iter().any(|feature| feature == column) {
        return format!("`{column}` is a column of numbers; make it categories (--categories {column})");
    }
    let mut known: Vec<String> =
        features.iter().filter_map(|f| f.split_once('=')).map(|(column, _)| column.to_string()).collect();
    known.dedup();
    let hint = nearest(column, known.iter().chain(features).map(String::as_str));
    let hint = hint.map_or_else(|| ".".to_string(), |near| format!("; did you mean `{near}`?"));
    let known = if known.is_empty() {
        "None has them: make them with --categories; targets that tell of each other are one column of numbers, with a column beside it that says of which target each row is".to_string()
    } else {
        format!("With categories: {}", listed(&known))
    };
    format!("no column with categories is called `{column}`{hint} {known}")
}

/// What is wrong with a rank for so many categories.
pub(super) fn check_rank(rank: usize, categories: usize) -> Result<(), String> {
    if rank <= categories {
        return Ok(());
    }
    Err(format!(
        "`rank` is {rank}, but the column has {categories} categories; a rank is at most their number"
    ))
}

/// One column, and no settings that exclude each other: otherwise where it stands and what is wrong.
pub(super) fn check(leaf: &Leaf) -> Result<(), (usize, String)> {
    if leaf.kind != Kind::Categorical {
        return Ok(());
    }
    if leaf.columns.len() != 1 {
        let position = leaf.columns.get(1).map_or(leaf.position, |(_, position)| *position);
        let message = "`categorical` looks at one column of categories: write `categorical(color)`, and multiply or add kernels for several";
        return Err((position, message.into()));
    }
    if let (Some(_), Some(lengthscale)) = (leaf.setting("rank"), leaf.setting("lengthscale")) {
        let message = "with `rank` each pair of categories has its own correlation and there is no `lengthscale`; leave one of them out";
        return Err((lengthscale.position, message.into()));
    }
    Ok(())
}
