//! Models of large tables: every method against the exact one, files, interruptions, refusals.

use crate::options::set;
use posterior::data::{Selection, Split, Table, synthetic};
use posterior::linalg::random::Streams;
use posterior::models::{
    FitStage, PredictOptions, Predictions, Prepared, ScalablePlan, VarianceMethod, VarianceSolves, choose,
};
use posterior::optim::Signal;
use posterior::options::{Limits, Method, MethodName, Start};
use posterior::{FitRequest, Model, ModelError, StoreError};
use serde_json::{Value, json};
use std::sync::OnceLock;

pub(crate) fn table() -> Table {
    synthetic::friedman(300, Streams::new(1))
}

pub(crate) fn request(method: MethodName) -> FitRequest {
    let mut request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        method: method.into(),
        ..Default::default()
    };
    // No rows are held back: compared with the exact process of all rows.
    set(
        &mut request,
        json!({"restarts": 1, "samples": 200, "random-features": 1000, "precision": "double", "inducing": 120, "held-back": 0}),
    );
    request
}

pub(crate) fn fit(request: &FitRequest) -> Model {
    let table = table();
    let rows = Split::all(table.rows()).train;
    Model::fit(&table, &rows, request, &mut |_, _| Signal::Continue).unwrap()
}

/// The exact process of all rows, which is fitted once for all tests.
fn exact() -> &'static Model {
    static EXACT: OnceLock<Model> = OnceLock::new();
    EXACT.get_or_init(|| fit(&request(MethodName::Exact)))
}

/// Largest differences of means, and the mean ratio of latent deviations, in units of the exact model's.
pub(crate) fn compare(a: &Predictions, exact: &Predictions) -> (f64, f64) {
    let mean = a
        .mean
        .iter()
        .zip(&exact.mean)
        .zip(&exact.deviation)
        .map(|((a, b), s)| (a - b).abs() / s)
        .fold(0.0, f64::max);
    let ratios = a.latent_deviation.iter().zip(&exact.latent_deviation).map(|(a, b)| (a / b).powi(2));
    (mean, ratios.sum::<f64>() / a.mean.len() as f64)
}

/// A block of each kind.
pub(crate) fn quick_blocks() -> Value {
    json!({"blocks": 1, "block-size": 60})
}

#[test]
fn solvers_agree_with_the_exact_method_and_survive_their_files() {
    agree_with_the_exact_method(&[
        (MethodName::Cg, 500, Some((0.01, 0.4))),
        (MethodName::Sap, 500, Some((0.01, 0.4))),
    ]);
}

/// Fast counterpart of the next test, judged by the way that it has come.
/// Mutation: `rho * now - scale * residuals[(a, c)]` to `rho * now + scale * residuals[(a, c)]` in gp/src/iterative/dual/state.rs.
#[test]
fn dual_descent_goes_toward_the_exact_method_and_survives_its_file() {
    agree_with_the_exact_method(&[(MethodName::Sdd, 1500, None)]);
}

#[test]
#[ignore = "slow"]
fn dual_descent_agrees_with_the_exact_method() {
    agree_with_the_exact_method(&[(MethodName::Sdd, 15_000, Some((0.02, 0.4)))]);
}

/// Descent on the primal is slow where eigenvalues are small: far from done, it is judged by the way that it has come.
#[test]
fn primal_descent_goes_toward_the_exact_method_and_survives_its_file() {
    agree_with_the_exact_method(&[(MethodName::Sgd, 3000, None)]);
}

#[test]
fn descent_on_inducing_points_goes_toward_the_exact_method_and_survives_its_file() {
    agree_with_the_exact_method(&[(MethodName::InducingSgd, 1500, None)]);
}

/// As far as 120 points in ten dimensions can: within a standard deviation of the exact mean, and not surer than twice too much.
#[test]
fn bounds_agree_with_the_exact_method_and_survive_their_files() {
    agree_with_the_exact_method(&[
        (MethodName::Sgpr, 1, Some((1.0, 1.0))),
        (MethodName::Svgp, 150, Some((1.0, 1.0))),
    ]);
}

/// A method, its steps, and how far it may be from the exact one.
type Agreement = (MethodName, usize, Option<(f64, f64)>);

