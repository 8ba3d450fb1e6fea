//! Numbers and tables as text for people.

use posterior_notes::shown_in_line;

/// Columns of text, the first left-aligned and the others right-aligned. Control characters of cells are escapes, so that a row stays a line.
pub fn table(rows: &[Vec<String>]) -> String {
    let shown =
        |row: &Vec<String>| row.iter().map(|cell| shown_in_line(cell).into_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = rows.iter().map(shown).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |j: usize| rows.iter().filter_map(|r| r.get(j)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(j, cell)| {
            let pad = " ".repeat(widths[j] - cell.chars().count());
            if j == 0 { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A table with a head.
pub fn table_under<const N: usize, R: Into<Vec<String>>>(
    head: [&str; N],
    rows: impl IntoIterator<Item = R>,
) -> String {
    let head = head.map(String::from).to_vec();
    table(&std::iter::once(head).chain(rows.into_iter().map(Into::into)).collect::<Vec<_>>())
}

/// Whether a count is left out of what is written.
pub(crate) fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Four significant digits, without exponent where it can be avoided.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if !(1e-4..1e7).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let decimals = (3 - magnitude.log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}

/// `12 s`, `3 min`, `1.5 h`.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "a second".into(),
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// `12.3 Mflop`, `4.5 Gflop`, `0.6 Pflop`.
pub(crate) fn work(flops: f64) -> String {
    let (unit, name) = match flops {
        f if f < 1e9 => (1e6, "M"),
        f if f < 1e12 => (1e9, "G"),
        f if f < 1e15 => (1e12, "T"),
        _ => (1e15, "P"),
    };
    format!("{:.1} {name}flop", flops / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        for (value, text) in
            [(0.0, "0"), (1234.5678, "1235"), (0.012345, "0.01235"), (-3.5, "-3.500"), (1e-9, "1.000e-9")]
        {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn tables_align() {
        let rows = vec![vec!["a".to_string(), "10".to_string()], vec!["long".to_string(), "2".to_string()]];
        assert_eq!(table(&rows), "a     10\nlong   2");
        let rows =
            vec![vec!["\u{1b}".to_string(), "1\n2".to_string()], vec!["b".to_string(), "3".to_string()]];
        assert_eq!(table(&rows), "\\u{1b}  1\\n2\nb          3");
    }
}
