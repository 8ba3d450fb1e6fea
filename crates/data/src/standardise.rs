//! Means and scales of the training rows, so that models see numbers of order one.

use crate::{DataError, FeatureMap, RowFile, Support, TargetTransform};
use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

/// `x -> (map(x) - mean) / scale`, column by column (few have a map), and the same for the target. Scales are population standard deviations, 1
/// where a column is constant. Columns that must stay as they are ([`Self::keeping`]) have mean 0 and scale 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standardisation {
    /// Mean of each feature.
    pub feature_means: Vec<f64>,
    /// Scale of each feature, in its units.
    pub feature_scales: Vec<f64>,
    /// What features in these places go through before that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_maps: Vec<(usize, FeatureMap)>,
    /// Mean of the target, of what it is mapped to where it is.
    pub target_mean: f64,
    /// Scale of the target, in its units, or of what it is mapped to.
    pub target_scale: f64,
    /// What the target goes through before all that, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<Box<TransformedTarget>>,
}

/// A target that goes through a map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransformedTarget {
    /// The map.
    pub by: TargetTransform,
    /// Mean of the target itself.
    pub mean: f64,
    /// Its scale, in its units.
    pub scale: f64,
    /// Where the quantity ends.
    #[serde(default, skip_serializing_if = "Support::is_everywhere")]
    pub support: Support,
}

impl TransformedTarget {
    /// The image of a target.
    pub fn apply(&self, y: f64) -> f64 {
        self.by.apply(self.support.nearest(y))
    }

    /// The target of an image: on a bound where that is beyond.
    pub fn invert(&self, z: f64) -> f64 {
        let bounds = match self.by {
            // It has no image of 0, and does not reach it.
            TargetTransform::Log => Support { floor: None, ..self.support },
            TargetTransform::YeoJohnson { .. } => self.support,
        };
        bounds.nearest(self.by.invert(z))
    }

    /// Whether a target has an image.
    pub fn admits(&self, y: f64) -> bool {
        self.by.admits(y) || (y == 0.0 && self.support.floor.is_some())
    }
}

impl Standardisation {
    /// Learned from training rows: x of n x D and y (n).
    pub fn learn(x: MatRef<'_, f64>, y: &[f64]) -> Self {
        let (feature_means, feature_scales) =
            (0..x.ncols()).map(|j| mean_and_scale(|i| x[(i, j)], x.nrows())).unzip();
        let (target_mean, target_scale) = mean_and_scale(|i| y[i], y.len());
        Self {
            feature_means,
            feature_scales,
            feature_maps: Vec::new(),
            target_mean,
            target_scale,
            transform: None,
        }
    }

    /// The same for targets (n, those of training) that go through a map first.
    ///
    /// # Errors
    /// The number of a target that the map does not [admit](TargetTransform::admits).
    pub fn transforming(mut self, by: TargetTransform, y: &[f64]) -> Result<Self, usize> {
        if let Some(bad) = y.iter().position(|y| !by.admits(*y)) {
            return Err(bad);
        }
        let (mean, scale) = self.target_in_units();
        self.transform = Some(Box::new(TransformedTarget { by, mean, scale, support: Support::default() }));
        (self.target_mean, self.target_scale) = mean_and_scale(|i| by.apply(y[i]), y.len());
        Ok(self)
    }

    /// The same with bounds of a target that goes through a map.
    pub fn bounded(mut self, support: Support) -> Self {
        if let Some(own) = &mut self.transform {
            own.support = support;
        }
        self
    }