/// Steps, and how far means in standard deviations and latent variances may be from those of the exact method; none where the way that was come is judged.
fn agree_with_the_exact_method(methods: &[Agreement]) {
    let exact = exact();
    let fresh = synthetic::friedman(60, Streams::new(2));
    let truth = exact.process().unwrap().predict(&fresh, None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let evidence = exact.process().unwrap().record().fit.gaussian().unwrap().log_evidence.unwrap();
    let mut collapsed: Option<(Predictions, f64)> = None;
    for &(method, steps, tolerances) in methods {
        let mut request = request(method);
        request.start = Start::given(exact.process().unwrap().record().hyperparameters.clone());
        set(&mut request, json!({"iterations": steps, "batch": 64, "fixed-inducing": true}));
        if matches!(method, MethodName::Cg | MethodName::Sap) {
            set(&mut request, json!({"tolerance": 1e-8}));
        }
        if method == MethodName::Svgp {
            // All rows at once and steps of full length, after the first ones: the optimum in one, which is the collapsed posterior.
            set(&mut request, json!({"batch": 300, "natural-length": 1.0}));
        }
        // Latent variances are a fiftieth of the prior's here, so prior functions must be accurate to less: the error of features falls with the root of their number.
        // 64 samples tell a deviation to `1/√128`, less than a tenth.
        set(&mut request, json!({"samples": 64, "random-features": 4000}));
        let model = fit(&request);
        let predictions = model.process().unwrap().predict(&fresh, None).unwrap();
        let (mean, variance) = compare(&predictions, &truth);
        match tolerances {
            Some((tolerance, ratio)) => {
                assert!(mean < tolerance && (variance - 1.0).abs() < ratio, "{method:?}: {mean} {variance}");
            }
            None => {
                // A tenth of the steps leaves more of the exact mean unexplained and more of the prior's variance, and so does no step at all.
                set(&mut request, json!({"iterations": steps / 10}));
                let before = fit(&request).process().unwrap().predict(&fresh, None).unwrap();
                let level = truth.mean.iter().sum::<f64>() / truth.mean.len() as f64;
                let spread: f64 = truth.mean.iter().map(|b| (b - level).powi(2)).sum();
                let missing = |p: &Predictions| {
                    p.mean.iter().zip(&truth.mean).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / spread
                };
                let (now, early) = (missing(&predictions), missing(&before));
                assert!(now < early && early < 1.0, "{method:?}: {now} {early}");
                // So the exact deviation is less than four tenths above what was found.
                let wider = compare(&before, &truth).1;
                assert!(variance > 0.6 && variance < wider, "{method:?}: {variance} {wider}");
            }
        }
        // Solved for instead of sampled, variances are the exact ones; elsewhere there is nothing to solve, or nothing to solve with.
        let solves = |memory_limit| PredictOptions {
            variances: VarianceMethod::Solves { tolerance: 1e-6, iterations: 500, memory_limit },
            ..PredictOptions::default()
        };
        let solved = model.process().unwrap().predict_with(&fresh, None, solves(u64::MAX));
        match method {
            MethodName::Cg | MethodName::Sdd | MethodName::Sgd | MethodName::Sap => {
                let solved = solved.unwrap();
                let solves_made = solved.solves.unwrap();
                let VarianceSolves::Rows { residual, iterations, excess } = solves_made else {
                    panic!("{solves_made:?}")
                };
                assert!(residual <= 1e-6 && iterations > 0 && excess <= 0.01, "{solves_made:?}");
                for (a, b) in solved.latent_deviation.iter().zip(&truth.latent_deviation) {
                    assert!((a - b).abs() < 1e-5 * b, "{method:?}: {a} {b}");
                }
                // One product of one column, or of all: sums in another order.
                assert!(
                    solved.mean.iter().zip(&predictions.mean).all(|(a, b)| (a - b).abs() < 1e-10 * b.abs())
                );
                let refused = model.process().unwrap().predict_with(&fresh, None, solves(1000)).unwrap_err();
                assert!(matches!(refused, ModelError::VarianceMemory { limit: 1000, .. }));
            }
            MethodName::InducingSgd => assert!(solved.unwrap_err().to_string().contains("inducing points")),
            _ => assert_eq!(solved.unwrap(), predictions),
        }
        // One Lanczos basis for all rows: that of all directions is exact, a smaller one too large, and says so.
        let lanczos = |rank, memory_limit| PredictOptions {
            variances: VarianceMethod::Lanczos { rank, memory_limit },
            ..PredictOptions::default()
        };
        let whole = model.process().unwrap().predict_with(&fresh, None, lanczos(400, u64::MAX));
        match method {
            MethodName::Cg | MethodName::Sdd | MethodName::Sgd | MethodName::Sap => {
                let (whole, few) = (
                    whole.unwrap(),
                    model.process().unwrap().predict_with(&fresh, None, lanczos(20, u64::MAX)).unwrap(),
                );
                let basis = |p: &Predictions| match p.solves {
                    Some(VarianceSolves::Lanczos { rank, probes, mean_excess, largest_excess, .. }) => {
                        assert_eq!(probes, 16);
                        (rank, mean_excess, largest_excess)
                    }
                    other => panic!("{other:?}"),
                };
                assert_eq!((basis(&whole).0, basis(&few).0), (300, 20));
                for ((a, b), wide) in
                    whole.latent_deviation.iter().zip(&truth.latent_deviation).zip(&few.latent_deviation)
                {
                    assert!(
                        (a - b).abs() < 1e-6 * b && *wide > b * (1.0 - 1e-9),
                        "{method:?}: {a} {b} {wide}"
                    );
                }
                assert!(
                    basis(&whole).2 < 1e-3 && basis(&few).1 > 0.01,
                    "{:?} {:?}",
                    basis(&whole),
                    basis(&few)
                );
                // The same again, from what was kept; and a limit that is in the plan.
                assert_eq!(
                    model.process().unwrap().predict_with(&fresh, None, lanczos(20, u64::MAX)).unwrap(),
                    few
                );
                let refused =
                    model.process().unwrap().predict_with(&fresh, None, lanczos(20, 1000)).unwrap_err();
                assert!(matches!(refused, ModelError::VarianceMemory { limit: 1000, .. }));
            }
            MethodName::InducingSgd => assert!(whole.unwrap_err().to_string().contains("inducing points")),
            _ => assert!(whole.unwrap_err().to_string().contains("variances in closed form")),
        }
        let estimate =
            model.process().unwrap().record().fit.gaussian().unwrap().scalable.as_ref().unwrap().log_evidence;
        assert_eq!(estimate.is_some(), method == MethodName::Cg);
        if let Some(estimate) = estimate {
            // At the exact process's hyperparameters, its evidence.
            let (difference, error) = ((estimate.value - evidence).abs(), estimate.standard_error);
            assert!(difference < 3.0 * error && error < 0.02 * evidence.abs(), "{estimate:?} {evidence}");
            let row = model.facts().rows().into_iter().find(|row| row.label == "log evidence");
            assert!(row.unwrap().value.contains("+-"));
        }
        if let Some(bound) =
            model.process().unwrap().record().fit.gaussian().unwrap().scalable.as_ref().unwrap().bound
        {
            assert!(bound < evidence, "{method:?}: {bound} {evidence}");
            match &collapsed {
                None => collapsed = Some((predictions.clone(), bound)),
                Some((closed, best)) => {
                    let (mean, variance) = compare(&predictions, closed);
                    assert!(mean < 1e-6 && (variance - 1.0).abs() < 1e-6, "{mean} {variance}");
                    // An average over some ten steps, all but the first of which are at the optimum.
                    assert!((bound - best).abs() < 1e-3 * best.abs(), "{bound} {best}");
                }
            }
        }
        assert_eq!(model.process().unwrap().record().method, method.as_str());
        let summary = model.process().unwrap().record().fit.gaussian().unwrap().scalable.clone().unwrap();
        assert_eq!(summary.hyperparameter_source, "given");
        let path = folder.path().join(format!("{}.posterior", method));
        model.save(&path).unwrap();
        let again = Model::load(&path).unwrap();
        assert_eq!(again.process().unwrap().predict(&fresh, None).unwrap(), predictions, "{method:?}");
        // Damage: cut short, and a header that claims other sizes.
        let bytes = std::fs::read(&path).unwrap();
        for cut in [bytes.len() / 2, bytes.len() - 1] {
            assert!(Model::from_bytes(&bytes[..cut]).is_err());
        }
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(20_000)]).into_owned();
        let claim = format!("\"rows\":{}", model.process().unwrap().record().rows);
        if let Some(at) = text.find(&claim) {
            let mut other = bytes.clone();
            other[at + 7] = b'9';
            let damaged = Model::from_bytes(&other);
            // Bounds keep nothing of the rows.
            assert!(
                damaged.is_err() || !model.process().unwrap().predictor().inducing().is_empty(),
                "{method:?}"
            );
        }
    }
}

