//! Where the inputs of a model lay in training, and whether later ones lie elsewhere: in other units, or far outside.
//!
//! Three signs are looked for in each numeric column; none of them shows in ordinary rows, nor in extrapolation by up to the width of the training range.
//!
//! * **Far outside**: values more than one width of the training range beyond its ends, in at least one of a hundred rows and in two of [`LEAST_ROWS`] or more; or more than ten widths, in any row. A
//!   fresh value of the training distribution, whatever it is, lies outside the range of n rows at all with a probability of 2 / (n + 1) only.
//! * **Scaled**: a standard deviation of less than a tenth of that of training, with the mean where such a factor would move it to (within one deviation): 0..1 for 0..255, thousands for units. A narrow window
//!   into the training range has its mean elsewhere.
//! * **Standardised**: mean 0 and deviation 1 (within 0.5, within a factor of 2), where training had ten times or a tenth of that deviation.
//!
//! The last two are statements about a distribution, and need at least [`LEAST_ROWS`] rows that are not all equal.

use crate::{DataError, Feature, Reading, RowFile, Schema};
use faer::MatRef;
use serde::{Deserialize, Serialize};

/// Rows that a mean and a deviation need before anything is concluded from them.
pub const LEAST_ROWS: usize = 20;

/// A numeric input over the training rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputRange {
    /// Its index among the model's inputs.
    pub input: usize,
    /// Its column.
    pub column: String,
    /// Smallest value.
    pub minimum: f64,
    /// Largest value.
    pub maximum: f64,
    /// Mean.
    pub mean: f64,
    /// Population standard deviation.
    pub deviation: f64,
}

/// All numeric inputs over the training rows; categories have no range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputRanges(pub Vec<InputRange>);

/// Running moments of the inputs of some rows; those of several parts add up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputMoments {
    rows: usize,
    columns: Vec<Moments>,
    /// Those of further models that were asked about the same rows.
    beside: Vec<InputMoments>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Moments {
    minimum: f64,
    maximum: f64,
    mean: f64,
    /// Sum of squared distances from the mean.
    spread: f64,
    outside: usize,
    far: usize,
}

impl Moments {
    const NONE: Self = Self {
        minimum: f64::INFINITY,
        maximum: f64::NEG_INFINITY,
        mean: 0.0,
        spread: 0.0,
        outside: 0,
        far: 0,
    };

    /// Takes a value into account, the mean being known.
    fn see(&mut self, value: f64) {
        self.minimum = self.minimum.min(value);
        self.maximum = self.maximum.max(value);
        self.spread += (value - self.mean) * (value - self.mean);
    }
}

/// What is odd about a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// Values far outside the training range.
    FarOutside,
    /// The training values times a small number.
    Scaled,
    /// Mean 0 and deviation 1 where training had other ones.
    Standardised,
}

/// A column that is unlike its training rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Departure {
    /// The column.
    pub column: String,
    /// What is odd.
    pub sign: Sign,
    /// Smallest and largest value in training.
    pub training_range: [f64; 2],
    /// Smallest and largest value now.
    pub range: [f64; 2],
    /// Rows that were looked at.
    pub rows: usize,
    /// Rows outside the training range.
    pub rows_outside: usize,
    /// Rows outside it by more than its width.
    pub rows_far_outside: usize,
    /// The largest distance from the training range, in its widths; none where that has no width.
    pub widths_outside: Option<f64>,
    /// The standard deviation now over that in training; none where training had none.
    pub deviation_ratio: Option<f64>,
}

impl InputRanges {
    /// Of training rows (n x D) in their own units, before anything is standardised.
    pub fn learn(schema: &Schema, x: MatRef<'_, f64>) -> Self {
        let mut moments = InputMoments::default();
        moments.add(x, None);
        Self::of(schema, &moments)
    }

    /// The same, bit for bit, of training rows in a file whose first numbers are the inputs. Two passes.
    ///
    /// # Errors
    /// [`DataError::Scratch`].
    pub fn learn_rows(schema: &Schema, file: &RowFile) -> Result<Self, DataError> {
        let (rows, n) = (file.rows(), file.rows().max(1) as f64);
        let mut columns = vec![Moments::NONE; schema.features.len()];
        file.each(|_, row| columns.iter_mut().zip(row).for_each(|(m, v)| m.mean += v / n))?;
        file.each(|_, row| columns.iter_mut().zip(row).for_each(|(m, v)| m.see(*v)))?;
        Ok(Self::of(schema, &InputMoments { rows, columns, beside: Vec::new() }))
    }

