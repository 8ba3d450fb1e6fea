//! **Precision and noise by unseen examples**: samples are drawn anew, on the same noise, for each of a few settings, and those are kept whose predictions score best.
//!
//! Few examples leave the prior where they do not reach, however well its precision suits them: what turns find is then too small for predictions, and only examples that neither network nor samples have seen tell.

use crate::LaplaceError;
use crate::scores::GridPoint;

/// Factor between neighbouring prior precisions: half a decade, within which scores hardly move.
const PRECISION_STEP: f64 = 3.162_277_660_168_379_5;

/// Factor between neighbouring noise variances: an eighth of a decade.
const NOISE_STEP: f64 = 1.333_521_432_163_324;

/// The score of a point that is not known yet, given all that are.
type Score<'a> = &'a mut dyn FnMut(GridPoint, &[GridPoint]) -> Result<f64, LaplaceError>;

/// The search, over factors on the precisions and the noise variance.
pub(super) struct Search<'a> {
    /// Points at most, for precisions and noise each.
    pub(super) tries: usize,
    /// Where noise begins.
    pub(super) noise_variance: f64,
    /// Whether it is searched for as well.
    pub(super) learn_noise: bool,
    /// What was scored so far, in order; an interrupted search begins with what it had.
    pub(super) scored: &'a mut Vec<GridPoint>,
}

impl Search<'_> {
    /// Walks along precisions, then noise, then precisions again where noise has moved. The best point, and whether scores still fell there.
    pub(super) fn run(&mut self, score: Score<'_>) -> Result<(GridPoint, bool), LaplaceError> {
        let mut next = 0;
        let mut scored = |mut point: GridPoint, all: &mut Vec<GridPoint>| {
            let known = all.get(next).is_some_and(|k| {
                (k.precision_factor, k.noise_variance) == (point.precision_factor, point.noise_variance)
            });
            if !known {
                all.truncate(next);
                point.nll = score(point, all)?;
                if !point.nll.is_finite() {
                    return Err(LaplaceError::Request(format!(
                        "samples under {:.3e} times the precision of the turns have no finite score on the unseen examples; check their targets",
                        point.precision_factor
                    )));
                }
                all.push(point);
            }
            next += 1;
            Ok(all[next - 1])
        };
        let start = GridPoint { precision_factor: 1.0, noise_variance: self.noise_variance, nll: 0.0 };
        let mut best = scored(start, self.scored)?;
        let mut edge = false;
        for noise in [false, true, false] {
            if noise && !self.learn_noise {
                break;
            }
            let centre = best;
            edge = walk(self.tries, &mut best, &mut |k| {
                let mut point = centre;
                match noise {
                    true => point.noise_variance *= NOISE_STEP.powi(k),
                    false => point.precision_factor *= PRECISION_STEP.powi(k),
                }
                scored(point, self.scored)
            })?;
            if noise && best.noise_variance == centre.noise_variance {
                break;
            }
        }
        Ok((best, edge))
    }
}

/// Steps upwards from the best point while scores fall, or else downwards, `most` in all. Whether they still fell when there were no more.
fn walk(
    most: usize,
    best: &mut GridPoint,
    score: &mut dyn FnMut(i32) -> Result<GridPoint, LaplaceError>,
) -> Result<bool, LaplaceError> {
    let mut left = most;
    for direction in [1, -1] {
        let (mut k, mut moved) = (direction, false);
        while left > 0 {
            left -= 1;
            let point = score(k)?;
            if point.nll >= best.nll {
                break;
            }
            (*best, moved, k) = (point, true, k + direction);
            if left == 0 {
                return Ok(true);
            }
        }
        if moved {
            break;
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valley in both logarithms, whose floor is at these powers of the steps.
    fn valley(floor: (f64, f64)) -> impl FnMut(GridPoint, &[GridPoint]) -> Result<f64, LaplaceError> {
        move |p, _| {
            let a = p.precision_factor.ln() / PRECISION_STEP.ln() - floor.0;
            let s = p.noise_variance.ln() / NOISE_STEP.ln() - floor.1;
            Ok(a * a + s * s + 0.3 * a * s)
        }
    }

    fn search(scored: &mut Vec<GridPoint>, learn_noise: bool) -> Search<'_> {
        Search { tries: 12, noise_variance: 1.0, learn_noise, scored }
    }

    #[test]
    fn valleys_are_found_up_and_down_and_what_is_known_is_not_asked_again() {
        for (floor, learn_noise) in
            [((4.0, 0.0), false), ((-3.0, 0.0), false), ((2.0, -3.0), true), ((0.0, 2.0), true)]
        {
            let mut all = Vec::new();
            let (best, edge) = search(&mut all, learn_noise).run(&mut valley(floor)).unwrap();
            assert!(!edge);
            let found = (
                best.precision_factor.ln() / PRECISION_STEP.ln(),
                best.noise_variance.ln() / NOISE_STEP.ln(),
            );
            assert!(
                (found.0 - floor.0).abs() < 1.01 && (found.1 - floor.1).abs() < 1.01,
                "{found:?} {floor:?}"
            );
            assert!(all.iter().all(|p| p.nll >= best.nll));
            for kept in 0..=all.len() {
                let (mut part, mut asked) = (all[..kept].to_vec(), 0);
                let mut score = valley(floor);
                let again = search(&mut part, learn_noise).run(&mut |p, known| {
                    asked += 1;
                    score(p, known)
                });
                assert_eq!(again.unwrap(), (best, edge));
                assert_eq!((asked, &part), (all.len() - kept, &all));
            }
        }
    }

    #[test]
    fn the_end_of_the_tries_and_scores_without_a_number_are_told() {
        let mut all = Vec::new();
        let (best, edge) = search(&mut all, false).run(&mut |p, _| Ok(-p.precision_factor)).unwrap();
        assert!(edge && (best.precision_factor / 1e6 - 1.0).abs() < 1e-9, "{best:?}");
        let (mut none, mut known) = (Vec::new(), 0);
        let error = search(&mut none, false).run(&mut |_, all| {
            known = all.len();
            Ok(if all.is_empty() { 1.0 } else { f64::NAN })
        });
        assert!(error.unwrap_err().to_string().contains("no finite score"));
        assert_eq!(known, 1);
    }
}
