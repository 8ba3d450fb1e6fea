//! Kernels of the caller's own: by a formula of points, in texts, and with readers.

use super::points;
use crate::*;
use faer::Mat;
use serde_json::{Value, json};
use std::sync::Arc;

/// The squared exponential by its formula, `exp(-|x - z|²/2l²)`.
#[derive(Clone, Debug)]
struct Formula {
    name: &'static str,
    lengthscale: f64,
}

impl PointKernel for Formula {
    fn name(&self) -> &str {
        self.name
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
    fn settings(&self) -> Value {
        json!({ "start": self.lengthscale })
    }
}

fn features() -> Vec<String> {
    ["x1", "x2", "x3"].map(String::from).to_vec()
}

fn object(name: &'static str) -> KernelExpression {
    KernelExpression::object(Arc::new(Pointwise(Formula { name, lengthscale: 0.7 }))).unwrap()
}

#[test]
fn a_formula_is_the_built_in_kernel() {
    let own = object("formula.plain").build::<f64>(&features()).unwrap();
    let built = "se(lengthscale=0.7)".parse::<KernelExpression>().unwrap();
    let built = built.build::<f64>(&features()).unwrap();
    assert_eq!(own.values(), built.values());
    let (x, z) = (points(30, 1), points(20, 2));
    let away = cross(&*own, x.as_ref(), z.as_ref()) - cross(&*built, x.as_ref(), z.as_ref());
    assert!(away.norm_max() < 1e-14);
    let adjoint = Mat::from_fn(30, 20, |i, j| ((i * 7 + j * 3) as f64).sin());
    let back =
        |kernel: &dyn Kernel<f64>| pullback(kernel, x.as_ref(), z.as_ref(), adjoint.as_ref(), Request::ALL);
    let (own, built) = (back(&*own), back(&*built));
    for (a, b) in own.parameters.iter().zip(&built.parameters) {
        assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a} {b}");
    }
    assert!((own.x.unwrap() - built.x.unwrap()).norm_max() < 1e-12);
    assert!((own.z.unwrap() - built.z.unwrap()).norm_max() < 1e-12);
    let single = object("formula.single").build::<f32>(&features()).unwrap();
    let x = Mat::from_fn(5, 3, |i, j| x[(i, j)] as f32);
    assert!((gram(&*single, x.as_ref())[(0, 0)] - 1.0).abs() < 1e-6);
}

#[test]
fn objects_are_texts_once_they_are_registered() {
    let own = object("formula.text");
    let text = own.to_string();
    assert_eq!(text, r#"formula.text{"start":0.7}"#);
    assert_eq!(own.unregistered(), Some("formula.text"));
    // Read without a reader it is a kernel that cannot be built.
    let read: KernelExpression = text.parse().unwrap();
    assert_eq!((read.unregistered(), &read), (Some("formula.text"), &own));
    let message = read.build::<f64>(&features()).unwrap_err().to_string();
    assert!(message.contains("no reader is registered for kernel `formula.text`"), "{message}");
    let message = "formula.text".parse::<KernelExpression>().unwrap_err().to_string();
    assert!(message.contains("no kernel is called"), "{message}");
    register("formula.text", |settings| {
        let lengthscale = settings["start"].as_f64().unwrap_or(1.0);
        Ok(Arc::new(Pointwise(Formula { name: "formula.text", lengthscale })))
    })
    .unwrap();
    assert_eq!(own.unregistered(), None);
    let names = |text: &str| {
        let kernel = text.parse::<KernelExpression>().unwrap().build::<f64>(&features()).unwrap();
        (kernel.segments().into_iter().map(|s| s.name).collect::<Vec<_>>(), kernel.values())
    };
    let (found, values) = names(&text);
    assert_eq!(found, ["formula.text.variance", "formula.text.lengthscale"]);
    assert_eq!(values, [1.0, 0.7]);
    // Among others, behind a warp, and without settings.
    let (found, _) = names("formula.text * periodic(x1)");
    assert_eq!(found[0], "formula.text*periodic.variance");
    let (found, _) = names("warp(formula.text{})");
    assert_eq!(found[0], "warp.skew");
    let twice = "formula.text + formula.text".parse::<KernelExpression>().unwrap();
    assert!(twice.build::<f64>(&features()).unwrap_err().to_string().contains("stands twice"));
}

#[test]
fn names_and_settings_that_no_text_can_hold_are_refused() {
    for name in ["", "se", "Warp", "a kernel", "7th"] {
        assert!(register(name, |_| Err("never asked".into())).is_err(), "{name}");
    }
    for text in ["own{", "own{1}", "own[1]", r#"own{"a":}"#] {
        assert!(text.parse::<KernelExpression>().is_err(), "{text}");
    }
}