    fn of(schema: &Schema, moments: &InputMoments) -> Self {
        let range = |(input, feature): (usize, &Feature)| {
            let Feature::Number { column, reading, .. } = feature else { return None };
            // A circle has no outside.
            if matches!(reading, Reading::Cycle { .. }) {
                return None;
            }
            let Moments { minimum, maximum, mean, spread, .. } = *moments.columns.get(input)?;
            let deviation = (spread / moments.rows.max(1) as f64).sqrt();
            // Only numbers that JSON can hold.
            let finite = [minimum, maximum, mean, deviation].iter().all(|v| v.is_finite());
            finite.then(|| InputRange { input, column: column.clone(), minimum, maximum, mean, deviation })
        };
        Self(schema.features.iter().enumerate().filter_map(range).collect())
    }

    /// These ranges, of so many rows, with further rows (m x D, in their own units).
    pub fn with(&self, rows: usize, x: MatRef<'_, f64>) -> Self {
        let mut moments = InputMoments::default();
        moments.add(x, None);
        let added = |range: &InputRange| {
            let Some(more) = moments.columns.get(range.input) else { return range.clone() };
            let InputRange { minimum, maximum, mean, deviation, .. } = *range;
            let spread = deviation * deviation * rows as f64;
            let known = Moments { minimum, maximum, mean, spread, ..Moments::NONE };
            let mut all = InputMoments { rows, columns: vec![known], ..InputMoments::default() };
            all.merge(InputMoments { rows: moments.rows, columns: vec![*more], ..InputMoments::default() });
            let Moments { minimum, maximum, mean, spread, .. } = all.columns[0];
            let deviation = (spread / all.rows.max(1) as f64).sqrt();
            InputRange { minimum, maximum, mean, deviation, ..range.clone() }
        };
        Self(self.0.iter().map(added).collect())
    }

    /// The moments of some rows (m x D, in their own units) beside these ranges.
    pub fn moments(&self, x: MatRef<'_, f64>) -> InputMoments {
        let mut moments = InputMoments::default();
        moments.add(x, Some(self));
        moments
    }

    /// The columns that are unlike their training rows, each with the first of the three signs that it shows.
    pub fn departures(&self, moments: &InputMoments) -> Vec<Departure> {
        self.0.iter().filter_map(|range| range.departure(moments)).collect()
    }
}

impl InputRange {
    /// How far a value is outside; negative within.
    fn outside(&self, value: f64) -> f64 {
        (self.minimum - value).max(value - self.maximum)
    }

    fn departure(&self, moments: &InputMoments) -> Option<Departure> {
        let found = moments.columns.get(self.input)?;
        let width = self.maximum - self.minimum;
        let deviation = (found.spread / moments.rows.max(1) as f64).sqrt();
        let ratio = (self.deviation > 0.0).then(|| deviation / self.deviation);
        let enough = moments.rows >= LEAST_ROWS && deviation > 0.0;
        let farthest = self.outside(found.minimum).max(self.outside(found.maximum)).max(0.0);
        let several = found.far >= 2 || moments.rows < LEAST_ROWS;
        let far = found.far > 0 && found.far * 100 >= moments.rows && several;
        let sign = if far || farthest > 10.0 * width {
            Sign::FarOutside
        } else if enough && ratio.is_some_and(|c| c < 0.1 && (found.mean - c * self.mean).abs() <= deviation)
        {
            Sign::Scaled
        } else if enough
            && found.mean.abs() <= 0.5
            && (0.5..=2.0).contains(&deviation)
            && ratio.is_some_and(|c| !(0.1..=10.0).contains(&c))
        {
            Sign::Standardised
        } else {
            return None;
        };
        Some(Departure {
            column: self.column.clone(),
            sign,
            training_range: [self.minimum, self.maximum],
            range: [found.minimum, found.maximum],
            rows: moments.rows,
            rows_outside: found.outside,
            rows_far_outside: found.far,
            widths_outside: (width > 0.0).then(|| farthest / width),
            deviation_ratio: ratio,
        })
    }
}

