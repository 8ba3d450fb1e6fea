//! Labelled points for classification.

use crate::limits::{check_memory, finite_at_least};
use crate::{ArrayValues, Column, DataError, NumericArray, Table};
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

/// Points and their classes.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledPoints {
    /// What the problem is called; the `source` of its table.
    pub name: &'static str,
    /// Points, n x D, in double precision.
    pub features: NumericArray,
    /// The class of each (n), from 0. Classes take turns, so that any run of rows is balanced.
    pub labels: Vec<u32>,
    /// The centre of each class, in D coordinates: that of the circle.
    pub centres: Vec<Vec<f64>>,
}

impl LabelledPoints {
    /// Columns `x1`, `x2`, ... and `class`.
    pub fn table(&self) -> Table {
        let dimensions = self.features.example_shape().iter().product::<usize>();
        let values = self.features.to_f64();
        let column = |j: usize| {
            Column::numeric(
                format!("x{}", j + 1),
                values.iter().skip(j).step_by(dimensions).copied().collect(),
            )
        };
        let classes = self.labels.iter().map(|c| f64::from(*c)).collect();
        let columns = (0..dimensions).map(column).chain([Column::numeric("class", classes)]).collect();
        Table::new(self.name, columns)
    }

    fn new(
        name: &'static str,
        n: usize,
        centres: Vec<Vec<f64>>,
        mut point: impl FnMut(usize, &mut Vec<f64>),
    ) -> Result<Self, DataError> {
        let (classes, dimensions) = (centres.len(), centres.first().map_or(0, Vec::len));
        let mut features = Vec::with_capacity(n * dimensions);
        let labels = (0..n).map(|i| (i % classes) as u32).collect();
        (0..n).for_each(|i| point(i % classes, &mut features));
        let features = NumericArray::new(vec![n, dimensions], ArrayValues::F64(features))?;
        Ok(Self { name, features, labels, centres })
    }
}

/// Two interleaved half circles of radius 1 in the plane: class 0 is the upper half about (0, 0), class 1 the lower half about
/// (1, ½). Angles are uniform; each coordinate has normal noise of standard deviation `noise`.
///
/// # Errors
/// [`DataError::Argument`] without rows or for a noise that is negative or not finite; [`DataError::Oversized`] beyond 8 GiB.
pub fn two_moons(n: usize, noise: f64, streams: Streams) -> Result<LabelledPoints, DataError> {
    check_rows(n, 2)?;
    finite_at_least("noise", noise, 0.0)?;
    let mut rng = streams.stream("data/two-moons");
    let centres = vec![vec![0.0, 0.0], vec![1.0, 0.5]];
    LabelledPoints::new("two moons", n, centres.clone(), |class, out| {
        let angle = PI * (rng.random::<f64>() - class as f64);
        for (at, on_circle) in centres[class].iter().zip([angle.cos(), angle.sin()]) {
            let error: f64 = StandardNormal.sample(&mut rng);
            out.push(at + on_circle + noise * error);
        }
    })
}

/// Clouds in the plane, one for each class, equally spaced on the circle of radius 1; each coordinate is normal about the centre with standard deviation `noise`. The probabilities of
/// the classes at a point are the softmax of `-|x - centre|² / (2 noise²)`.
///
/// # Errors
/// [`DataError::Argument`] without rows, for fewer than two classes, or for a noise that is negative or not finite; [`DataError::Oversized`] beyond 8 GiB.
pub fn clouds(n: usize, classes: usize, noise: f64, streams: Streams) -> Result<LabelledPoints, DataError> {
    check_rows(n, 2)?;
    finite_at_least("noise", noise, 0.0)?;
    if classes < 2 {
        let (value, reason) = (classes.to_string(), "there must be at least two".into());
        return Err(DataError::Argument { argument: "classes", value, reason });
    }
    check_memory("centres", &[classes, 2], 8)?;
    let mut rng = streams.stream("data/clouds");
    let angle = |class: usize| 2.0 * PI * (class as f64 + 0.5) / classes as f64;
    let centres: Vec<Vec<f64>> = (0..classes).map(|k| vec![angle(k).cos(), angle(k).sin()]).collect();
    LabelledPoints::new("clouds", n, centres.clone(), |class, out| {
        for at in &centres[class] {
            let error: f64 = StandardNormal.sample(&mut rng);
            out.push(at + noise * error);
        }
    })
}

