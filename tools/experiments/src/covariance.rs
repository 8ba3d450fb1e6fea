//! Priors of Gaussian processes from text and numbers, and functions drawn from them.

use super::error::{Result, refused};
use faer::Mat;
use posterior_gp::GpError;
use posterior_kernels::features::{FeatureSettings, PriorDraws, RandomFeatures};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

/// A covariance function on `dimension` columns, in either precision.
#[derive(Clone, Debug)]
pub(crate) struct Covariance {
    expression: KernelExpression,
    values: Option<Vec<f64>>,
    dimension: usize,
}

impl Covariance {
    /// From the text of a kernel, with the numbers in it.
    pub(crate) fn parse(text: &str, dimension: usize) -> Result<Self> {
        let covariance = Self { expression: text.parse()?, values: None, dimension };
        covariance.kernel::<f64>()?;
        Ok(covariance)
    }

    /// Matérn-3/2 with a standard deviation and one lengthscale for each column.
    pub(crate) fn matern32(deviation: f64, lengthscales: &[f64]) -> Result<Self> {
        let positive = |v: &f64| v.is_finite() && *v > 0.0;
        if lengthscales.is_empty() || !positive(&deviation) || !lengthscales.iter().all(positive) {
            return refused("signal and lengthscales must be positive, with a lengthscale for each column");
        }
        let mut values = vec![deviation * deviation];
        values.extend_from_slice(lengthscales);
        let dimension = lengthscales.len();
        Ok(Self { expression: "matern32(ard)".parse()?, values: Some(values), dimension })
    }

    /// Its text.
    pub(crate) fn expression(&self) -> &KernelExpression {
        &self.expression
    }

    /// Columns of the points.
    pub(crate) fn dimension(&self) -> usize {
        self.dimension
    }

    /// The kernel.
    pub(crate) fn kernel<T: Real>(&self) -> Result<Box<dyn Kernel<T>>> {
        let names: Vec<String> = (1..=self.dimension).map(|j| format!("x{j}")).collect();
        let mut kernel = self.expression.build::<T>(&names)?;
        if let Some(values) = &self.values {
            kernel.set_values(values);
        }
        Ok(kernel)
    }

    /// `count` functions drawn from the prior with `features` random features.
    pub(crate) fn draw<T: Real>(
        &self,
        count: usize,
        features: usize,
        streams: Streams,
    ) -> Result<PriorDraws<T>> {
        let kernel = self.kernel::<T>()?;
        let settings = FeatureSettings { count: features, ..FeatureSettings::default() };
        let map = RandomFeatures::new(&*kernel, self.dimension, settings, streams).map_err(GpError::from)?;
        Ok(PriorDraws::new(Arc::new(map), count, streams))
    }
}

/// Independent standard normal numbers.
pub(crate) fn normals(rows: usize, columns: usize, streams: Streams, name: &str) -> Mat<f64> {
    let mut rng = streams.stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}
