//! Escaping, and numbers as people write them.

use posterior_notes::is_control;

/// Escapes text for HTML and SVG content and for double-quoted attributes. Control characters, which XML forbids, and those that change the direction
/// of text become escapes such as `\u{1b}`.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if is_control(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// The first `limit` characters of a text, with an ellipsis if there were more.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(std::iter::once('…')).collect()
}

/// `name` or `name (unit)`.
pub(crate) fn with_unit(name: &str, unit: Option<&str>) -> String {
    match unit {
        Some(unit) if !unit.is_empty() => format!("{name} ({unit})"),
        _ => name.to_owned(),
    }
}

/// A whole number with commas between thousands.
pub(crate) fn count(n: usize) -> String {
    group(&n.to_string())
}

/// A number with at least `digits` significant digits: plain between 0.0001 and 1,000,000, else as a power of ten. What is not
/// finite is called so.
pub(crate) fn number(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "not finite".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = digits.max(1);
    // Rounding first decides 999.96 -> 1000 before the decimals are chosen.
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    let exponent = rounded.abs().log10().floor() as i32;
    if (-4..6).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        fixed(value, decimals)
    } else {
        scientific(rounded, digits - 1)
    }
}

/// A number with a fixed number of decimals, commas between thousands and a true minus sign.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "not finite".to_owned();
    }
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), ""), |parts| parts);
    // A value that rounds to zero has no sign.
    let negative = value < 0.0 && plain.bytes().any(|b| b.is_ascii_digit() && b != b'0');
    let sign = if negative { "\u{2212}" } else { "" };
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{dot}{fraction}", group(whole))
}

/// `1.25×10⁷` with the given number of decimals.
pub(crate) fn scientific(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "not finite".to_owned();
    }
    let text = format!("{value:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text.as_str(), "0"));
    let raised: String = exponent
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4'..='9' => char::from_u32(0x2074 + (c as u32 - '4' as u32)).unwrap_or(c),
            _ => '⁰',
        })
        .collect();
    format!("{}×10{raised}", mantissa.replace('-', "\u{2212}"))
}

/// A fraction as a percentage with one decimal.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{} %", fixed(100.0 * fraction, 1))
}

/// Commas between groups of three digits.
fn group(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaping_leaves_no_markup() {
        assert_eq!(
            escape("<b a=\"1\" c='2'>&\u{0}\n"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\\u{0} "
        );
        assert_eq!(escape("µ-ü 漢"), "µ-ü 漢");
        assert_eq!(escape("a\u{1b}[31m\u{9b}\u{202e}b"), "a\\u{1b}[31m\\u{9b}\\u{202e}b");
    }

    #[test]
    fn numbers_for_people() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1.000"),
            (999.96, "1,000"),
            (-12.3456, "\u{2212}12.35"),
            (123_456.7, "123,457"),
            (1_234_567.0, "1.235×10⁶"),
            (0.000_123_46, "0.0001235"),
            (-0.000_012_3, "\u{2212}1.230×10⁻⁵"),
            (1e300, "1.000×10³⁰⁰"),
            (f64::NAN, "not finite"),
            (f64::INFINITY, "not finite"),
        ] {
            assert_eq!(number(value, 4), expected);
        }
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(1234.5, 1), "1,234.5");
        assert_eq!(count(45_730), "45,730");
        assert_eq!(percent(0.9416), "94.2 %");
        assert_eq!(scientific(4.56789e-10, 1), "4.6×10⁻¹⁰");
    }

    #[test]
    fn shortening_counts_characters() {
        assert_eq!(shorten("漢字漢字", 3), "漢字…");
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(with_unit("y", Some("")), "y");
        assert_eq!(with_unit("y", Some("dB")), "y (dB)");
    }
}