#[test]
fn single_precision_differs_by_rounding() {
    let mut request = request(MethodName::Sdd);
    set(
        &mut request,
        json!({"iterations": 3000, "batch": 64, "hyperparameter-search": "neighbourhoods", "neighbourhoods": 2, "neighbourhood-size": 150}),
    );
    let double = fit(&request);
    set(&mut request, json!({"precision": "single"}));
    let single = fit(&request);
    let fresh = synthetic::friedman(40, Streams::new(3));
    let (mean, variance) = compare(
        &single.process().unwrap().predict(&fresh, None).unwrap(),
        &double.process().unwrap().predict(&fresh, None).unwrap(),
    );
    assert!(mean < 1e-2 && (variance - 1.0).abs() < 1e-2, "{mean} {variance}");
    assert_eq!(
        single.process().unwrap().record().hyperparameters,
        double.process().unwrap().record().hyperparameters
    );
    let summary = single.process().unwrap().record().fit.gaussian().unwrap().scalable.clone().unwrap();
    assert_eq!(summary.neighbourhood_evidences.len(), 2);
    assert!(summary.step_size.unwrap() > 0.0 && summary.ended == "steps" && summary.steps == 3000);
    // Draws are a choice of the samples that the model keeps.
    let rows: Vec<usize> = (0..40).collect();
    assert_eq!(single.process().unwrap().sample(&fresh, &rows, 5, 0, u64::MAX).unwrap().len(), 5);
    let error = single
        .process()
        .unwrap()
        .sample(&fresh, &rows, 5, 0, 40 * (32 * 200 + 16 * 5) - 1)
        .unwrap_err()
        .to_string();
    assert!(error.contains("samples at 40 rows need 259200 bytes"), "{error}");
    let error = single.process().unwrap().sample(&fresh, &rows, 201, 0, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("keeps 200 samples"), "{error}");
}

