//! Colours of several lines in one picture. Each has its own dashes as well, so that they can be told apart without colour.

use crate::text::count;

/// More lines than this cannot be told apart.
pub(crate) const MOST_LINES: usize = 8;

const NAMES: [&str; MOST_LINES] = ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"];
const KEYS: [&str; MOST_LINES] = ["k-h0", "k-h1", "k-h2", "k-h3", "k-h4", "k-h5", "k-h6", "k-h7"];

/// The classes of a mark in the colour of line `index`.
pub(crate) fn class(mark: &str, index: usize) -> String {
    format!("{mark} {}", NAMES[index % MOST_LINES])
}

/// Legend of lines with the given names.
pub(crate) fn legend<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'static str, String)> {
    names.take(MOST_LINES).enumerate().map(|(i, name)| (KEYS[i], name.to_owned())).collect()
}

/// What a caption must say about lines and values that are not drawn; empty if all are.
pub(crate) fn remark(lines: usize, left_out: usize, what: &str) -> String {
    let mut remark = String::new();
    if lines > MOST_LINES {
        remark += &format!(" Shown: the first {MOST_LINES} of {}.", count(lines));
    }
    if left_out > 0 {
        remark += &format!(" Left out: {} {what} that cannot be drawn.", count(left_out));
    }
    remark
}