impl InputMoments {
    fn add(&mut self, x: MatRef<'_, f64>, ranges: Option<&InputRanges>) {
        let rows = x.nrows();
        let mut columns: Vec<Moments> = (0..x.ncols())
            .map(|j| {
                let values = x.col(j);
                let n = rows.max(1) as f64;
                // Dividing first keeps sums of the largest doubles finite.
                let mean: f64 = values.iter().fold(0.0, |sum, v| sum + v / n);
                let mut moments = Moments { mean, ..Moments::NONE };
                values.iter().for_each(|v| moments.see(*v));
                moments
            })
            .collect();
        for range in ranges.map_or(&[][..], |r| &r.0) {
            let Some(column) = columns.get_mut(range.input) else { continue };
            let width = range.maximum - range.minimum;
            let outside = x.col(range.input).iter().map(|v| range.outside(*v));
            (column.outside, column.far) = outside.fold((0, 0), |(all, far), distance| {
                (all + usize::from(distance > 0.0), far + usize::from(distance > width))
            });
        }
        self.merge(Self { rows, columns, beside: Vec::new() });
    }

    /// Adds the moments of other rows of the same model.
    pub fn merge(&mut self, mut other: Self) {
        for (place, more) in std::mem::take(&mut other.beside).into_iter().enumerate() {
            match self.beside.get_mut(place) {
                Some(own) => own.merge(more),
                None => self.beside.push(more),
            }
        }
        if other.rows == 0 {
            return;
        }
        if self.rows == 0 {
            (self.rows, self.columns) = (other.rows, other.columns);
            return;
        }
        let (n, m) = (self.rows as f64, other.rows as f64);
        for (a, b) in self.columns.iter_mut().zip(other.columns) {
            let step = b.mean - a.mean;
            *a = Moments {
                minimum: a.minimum.min(b.minimum),
                maximum: a.maximum.max(b.maximum),
                mean: a.mean + step * (m / (n + m)),
                spread: a.spread + b.spread + step * step * (n * m / (n + m)),
                outside: a.outside + b.outside,
                far: a.far + b.far,
            };
        }
        self.rows += other.rows;
    }

    /// Adds those of a further model that was asked about the same rows; in [`Self::merge`] each is added to its own.
    pub fn add_beside(&mut self, other: Self) {
        self.beside.push(other);
    }

    /// The moments of each model, the first one's first.
    pub fn side_by_side(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.beside)
    }
}

impl std::fmt::Display for Departure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { column, training_range: [a, b], range: [low, high], rows, rows_far_outside, .. } = self;
        let (a, b, low, high) = (short(*a), short(*b), short(*low), short(*high));
        write!(out, "column `{column}` is {low} to {high} here, {a} to {b} in training: ")?;
        match (self.sign, self.widths_outside) {
            (Sign::FarOutside, Some(widths)) => write!(
                out,
                "{rows_far_outside} of {rows} rows lie outside by more than that range's width, up to {} widths; nothing was learned there. Are the units the same?",
                short(widths)
            ),
            (Sign::FarOutside, None) => write!(
                out,
                "it was constant in training, and {rows_far_outside} of {rows} rows have another value, of which nothing was learned"
            ),
            (Sign::Scaled, _) => write!(
                out,
                "like the training values times {}. Are the units the same?",
                short(self.deviation_ratio.unwrap_or_default())
            ),
            (Sign::Standardised, _) => write!(
                out,
                "mean 0 and standard deviation 1, as if standardised, which training values were not. Give them in their own units"
            ),
        }
    }
}