#[test]
fn interrupted_fits_go_on_to_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = synthetic::friedman(30, Streams::new(4));
    for method in [
        MethodName::Sdd,
        MethodName::Sap,
        MethodName::Cg,
        MethodName::Svgp,
        MethodName::Sgpr,
        MethodName::InducingSgd,
    ] {
        let mut request = request(method);
        set(
            &mut request,
            json!({"samples": 4, "inducing": 20, "iterations": 40, "steps": 12, "refining-rows": 0, "batch": 32}),
        );
        set(&mut request, quick_blocks());
        let straight = fit(&request);
        let path = folder.path().join(format!("{method}.checkpoint"));
        // Every step is due.
        set(&mut request, json!({"checkpoint": path, "checkpoint-every": 1e-9}));
        let table = table();
        let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
        let mut seen = 0;
        let stopped = Model::fit_prepared(prepared.clone(), &request, &mut |_, stage| {
            let late = match stage {
                FitStage::Solve | FitStage::Bound | FitStage::Features | FitStage::Variation => true,
                FitStage::Search => method == MethodName::Sgpr,
                FitStage::Blocks { .. }
                | FitStage::Neighbourhoods
                | FitStage::EvidenceSearch { .. }
                | FitStage::Closing
                | FitStage::Noise
                | FitStage::Fold { .. }
                | FitStage::Forecast => false,
            };
            seen += usize::from(late);
            if seen == 5 { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
        assert!(stopped.was_interrupted() && path.exists(), "{method:?}");
        // Other data: refused, and the checkpoint stays.
        let fewer = Prepared::from_table(&table, &(0..200).collect::<Vec<_>>(), &request).unwrap();
        let refused = Model::fit_prepared(fewer, &request, &mut |_, _| Signal::Continue);
        assert!(matches!(refused, Err(ModelError::Store(StoreError::OtherCheckpoint { .. }))), "{method:?}");
        let mut other = request.clone();
        set(&mut other, json!({"held-back": 1}));
        other.prior.initial_noise = Some(0.2);
        let refused =
            Model::fit_prepared(prepared.clone(), &other, &mut |_, _| Signal::Continue).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("differs in held-back (0 there, 1 now), initial-noise ("), "{text}");
        assert!(text.contains(" there, 0.2 now): begin anew with --fresh"), "{text}");
        let resumed = Model::fit_prepared(prepared, &request, &mut |_, _| Signal::Continue).unwrap();
        assert!(!path.exists());
        assert_eq!(
            resumed
                .process()
                .unwrap()
                .record()
                .fit
                .gaussian()
                .unwrap()
                .scalable
                .as_ref()
                .unwrap()
                .resumed_from,
            5,
            "{method:?}"
        );
        assert_eq!(
            resumed.process().unwrap().record().hyperparameters,
            straight.process().unwrap().record().hyperparameters,
            "{method:?}"
        );
        assert_eq!(
            resumed.process().unwrap().predict(&fresh, None).unwrap(),
            straight.process().unwrap().predict(&fresh, None).unwrap(),
            "{method:?}"
        );
    }
}

/// Steps on batches are followed by a pass over all rows: the collapsed bound's posterior at what they learned. A pass that is ended is made again.
#[test]
fn the_stochastic_bound_ends_with_the_best_inducing_values() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(MethodName::Svgp);
    set(&mut request, json!({"iterations": 40, "batch": 32, "inducing": 20, "fixed-inducing": true}));
    let summary =
        |model: &Model| model.process().unwrap().record().fit.gaussian().unwrap().scalable.clone().unwrap();
    let learned = fit(&request);
    assert_eq!(summary(&learned).closed_form, Some(true));
    // With given hyperparameters and the same points, where they were chosen, the collapsed bound has the same posterior.
    request.start = Start::given(learned.process().unwrap().record().hyperparameters.clone());
    let closed = fit(&request);
    let mut collapsed = super::large_tables::request(MethodName::Sgpr);
    collapsed.start = request.start.clone();
    set(&mut collapsed, json!({"inducing": 20, "fixed-inducing": true}));
    let collapsed = fit(&collapsed);
    let (own, other) = (summary(&closed).bound.unwrap(), summary(&collapsed).bound.unwrap());
    assert!((own - other).abs() < 1e-9 * own.abs(), "{own} {other}");
    assert_eq!(summary(&collapsed).closed_form, None);
    let fresh = synthetic::friedman(60, Streams::new(2));
    let means = |model: &Model| model.process().unwrap().predict(&fresh, None).unwrap().mean;
    for (a, b) in means(&closed).into_iter().zip(means(&collapsed)) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    // A budget without room for it leaves the values of the last batches, and says so.
    let hasty = fit(&FitRequest { limits: Limits { time: Some(1e-9), ..request.limits }, ..request.clone() });
    assert_eq!(summary(&hasty).closed_form, Some(false));
    // Ended in the pass, it goes on from the last step.
    let path = folder.path().join("c");
    set(&mut request, json!({"checkpoint": path}));
    let prepared = Prepared::from_table(&table(), &Split::all(300).train, &request).unwrap();
    let ended = Model::fit_prepared(prepared.clone(), &request, &mut |progress, stage| match stage {
        FitStage::Closing => {
            assert_eq!(progress.steps_planned, 300);
            Signal::Stop
        }
        _ => Signal::Continue,
    });
    assert!(ended.unwrap().was_interrupted() && path.exists());
    let resumed = Model::fit_prepared(prepared, &request, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!(summary(&resumed).resumed_from, 40);
    assert_eq!(means(&resumed), means(&closed));
}

/// The search for hyperparameters goes on behind the neighbourhoods that it had finished, and limits may be other ones.
#[test]
fn interrupted_searches_go_on_behind_their_neighbourhoods() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search.checkpoint");
    let mut request = request(MethodName::Sdd);
    set(
        &mut request,
        json!({"samples": 2, "iterations": 10, "steps": 8, "hyperparameter-search": "neighbourhoods", "neighbourhoods": 3, "neighbourhood-size": 60}),
    );
    let straight = fit(&request);
    assert!(
        !straight.process().unwrap().record().fit.gaussian().unwrap().hyperpriors.is_empty(),
        "the weak prior of lengthscales is among the priors"
    );
    set(&mut request, json!({"checkpoint": path}));
    let table = table();
    let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
    let stopped = Model::fit_prepared(prepared.clone(), &request, &mut |progress, stage| match stage {
        FitStage::Neighbourhoods if progress.part == 2 => Signal::Stop,
        _ => Signal::Continue,
    });
    assert!(matches!(stopped, Err(ModelError::Interrupted)) && path.exists());
    request.limits.time = Some(1000.0);
    request.limits.memory *= 2;
    let mut first = None;
    let resumed = Model::fit_prepared(prepared, &request, &mut |progress, stage| {
        if *stage == FitStage::Neighbourhoods {
            first.get_or_insert(progress.part);
        }
        Signal::Continue
    })
    .unwrap();
    assert_eq!(first, Some(2));
    assert_eq!(
        resumed.process().unwrap().record().hyperparameters,
        straight.process().unwrap().record().hyperparameters
    );
    let (a, b) = (
        resumed.process().unwrap().record().fit.gaussian().unwrap().scalable.as_ref(),
        straight.process().unwrap().record().fit.gaussian().unwrap().scalable.as_ref(),
    );
    assert_eq!(a.unwrap().neighbourhood_evidences, b.unwrap().neighbourhood_evidences);
    assert_eq!(a.unwrap().hyperparameter_source, b.unwrap().hyperparameter_source);
}

