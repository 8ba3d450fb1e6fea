//! Dates and times as numbers: days, of 86,400 seconds each, from the beginning of 1970; hours and minutes are parts of a day.
//!
//! ```text
//! iso          2021-03-04, 2021/03/04, 2021-03-04T05:06:07.5+02:00, 2021-03-04 05:06
//! day-first    4.3.2021, 4/3/2021, 4-3-2021, 4/3/21, 04.03.21, each with a time of day behind it or not
//! month-first  3/4/2021, 3-4-2021, 3/4/21, 3/4/2021 5:06 PM, likewise
//! clock        05:06, 05:06:07.5, 5:06 PM
//! named        4 Mar 2021, 4-Mar-21, March 4, 2021, Thu, 04 Mar 2021 05:06:07 GMT, 4. März 2021
//! month        2021-03, 2021M03, 03/2021, Mar 2021, March 2021: its first day
//! quarter      2021Q1, 2021-Q1, Q1 2021, 1Q21: its first day
//! ```
//!
//! An offset from Greenwich is taken off; without one a time counts as it stands. Years of two digits are those from 1969 to 2068.

use super::words::{Words, month_of};
use jiff::civil::Date;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;
use serde::{Deserialize, Serialize};

/// How a date is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum TimeForm {
    /// Year, month, day
    Iso,
    /// Day, month, year
    DayFirst,
    /// Month, day, year
    MonthFirst,
    /// Hours and minutes without a date
    Clock,
    /// Day, name of the month, year, in any order
    #[cfg_attr(feature = "clap", value(skip))]
    Named,
    /// Year and month
    #[cfg_attr(feature = "clap", value(skip))]
    Month,
    /// Year and quarter
    #[cfg_attr(feature = "clap", value(skip))]
    Quarter,
}

/// What comes back again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cycle {
    /// The seasons.
    Year,
    /// The days of a week, from Monday.
    Week,
    /// The hours of a day.
    Day,
}

/// A coordinate of the circle that a [`Cycle`] is: both together put its end beside its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wave {
    /// 0 at the beginning.
    Sine,
    /// 1 at the beginning.
    Cosine,
}

const SECONDS: f64 = 86_400.0;

impl TimeForm {
    /// All of them, the one that is preferred where several fit first.
    pub const ALL: [Self; 7] =
        [Self::Iso, Self::DayFirst, Self::MonthFirst, Self::Clock, Self::Named, Self::Month, Self::Quarter];

    /// As it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iso => "year-month-day",
            Self::DayFirst => "day.month.year",
            Self::MonthFirst => "month/day/year",
            Self::Clock => "hours:minutes",
            Self::Named => "day, name of the month, year",
            Self::Month => "year-month",
            Self::Quarter => "year and quarter",
        }
    }

    /// The days from the beginning of 1970 that a text says; of a clock the share of a day. None where it is written in another way, or is no date.
    pub fn days(self, text: &str) -> Option<f64> {
        let text = text.trim();
        // What is no date is told quickly: columns of text are full of it.
        let begins = text.starts_with(|c: char| c.is_ascii_digit() || self.is_worded() && c.is_alphabetic());
        if !(4..=48).contains(&text.len()) || !begins || !text.bytes().any(|b| b.is_ascii_digit()) {
            return None;
        }
        if self == Self::Clock {
            let (seconds, rest) = clock(text)?;
            return rest.is_empty().then_some(seconds / SECONDS);
        }
        let (date, rest) = self.date(text)?;
        let days = day_number(date)?;
        if rest.is_empty() {
            return Some(days);
        }
        if matches!(self, Self::Month | Self::Quarter) {
            return None;
        }
        let (seconds, zone) = clock(rest.strip_prefix(['T', ' ', ','])?.trim_start())?;
        Some(days + (seconds - offset(zone)?) / SECONDS)
    }

    /// Whether its texts may begin with a letter.
    fn is_worded(self) -> bool {
        matches!(self, Self::Named | Self::Month | Self::Quarter)
    }

    /// The date that a text begins with, and what stands behind it.
    fn date(self, text: &str) -> Option<(Date, &str)> {
        match self {
            Self::Clock => None,
            Self::Named => named(text),
            Self::Month => Some((month(text)?, "")),
            Self::Quarter => Some((quarter(text)?, "")),
            Self::Iso | Self::DayFirst | Self::MonthFirst => {
                let mut words = Words::of(text);
                let (first, mark) = (words.number()?, words.mark()?);
                let second = words.number().filter(|_| words.mark() == Some(mark))?;
                let (third, rest) = (words.number()?, words.rest());
                let (year, month, day) = match self {
                    Self::Iso => (first, second, third),
                    Self::DayFirst => (third, second, first),
                    _ => (third, first, second),
                };
                let two = |part: &str| (1..=2).contains(&part.len());
                // `1.2.20` may be a version, and `1-2-20` begin with the year.
                let short = year.len() == 2
                    && self != Self::Iso
                    && (mark == '/' || mark == '.' && month.len() == 2 && day.len() == 2);
                let marks = match self {
                    Self::MonthFirst => "/-",
                    _ => "/-.",
                };
                let written = marks.contains(mark) && two(month) && two(day) && (year.len() == 4 || short);
                let date = || Date::new(year_of(year)?, month.parse().ok()?, day.parse().ok()?).ok();
                Some((written.then(date)??, rest))
            }
        }
    }

    /// Which of day-first and month-first a text is, where it is one of them: `[day-first, month-first]`.
    pub(crate) fn orders(text: &str) -> [bool; 2] {
        [Self::DayFirst, Self::MonthFirst].map(|form| form.days(text).is_some())
    }
}

