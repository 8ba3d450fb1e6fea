//! What numbers a flag may have: every flag with a number names one of these parsers, whose messages say what is allowed.
//!
//! Bounds of counts are far beyond any use and small enough that sizes computed from them cannot overflow; whether so much fits the memory
//! is for the plans to say.

use std::ops::RangeInclusive;

/// Most steps, epochs and the like.
pub const MOST_STEPS: usize = 100_000_000;

/// Most rows, points, draws and the like that are kept in memory.
pub const MOST_KEPT: usize = 10_000_000;

/// Most gigabytes.
const MOST_GIGABYTES: f64 = 1e6;

/// Most threads on small machines; larger ones may have four for each core.
const THREADS_ANYWHERE: usize = 64;

/// A whole number of the range, both ends included.
pub fn whole(
    allowed: RangeInclusive<usize>,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| {
        text.trim()
            .parse()
            .ok()
            .filter(|n| allowed.contains(n))
            .ok_or_else(|| format!("it must be a whole number from {} to {}", allowed.start(), allowed.end()))
    }
}

/// As many threads as this machine may start without harm.
pub fn threads(text: &str) -> Result<usize, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    whole(1..=THREADS_ANYWHERE.max(4 * cores))(text)
        .map_err(|problem| format!("{problem}: this machine has {cores} cores"))
}

/// A finite number.
pub fn finite(text: &str) -> Result<f64, String> {
    real(text, |_| true, "a finite number")
}

/// A finite number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    real(text, |v| v > 0.0, "a finite number above 0")
}

/// A finite number that is not below 0.
pub fn not_negative(text: &str) -> Result<f64, String> {
    real(text, |v| v >= 0.0, "0 or a finite number above it")
}

/// A number between 0 and 1, neither included.
pub fn share(text: &str) -> Result<f64, String> {
    real(text, |v| v > 0.0 && v < 1.0, "a number between 0 and 1")
}

/// A number from 0 to below 1.
pub fn share_or_none(text: &str) -> Result<f64, String> {
    real(text, |v| (0.0..1.0).contains(&v), "a number from 0 to below 1")
}

/// A number above 0 and up to 1.
pub fn share_or_all(text: &str) -> Result<f64, String> {
    real(text, |v| v > 0.0 && v <= 1.0, "a number above 0 and at most 1")
}

/// A number from 0 to 1.
pub fn from_none_to_all(text: &str) -> Result<f64, String> {
    real(text, |v| (0.0..=1.0).contains(&v), "a number from 0 to 1")
}

/// A limit of memory, in bytes, from gigabytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let allowed = |v| v > 0.0 && v <= MOST_GIGABYTES;
    let number = real(text, allowed, &format!("a number of gigabytes above 0 and at most {MOST_GIGABYTES}"))?;
    Ok((number * 1e9) as u64)
}

/// A limit of memory that may be nothing, in bytes, from gigabytes.
pub fn bytes_or_none(text: &str) -> Result<usize, String> {
    let allowed = |v| (0.0..=MOST_GIGABYTES).contains(&v);
    let number = real(text, allowed, &format!("a number of gigabytes from 0 to {MOST_GIGABYTES}"))?;
    Ok((number * 1e9) as usize)
}

/// A time in seconds: `90`, `90s`, `5m`, `2h`.
///
/// # Errors
/// What is no time.
pub fn time(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (number, unit) = match text.char_indices().last() {
        Some((i, 's')) => (&text[..i], 1.0),
        Some((i, 'm')) => (&text[..i], 60.0),
        Some((i, 'h')) => (&text[..i], 3600.0),
        _ => (text, 1.0),
    };
    let number = number.trim().parse().ok().filter(|v: &f64| v.is_finite() && *v > 0.0);
    number.map(|v| v * unit).ok_or_else(|| "it is no time; write 90s, 5m or 2h".into())
}

/// A number of seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    real(text, |v| v > 0.0 && v <= 1e9, "a number of seconds above 0 and at most 1e9")
}

fn real(text: &str, allowed: impl Fn(f64) -> bool, what: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|v: &f64| v.is_finite() && allowed(*v));
    number.ok_or_else(|| format!("it must be {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_their_ends_and_nothing_beyond() {
        let parse = whole(2..=5);
        assert_eq!((parse("2"), parse(" 5 ")), (Ok(2), Ok(5)));
        for bad in ["1", "6", "-3", "2.5", "NaN", "", "18446744073709551616"] {
            assert_eq!(parse(bad), Err("it must be a whole number from 2 to 5".into()), "{bad}");
        }
        assert_eq!((share("0.5"), share_or_none("0"), share_or_all("1")), (Ok(0.5), Ok(0.0), Ok(1.0)));
        for bad in ["0", "1", "-0.1", "nan", "inf", "x"] {
            assert!(share(bad).is_err(), "{bad}");
        }
        assert!(share_or_none("1").is_err() && share_or_all("0").is_err());
        for parse in [finite, positive, not_negative, seconds] {
            assert_eq!(parse("2.5"), Ok(2.5));
            for bad in ["nan", "inf", "-inf", "", "one"] {
                assert!(parse(bad).is_err(), "{bad}");
            }
        }
        assert_eq!((bytes("2.5"), bytes_or_none("2.5")), (Ok(2_500_000_000), Ok(2_500_000_000)));
        for bad in ["nan", "inf", "-inf", "", "one"] {
            assert!(bytes(bad).is_err() && bytes_or_none(bad).is_err(), "{bad}");
        }
        assert!(positive("0").is_err() && bytes("0").is_err() && seconds("0").is_err());
        assert_eq!((not_negative("0"), bytes_or_none("0"), finite("-1")), (Ok(0.0), Ok(0), Ok(-1.0)));
        assert!(bytes("9223372036854775808").is_err() && seconds("2e9").is_err());
    }

    #[test]
    fn times_have_units() {
        for (text, expected) in [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0)] {
            assert_eq!(time(text), Ok(expected));
        }
        for text in ["", "m", "-3s", "NaN", "5 minutes"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn small_machines_start_sixteen_threads_and_none_starts_a_hundred_thousand() {
        assert_eq!(threads("16"), Ok(16));
        for bad in ["0", "100000", "-1"] {
            assert!(threads(bad).unwrap_err().contains("cores"), "{bad}");
        }
    }
}