/// Three significant digits.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        let digits = if value == 0.0 { 0 } else { (2 - value.abs().log10().floor() as i32).max(0) };
        let text = format!("{value:.*}", digits as usize);
        return if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').into()
        } else {
            text
        };
    }
    format!("{value:.2e}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use posterior_linalg::random::Streams;
    use rand_distr::{Distribution, Exp, LogNormal, Normal, Uniform};

    fn schema() -> Schema {
        Schema::of("y", vec![Feature::number("a", 0.0)])
    }

    fn column(values: &[f64]) -> Mat<f64> {
        Mat::from_fn(values.len(), 1, |i, _| values[i])
    }

    fn signs(training: &[f64], now: &[f64]) -> Vec<Departure> {
        let ranges = InputRanges::learn(&schema(), column(training).as_ref());
        // In two parts, which must not matter.
        let (one, two) = now.split_at(now.len() / 3);
        let mut moments = ranges.moments(column(one).as_ref());
        moments.merge(ranges.moments(column(two).as_ref()));
        let whole = ranges.departures(&ranges.moments(column(now).as_ref()));
        let parts = ranges.departures(&moments);
        assert_eq!(parts.len(), whole.len());
        for (a, b) in parts.iter().zip(&whole) {
            assert_eq!((a.sign, a.rows_far_outside, a.range), (b.sign, b.rows_far_outside, b.range));
        }
        whole
    }

    fn draws(
        law: &dyn Fn(&mut dyn FnMut() -> f64) -> f64,
        values: &mut dyn FnMut() -> f64,
        n: usize,
    ) -> Vec<f64> {
        (0..n).map(|_| law(values)).collect()
    }

    #[test]
    fn ordinary_rows_are_quiet() {
        let mut rng = Streams::new(3).stream("ranges/test");
        let mut alarms = 0;
        let mut looked = 0;
        for kind in 0..4 {
            for trial in 0..200 {
                let mut draw = || match kind {
                    0 => Normal::new(40.0, 7.0).unwrap().sample(&mut rng),
                    1 => Uniform::new(0.0, 255.0).unwrap().sample(&mut rng),
                    2 => Exp::new(0.2).unwrap().sample(&mut rng),
                    _ => LogNormal::new(0.0, 1.0).unwrap().sample(&mut rng),
                };
                let _ = trial;
                let identity = |d: &mut dyn FnMut() -> f64| d();
                let training = draws(&identity, &mut draw, 200);
                let now = draws(&identity, &mut draw, 60);
                alarms += signs(&training, &now).len();
                looked += 1;
            }
        }
        assert!(alarms * 200 <= looked, "{alarms} of {looked}");
        let time: Vec<f64> = (0..1000).map(f64::from).collect();
        // The next window in time, the last one, a slice, a grid of one value, half a width further.
        for (from, to, step) in
            [(1000, 1030, 1.0), (970, 1000, 1.0), (500, 530, 0.01), (300, 330, 0.0), (1000, 1500, 1.0)]
        {
            let now: Vec<f64> = (from..to).map(|i| f64::from(from) + f64::from(i - from) * step).collect();
            assert!(signs(&time, &now).is_empty(), "{from}..{to}");
        }
    }

    #[test]
    fn other_units_are_seen() {
        let bytes: Vec<f64> = (0..500).map(|i| f64::from((i * 37) % 256)).collect();
        let floats: Vec<f64> = bytes.iter().map(|b| b / 255.0).collect();
        let standard: Vec<f64> = bytes.iter().map(|b| (b - 127.5) / 74.0).collect();
        let raw: Vec<f64> = bytes.iter().map(|b| 1000.0 + b).collect();
        for (training, now, sign) in [
            (&floats, &bytes, Sign::FarOutside),
            (&bytes, &floats, Sign::Scaled),
            (&raw, &standard, Sign::FarOutside),
            (&bytes, &standard, Sign::Standardised),
            (&standard, &raw, Sign::FarOutside),
        ] {
            let found = signs(training, &now[..100]);
            assert_eq!(found.iter().map(|d| d.sign).collect::<Vec<_>>(), [sign]);
        }
        let far = &signs(&floats, &bytes)[0];
        assert_eq!((far.rows, far.range, far.training_range), (500, [0.0, 255.0], [0.0, 1.0]));
        assert_eq!(far.rows_far_outside, bytes.iter().filter(|b| **b > 2.0).count());
        assert!((far.widths_outside.unwrap() - 254.0).abs() < 1e-9);
        assert!((far.deviation_ratio.unwrap() - 255.0).abs() < 1e-6);
        let text = far.to_string();
        assert!(
            text.contains("`a` is 0 to 255 here, 0 to 1 in training") && text.contains("254 widths"),
            "{text}"
        );
        // A single row counts; a column that was constant has no width.
        assert_eq!(signs(&floats, &[3.0])[0].rows_far_outside, 1);
        assert!(signs(&floats, &[1.9]).is_empty());
        let text = signs(&[5.0; 30], &[5.0, 6.0])[0].to_string();
        assert!(text.contains("constant in training, and 1 of 2 rows"), "{text}");
        assert!(signs(&[5.0; 30], &[5.0; 30]).is_empty());
    }
}