/// A year of four digits, or of two from 1969 on.
fn year_of(digits: &str) -> Option<i16> {
    let year: i16 = digits.parse().ok()?;
    match digits.len() {
        4 => Some(year),
        2 => Some(if year < 69 { 2000 + year } else { 1900 + year }),
        _ => None,
    }
}

/// Day, month and year of which the month has its name, behind a day of the week or not; what stands behind them.
fn named(text: &str) -> Option<(Date, &str)> {
    let mut words = Words::of(text);
    let mut first = words.any()?;
    if month_of(first).is_none() && first.starts_with(char::is_alphabetic) {
        if !is_weekday(first) {
            return None;
        }
        words.gap();
        first = words.any()?;
    }
    words.gap();
    let second = words.any()?;
    words.gap();
    let third = words.any()?;
    let day = |text: &str| -> Option<i8> {
        let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
        let ending = &text[digits.len()..];
        let known = matches!(ending, "" | "st" | "nd" | "rd" | "th");
        (known && digits.len() < 3).then(|| digits.parse().ok())?
    };
    let (year, month, day) = if let Some(month) = month_of(first) {
        (year_of(third)?, month, day(second)?)
    } else {
        let month = month_of(second)?;
        match first.len() {
            4 if day(first).is_none() => (year_of(first)?, month, day(third)?),
            _ => (year_of(third)?, month, day(first)?),
        }
    };
    Some((Date::new(year, month, day).ok()?, words.rest()))
}

/// The first day of a month.
fn month(text: &str) -> Option<Date> {
    let mut words = Words::of(text);
    let first = words.any()?;
    // `2021M03`
    let (first, second) = match first.split_once(['M', 'm']) {
        Some((year, month)) if year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit()) => (year, month),
        _ => {
            words.gap();
            (first, words.any()?)
        }
    };
    let number = |text: &str| (1..=2).contains(&text.len()).then(|| text.parse::<i8>().ok())?;
    // `March 12` may be a day.
    let year_of = |year: &str| year_of(year).filter(|_| year.len() == 4 || text.contains('-'));
    let (year, month) = match (month_of(first), month_of(second)) {
        (Some(month), None) => (year_of(second)?, month),
        (None, Some(month)) => (year_of(first)?, month),
        (None, None) if first.len() == 4 => (year_of(first)?, number(second)?),
        (None, None) if second.len() == 4 => (year_of(second)?, number(first)?),
        _ => return None,
    };
    words.rest().is_empty().then(|| Date::new(year, month, 1).ok())?
}

/// The first day of a quarter.
fn quarter(text: &str) -> Option<Date> {
    let plain: String = text.chars().filter(|c| !" -/._'’".contains(*c)).collect();
    let lower = plain.to_ascii_lowercase();
    let (before, behind) = lower.split_once('q')?;
    // `q12021`, `2021q1`, `1q2021`
    let (year, quarter) = match (before.len(), behind.len()) {
        (0, 3 | 5) if behind.is_ascii() => (&behind[1..], &behind[..1]),
        (2 | 4, 1) => (before, behind),
        (1, 2 | 4) => (behind, before),
        _ => return None,
    };
    let quarter = quarter.parse::<i8>().ok().filter(|quarter| (1..=4).contains(quarter))?;
    Date::new(year_of(year)?, 3 * quarter - 2, 1).ok()
}

fn is_weekday(word: &str) -> bool {
    let lower = word.to_lowercase();
    let days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    lower.len() > 2 && days.iter().any(|day| day.starts_with(&lower))
}

