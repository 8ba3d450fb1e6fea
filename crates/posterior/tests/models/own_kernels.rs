//! Kernels of the caller's own: like built-in ones under every method, and what their files need.

use faer::{Mat, MatMut, MatRef};
use posterior::kernels::features::{FeatureError, FeatureRecipe};
use posterior::kernels::stationary::{SquaredExponential, Stationary};
use posterior::kernels::{
    Adjoints, Columns, Kernel, KernelObject, Pair, PointAdjoints, PointKernel, Pointwise, Prepared,
    PreparedBlock, register,
};
use posterior::linalg::Real;
use posterior::optim::{Parameters, Segment, Signal};
use posterior::options::MethodName;
use posterior::{Error, Fitted, Gp, GpBuilder, Method, ModelError, StoreError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The squared exponential under another name.
#[derive(Clone, Debug)]
struct Own {
    name: &'static str,
    inner: Stationary<SquaredExponential>,
}

impl Own {
    fn new(name: &'static str) -> Self {
        Self { name, inner: Stationary::new(name, SquaredExponential, Columns::all(2), true, 1.0) }
    }
}

impl Parameters for Own {
    fn segments(&self) -> Vec<Segment> {
        self.inner.segments()
    }
    fn values(&self) -> Vec<f64> {
        self.inner.values()
    }
    fn set_values(&mut self, values: &[f64]) {
        self.inner.set_values(values);
    }
}

impl<T: Real> Kernel<T> for Own {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        self.inner.cross_tile(pair, out);
    }
    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        self.inner.diagonal(x, out);
    }
    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        self.inner.pullback_tile(pair, adjoint, adjoints)
    }
    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        self.inner.prepare(x)
    }
    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        same: Option<(usize, usize)>,
        out: MatMut<'_, T>,
    ) {
        self.inner.prepared_tile(x, z, same, out);
    }
    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        self.inner.values_at(x, out);
    }
    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        self.inner.pullback_values_at(x, adjoint, parameters);
    }
    fn pullback_values_to_points(&self, x: MatRef<'_, T>, adjoint: &[T], out: &mut Mat<T>) {
        self.inner.pullback_values_to_points(x, adjoint, out);
    }
    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Kernel::<T>::features(&self.inner)
    }
    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}

impl KernelObject for Own {
    fn name(&self) -> &str {
        self.name
    }
    fn settings(&self) -> Value {
        json!({ "columns": 2 })
    }
}

/// `exp(-|x - z|²/2l²)` by its formula.
#[derive(Clone, Debug)]
struct Formula {
    lengthscale: f64,
}

impl PointKernel for Formula {
    fn name(&self) -> &str {
        "own.formula"
    }
    fn parameters(&self) -> Vec<(&'static str, f64)> {
        vec![("lengthscale", self.lengthscale)]
    }
    fn set_parameters(&mut self, values: &[f64]) {
        self.lengthscale = values[0];
    }
    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        let square: f64 = x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
        (-0.5 * square / self.lengthscale.powi(2)).exp()
    }
    fn pullback(&self, x: &[f64], z: &[f64], adjoint: f64, out: &mut PointAdjoints<'_>) {
        let (k, squared) = (self.value(x, z), self.lengthscale.powi(2));
        for (d, (a, b)) in x.iter().zip(z).enumerate() {
            let slope = adjoint * k * (a - b) / squared;
            out.x[d] -= slope;
            out.z[d] += slope;
            out.parameters[0] += slope * (a - b) / self.lengthscale;
        }
    }
}

fn data(count: usize) -> (Vec<[f64; 2]>, Vec<f64>) {
    let x: Vec<[f64; 2]> =
        (0..count).map(|i| [(i as f64 * 0.618) % 1.0 * 3.0, (i as f64 * 0.414) % 1.0 * 2.0]).collect();
    let noise = |i: usize| 0.1 * ((i as f64 * 12.9898).sin() * 43_758.547).fract();
    let y = x.iter().enumerate().map(|(i, [a, b])| (2.0 * a).sin() + 0.5 * b + noise(i)).collect();
    (x, y)
}

