//! Models that fewer points carry than rows.

use crate::large_tables::{compare, fit, quick_blocks, request, table};
use crate::options::set;
use posterior::Model;
use posterior::data::synthetic;
use posterior::linalg::random::Streams;
use posterior::models::Guarantee;
use posterior::options::MethodName;
use serde_json::json;

#[test]
fn fewer_points_carry_a_model_and_what_they_lose_is_told() {
    let mut asked = request(MethodName::Cg);
    set(&mut asked, quick_blocks());
    let model = fit(&asked);
    let fresh = synthetic::friedman(80, Streams::new(2));
    let before = model.process().unwrap().predict(&fresh, None).unwrap();
    let mut errors = Vec::new();
    for points in [30, 150, 299] {
        let small = model.process().unwrap().compressed(points, 1).unwrap();
        let told = small.process().unwrap().compression().unwrap().clone();
        assert_eq!((told.rows, told.points, told.compared), (300, points, 300));
        // What is told is what a table of the training rows shows.
        let whole = table();
        let [all, few] = [&model, &small].map(|m| m.process().unwrap().predict(&whole, None).unwrap());
        let n = all.mean.len() as f64;
        let moved = |i: usize| (all.mean[i] - few.mean[i]) / all.deviation[i];
        let square: f64 = (0..all.mean.len()).map(|i| moved(i).powi(2)).sum();
        let widths: f64 =
            (0..all.mean.len()).map(|i| (few.deviation[i] / all.deviation[i] - 1.0).powi(2)).sum();
        assert!(((square / n).sqrt() / told.mean_error - 1.0).abs() < 1e-6, "{told:?}");
        assert!(((widths / n).sqrt() / told.deviation_error - 1.0).abs() < 1e-6, "{told:?}");
        let largest = (0..all.mean.len()).map(|i| moved(i).abs()).fold(0.0, f64::max);
        assert!((largest / told.largest_mean_error - 1.0).abs() < 1e-6, "{told:?}");
        // Rows that nothing has seen are not far from that.
        let now = small.process().unwrap().predict(&fresh, None).unwrap();
        let (mean, _) = compare(&now, &before);
        errors.push(told.mean_error);
        assert!(mean.is_finite() && now.latent_deviation.iter().all(|s| s.is_finite()));
        let coarse = told.mean_error > 0.1;
        assert_eq!(
            coarse,
            Model::notes(&small).iter().any(|note| note.text().contains("posterior compress")),
            "{told:?}"
        );
        // Its file holds it.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.posterior");
        small.save(&path).unwrap();
        let again = Model::load(&path).unwrap();
        assert_eq!(again.process().unwrap().predict(&fresh, None).unwrap(), now);
        assert_eq!(again.process().unwrap().compression(), Some(&told));
        let text = again.facts().rows();
        assert!(text.iter().any(|row| row.label == "compressed" && row.value.contains(&format!("{points} points carry"))));
        let error = again.process().unwrap().compressed(10, 0).unwrap_err().to_string();
        assert!(error.contains("compressed already"), "{error}");
    }
    assert!(errors[1] < errors[0] && errors[2] < 0.2 * errors[0], "{errors:?}");
    for points in [0, 300, 5000] {
        let error = model.process().unwrap().compressed(points, 0).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("fewer than there are rows"), "{error}");
    }
    let plan = model.process().unwrap().compression_plan(150, u64::MAX).unwrap();
    let error = model.process().unwrap().compression_plan(150, plan.peak_bytes - 1).unwrap_err().to_string();
    assert!(error.contains("fewer points"), "{error}");
    let exact = fit(&request(MethodName::Exact));
    assert!(exact.process().unwrap().compressed(20, 0).unwrap_err().to_string().contains("--method sap"));
}

#[test]
fn scores_and_guarantees_stay_with_the_model_before() {
    let mut asked = request(MethodName::Cg);
    set(&mut asked, quick_blocks());
    set(&mut asked, json!({"held-back": 60}));
    asked.validation.calibrate = posterior::options::CalibrateName::Conformal;
    let model = fit(&asked);
    let own = model.process().unwrap().record().fit.gaussian().unwrap().recalibration.clone().unwrap();
    assert_ne!(own.guarantee, Guarantee::Compressed);
    let small = model.process().unwrap().compressed(150, 1).unwrap();
    let kept = small.process().unwrap().record().fit.gaussian().unwrap().recalibration.clone().unwrap();
    assert_eq!((kept.guarantee, kept.factor), (Guarantee::Compressed, own.factor));
    assert!(
        Model::notes(&small)
            .iter()
            .any(|note| note.text().contains("fewer points carry the functions since"))
    );
    let labels = |m: &Model| m.facts().rows().into_iter().map(|row| row.label).collect::<Vec<_>>();
    assert!(labels(&small).iter().any(|label| label == "held-back rows before it was compressed"));
    assert!(labels(&model).iter().any(|label| label == "held-back rows"));
}