/// Seconds of a day, and what stands behind them.
fn clock(text: &str) -> Option<(f64, &str)> {
    let mut words = Words::of(text);
    let hour: f64 = two_digits(words.number()?)?;
    let minute = if words.rest().starts_with(':') {
        words.mark();
        Some(words.number().filter(|minute| minute.len() == 2)?)
    } else {
        None
    };
    let mut seconds = 60.0 * two_digits(minute.unwrap_or("0")).filter(|minute| *minute < 60.0)?;
    let mut rest = words.rest();
    if minute.is_some() && rest.starts_with(':') {
        let (read, used) = BrokenDownTime::parse_prefix(":%S%.f", rest).ok()?;
        seconds += f64::from(read.second()?) + f64::from(read.subsec_nanosecond().unwrap_or(0)) / 1e9;
        rest = &rest[used..];
    }
    let half = rest.trim_start();
    let begins = |mark: &str| half.get(..mark.len()).is_some_and(|own| own.eq_ignore_ascii_case(mark));
    let halves = [("am", 0.0), ("a.m.", 0.0), ("pm", 12.0), ("p.m.", 12.0)];
    let hour = match halves.into_iter().find(|(mark, _)| begins(mark)) {
        Some((mark, more)) if (1.0..=12.0).contains(&hour) => {
            rest = half[mark.len()..].trim_start();
            hour % 12.0 + more
        }
        None if minute.is_some() && hour < 24.0 => hour,
        _ => return None,
    };
    Some((3600.0 * hour + seconds, rest))
}

/// A number of one or two digits.
fn two_digits(text: &str) -> Option<f64> {
    (text.len() < 3).then(|| text.parse().ok())?
}

/// Seconds that a zone's clocks are ahead of Greenwich; 0 where there is none.
fn offset(zone: &str) -> Option<f64> {
    let zone = zone.trim();
    if matches!(zone, "" | "Z" | "z" | "UTC" | "GMT") {
        return Some(0.0);
    }
    let read = ["%:z", "%z"].iter().find_map(|pattern| BrokenDownTime::parse(pattern, zone).ok())?;
    Some(f64::from(read.offset()?.seconds()))
}

/// Days from the beginning of 1970.
fn day_number(date: Date) -> Option<f64> {
    let begun = Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    Some(begun.as_second() as f64 / SECONDS)
}

impl Cycle {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Year, Self::Week, Self::Day];

    /// As features are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Week => "week",
            Self::Day => "day",
        }
    }

    /// Where in the cycle a time is, from 0 to 1. `days` are those from the beginning of 1970, a Thursday.
    pub fn phase(self, days: f64) -> f64 {
        match self {
            Self::Day => days.rem_euclid(1.0),
            Self::Week => (days + 3.0).rem_euclid(7.0) / 7.0,
            Self::Year => {
                let whole = days.floor();
                let date = jiff::Timestamp::from_second((whole * SECONDS) as i64)
                    .map(|begun| Offset::UTC.to_datetime(begun).date());
                date.map_or(f64::NAN, |date| {
                    let passed = f64::from(date.day_of_year() - 1) + days - whole;
                    passed / f64::from(date.days_in_year())
                })
            }
        }
    }
}

