//! One cell as a number: with marks between thousands, a decimal mark, a sign before or behind it or brackets in its place, a currency, a percent sign or a unit.
//!
//! ```text
//! 1,234.5   1.234,5   1'234.5   1 234,5   12,34,567   $1,234   1.234,50 €   CHF 20.-   (1,234.50)   12-   −3.5 m²   7.5 %
//! ```
//!
//! A dot or a comma is the decimal mark of a file, and the other one then stands between thousands; apostrophes and spaces always do.

use super::dialect::DecimalMark;

/// Longest cell that is looked at.
const LONGEST: usize = 48;

/// A number with what it is measured in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) value: f64,
    /// One spelling for all that mean the same; empty for a plain number.
    pub(crate) unit: String,
    /// Whether a unit behind the number touches it.
    attached: bool,
}

/// What a cell says about the decimal mark of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Neither a dot nor a comma; whether it is below 1,000.
    NoMark { small: bool },
    /// A number under this decimal mark only.
    Only(DecimalMark),
    /// One mark that may be a decimal mark or stand between thousands: `1.234`.
    Either(DecimalMark),
}

impl Quantity {
    /// A cell under a decimal mark; None for what is no number.
    pub(crate) fn read(text: &str, decimal: DecimalMark) -> Option<Self> {
        let parts = Parts::of(text)?;
        let value = number(parts.digits, parts.exponent, decimal)?;
        let value = if parts.negative { -value } else { value };
        Some(Self { value, unit: parts.unit()?, attached: parts.attached })
    }

    /// The same under either decimal mark, for cells of columns that could not be read.
    pub(crate) fn read_any(text: &str) -> Option<Self> {
        Self::read(text, DecimalMark::Point).or_else(|| Self::read(text, DecimalMark::Comma))
    }

    /// Whether the unit is a currency.
    pub(crate) fn is_money(&self) -> bool {
        is_money(&self.unit)
    }

    /// Whether the unit is none or one that is known: other words behind numbers may be names, and so is the letter in `12A`.
    pub(crate) fn is_known(&self) -> bool {
        let letter = self.attached && self.unit.len() == 1 && self.unit.as_bytes()[0].is_ascii_uppercase();
        !letter
            && self.unit.split(['/', ' ']).filter(|part| !part.is_empty()).all(|part| {
                CURRENCIES.contains(&part) || UNITS.contains(&part) || part.parse::<u32>().is_ok()
            })
    }
}

/// Whether a unit is a currency.
pub(crate) fn is_money(unit: &str) -> bool {
    unit.split([' ', '/']).next().is_some_and(|first| CURRENCIES.contains(&first))
}

/// What a cell says about the decimal mark, and whether it is money; None for what is no number.
pub(crate) fn shape(text: &str) -> Option<(Shape, bool)> {
    let parts = Parts::of(text)?;
    let under = |mark| number(parts.digits, parts.exponent, mark);
    let shape = match (under(DecimalMark::Point), under(DecimalMark::Comma)) {
        (None, None) => return None,
        (Some(_), None) => Shape::Only(DecimalMark::Point),
        (None, Some(_)) => Shape::Only(DecimalMark::Comma),
        (Some(value), Some(_)) => match parts.digits.find(['.', ',']) {
            None => Shape::NoMark { small: value < 1000.0 },
            Some(at) if parts.digits[at..].starts_with('.') => Shape::Either(DecimalMark::Point),
            Some(_) => Shape::Either(DecimalMark::Comma),
        },
    };
    Some((shape, is_money(&parts.unit()?)))
}

/// Marks that people write for what is not there. They mean it in columns that otherwise hold numbers or dates; among categories they may be one.
pub(crate) fn is_blank(text: &str) -> bool {
    let text = text.trim();
    if !text.starts_with(|c: char| "-–—−.…*nN#<(kK".contains(c)) {
        return false;
    }
    let dashes = !text.is_empty() && text.chars().all(|c| matches!(c, '-' | '–' | '—' | '−'));
    let words =
        ["na", "n/a", "#n/a", "#na", "nan", "nat", "none", "null", "nil", "<na>", "n.a.", "(null)", "k.a."];
    let excel = ["#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!"];
    dashes
        || matches!(text, "." | ".." | "..." | "…" | "*")
        || text.len() <= 8 && words.iter().chain(&excel).any(|word| text.eq_ignore_ascii_case(word))
}