    /// As [`Self::learn`], bit for bit, from rows in a file whose numbers are inputs, target, and what else there is. Three passes.
    ///
    /// # Errors
    /// [`DataError::Scratch`].
    ///
    /// # Panics
    /// When rows have no more numbers than there are inputs.
    pub fn learn_rows(file: &RowFile, inputs: usize) -> Result<Self, DataError> {
        let mut columns = vec![ColumnScale::new(file.rows()); inputs + 1];
        for pass in ColumnScale::PASSES {
            file.each(|_, row| columns.iter_mut().zip(row).for_each(|(column, v)| column.see(pass, *v)))?;
        }
        let (mut feature_means, mut feature_scales): (Vec<f64>, Vec<f64>) =
            columns.into_iter().map(ColumnScale::mean_and_scale).unzip();
        assert!(file.width() > inputs, "a target behind the inputs");
        let (target_mean, target_scale) = (feature_means[inputs], feature_scales[inputs]);
        feature_means.truncate(inputs);
        feature_scales.truncate(inputs);
        Ok(Self {
            feature_means,
            feature_scales,
            feature_maps: Vec::new(),
            target_mean,
            target_scale,
            transform: None,
        })
    }

    /// As [`Self::transforming`], bit for bit, for rows in a file.
    ///
    /// # Errors
    /// [`DataError::Scratch`]; within, the number of the first row whose target the map does not admit, with the target.
    pub fn transforming_rows(
        mut self,
        by: TargetTransform,
        file: &RowFile,
    ) -> Result<Result<Self, (usize, f64)>, DataError> {
        let (inputs, mut bad) = (self.feature_means.len(), None);
        file.each(|i, row| {
            if !by.admits(row[inputs]) {
                bad.get_or_insert((i, row[inputs]));
            }
        })?;
        if let Some(bad) = bad {
            return Ok(Err(bad));
        }
        let mut column = ColumnScale::new(file.rows());
        for pass in ColumnScale::PASSES {
            file.each(|_, row| column.see(pass, by.apply(row[inputs])))?;
        }
        let (mean, scale) = self.target_in_units();
        self.transform = Some(Box::new(TransformedTarget { by, mean, scale, support: Support::default() }));
        (self.target_mean, self.target_scale) = column.mean_and_scale();
        Ok(Ok(self))
    }

    /// The same with some features left in their own units: counts, of which only the original zero means nothing.
    pub fn keeping(mut self, features: &[usize]) -> Self {
        for &j in features {
            (self.feature_means[j], self.feature_scales[j]) = (0.0, 1.0);
        }
        self
    }

    /// The same with maps of some features of x (n x D, those of training).
    pub fn mapping(mut self, maps: Vec<(usize, FeatureMap)>, x: MatRef<'_, f64>) -> Self {
        for &(j, ref map) in &maps {
            let (mean, scale) = mean_and_scale(|i| map.apply(x[(i, j)]), x.nrows());
            (self.feature_means[j], self.feature_scales[j]) = (mean, scale);
        }
        self.feature_maps = maps;
        self
    }

    /// Features in standard units.
    ///
    /// # Panics
    /// When the width is another than in training.
    pub fn features(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        assert_eq!(x.ncols(), self.feature_means.len(), "the features of training");
        Mat::from_fn(x.nrows(), x.ncols(), |i, j| self.feature(j, x[(i, j)]))
    }

    fn map_of(&self, j: usize) -> Option<&FeatureMap> {
        self.feature_maps.iter().find(|(place, _)| *place == j).map(|(_, map)| map)
    }

    /// A value of the feature in place j in standard units.
    pub fn feature(&self, j: usize, value: f64) -> f64 {
        let image = self.map_of(j).map_or(value, |map| map.apply(value));
        (image - self.feature_means[j]) / self.feature_scales[j]
    }

    /// A value of the feature in place j from standard units to its own.
    pub fn feature_back(&self, j: usize, z: f64) -> f64 {
        let image = self.feature_means[j] + self.feature_scales[j] * z;
        self.map_of(j).map_or(image, |map| map.invert(image))
    }

    /// A target value in standard units.
    pub fn target(&self, y: f64) -> f64 {
        let image = self.transform.as_ref().map_or(y, |own| own.apply(y));
        (image - self.target_mean) / self.target_scale
    }

