//! Dates and times of Parquet as texts in the form of ISO 8601, in coordinated universal time.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const NANOS_PER_DAY: i128 = 86_400_000_000_000;

/// The day of 1970-01-01 in the count of days from noon of 4713 before our era.
const JULIAN_1970: i64 = 2_440_588;

/// What a whole number of a time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Milli,
    Micro,
    Nano,
}

impl Unit {
    /// So many of them in nanoseconds.
    pub(super) fn nanos(self, count: i64) -> i128 {
        let one = match self {
            Self::Milli => 1_000_000,
            Self::Micro => 1000,
            Self::Nano => 1,
        };
        i128::from(count) * one
    }
}

/// Nanoseconds from 1970 of a day, counted as astronomers do, and of the nanoseconds in it: three words, the lowest first.
pub(super) fn julian(words: &[u32]) -> i128 {
    let [low, high, day] = *words else { return i128::MAX };
    let within = (u64::from(high) << 32 | u64::from(low)).cast_signed();
    i128::from(i64::from(day) - JULIAN_1970) * NANOS_PER_DAY + i128::from(within)
}

/// `2021-03-04` for days from 1970; None outside of the years -9999 to 9999.
pub(crate) fn date(days: i32) -> Option<String> {
    universal(i128::from(days) * NANOS_PER_DAY).map(|at| at.date().to_string())
}

/// `2021-03-04T05:06:07`, with as many decimal places of the second as it has, for nanoseconds from 1970; None outside of the years -9999 to 9999.
pub(crate) fn instant(nanos: i128) -> Option<String> {
    universal(nanos).map(|at| at.to_string())
}

/// `05:06:07`, with decimal places as above, for nanoseconds from midnight; None outside of a day.
pub(crate) fn time(nanos: i128) -> Option<String> {
    (0..NANOS_PER_DAY).contains(&nanos).then(|| universal(nanos).map(|at| at.time().to_string()))?
}

/// 16 bytes as `00112233-4455-6677-8899-aabbccddeeff`; None for others.
pub(super) fn uuid(bytes: &[u8]) -> Option<String> {
    let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32];
    (bytes.len() == 16).then(|| groups.map(|group| &digits[group]).join("-"))
}

fn universal(nanos: i128) -> Option<DateTime> {
    Timestamp::from_nanosecond(nanos).ok().map(|at| TimeZone::UTC.to_datetime(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(date(0).as_deref(), Some("1970-01-01"));
        // The year 2000 has a leap day, 1900 has none.
        assert_eq!(date(11_016).as_deref(), Some("2000-02-29"));
        assert_eq!(date(-25_508).as_deref(), Some("1900-03-01"));
        assert_eq!(date(18_690).as_deref(), Some("2021-03-04"));
        assert_eq!(date(i32::MAX), None);
        let unix = 1_614_834_367_i64;
        assert_eq!(instant(Unit::Milli.nanos(unix * 1000)).as_deref(), Some("2021-03-04T05:06:07"));
        assert_eq!(
            instant(Unit::Micro.nanos(unix * 1_000_000 + 250_000)).as_deref(),
            Some("2021-03-04T05:06:07.25")
        );
        assert_eq!(instant(Unit::Nano.nanos(-1)).as_deref(), Some("1969-12-31T23:59:59.999999999"));
        assert_eq!(instant(Unit::Milli.nanos(i64::MAX)), None);
        let day = 18_690 + 2_440_588;
        let nanos = 18_367_u64 * 1_000_000_000;
        assert_eq!(
            instant(julian(&[nanos as u32, (nanos >> 32) as u32, day])).as_deref(),
            Some("2021-03-04T05:06:07")
        );
        assert_eq!(time(0).as_deref(), Some("00:00:00"));
        assert_eq!(time(Unit::Milli.nanos(86_399_999)).as_deref(), Some("23:59:59.999"));
        assert_eq!((time(-1), time(NANOS_PER_DAY)), (None, None));
        let bytes: Vec<u8> = (0..16).map(|i| i * 17).collect();
        assert_eq!(uuid(&bytes).as_deref(), Some("00112233-4455-6677-8899-aabbccddeeff"));
        assert_eq!(uuid(&bytes[1..]), None);
    }
}