/// A cell, taken apart.
struct Parts<'a> {
    negative: bool,
    prefix: &'a str,
    /// Digits and marks.
    digits: &'a str,
    /// `e-3`, or nothing.
    exponent: &'a str,
    suffix: &'a str,
    /// Whether it touches the digits.
    attached: bool,
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\u{2007}')
}

fn is_minus(c: char) -> bool {
    matches!(c, '-' | '−' | '–')
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let mut rest = text.trim();
        if rest.len() > LONGEST || !rest.bytes().any(|b| b.is_ascii_digit()) {
            return None;
        }
        let (mut minus, mut plus, mut brackets, mut prefix) = (0, 0, false, "");
        while !rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',')) {
            let first = rest.chars().next()?;
            if is_space(first) {
                rest = &rest[first.len_utf8()..];
            } else if is_minus(first) {
                minus += 1;
                rest = &rest[first.len_utf8()..];
            } else if first == '+' {
                plus += 1;
                rest = &rest[1..];
            } else if first == '(' && !brackets {
                brackets = true;
                rest = &rest[1..];
            } else if prefix.is_empty() {
                // The longest: `US$` before `US`.
                let known = PREFIXES.iter().filter(|known| rest.starts_with(**known));
                let length = known.map(|known| known.len()).max()?;
                (prefix, rest) = rest.split_at(length);
            } else {
                return None;
            }
        }
        let mark = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'' | '’') || is_space(c);
        let end = rest.find(|c| !mark(c)).unwrap_or(rest.len());
        let (digits, mut rest) = rest.split_at(end);
        let attached = !digits.ends_with(is_space);
        let mut digits = digits.trim_end_matches(is_space);
        // Feet, not thousands.
        digits = digits.trim_end_matches(['\'', '’']);
        let mut exponent = "";
        if let Some(power) = rest.strip_prefix(['e', 'E']) {
            let unsigned = power.trim_start_matches(['+', '-']);
            let length = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
            if length > 0 && power.len() - unsigned.len() < 2 {
                let end = 1 + power.len() - unsigned.len() + length;
                (exponent, rest) = rest.split_at(end);
            }
        }
        let mut suffix = rest.trim();
        // `20.-` is 20 with nothing behind it.
        let open = digits.ends_with(['.', ',']);
        if open && suffix.starts_with(is_minus) {
            suffix = suffix.trim_start_matches(is_minus).trim_start();
            digits = &digits[..digits.len() - 1];
        }
        if let Some(inner) =
            suffix.strip_suffix(')').or_else(|| suffix.strip_prefix(')')).filter(|_| brackets)
        {
            suffix = inner.trim();
            minus += 1;
        } else if brackets {
            return None;
        }
        if let Some(inner) = suffix.strip_suffix(is_minus).or_else(|| suffix.strip_prefix(is_minus)) {
            suffix = inner.trim();
            minus += 1;
        }
        let digit = |c: char| c.is_ascii_digit();
        (minus + plus < 2 && digits.contains(digit)).then_some(Self {
            negative: minus == 1,
            prefix,
            digits,
            exponent,
            suffix,
            attached,
        })
    }

    /// None where what stands behind the number is no unit.
    fn unit(&self) -> Option<String> {
        let (prefix, suffix) = (spelled(self.prefix), spelled(self.suffix));
        if suffix.is_empty() || suffix == prefix {
            return Some(prefix);
        }
        let begins = suffix.starts_with(|c: char| c.is_alphabetic() || "%‰°\"".contains(c))
            || CURRENCIES.iter().any(|known| suffix.starts_with(known));
        let all = suffix.chars().all(|c| c.is_alphanumeric() || " %‰°/.$€£¥₹·*\"".contains(c));
        let ordinal = ["st", "nd", "rd", "th"].contains(&suffix.as_str());
        if !begins || !all || ordinal || suffix.chars().count() > 16 {
            return None;
        }
        Some(if prefix.is_empty() { suffix } else { format!("{prefix} {suffix}") })
    }
}