    /// A standardised target value back in its units: of one that is mapped, quantiles and draws are such values, means are not.
    pub fn target_back(&self, y: f64) -> f64 {
        let image = self.target_mean + self.target_scale * y;
        self.transform.as_ref().map_or(image, |own| own.invert(image))
    }

    /// The first of some targets that the map of this one has no image of, and the map.
    pub fn inadmissible(&self, y: &[f64]) -> Option<(TargetTransform, usize)> {
        let own = self.transform.as_ref()?;
        y.iter().position(|y| !own.admits(*y)).map(|bad| (own.by, bad))
    }

    /// What the log density of a target in standard units gains as one in its own units.
    pub fn log_slope(&self, y: f64) -> f64 {
        self.transform.as_ref().map_or(0.0, |own| own.by.log_slope(y)) - self.target_scale.ln()
    }

    /// Mean and scale of the target itself, in its units, whether it is mapped or not.
    pub fn target_in_units(&self) -> (f64, f64) {
        self.transform.as_ref().map_or((self.target_mean, self.target_scale), |own| (own.mean, own.scale))
    }

    /// What numbers of the scale of the feature in place j are numbers of: the column, or what it is mapped to.
    pub fn image_of_feature(&self, j: usize, column: &str) -> String {
        match self.map_of(j) {
            Some(map) => format!("{} `{column}`", map.name()),
            None => format!("`{column}`"),
        }
    }

    /// What numbers of the target's scale are numbers of: the column, or what it is mapped to.
    pub fn image_of(&self, target: &str) -> String {
        self.transform.as_ref().map_or_else(|| target.to_string(), |own| own.by.image_of(target))
    }

    /// A standardised variance back in squared units of the target, or of what it is mapped to.
    pub fn variance_back(&self, variance: f64) -> f64 {
        variance * self.target_scale * self.target_scale
    }
}

/// Mean and population standard deviation in two passes; the scale is 1 for a column that is constant to rounding.
pub(crate) fn mean_and_scale(value: impl Fn(usize) -> f64, count: usize) -> (f64, f64) {
    let mut column = ColumnScale::new(count);
    for pass in ColumnScale::PASSES {
        (0..count).for_each(|i| column.see(pass, value(i)));
    }
    column.mean_and_scale()
}

/// What a pass over a column is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pass {
    Mean,
    Largest,
    Variance,
}

/// Mean and scale of a column that is seen three times, from its first cell to its last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnScale {
    count: f64,
    first: Option<f64>,
    mean: f64,
    /// Largest distance from the mean.
    largest: f64,
    /// In units of its square.
    variance: f64,
}

impl ColumnScale {
    pub(crate) const PASSES: [Pass; 3] = [Pass::Mean, Pass::Largest, Pass::Variance];

    /// Of so many cells.
    pub(crate) fn new(count: usize) -> Self {
        Self { count: count.max(1) as f64, first: None, mean: 0.0, largest: 0.0, variance: 0.0 }
    }

    pub(crate) fn see(&mut self, pass: Pass, value: f64) {
        match pass {
            // Dividing first keeps sums of the largest doubles finite.
            Pass::Mean => {
                self.first.get_or_insert(value);
                self.mean += value / self.count;
            }
            Pass::Largest => self.largest = self.largest.max((value - self.mean).abs()),
            Pass::Variance if self.largest > 0.0 => {
                self.variance += ((value - self.mean) / self.largest).powi(2) / self.count;
            }
            Pass::Variance => {}
        }
    }