impl Wave {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Sine, Self::Cosine];

    /// As features are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sine => "sine",
            Self::Cosine => "cosine",
        }
    }

    /// The coordinate at a phase from 0 to 1.
    pub fn at(self, phase: f64) -> f64 {
        let angle = std::f64::consts::TAU * phase;
        match self {
            Self::Sine => angle.sin(),
            Self::Cosine => angle.cos(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_1970() {
        // Numbers of days by hand: 51 years of 365 days, 13 leap days until 2021, then January, February and three days of March.
        let day = f64::from(51 * 365 + 13 + 31 + 28 + 3);
        for (form, text, expected) in [
            (TimeForm::Iso, "1970-01-01", 0.0),
            (TimeForm::Iso, "2021-03-04", day),
            (TimeForm::Iso, "2021/03/04", day),
            (TimeForm::Iso, "1969-12-31", -1.0),
            (TimeForm::Iso, "2021-03-04T06:00:00", day + 0.25),
            (TimeForm::Iso, " 2021-03-04 06:00 ", day + 0.25),
            (TimeForm::Iso, "2021-03-04T06:00:00Z", day + 0.25),
            (TimeForm::Iso, "2021-03-04 06:00:00+06:00", day),
            (TimeForm::Iso, "2021-03-04 06:00:00-0600", day + 0.5),
            (TimeForm::Iso, "2021-03-04T00:00:00.864", day + 1e-5),
            (TimeForm::DayFirst, "4.3.2021", day),
            (TimeForm::DayFirst, "04/03/2021 12:00", day + 0.5),
            (TimeForm::MonthFirst, "3/4/2021", day),
            (TimeForm::MonthFirst, "03-04-2021 18:00:00", day + 0.75),
            (TimeForm::Clock, "18:30", 18.5 / 24.0),
            (TimeForm::Clock, "6:30 PM", 18.5 / 24.0),
            (TimeForm::Clock, "06:30:36 p.m.", 18.51 / 24.0),
            (TimeForm::Clock, "12:00 AM", 0.0),
            (TimeForm::Clock, "12:45pm", 12.75 / 24.0),
            (TimeForm::Clock, "6 PM", 0.75),
            (TimeForm::DayFirst, "04.03.21", day),
            (TimeForm::DayFirst, "4/3/21 6:00 PM", day + 0.75),
            (TimeForm::MonthFirst, "03/04/21", day),
            (TimeForm::MonthFirst, "3/4/2021, 12:00:00 AM", day),
            (TimeForm::MonthFirst, "03/04/70", 62.0),
            (TimeForm::Named, "4 Mar 2021", day),
            (TimeForm::Named, "04-Mar-21", day),
            (TimeForm::Named, "4th March 2021 12:00", day + 0.5),
            (TimeForm::Named, "March 4, 2021", day),
            (TimeForm::Named, "Mar 04 2021 6:00PM", day + 0.75),
            (TimeForm::Named, "2021-Mar-04", day),
            (TimeForm::Named, "4. März 2021", day),
            (TimeForm::Named, "Thu, 04 Mar 2021 06:00:00 GMT", day + 0.25),
            (TimeForm::Named, "Thu, 4 Mar 2021 06:00:00 +0600", day),
            (TimeForm::Named, "Thursday, March 4, 2021", day),
            (TimeForm::Month, "2021-03", day - 3.0),
            (TimeForm::Month, "2021/3", day - 3.0),
            (TimeForm::Month, "2021M03", day - 3.0),
            (TimeForm::Month, "03/2021", day - 3.0),
            (TimeForm::Month, "Mar 2021", day - 3.0),
            (TimeForm::Month, "march 2021", day - 3.0),
            (TimeForm::Month, "Mar-21", day - 3.0),
            (TimeForm::Quarter, "2021Q1", day - 62.0),
            (TimeForm::Quarter, "2021-q2", day + 28.0),
            (TimeForm::Quarter, "Q2 2021", day + 28.0),
            (TimeForm::Quarter, "2Q21", day + 28.0),
            (TimeForm::Clock, "00:00:43.2", 43.2 / 86_400.0),
        ] {
            let found = form.days(text).unwrap_or_else(|| panic!("{text}"));
            assert!((found - expected).abs() < 1e-9, "{text}: {found}, {expected}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "12",
            "2021",
            "20210304",
            "2021-13-04",
            "2021-02-30",
            "2021-03-04x",
            "2021-03-04T",
            "3.14",
            "red",
            "13.1.20",
            "1.2.3",
            "20-01-13",
            "1-13-20",
            "March 12",
            "2021-13",
            "2021Q5",
            "13:05 PM",
            "1:5 PM",
            "jui 2021",
            "31 Feb 2021",
        ] {
            for form in TimeForm::ALL {
                assert_eq!(form.days(text), None, "{text}, {form:?}");
            }
        }
        for (form, text) in [
            (TimeForm::MonthFirst, "13/1/2021"),
            (TimeForm::DayFirst, "1/13/2021"),
            (TimeForm::Clock, "24:30"),
            (TimeForm::Iso, "2021-03-04 05:06 nowhere"),
            (TimeForm::Iso, "٢٠٢١-03-04"),
        ] {
            assert_eq!(form.days(text), None, "{text}");
        }
    }

    #[test]
    fn cycles_begin_anew() {
        let at = |text: &str| TimeForm::Iso.days(text).unwrap();
        // 4 January 2021 was a Monday.
        assert_eq!(Cycle::Week.phase(at("2021-01-04")), 0.0);
        assert!((Cycle::Week.phase(at("2021-01-10T12:00")) - 6.5 / 7.0).abs() < 1e-12);
        assert_eq!(Cycle::Year.phase(at("2020-01-01")), 0.0);
        assert!((Cycle::Year.phase(at("2020-12-31T12:00")) - 365.5 / 366.0).abs() < 1e-12);
        assert!((Cycle::Year.phase(at("1969-07-02T12:00")) - 0.5).abs() < 1e-12);
        assert!((Cycle::Day.phase(at("1969-07-02T18:00")) - 0.75).abs() < 1e-9);
        assert!((Wave::Sine.at(0.25) - 1.0).abs() < 1e-15 && (Wave::Cosine.at(0.5) + 1.0).abs() < 1e-15);
        assert!(Cycle::Year.phase(1e300).is_nan());
    }
}