/// Digits with their marks under a decimal mark; None where they are no number.
fn number(digits: &str, exponent: &str, decimal: DecimalMark) -> Option<f64> {
    let (point, other) = match decimal {
        DecimalMark::Point => ('.', ','),
        DecimalMark::Comma => (',', '.'),
    };
    let (whole, fraction) = digits.split_once(point).unwrap_or((digits, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) || !exponent.is_empty() && whole.contains(other) {
        return None;
    }
    let mut plain = String::with_capacity(digits.len() + exponent.len());
    match whole.chars().find(|c| !c.is_ascii_digit()) {
        None => plain.push_str(whole),
        Some(mark) if mark == other || is_space(mark) || matches!(mark, '\'' | '’') => {
            let groups: Vec<&str> = whole.split(mark).collect();
            let digits = groups.iter().all(|group| group.bytes().all(|b| b.is_ascii_digit()));
            let [first, inner @ .., last] = &groups[..] else { return None };
            // Indian numbers have pairs between the first and the last group.
            let even = |size: usize| inner.iter().all(|group| group.len() == size);
            let sizes = (1..=3).contains(&first.len())
                && last.len() == 3
                && (even(3) || mark == ',' && first.len() < 3 && even(2));
            if !digits || !sizes || first.starts_with('0') {
                return None;
            }
            groups.iter().for_each(|group| plain.push_str(group));
        }
        Some(_) => return None,
    }
    if plain.is_empty() && fraction.is_empty() {
        return None;
    }
    plain.push('.');
    plain.push_str(fraction);
    plain.push_str(exponent);
    plain.parse().ok()
}

/// One spelling of a unit for all that mean the same.
fn spelled(unit: &str) -> String {
    let plain = unit.trim().replace('²', "2").replace('³', "3").replace('^', "").replace('μ', "µ");
    let plain = plain.trim_end_matches('.');
    if plain.is_empty() {
        return String::new();
    }
    let parts = plain.split('/').map(|part| {
        let part = part.trim();
        let lower = part.to_lowercase();
        let one = |name: &str| {
            let same = SPELLINGS.iter().find(|(spelling, _)| *spelling == name);
            same.map(|(_, unit)| (*unit).to_string())
                .or_else(|| (UNITS.contains(&name) || CURRENCIES.contains(&name)).then(|| name.to_string()))
        };
        let singular = |name: &str| name.strip_suffix('s').filter(|stem| stem.len() > 1).and_then(one);
        let found = one(part).or_else(|| singular(part)).or_else(|| one(&lower)).or_else(|| singular(&lower));
        found.unwrap_or_else(|| part.to_string())
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Currencies, each by its one spelling.
const CURRENCIES: &[&str] = &[
    "$", "€", "£", "¥", "₹", "₽", "₩", "₪", "₫", "₺", "₴", "฿", "₦", "₱", "¢", "CHF", "CAD", "AUD", "NZD",
    "CNY", "SEK", "NOK", "DKK", "kr", "zł", "Kč", "Ft", "RON", "BGN", "R$", "MXN", "ZAR", "SGD", "HKD",
    "TWD", "AED", "SAR", "IDR", "RM", "ARS", "CLP", "COP", "PEN", "EGP", "KES", "ISK",
];

/// What money may begin with.
const PREFIXES: &[&str] = &[
    "$", "€", "£", "¥", "₹", "₽", "₩", "₪", "₫", "₺", "₴", "฿", "₦", "₱", "¢", "CHF", "CAD", "AUD", "NZD",
    "CNY", "SEK", "NOK", "DKK", "kr", "zł", "Kč", "Ft", "RON", "BGN", "R$", "MXN", "ZAR", "SGD", "HKD",
    "TWD", "AED", "SAR", "IDR", "RM", "ARS", "CLP", "COP", "PEN", "EGP", "KES", "ISK", "USD", "US$", "U$S",
    "EUR", "GBP", "JPY", "INR", "RUB", "KRW", "TRY", "PLN", "CZK", "HUF", "BRL", "THB", "PHP", "C$", "CA$",
    "A$", "AU$", "NZ$", "HK$", "S$", "SFr.", "Rs", "kr.",
];

/// Spellings of units, and those that stand for them.
const SPELLINGS: &[(&str, &str)] = &[
    ("USD", "$"),
    ("US$", "$"),
    ("U$S", "$"),
    ("dollar", "$"),
    ("EUR", "€"),
    ("euro", "€"),
    ("GBP", "£"),
    ("JPY", "¥"),
    ("yen", "¥"),
    ("INR", "₹"),
    ("Rs", "₹"),
    ("RUB", "₽"),
    ("руб", "₽"),
    ("KRW", "₩"),
    ("TRY", "₺"),
    ("TL", "₺"),
    ("PLN", "zł"),
    ("CZK", "Kč"),
    ("HUF", "Ft"),
    ("BRL", "R$"),
    ("THB", "฿"),
    ("PHP", "₱"),
    ("C$", "CAD"),
    ("CA$", "CAD"),
    ("A$", "AUD"),
    ("AU$", "AUD"),
    ("NZ$", "NZD"),
    ("HK$", "HKD"),
    ("S$", "SGD"),
    ("SFr", "CHF"),
    ("Fr", "CHF"),
    ("RMB", "CNY"),
    ("lei", "RON"),
    ("percent", "%"),
    ("per cent", "%"),
    ("pct", "%"),
    ("hour", "h"),
    ("hr", "h"),
    ("std", "h"),
    ("minute", "min"),
    ("second", "s"),
    ("sec", "s"),
    ("day", "d"),
    ("week", "wk"),
    ("month", "mo"),
    ("year", "yr"),
    ("y", "yr"),
    ("jahre", "yr"),
    ("inch", "in"),
    ("inches", "in"),
    ("\"", "in"),
    ("feet", "ft"),
    ("foot", "ft"),
    ("mile", "mi"),
    ("yard", "yd"),
    ("pound", "lb"),
    ("ounce", "oz"),
    ("sqm", "m2"),
    ("sq m", "m2"),
    ("qm", "m2"),
    ("sqft", "ft2"),
    ("sq ft", "ft2"),
    ("sq. ft", "ft2"),
    ("cbm", "m3"),
    ("liter", "l"),
    ("litre", "l"),
    ("acre", "ac"),
    ("kmh", "km/h"),
];

/// Units, each by its one spelling.
const UNITS: &[&str] = &[
    "%", "‰", "pp", "mm", "cm", "dm", "m", "km", "µm", "um", "nm", "in", "ft", "yd", "mi", "mm2", "cm2",
    "m2", "km2", "ft2", "in2", "ha", "ac", "mm3", "cm3", "m3", "cc", "ml", "cl", "dl", "l", "hl", "gal",
    "pt", "qt", "oz", "fl oz", "µg", "ug", "mg", "g", "kg", "t", "lb", "st", "ms", "µs", "us", "s", "min",
    "h", "d", "wk", "mo", "yr", "Hz", "kHz", "MHz", "GHz", "W", "kW", "MW", "GW", "hp", "PS", "bhp", "Wh",
    "kWh", "MWh", "GWh", "J", "kJ", "MJ", "GJ", "cal", "kcal", "BTU", "V", "mV", "kV", "A", "mA", "Ah",
    "mAh", "Ω", "kΩ", "Pa", "hPa", "kPa", "MPa", "bar", "mbar", "psi", "atm", "mmHg", "°", "°C", "°F", "K",
    "km/h", "mph", "kn", "rpm", "mpg", "B", "kB", "KB", "MB", "GB", "TB", "kbps", "Mbps", "Gbps", "dB",
    "dBA", "px", "dpi", "mol", "mmol", "N", "kN", "Nm", "lm", "lx", "ppm", "ppb", "pcs", "k", "M", "Mio",
    "Mrd", "bn",
];

#[cfg(test)]
mod tests {
    use super::*;
    use DecimalMark::{Comma, Point};

    #[test]
    fn cells_are_numbers_as_people_write_them() {
        for (text, decimal, value, unit) in [
            ("1,234.5", Point, 1234.5, ""),
            ("1.234,5", Comma, 1234.5, ""),
            ("1.234.567", Comma, 1_234_567.0, ""),
            ("1'234.50", Point, 1234.5, ""),
            ("1’234’567", Point, 1_234_567.0, ""),
            ("1 234,5", Comma, 1234.5, ""),
            ("1\u{202f}234,5", Comma, 1234.5, ""),
            ("1\u{a0}234", Point, 1234.0, ""),
            ("12,34,567", Point, 1_234_567.0, ""),
            ("1234", Point, 1234.0, ""),
            (".5", Point, 0.5, ""),
            ("1e-3", Point, 0.001, ""),
            ("1,5E3 kg", Comma, 1500.0, "kg"),
            ("(1,234.50)", Point, -1234.5, ""),
            ("(5)", Point, -5.0, ""),
            ("12-", Point, -12.0, ""),
            ("−3.5", Point, -3.5, ""),
            ("+7", Point, 7.0, ""),
            ("$1,234", Point, 1234.0, "$"),
            ("-$5", Point, -5.0, "$"),
            ("$-5", Point, -5.0, "$"),
            ("$(1,234.50)", Point, -1234.5, "$"),
            ("($1,234.50)", Point, -1234.5, "$"),
            ("US$ 12", Point, 12.0, "$"),
            ("12 USD", Point, 12.0, "$"),
            ("$1.2M", Point, 1.2, "$ M"),
            ("1.234,56 €", Comma, 1234.56, "€"),
            ("EUR 5", Point, 5.0, "€"),
            ("CHF 1'234.-", Point, 1234.0, "CHF"),
            ("25,- €", Comma, 25.0, "€"),
            ("¥1,200", Point, 1200.0, "¥"),
            ("1 200 kr.", Point, 1200.0, "kr"),
            ("£3", Point, 3.0, "£"),
            ("7.5%", Point, 7.5, "%"),
            ("7,5 %", Comma, 7.5, "%"),
            ("12 kg", Point, 12.0, "kg"),
            ("12 KG", Point, 12.0, "kg"),
            ("3.5m²", Point, 3.5, "m2"),
            ("51.9 m2", Point, 51.9, "m2"),
            ("5 hours", Point, 5.0, "h"),
            ("1 hr", Point, 1.0, "h"),
            ("3 sq ft", Point, 3.0, "ft2"),
            ("-4.5 °C", Point, -4.5, "°C"),
            ("80 km/h", Point, 80.0, "km/h"),
            ("12 €/m²", Point, 12.0, "€/m2"),
            ("3 rooms", Point, 3.0, "rooms"),
        ] {
            let found = Quantity::read(text, decimal).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.value, &found.unit[..]), (value, unit), "{text}");
            assert_eq!(found.is_known(), unit != "rooms", "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            "-",
            ".",
            "red",
            "ask",
            "A12",
            "12:30",
            "2021-03-04",
            "04.03.2021",
            "1/2",
            "10-20",
            "1.2.3",
            "<5",
            ">50K",
            "50+",
            "1st",
            "22nd",
            "192.168.0.1",
            "1,2,3",
            "(5",
            "5)",
            "--5",
            "$",
            "1 23",
            "12 34",
            "#5",
            "5 @",
            "5 Main Street, a town",
        ] {
            assert_eq!(Quantity::read_any(text), None, "{text}");
        }
        for (text, decimal) in
            [("3,14", Point), ("3.14", Comma), ("0,123", Point), ("1234,567", Point), ("1,234.5", Comma)]
        {
            assert_eq!(Quantity::read(text, decimal), None, "{text}");
        }
    }

    #[test]
    fn blanks_are_marks_for_what_is_not_there() {
        for text in
            ["-", "--", "—", ".", "..", "#N/A", "n/a", "None", "none", "NaT", "n.a.", "<NA>", "#DIV/0!"]
        {
            assert!(is_blank(text), "{text}");
        }
        for text in ["0", "no", "x", "-1", "nay", "5 -", "a"] {
            assert!(!is_blank(text), "{text}");
        }
    }
}
