//! Designs that know no image: angles of a half turn, at which the last is the neighbour of the first.

use super::DesignError;
use posterior_linalg::random::Streams;
use rand::RngExt;

/// `count` equidistant ones of `angles`, beginning with the first, in the order of a refined scan: those of `pilot` equidistant ones first, then the rest by number.
///
/// Such designs exist only for counts that divide the angles and are multiples of the pilot's: of 200 angles with 5 in the pilot scan, 5, 10, 20, 25, 40, 50, 100 and 200 (the published comparison has the first five).
///
/// # Errors
/// [`DesignError::Equidistant`] for another count.
pub fn equidistant(angles: usize, pilot: usize, count: usize) -> Result<Vec<usize>, DesignError> {
    if count == 0 || pilot == 0 || !angles.is_multiple_of(count) || !count.is_multiple_of(pilot) {
        return Err(DesignError::Equidistant { angles, pilot, count });
    }
    let (step, coarse) = (angles / count, angles / pilot);
    let first = (0..pilot).map(|i| i * coarse);
    let rest = (0..count).map(|i| i * step).filter(|angle| !angle.is_multiple_of(coarse));
    Ok(first.chain(rest).collect())
}

/// The pilot's angles and then, until there are `count`, the middle of the largest gap (of equal gaps the first; of two middles the lower): for counts of which no [`equidistant`] design exists.
///
/// # Errors
/// [`DesignError::Angle`], [`DesignError::Repeated`] for a pilot angle that does not exist or is named twice, [`DesignError::Exhausted`] when there are fewer angles than wanted.
pub fn largest_gaps(angles: usize, pilot: &[usize], count: usize) -> Result<Vec<usize>, DesignError> {
    let mut chosen = begin(angles, pilot, count)?;
    while chosen.len() < count {
        let mut sorted = chosen.clone();
        sorted.sort_unstable();
        // Of nothing, the first angle; of one angle, the whole half turn is a gap.
        let gaps = sorted.iter().enumerate().map(|(i, &from)| {
            let to = sorted.get(i + 1).copied().unwrap_or(sorted[0] + angles);
            (from, to - from)
        });
        let widest = gaps.fold((0, 0), |best, gap| if gap.1 > best.1 { gap } else { best });
        chosen.push((widest.0 + widest.1 / 2) % angles);
    }
    Ok(chosen)
}

/// The pilot's angles and then, until there are `count`, others at random, each as likely as any.
///
/// # Errors
/// As [`largest_gaps`].
pub fn random(
    angles: usize,
    pilot: &[usize],
    count: usize,
    streams: Streams,
) -> Result<Vec<usize>, DesignError> {
    let mut chosen = begin(angles, pilot, count)?;
    let mut rest: Vec<usize> = (0..angles).filter(|angle| !chosen.contains(angle)).collect();
    let mut rng = streams.stream("tomography/random-angles");
    while chosen.len() < count {
        chosen.push(rest.swap_remove(rng.random_range(0..rest.len())));
    }
    Ok(chosen)
}

/// The pilot, checked.
fn begin(angles: usize, pilot: &[usize], count: usize) -> Result<Vec<usize>, DesignError> {
    check_angles(angles, pilot)?;
    if count > angles {
        return Err(DesignError::Exhausted { angles });
    }
    Ok(pilot.to_vec())
}

/// Every angle exists, and none is there twice.
pub(super) fn check_angles(angles: usize, chosen: &[usize]) -> Result<(), DesignError> {
    let mut seen = vec![false; angles];
    for &angle in chosen {
        match seen.get_mut(angle) {
            None => return Err(DesignError::Angle { angle, angles }),
            Some(true) => return Err(DesignError::Repeated { angle }),
            Some(seen) => *seen = true,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equidistant_counts_divide_and_keep_the_pilot() {
        let counts: Vec<usize> = (1..=40).filter(|&count| equidistant(200, 5, count).is_ok()).collect();
        assert_eq!(counts, [5, 10, 20, 25, 40]);
        let ten = equidistant(200, 5, 10).unwrap();
        assert_eq!(ten, [0, 40, 80, 120, 160, 20, 60, 100, 140, 180]);
        let error = equidistant(200, 5, 15).unwrap_err().to_string();
        assert!(error.contains("multiple of 5") && error.contains("largest_gaps"), "{error}");
    }

    #[test]
    fn gaps_are_halved_and_random_angles_differ() {
        assert_eq!(largest_gaps(200, &[0, 40, 80, 120, 160], 8).unwrap(), [0, 40, 80, 120, 160, 20, 60, 100]);
        // The gap over the end of the half turn.
        assert_eq!(largest_gaps(20, &[8, 12], 4).unwrap(), [8, 12, 0, 4]);
        let all = largest_gaps(9, &[3], 9).unwrap();
        assert!((0..9).all(|angle| all.contains(&angle)));
        let drawn = random(50, &[7, 9], 20, Streams::new(1)).unwrap();
        assert_eq!(drawn, random(50, &[7, 9], 20, Streams::new(1)).unwrap());
        assert_ne!(drawn, random(50, &[7, 9], 20, Streams::new(2)).unwrap());
        assert!(drawn.starts_with(&[7, 9]) && check_angles(50, &drawn).is_ok() && drawn.len() == 20);
        assert_eq!(random(5, &[5], 5, Streams::new(1)), Err(DesignError::Angle { angle: 5, angles: 5 }));
        assert_eq!(largest_gaps(5, &[1, 1], 5), Err(DesignError::Repeated { angle: 1 }));
        assert_eq!(largest_gaps(5, &[1], 6), Err(DesignError::Exhausted { angles: 5 }));
        assert_eq!(largest_gaps(5, &[], 1), Ok(vec![0]));
    }
}
