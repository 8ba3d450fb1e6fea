//! Maps of skewed features that may be tried: distances between few large values and many small ones say little where only their logarithms or ranks matter.

use super::target_transform::skewness;
use super::{Prepared, unscaled};
use crate::calibration::numbers::standard_quantile;
use crate::{FitRequest, ModelError};
use faer::MatRef;
use posterior_data::{Feature, FeatureMap, Reading, Schema};

/// Maps of features in these places.
pub(crate) type FeatureMaps = Vec<(usize, FeatureMap)>;

/// Skewness from which a feature's map is tried.
const SKEWED: f64 = 1.0;

/// Logarithms of all skewed features that have one and are less skewed by it, and normal scores of all skewed features (x in their own units, n x D); neither where there are none.
pub(crate) fn maps_of(schema: &Schema, request: &FitRequest, x: MatRef<'_, f64>) -> Vec<FeatureMaps> {
    let apart = unscaled(schema, request);
    let plain = |j: &usize| {
        matches!(schema.features[*j], Feature::Number { reading: Reading::Plain, .. }) && !apart.contains(j)
    };
    let (mut logarithms, mut scores) = (FeatureMaps::new(), FeatureMaps::new());
    for j in (0..x.ncols()).filter(plain) {
        let values: Vec<f64> = x.col(j).iter().copied().collect();
        let skewed = skewness(&values).abs();
        // Few different values are a scale of their own.
        let Some(by_rank) = FeatureMap::quantiles(&values, standard_quantile).filter(|_| skewed > SKEWED)
        else {
            continue;
        };
        if let Some(log) = FeatureMap::log(&values) {
            let images: Vec<f64> = values.iter().map(|v| log.apply(*v)).collect();
            if skewness(&images).abs() < skewed {
                logarithms.push((j, log));
            }
        }
        scores.push((j, by_rank));
    }
    [logarithms, scores].into_iter().filter(|maps| !maps.is_empty()).collect()
}

/// What some features were mapped by.
pub(crate) fn maps_in_words(maps: &FeatureMaps, schema: &Schema) -> String {
    let name = |(j, map): &(usize, FeatureMap)| format!("{} `{}`", map.name(), schema.features[*j].column());
    maps.iter().map(name).collect::<Vec<_>>().join(", ")
}

impl Prepared {
    /// The same with maps of some features (x in their own units).
    pub(crate) fn mapped(&self, maps: FeatureMaps, x: MatRef<'_, f64>) -> Result<Self, ModelError> {
        let standardisation = self.standardisation.clone().mapping(maps, x);
        let data = self.data.clone().with_inputs(standardisation.features(x))?;
        Ok(Self { standardisation, data, ..self.clone() })
    }
}
