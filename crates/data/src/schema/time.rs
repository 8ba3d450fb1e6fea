//! Dates and times as numbers: days, of 86,400 seconds each, from the beginning of 1970; hours and minutes are parts of a day.
//!
//! ```text
//! iso          2021-03-04, 2021/03/04, 2021-03-04T05:06:07.5+02:00, 2021-03-04 05:06
//! day-first    4.3.2021, 4/3/2021, 4-3-2021, each with a time of day behind it or not
//! month-first  3/4/2021, 3-4-2021, likewise
//! clock        05:06, 05:06:07.5
//! ```
//!
//! An offset from Greenwich is taken off; without one a time counts as it stands.

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
    pub const ALL: [Self; 4] = [Self::Iso, Self::DayFirst, Self::MonthFirst, Self::Clock];

    /// As it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iso => "year-month-day",
            Self::DayFirst => "day.month.year",
            Self::MonthFirst => "month/day/year",
            Self::Clock => "hours:minutes",
        }
    }

    /// Patterns of the date; of a clock the empty one.
    fn patterns(self) -> &'static [&'static str] {
        match self {
            Self::Iso => &["%Y-%m-%d", "%Y/%m/%d"],
            Self::DayFirst => &["%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y"],
            Self::MonthFirst => &["%m/%d/%Y", "%m-%d-%Y"],
            Self::Clock => &[""],
        }
    }

    /// The days from the beginning of 1970 that a text says; of a clock the share of a day. None where it is written in another way, or is no date.
    pub fn days(self, text: &str) -> Option<f64> {
        let text = text.trim();
        // What is no date is told quickly: columns of text are full of it.
        if !(4..=40).contains(&text.len()) || !text.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.patterns().iter().find_map(|pattern| self.by(pattern, text))
    }

    fn by(self, pattern: &str, text: &str) -> Option<f64> {
        if self == Self::Clock {
            let (seconds, rest) = clock(text)?;
            return rest.is_empty().then_some(seconds / SECONDS);
        }
        let (read, used) = BrokenDownTime::parse_prefix(pattern, text).ok()?;
        let date = read.to_date().ok()?;
        let (written, rest) = text.split_at(used);
        // A year has four digits: `1.2.20` may be of any century, and `1.2.3` of a program.
        let mut parts = written.split(|c: char| !c.is_ascii_digit());
        let year = if self == Self::Iso { parts.next() } else { parts.next_back() };
        if year.is_none_or(|year| year.len() != 4) {
            return None;
        }
        let days = day_number(date)?;
        if rest.is_empty() {
            return Some(days);
        }
        let (seconds, zone) = clock(rest.strip_prefix(['T', ' '])?.trim_start())?;
        Some(days + (seconds - offset(zone)?) / SECONDS)
    }
}

/// Seconds of a day, and what stands behind them.
fn clock(text: &str) -> Option<(f64, &str)> {
    let (read, used) = BrokenDownTime::parse_prefix("%H:%M", text).ok()?;
    let mut seconds = 3600.0 * f64::from(read.hour()?) + 60.0 * f64::from(read.minute()?);
    let mut rest = &text[used..];
    if rest.starts_with(':') {
        let (read, used) = BrokenDownTime::parse_prefix(":%S%.f", rest).ok()?;
        seconds += f64::from(read.second()?) + f64::from(read.subsec_nanosecond().unwrap_or(0)) / 1e9;
        rest = &rest[used..];
    }
    Some((seconds, rest))
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
            "1/13/20",
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