    pub(crate) fn mean_and_scale(self) -> (f64, f64) {
        if self.largest <= 1e-12 * self.mean.abs() || self.largest == 0.0 {
            // Its own value rather than the rounded mean, so that a constant column becomes exactly 0.
            return (self.first.unwrap_or(0.0), 1.0);
        }
        (self.mean, self.largest * self.variance.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_columns_have_mean_0_and_deviation_1() {
        let x = Mat::from_fn(50, 3, |i, j| if j == 2 { 7.25 } else { 1e150 * (i as f64).sin() + j as f64 });
        let y: Vec<f64> = (0..50).map(|i| i as f64).collect();
        let s = Standardisation::learn(x.as_ref(), &y);
        let z = s.features(x.as_ref());
        for j in 0..2 {
            let mean: f64 = z.col(j).iter().sum::<f64>() / 50.0;
            let square: f64 = z.col(j).iter().map(|v| v * v).sum::<f64>() / 50.0;
            assert!(mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12);
        }
        assert_eq!(s.feature_scales[2], 1.0);
        assert_eq!(z[(3, 2)], 0.0);
        assert!((s.target_back(s.target(12.5)) - 12.5).abs() < 1e-12);
        assert!((s.variance_back(1.0).sqrt() - s.target_scale).abs() < 1e-12);
        assert!((s.log_slope(3.0) + s.target_scale.ln()).abs() < 1e-15);
        assert_eq!(
            (s.target_in_units(), s.image_of("y")),
            ((s.target_mean, s.target_scale), "y".to_string())
        );
        let kept = s.clone().keeping(&[1]).features(x.as_ref());
        assert!((0..50).all(|i| kept[(i, 1)] == x[(i, 1)] && kept[(i, 0)] == z[(i, 0)]));
    }

    #[test]
    fn mapped_features_are_standard_behind_the_map() {
        let x = Mat::from_fn(40, 2, |i, j| if j == 0 { (0.1 * i as f64).exp() } else { i as f64 });
        let column: Vec<f64> = x.col(0).iter().copied().collect();
        let maps = vec![(0, FeatureMap::log(&column).unwrap())];
        let s = Standardisation::learn(x.as_ref(), &[0.0; 40]).mapping(maps, x.as_ref());
        let z = s.features(x.as_ref());
        // Logarithms 0, 0.1, ..., 3.9 are the second column up to its unit.
        assert!((0..40).all(|i| (z[(i, 0)] - z[(i, 1)]).abs() < 1e-10));
        assert!((s.feature_back(0, z[(17, 0)]) / x[(17, 0)] - 1.0).abs() < 1e-12);
        assert_eq!(s.image_of_feature(0, "area"), "log `area`");
        assert_eq!(s.image_of_feature(1, "area"), "`area`");
        let text = serde_json::to_string(&s).unwrap();
        assert_eq!(serde_json::from_str::<Standardisation>(&text).unwrap(), s);
    }

    #[test]
    fn mapped_targets_are_standard_behind_the_map() {
        let x = Mat::from_fn(40, 1, |i, _| i as f64);
        let y: Vec<f64> = (0..40).map(|i| (0.1 * f64::from(i)).exp()).collect();
        let plain = Standardisation::learn(x.as_ref(), &y);
        let s = plain.clone().transforming(TargetTransform::Log, &y).unwrap();
        let z: Vec<f64> = y.iter().map(|y| s.target(*y)).collect();
        // Logarithms 0, 0.1, ..., 3.9.
        assert!((s.target_mean - 1.95).abs() < 1e-12 && z.iter().sum::<f64>().abs() < 1e-10);
        assert!((s.target_back(z[17]) / y[17] - 1.0).abs() < 1e-12);
        assert_eq!(s.target_in_units(), (plain.target_mean, plain.target_scale));
        let slope = (s.target(y[9] + 1e-6) - s.target(y[9] - 1e-6)) / 2e-6;
        assert!((s.log_slope(y[9]).exp() / slope - 1.0).abs() < 1e-6);
        assert_eq!(s.image_of("price"), "log price");
        assert_eq!(s.inadmissible(&[1.0, -1.0, 0.0]), Some((TargetTransform::Log, 1)));
        assert!(plain.inadmissible(&[-1.0]).is_none());
        // What cannot be mapped is named.
        assert_eq!(plain.transforming(TargetTransform::Log, &[1.0, 0.0]).unwrap_err(), 1);
        let text = serde_json::to_string(&s).unwrap();
        assert_eq!(serde_json::from_str::<Standardisation>(&text).unwrap(), s);
    }
}