fn check_rows(n: usize, dimensions: usize) -> Result<(), DataError> {
    if n == 0 {
        let reason = "there must be at least one row".into();
        return Err(DataError::Argument { argument: "n", value: "0".into(), reason });
    }
    check_memory("points", &[n, dimensions], 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moons_lie_on_their_half_circles() {
        let n = 4_000;
        let clean = two_moons(n, 0.0, Streams::new(1)).unwrap();
        for (p, label) in clean.features.to_f64().chunks(2).zip(&clean.labels) {
            let (x, y) = if *label == 0 { (p[0], p[1]) } else { (p[0] - 1.0, 0.5 - p[1]) };
            assert!((x.hypot(y) - 1.0).abs() < 1e-12 && y > -1e-12, "{p:?} {label}");
        }
        let noise: f64 = 0.2;
        let noisy = two_moons(n, noise, Streams::new(1)).unwrap();
        let square = |(p, label): (&[f64], &u32)| {
            let c = &noisy.centres[*label as usize];
            (p[0] - c[0]).powi(2) + (p[1] - c[1]).powi(2)
        };
        let mean = noisy.features.to_f64().chunks(2).zip(&noisy.labels).map(square).sum::<f64>() / n as f64;
        // |u + ε|² has mean 1 + 2 s² and variance 4 s² + 4 s⁴.
        let tolerance = 5.0 * ((4.0 * noise.powi(2) + 4.0 * noise.powi(4)) / n as f64).sqrt();
        assert!((mean - 1.0 - 2.0 * noise * noise).abs() < tolerance, "{mean}");
        assert_eq!(noisy.table().names(), ["x1", "x2", "class"]);
        assert_eq!(noisy, two_moons(n, noise, Streams::new(1)).unwrap());
    }

    #[test]
    fn clouds_are_normal_about_their_centres() {
        let (n, noise) = (8_000, 0.3);
        let made = clouds(n, 4, noise, Streams::new(2)).unwrap();
        let (mut mean, mut square) = (vec![[0.0f64; 2]; 4], 0.0);
        for (p, label) in made.features.to_f64().chunks(2).zip(&made.labels) {
            let class = *label as usize;
            for j in 0..2 {
                mean[class][j] += p[j] / 2000.0;
                square += (p[j] - made.centres[class][j]).powi(2) / (2 * n) as f64;
            }
        }
        for (found, centre) in mean.iter().zip(&made.centres) {
            assert!((centre[0].hypot(centre[1]) - 1.0).abs() < 1e-12);
            for j in 0..2 {
                assert!((found[j] - centre[j]).abs() < 5.0 * noise / 2000f64.sqrt(), "{found:?} {centre:?}");
            }
        }
        // The mean square of 2n normals has a standard deviation of noise² / sqrt(n).
        assert!((square - noise * noise).abs() < 5.0 * noise * noise / (n as f64).sqrt(), "{square}");
        assert_eq!(made, clouds(n, 4, noise, Streams::new(2)).unwrap());
        for (bad, part) in [
            (clouds(9, 1, 0.1, Streams::new(0)), "`classes` is 1"),
            (clouds(0, 3, 0.1, Streams::new(0)), "`n` is 0"),
            (clouds(9, 3, f64::NAN, Streams::new(0)), "`noise` is NaN"),
            (clouds(9, usize::MAX, 0.1, Streams::new(0)), "bytes"),
        ] {
            let message = bad.unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let streams = Streams::new(0);
        let messages = [
            two_moons(0, 0.1, streams),
            two_moons(5, f64::NAN, streams),
            two_moons(5, -0.5, streams),
            two_moons(usize::MAX, 0.1, streams),
        ]
        .map(|made| made.unwrap_err().to_string());
        for (message, part) in messages.iter().zip([
            "`n` is 0: there must be at least one row",
            "`noise` is NaN: it must be a finite number of at least 0",
            "`noise` is -0.5",
            "bytes",
        ]) {
            assert!(message.contains(part), "{message}");
        }
    }
}
