//! The angles of a scan.

use crate::TomographyError;
use serde::{Deserialize, Serialize};

/// So many angles from 0 on, evenly over a range that the next one would end.
pub fn equidistant(count: usize, range: f64) -> Vec<f64> {
    (0..count).map(|k| k as f64 * range / count.max(1) as f64).collect()
}

/// What listed angles are counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AngleUnit {
    /// 360 to a turn.
    #[default]
    Degrees,
    /// 2 pi to a turn.
    Radians,
}

/// Angles as a file has them: `{ count = 60 }`, over half a turn or whatever `range_degrees` says, or `{ values = [0, 3, 6], unit = "degrees" }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanAngles {
    /// Equidistant angles from 0 on.
    pub count: Option<usize>,
    /// The range that they divide, degrees.
    pub range_degrees: Option<f64>,
    /// Or the angles one by one.
    pub values: Option<Vec<f64>>,
    /// What these are counted in.
    pub unit: Option<AngleUnit>,
}

impl ScanAngles {
    /// The angles in radians; a range that is not given is so many degrees.
    ///
    /// # Errors
    /// [`TomographyError::Geometry`] when neither or both ways are given, or there are none.
    pub(super) fn radians(&self, usual_range: f64) -> Result<Vec<f64>, TomographyError> {
        let wrong = |problem: &str| Err(TomographyError::Geometry { problem: problem.into() });
        match (self.count, &self.values) {
            (Some(0), _) => wrong("there are no angles: `count` must be at least 1"),
            (Some(_), Some(_)) => wrong("`angles` has both `count` and `values`: give one of them"),
            (None, None) => wrong("`angles` needs `count` (equidistant) or `values` (a list)"),
            (Some(_), None) if self.unit.is_some() => {
                wrong("`unit` belongs to `values`; equidistant angles have `range_degrees`")
            }
            (None, Some(_)) if self.range_degrees.is_some() => {
                wrong("`range_degrees` belongs to `count`; `values` are the angles themselves")
            }
            (Some(count), None) if count > super::MOST_VALUES => wrong("`count` is beyond memory"),
            (Some(count), None) => {
                let range = self.range_degrees.unwrap_or(usual_range);
                if !(range > 0.0 && range.is_finite()) {
                    return wrong("`range_degrees` must be positive and finite");
                }
                Ok(equidistant(count, range.to_radians()))
            }
            (None, Some(values)) if values.is_empty() => wrong("there are no angles: `values` is empty"),
            (None, Some(values)) => Ok(match self.unit.unwrap_or_default() {
                AngleUnit::Radians => values.clone(),
                AngleUnit::Degrees => values.iter().map(|v| v.to_radians()).collect(),
            }),
        }
    }
}
