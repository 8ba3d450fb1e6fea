//! Kernels by a formula of two points.

use crate::features::{FeatureError, FeatureRecipe};
use crate::kernel::{Adjoints, Kernel, Pair};
use crate::object::KernelObject;
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_optim::{Parameters, Segment, Transform};
use serde_json::Value;
use std::fmt::Debug;

/// A kernel that is a formula of two points, with positive parameters. [`Pointwise`] makes a [`KernelObject`] of it.
///
/// It is evaluated in f64 for one pair of points after the other, on all threads. A kernel that is worth vector code implements [`Kernel`] instead.
pub trait PointKernel: Clone + Debug + Send + Sync + 'static {
    /// As [`KernelObject::name`].
    fn name(&self) -> &str;

    /// Names and values of its positive parameters; a `lengthscale` of kernel `cauchy` is called `cauchy.lengthscale`.
    fn parameters(&self) -> Vec<(&'static str, f64)>;

    /// Takes other values of the parameters, in their order.
    fn set_parameters(&mut self, values: &[f64]);

    /// `k(x, z)` for two points of D standardised columns. It must be symmetric and positive semi-definite.
    fn value(&self, x: &[f64], z: &[f64]) -> f64;

    /// Adds the derivatives of `adjoint · k(x, z)`.
    fn pullback(&self, x: &[f64], z: &[f64], adjoint: f64, out: &mut PointAdjoints<'_>);

    /// As [`Kernel::features`]; none by default.
    ///
    /// # Errors
    /// [`FeatureError`] where there are none.
    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Err(FeatureError::NoFeatures { kernel: self.name().into() })
    }

    /// As [`KernelObject::settings`].
    fn settings(&self) -> Value {
        Value::Null
    }
}

/// Derivatives that [`PointKernel::pullback`] adds to.
#[derive(Debug)]
pub struct PointAdjoints<'a> {
    /// By the parameters, in their order.
    pub parameters: &'a mut [f64],
    /// By the first point (D).
    pub x: &'a mut [f64],
    /// By the second point (D).
    pub z: &'a mut [f64],
}

/// The kernel of a formula, in both precisions.
#[derive(Clone, Debug)]
pub struct Pointwise<K>(pub K);

impl<K: PointKernel> Parameters for Pointwise<K> {
    fn segments(&self) -> Vec<Segment> {
        let own = self.0.parameters().into_iter();
        own.map(|(name, _)| Segment {
            name: format!("{}.{name}", self.0.name()),
            shape: vec![1],
            transform: Transform::Log,
        })
        .collect()
    }
    fn values(&self) -> Vec<f64> {
        self.0.parameters().into_iter().map(|(_, value)| value).collect()
    }
    fn set_values(&mut self, values: &[f64]) {
        assert_eq!(values.len(), self.0.parameters().len(), "as many values as parameters");
        self.0.set_parameters(values);
    }
}

/// Points end to end, in f64.
struct Points {
    numbers: Vec<f64>,
    width: usize,
}

impl Points {
    fn new<T: Real>(x: MatRef<'_, T>) -> Self {
        let width = x.ncols();
        let numbers = (0..x.nrows() * width).map(|k| x[(k / width, k % width)].to_f64()).collect();
        Self { numbers, width }
    }

    fn zeros_like(&self) -> Vec<f64> {
        vec![0.0; self.numbers.len()]
    }

    fn get(&self, i: usize) -> &[f64] {
        &self.numbers[i * self.width..(i + 1) * self.width]
    }
}

impl<T: Real, K: PointKernel> Kernel<T> for Pointwise<K> {
    fn cross_tile(&self, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        let (x, z) = (Points::new(pair.x), Points::new(pair.z));
        for j in 0..out.ncols() {
            for i in 0..out.nrows() {
                out[(i, j)] = T::from_f64(self.0.value(x.get(i), z.get(j)));
            }
        }
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        let x = Points::new(x);
        for (i, value) in out.iter_mut().enumerate() {
            *value = T::from_f64(self.0.value(x.get(i), x.get(i)));
        }
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let (x, z) = (Points::new(pair.x), Points::new(pair.z));
        let width = x.width;
        let mut parameters = vec![0.0; self.0.parameters().len()];
        let (mut toward_x, mut toward_z) = (x.zeros_like(), z.zeros_like());
        let mut total = 0.0;
        for j in 0..adjoint.ncols() {
            for i in 0..adjoint.nrows() {
                let (own, other, adjoint) = (x.get(i), z.get(j), adjoint[(i, j)].to_f64());
                total += adjoint * self.0.value(own, other);
                let out = &mut PointAdjoints {
                    parameters: &mut parameters,
                    x: &mut toward_x[i * width..(i + 1) * width],
                    z: &mut toward_z[j * width..(j + 1) * width],
                };
                self.0.pullback(own, other, adjoint, out);
            }
        }
        // None where they are not requested.
        adjoints.parameters.iter_mut().zip(parameters).for_each(|(sum, own)| *sum += own);
        for (target, own) in [(&mut adjoints.x, toward_x), (&mut adjoints.z, toward_z)] {
            if let Some(target) = target {
                add(target, &own);
            }
        }
        total
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        self.0.features()
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}

/// Adds points that stand end to end.
fn add<T: Real>(target: &mut Mat<T>, points: &[f64]) {
    let width = target.ncols();
    for (k, value) in points.iter().enumerate() {
        target[(k / width, k % width)] += T::from_f64(*value);
    }
}

impl<K: PointKernel> KernelObject for Pointwise<K> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn settings(&self) -> Value {
        self.0.settings()
    }
}