/// Searches on all rows: near the exact maximum, in the plan, and behind an interruption where they were.
#[test]
fn stochastic_searches_find_the_evidence_and_go_on() {
    let exact = exact();
    let folder = tempfile::tempdir().unwrap();
    let table = table();
    let mut request = request(MethodName::Cg);
    set(
        &mut request,
        json!({"samples": 4, "iterations": 50, "hyperparameter-search": "stochastic", "probes": 64, "probe-kind": "signs", "search-passes": 3}),
    );
    let straight = fit(&request);
    let summary = straight.process().unwrap().record().fit.gaussian().unwrap().scalable.clone().unwrap();
    assert!(summary.hyperparameter_source.contains("all rows with 64 probes"), "{summary:?}");
    let found = summary.search.unwrap();
    assert!(found.steps == 100 && found.passes > 50.0 && found.passes <= 300.0, "{found:?}");
    assert!(found.residual.is_some_and(|residual| residual < 0.1), "{found:?}");
    // It is near its end, and random signs are no samples.
    assert!(found.last_gain.abs() < 0.02 && !found.handed_on, "{found:?}");
    assert!(summary.neighbourhood_evidences.is_empty());
    // What was found is worth little less than the maximum, with the priors that both share.
    let evidence = |model: &Model| {
        let mut at = self::request(MethodName::Exact);
        set(&mut at, json!({"steps": 0}));
        at.prior.kernel = model.process().unwrap().record().kernel.clone();
        let prepared = Prepared::from_table(&table, &Split::all(300).train, &at).unwrap();
        let kernel = at.prior.kernel.build::<f64>(&prepared.schema.feature_names()).unwrap();
        let noise = posterior::likelihoods::Gaussian::new(0.1, at.prior.noise_floor);
        let mut process = posterior::gp::exact::ExactGp::new(kernel, at.prior.mean, noise, 10, 1);
        let values: Vec<f64> =
            model.process().unwrap().record().hyperparameters.iter().flat_map(|h| h.values.clone()).collect();
        posterior::optim::Parameters::set_values(&mut process, &values);
        posterior::gp::exact::log_evidence_and_gradient(&process, &prepared.data, None).unwrap().value
    };
    let (best, reached) = (
        exact.process().unwrap().record().fit.gaussian().unwrap().log_evidence.unwrap(),
        evidence(&straight),
    );
    assert!((evidence(exact) - best).abs() < 1e-8 * best.abs());
    let start = {
        let mut begun = request.clone();
        set(&mut begun, json!({"steps": 1, "learning-rate": 1e-9}));
        evidence(&fit(&begun))
    };
    assert!(best - reached < 0.05 * (best - start), "{best} {reached} {start}");
    // An interruption within the tenth step, then the same request.
    let path = folder.path().join("search.checkpoint");
    for refined in [false, true] {
        let search = if refined { "refined" } else { "stochastic" };
        set(
            &mut request,
            json!({"hyperparameter-search": search, "steps": 12, "probes": 4, "probe-kind": "pathwise", "random-features": 64, "refining-rows": 100}),
        );
        set(&mut request, quick_blocks());
        let straight = fit(&request);
        set(&mut request, json!({"checkpoint": path, "checkpoint-every": 1e-9}));
        let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
        let stopped = Model::fit_prepared(prepared.clone(), &request, &mut |progress, stage| match stage {
            FitStage::EvidenceSearch { solve: Some(_) } if progress.step == 10 => Signal::Stop,
            _ => Signal::Continue,
        });
        assert!(matches!(stopped, Err(ModelError::Interrupted)) && path.exists());
        let mut first = None;
        let resumed = Model::fit_prepared(prepared, &request, &mut |progress, stage| {
            match stage {
                FitStage::EvidenceSearch { .. } => {
                    first.get_or_insert(progress.step);
                }
                FitStage::Blocks { .. } => panic!("they were finished"),
                _ => {}
            }
            Signal::Continue
        })
        .unwrap();
        assert_eq!(first, Some(10));
        assert_eq!(
            resumed.process().unwrap().record().hyperparameters,
            straight.process().unwrap().record().hyperparameters
        );
        let sizes: Vec<Vec<usize>> = straight
            .process()
            .unwrap()
            .record()
            .fit
            .gaussian()
            .unwrap()
            .scalable
            .as_ref()
            .unwrap()
            .blocks
            .iter()
            .map(|b| b.sizes.clone())
            .collect();
        assert_eq!(sizes, if refined { vec![vec![60, 60], vec![100, 50]] } else { Vec::new() });
        set(&mut request, json!({"checkpoint": null}));
    }
    // The solutions of a search are the samples of the model: a solve that begins with them ends sooner, also behind an interruption at its first step. (Steps are as short as where blocks led: by so much as the last ones
    // move, the mean of the last quarter is another system.)
    set(
        &mut request,
        json!({"hyperparameter-search": "stochastic", "steps": 30, "learning-rate": 0.1, "probes": 4, "random-features": 64, "search-passes": 5, "tolerance": 1e-6, "iterations": 400, "samples": 4}),
    );
    let handed = fit(&request);
    let summary = handed.process().unwrap().record().fit.gaussian().unwrap().scalable.clone().unwrap();
    assert!(summary.search.as_ref().unwrap().handed_on, "{summary:?}");
    let alone = {
        let mut given = request.clone();
        given.start = Start::given(handed.process().unwrap().record().hyperparameters.clone());
        fit(&given).process().unwrap().record().fit.gaussian().unwrap().scalable.clone().unwrap()
    };
    assert!(summary.residual.unwrap() <= 1e-6 && alone.residual.unwrap() <= 1e-6);
    assert!(summary.steps < alone.steps, "{} {}", summary.steps, alone.steps);
    set(&mut request, json!({"checkpoint": path, "checkpoint-every": 1e9}));
    let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
    let killed = folder.path().join("killed.checkpoint");
    let stopped = Model::fit_prepared(prepared.clone(), &request, &mut |_, stage| match stage {
        FitStage::Solve => {
            // What a kill would have left before the solve saved anything.
            std::fs::copy(&path, &killed).unwrap();
            Signal::Stop
        }
        _ => Signal::Continue,
    });
    assert!(matches!(stopped, Ok(model) if model.was_interrupted()) && path.exists());
    let again = || Model::fit_prepared(prepared.clone(), &request, &mut |_, _| Signal::Continue).unwrap();
    let resumed = again();
    let steps = |model: &Model| {
        model.process().unwrap().record().fit.gaussian().unwrap().scalable.as_ref().unwrap().steps
    };
    assert_eq!(
        (steps(&resumed), &resumed.process().unwrap().record().hyperparameters),
        (steps(&handed), &handed.process().unwrap().record().hyperparameters)
    );
    std::fs::copy(&killed, &path).unwrap();
    let after_a_kill = again();
    assert_eq!(steps(&after_a_kill), steps(&handed));
    assert_eq!(
        after_a_kill.process().unwrap().predict(&table, None).unwrap(),
        handed.process().unwrap().predict(&table, None).unwrap()
    );
    set(&mut request, json!({"checkpoint": null, "tolerance": null, "iterations": 50}));
    // Parameters may be held, and bounds that are reached are said.
    set(
        &mut request,
        json!({"fix": [{"fixed": {"parameter": "noise_variance", "value": 0.25}}], "bound": [{"between": {"parameter": "matern32.variance", "lower": 40.0, "upper": 50.0}}]}),
    );
    let held = fit(&request);
    assert_eq!(held.process().unwrap().record().hyperparameters.last().unwrap().values, [0.25]);
    let variance = held
        .process()
        .unwrap()
        .record()
        .hyperparameters
        .iter()
        .find(|h| h.name == "matern32.variance")
        .unwrap()
        .values[0];
    assert!((40.0..50.0).contains(&variance), "{variance}");
    set(&mut request, json!({"fix": [], "bound": []}));
    // Steps that lead to where no model is do not end in a file that cannot be read.
    set(
        &mut request,
        json!({"hyperparameter-search": "stochastic", "steps": 2, "probes": 64, "probe-kind": "signs", "learning-rate": 1e4}),
    );
    let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
    assert!(Model::fit_prepared(prepared, &request, &mut |_, _| Signal::Continue).is_err());
    let _ = std::fs::remove_file(&path);
    // Solves on all rows are in the plan.
    set(&mut request, json!({"steps": 100}));
    let planned = |search| {
        let mut request = request.clone();
        set(&mut request, json!({"hyperparameter-search": search, "probes": 1000}));
        ScalablePlan::new(&request, &request.method, 100_000, 5)
    };
    let (plan, without) = (planned("stochastic"), planned("neighbourhoods"));
    assert!(plan.peak_bytes > without.peak_bytes + 8 * 100_000 * 1000, "{plan} {without}");
    assert!(plan.hyperparameter_flops > without.hyperparameter_flops);
    for (change, words) in [
        (json!({"probes": 0, "learning-rate": 0.1}), "probes"),
        (json!({"probes": 64, "learning-rate": -0.1}), "learning rate"),
    ] {
        set(&mut request, change);
        let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
        let error = Model::fit_prepared(prepared, &request, &mut |_, _| Signal::Stop).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Every form and draw of features, and every choice of inducing points, is used, recorded and read back.
#[test]
fn features_and_choices_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    let exact = exact();
    let fresh = synthetic::friedman(20, Streams::new(5));
    let mut seen: Vec<Predictions> = Vec::new();
    for (form, frequencies) in [
        ("paired", "independent"),
        ("phase", "independent"),
        ("paired", "orthogonal"),
        ("paired", "quasi-random"),
    ] {
        let mut request = request(MethodName::Cg);
        request.start = Start::given(exact.process().unwrap().record().hyperparameters.clone());
        set(&mut request, json!({"feature-form": form, "feature-frequencies": frequencies, "samples": 8}));
        let model = fit(&request);
        model.save(&path).unwrap();
        let again = Model::load(&path).unwrap();
        let settings = again
            .process()
            .unwrap()
            .record()
            .fit
            .gaussian()
            .unwrap()
            .scalable
            .as_ref()
            .unwrap()
            .settings
            .clone()
            .unwrap();
        assert_eq!(
            json!(settings.features),
            json!({"count": 1000, "form": form, "frequencies": frequencies})
        );
        let predictions = model.process().unwrap().predict(&fresh, None).unwrap();
        assert_eq!(again.process().unwrap().predict(&fresh, None).unwrap(), predictions);
        assert!(seen.iter().all(|s| s.latent_deviation != predictions.latent_deviation));
        seen.push(predictions);
    }
    for (choice, radius) in [
        (json!({"inducing-choice": "k-means"}), false),
        (json!({"inducing-choice": "cover", "cover-radius": 0.1}), true),
        (json!({"inducing-choice": "pruned"}), true),
    ] {
        for method in [MethodName::Sgpr, MethodName::InducingSgd] {
            let mut request = request(method);
            request.start = Start::given(exact.process().unwrap().record().hyperparameters.clone());
            set(&mut request, choice.clone());
            set(&mut request, json!({"inducing": 40, "iterations": 2}));
            let summary =
                fit(&request).process().unwrap().record().fit.gaussian().unwrap().scalable.clone().unwrap();
            assert!(summary.inducing <= 40 && summary.inducing > 0);
            assert_eq!(summary.inducing_radius.is_some(), radius);
            assert_eq!(summary.inducing_moved, method == MethodName::Sgpr);
            assert!(summary.inducing_radius.is_none_or(|r| r > 0.1));
        }
    }
    // Among counts they stay: moved, they would become negative somewhere.
    let mut counts = request(MethodName::Svgp);
    counts.prior.kernel = "tanimoto".parse().unwrap();
    set(&mut counts, json!({"inducing": 10, "iterations": 3}));
    let source = synthetic::friedman(60, Streams::new(6));
    let rows: Vec<usize> = (0..60).collect();
    let model = Model::fit(&source, &rows, &counts, &mut |_, _| Signal::Continue).unwrap();
    assert!(
        !model.process().unwrap().record().fit.gaussian().unwrap().scalable.as_ref().unwrap().inducing_moved
    );
    // What inducing-sgd cannot have, neighbourhoods of nothing.
    let wrong = serde_json::from_value::<Method>(json!({"method": "inducing-sgd", "tolerance": 0.1}));
    assert!(wrong.unwrap_err().to_string().contains("inducing-sgd has no option `tolerance`"));
    let mut none = request(MethodName::Sdd);
    set(&mut none, json!({"hyperparameter-search": "neighbourhoods", "neighbourhoods": 0}));
    let mut long = request(MethodName::Svgp);
    set(&mut long, json!({"natural-length": 1.5}));
    for (request, words) in [(none, "neighbourhoods"), (long, "natural-gradient")] {
        let error = Model::fit(&table(), &rows, &request, &mut |_, _| Signal::Stop).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Inducing points move also where hyperparameters are given, and the result says where those come from.
#[test]
fn given_hyperparameters_stay_and_inducing_points_move() {
    let exact = exact();
    for method in [MethodName::Sgpr, MethodName::Svgp] {
        let mut request = request(method);
        set(&mut request, json!({"inducing": 15, "iterations": 30}));
        request.start = Start::given(exact.process().unwrap().record().hyperparameters.clone());
        let bound = |fixed| {
            let mut request = request.clone();
            set(&mut request, json!({"fixed-inducing": fixed}));
            let model = fit(&request);
            assert_eq!(
                model.process().unwrap().record().hyperparameters,
                exact.process().unwrap().record().hyperparameters
            );
            let summary = model.process().unwrap().record().fit.gaussian().unwrap().scalable.clone().unwrap();
            assert_eq!(summary.hyperparameter_source, "given");
            assert!(model.process().unwrap().record().fit.gaussian().unwrap().hyperpriors.is_empty());
            summary.bound.unwrap()
        };
        assert!(bound(false) > bound(true), "{method:?}");
    }
}

#[test]
fn methods_are_chosen_with_a_reason_and_plans_are_kept() {
    let auto = |rows, kernel: &str, gigabytes: f64| {
        let mut request = request(MethodName::Auto);
        request.prior.kernel = kernel.parse().unwrap();
        request.limits.memory = (gigabytes * 1e9) as u64;
        let chosen = choose(&request, rows, &["hour".to_string(), "b".to_string()]);
        (chosen.method.name(), chosen.why)
    };
    assert_eq!(auto(2000, "matern32(ard)", 8.0).0, MethodName::Exact);
    assert_eq!(auto(4000, "matern32(ard)", 0.15).0, MethodName::Sdd);
    // Where nothing fits, what is refused is the least that would do.
    assert_eq!(auto(300, "matern32(ard)", 0.001).0, MethodName::Exact);
    assert_eq!(auto(2000, "matern32(ard)", 0.02).0, MethodName::Svgp);
    let large = auto(1_000_000, "matern32(ard)", 80.0);
    assert!(large.0 == MethodName::Sdd && large.1.contains("1000000 rows"), "{large:?}");
    // 201 columns of weights in double precision, six times.
    let narrow = auto(1_000_000, "matern32(ard)", 8.0);
    assert!(narrow.0 == MethodName::Svgp && narrow.1.contains("for stochastic dual descent"), "{narrow:?}");
    let periodic = auto(100_000, "periodic(hour)", 8.0);
    assert!(periodic.0 == MethodName::Sgpr && periodic.1.contains("random features"), "{periodic:?}");
    let mut tiny = request(MethodName::Sdd);
    tiny.limits.memory = 1 << 20;
    let table = table();
    let error = Model::fit(&table, &Split::all(300).train, &tiny, &mut |_, _| Signal::Continue).unwrap_err();
    assert!(error.to_string().contains("above the limit"), "{error}");
    // What a preconditioner keeps is part of the plan.
    let planned = |preconditioner| {
        let mut request = request(MethodName::Cg);
        set(&mut request, json!({"preconditioner": preconditioner, "rank": 300}));
        ScalablePlan::new(&request, &request.method, 100_000, 5).peak_bytes
    };
    assert_eq!(planned("pivoted-cholesky") - planned("none"), 8 * 300 * 100_000);
    assert!(planned("nystrom") > planned("pivoted-cholesky"));
    // Hyperparameters that no model of this request can have: an unknown name, noise below the floor.
    let exact = exact();
    let given = |change: &dyn Fn(&mut Vec<posterior::models::Hyperparameter>)| {
        let mut request = request(MethodName::Sdd);
        let mut values = exact.process().unwrap().record().hyperparameters.clone();
        change(&mut values);
        request.start = Start::given(values);
        Model::fit(&table, &Split::all(300).train, &request, &mut |_, _| Signal::Stop)
            .unwrap_err()
            .to_string()
    };
    let error = given(&|h| {
        h.push(posterior::models::Hyperparameter { name: "matern32.lenghtscale".into(), values: vec![1.0] })
    });
    assert!(error.contains("`matern32.lenghtscale` is given"), "{error}");
    let error =
        given(&|h| h.iter_mut().filter(|h| h.name == "noise_variance").for_each(|h| h.values[0] = 3.9e-5));
    assert!(error.contains("0.000039") && error.contains("noise floor"), "{error}");
    // Hyperparameters of another kernel.
    let mut foreign = request(MethodName::Sdd);
    foreign.start = Start::given(vec![]);
    let error =
        Model::fit(&table, &Split::all(300).train, &foreign, &mut |_, _| Signal::Continue).unwrap_err();
    assert!(error.to_string().contains("no hyperparameter `"), "{error}");
    for change in [json!({"samples": 0}), json!({"step-size": -1.0})] {
        let mut wrong = request(MethodName::Sdd);
        set(&mut wrong, change);
        assert!(matches!(
            Model::fit(&table, &Split::all(300).train, &wrong, &mut |_, _| Signal::Continue),
            Err(ModelError::Setting { .. })
        ));
    }
}