/// A builder of few steps.
fn builder(name: MethodName) -> GpBuilder {
    let mut builder = Gp::builder().method(name).seed(3);
    let method: &mut Method = &mut builder.request_mut().method;
    if let Some(large) = method.large_mut() {
        large.iterations = Some(80);
    }
    if let Some(iterative) = method.iterative_mut() {
        iterative.sampling.samples = 4;
    }
    builder
}

#[test]
fn own_kernels_are_like_built_in_ones() {
    let (x, y) = data(150);
    let new = [[1.0, 1.0], [2.2, 0.4], [30.0, 1.0]];
    for name in [MethodName::Exact, MethodName::Svgp, MethodName::Sdd] {
        let built = builder(name).kernel("se(ard)").fit(&x, &y).unwrap().predict(&new).unwrap();
        let own = builder(name).kernel_object(Arc::new(Own::new("own.plain"))).fit(&x, &y).unwrap();
        let found = own.predict(&new).unwrap();
        for (a, b) in found.mean().unwrap().iter().zip(built.mean().unwrap()) {
            assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{name}: {a} {b}");
        }
        for (a, b) in found.std().unwrap().into_iter().zip(built.std().unwrap()) {
            assert!((a - b).abs() <= 1e-12 * b, "{name}: {a} {b}");
        }
        // What is said and shown of it does not fail.
        assert!(own.model().described().contains("own.plain"), "{name}");
        own.model().report().unwrap();
        own.model().model_report().unwrap();
        own.model().effects(None).unwrap();
    }
}

#[test]
fn formulas_learn_what_built_in_kernels_learn() {
    let (x, y) = data(60);
    let built = builder(MethodName::Exact).kernel("se").fit(&x, &y).unwrap().predict(&x).unwrap();
    let formula = Arc::new(Pointwise(Formula { lengthscale: 1.0 }));
    let own = builder(MethodName::Exact).kernel_object(formula).fit(&x, &y).unwrap();
    // The searches end at one optimum, within their tolerance.
    let found = own.predict(&x).unwrap();
    for (a, b) in found.mean().unwrap().iter().zip(built.mean().unwrap()) {
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }
    // Draws of functions need features.
    assert!(own.functions(2, 0).unwrap_err().to_string().contains("random features"));
}

#[test]
fn files_need_a_reader() {
    let (x, y) = data(60);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.posterior");
    let kernel = || Arc::new(Own::new("own.saved"));
    let no_reader = |error: &Error| match error {
        Error::Model(own) => {
            matches!(&**own, ModelError::Store(StoreError::NoReader { kernel }) if kernel == "own.saved")
        }
        _ => false,
    };
    // Where saving was asked for, before the fit begins.
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = steps.clone();
    let asked = Gp::builder().kernel_object(kernel()).save_to(&path).progress(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        Signal::Continue
    });
    assert!(no_reader(&asked.clone().fit(&x, &y).unwrap_err()));
    assert_eq!(steps.load(Ordering::Relaxed), 0);
    let fitted = Gp::builder().kernel_object(kernel()).fit(&x, &y).unwrap();
    assert!(no_reader(&fitted.save(&path).unwrap_err()) && !path.exists());
    register("own.saved", |settings| match settings["columns"].as_u64() {
        Some(2) => Ok(Arc::new(Own::new("own.saved"))),
        other => Err(format!("columns are {other:?}").into()),
    })
    .unwrap();
    let saved = asked.fit(&x, &y).unwrap();
    assert!(steps.load(Ordering::Relaxed) > 0);
    let again = Fitted::load(&path).unwrap();
    assert_eq!(again.predict(&x).unwrap().predictive(), saved.predict(&x).unwrap().predictive());
    // A model that learns further rows has the kernel as well, and a text names it.
    let (more, targets) = data(66);
    let updated = again.update(&more[60..], &targets[60..]).unwrap();
    assert_eq!(updated.model().process().unwrap().record().rows, 66);
    let text = r#"own.saved{"columns":2} + linear"#;
    assert!(Gp::builder().kernel(text).fit(&x, &y).is_ok());
    let unset = Gp::builder().kernel("own.saved + linear").request();
    assert!(matches!(unset, Err(Error::Kernel(_))), "the reader needs a setting");
}
