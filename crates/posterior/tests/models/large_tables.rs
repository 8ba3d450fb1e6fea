//! Models of large tables: every method against the exact one, files, interruptions, refusals.

use posterior::data::{Selection, Split, Table, synthetic};
use posterior::gp::inducing::stochastic::VariationalOptimizer;
use posterior::gp::iterative::{Blocks, Neighbourhoods, ProbeKind};
use posterior::kernels::features::{FeatureForm, FrequencyDraw};
use posterior::kernels::inducing::InducingChoice;
use posterior::linalg::random::Streams;
use posterior::linalg::solve::PreconditionerChoice;
use posterior::optim::Signal;
use posterior::{
    FitRequest, FitStage, HyperparameterSearch, KernelPrecision, Method, Model, ModelError, PredictOptions,
    Predictions, Prepared, ProcessPosterior, ScalablePlan, StochasticSearch, VarianceMethod, choose,
};

fn table() -> Table {
    synthetic::friedman(300, Streams::new(1))
}

fn request(method: Method) -> FitRequest {
    let mut request = FitRequest {
        selection: Selection { target: "y".into(), ..Default::default() },
        method,
        ..Default::default()
    };
    request.options.restarts = 1;
    request.scalable.samples = 200;
    request.scalable.features.count = 1000;
    request.scalable.precision = KernelPrecision::Double;
    request.scalable.inducing = 120;
    // Compared with the exact process of all rows.
    request.scalable.held_back = Some(0);
    request
}

fn fit(request: &FitRequest) -> Model {
    let table = table();
    let rows = Split::all(table.rows()).train;
    Model::fit(&table, &rows, request, &mut |_, _| Signal::Continue).unwrap()
}

/// Largest differences of means, and the mean ratio of latent deviations, in units of the exact model's.
fn compare(a: &Predictions, exact: &Predictions) -> (f64, f64) {
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
fn quick_blocks() -> Blocks {
    Blocks { uniform: 1, neighbourhoods: 1, size: 60, seed: 0 }
}

#[test]
fn every_method_agrees_with_the_exact_one_and_survives_its_file() {
    let exact = fit(&request(Method::Exact));
    let fresh = synthetic::friedman(60, Streams::new(2));
    let truth = exact.predict(&fresh, None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let evidence = exact.header().fit.log_evidence.unwrap();
    let mut collapsed: Option<(Predictions, f64)> = None;
    for (method, steps, tolerances) in [
        (Method::Cg, 500, Some((0.01, 0.4))),
        (Method::Sdd, 15_000, Some((0.02, 0.4))),
        // Descent on the primal is slow where eigenvalues are small: far from done, it is judged by the way that it has come.
        (Method::Sgd, 3000, None),
        (Method::InducingSgd, 4000, None),
        // As far as 120 points in ten dimensions can: within a standard deviation of the exact mean, and not surer than twice too much.
        (Method::Sgpr, 1, Some((1.0, 1.0))),
        (Method::Svgp, 150, Some((1.0, 1.0))),
    ] {
        let mut request = request(method);
        request.scalable.hyperparameters = Some(exact.header().hyperparameters.clone());
        request.scalable.steps = Some(steps);
        request.scalable.tolerance = (method == Method::Cg).then_some(1e-8);
        request.scalable.batch = (method != Method::Cg && method != Method::Sgpr).then_some(64);
        if method == Method::Svgp {
            // All rows at once and steps of full length: the optimum in one, which is the collapsed posterior.
            request.scalable.batch = Some(300);
            request.scalable.variational = VariationalOptimizer::NaturalGradient { length: 1.0, warm_up: 0 };
        }
        request.scalable.learn_inducing = false;
        // Latent variances are a fiftieth of the prior's here, so prior functions must be accurate to less: the error of features falls with the root of their number.
        // 64 samples tell a deviation to `1/√128`, less than a tenth.
        (request.scalable.samples, request.scalable.features.count) = (64, 4000);
        let model = fit(&request);
        let predictions = model.predict(&fresh, None).unwrap();
        let (mean, variance) = compare(&predictions, &truth);
        match tolerances {
            Some((tolerance, ratio)) => {
                assert!(mean < tolerance && (variance - 1.0).abs() < ratio, "{method:?}: {mean} {variance}");
            }
            None => {
                // A tenth of the steps leaves more of the exact mean unexplained and more of the prior's variance, and so does no step at all.
                request.scalable.steps = Some(steps / 10);
                let before = fit(&request).predict(&fresh, None).unwrap();
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
        let solved = model.predict_with(&fresh, None, solves(u64::MAX));
        match method {
            Method::Cg | Method::Sdd | Method::Sgd => {
                let solved = solved.unwrap();
                let solves_made = solved.solves.unwrap();
                assert!(solves_made.residual <= 1e-6 && solves_made.iterations > 0, "{solves_made:?}");
                for (a, b) in solved.latent_deviation.iter().zip(&truth.latent_deviation) {
                    assert!((a - b).abs() < 1e-5 * b, "{method:?}: {a} {b}");
                }
                // One product of one column, or of all: sums in another order.
                assert!(
                    solved.mean.iter().zip(&predictions.mean).all(|(a, b)| (a - b).abs() < 1e-10 * b.abs())
                );
                let refused = model.predict_with(&fresh, None, solves(1000)).unwrap_err();
                assert!(matches!(refused, ModelError::VarianceMemory { limit: 1000, .. }));
            }
            Method::InducingSgd => assert!(solved.unwrap_err().to_string().contains("inducing points")),
            _ => assert_eq!(solved.unwrap(), predictions),
        }
        if let Some(bound) = model.header().fit.scalable.as_ref().unwrap().bound {
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
        assert_eq!(model.header().method, method.name());
        let summary = model.header().fit.scalable.clone().unwrap();
        assert_eq!(summary.hyperparameter_source, "given");
        let path = folder.path().join(format!("{}.posterior", method.name()));
        model.save(&path).unwrap();
        let again = Model::load(&path).unwrap();
        assert_eq!(again.predict(&fresh, None).unwrap(), predictions, "{method:?}");
        // Damage: cut short, and a header that claims other sizes.
        let bytes = std::fs::read(&path).unwrap();
        for cut in [bytes.len() / 2, bytes.len() - 1] {
            assert!(Model::parse(&bytes[..cut], &path).is_err());
        }
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(20_000)]).into_owned();
        let claim = format!("\"rows\":{}", model.header().rows);
        if let Some(at) = text.find(&claim) {
            let mut other = bytes.clone();
            other[at + 7] = b'9';
            let damaged = Model::parse(&other, &path);
            // Bounds keep nothing of the rows.
            assert!(
                damaged.is_err() || matches!(model.posterior(), ProcessPosterior::Inducing(_)),
                "{method:?}"
            );
        }
    }
}

#[test]
fn single_precision_differs_by_rounding() {
    let mut request = request(Method::Sdd);
    request.scalable.steps = Some(3000);
    request.scalable.batch = Some(64);
    request.scalable.search = HyperparameterSearch::Neighbourhoods;
    request.scalable.neighbourhoods = Neighbourhoods { count: 2, size: 150, seed: 0 };
    let double = fit(&request);
    request.scalable.precision = KernelPrecision::Single;
    let single = fit(&request);
    let fresh = synthetic::friedman(40, Streams::new(3));
    let (mean, variance) =
        compare(&single.predict(&fresh, None).unwrap(), &double.predict(&fresh, None).unwrap());
    assert!(mean < 1e-2 && (variance - 1.0).abs() < 1e-2, "{mean} {variance}");
    assert_eq!(single.header().hyperparameters, double.header().hyperparameters);
    let summary = single.header().fit.scalable.clone().unwrap();
    assert_eq!(summary.neighbourhood_evidences.len(), 2);
    assert!(summary.step_size.unwrap() > 0.0 && summary.ended == "steps" && summary.steps == 3000);
    // Draws are a choice of the samples that the model keeps.
    let rows: Vec<usize> = (0..40).collect();
    assert_eq!(single.sample(&fresh, &rows, 5, 0, u64::MAX).unwrap().len(), 5);
    let error = single.sample(&fresh, &rows, 5, 0, 40 * (32 * 200 + 16 * 5) - 1).unwrap_err().to_string();
    assert!(error.contains("samples at 40 rows need 259200 bytes"), "{error}");
    let error = single.sample(&fresh, &rows, 201, 0, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("keeps 200 samples"), "{error}");
}

#[test]
fn interrupted_fits_go_on_to_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = synthetic::friedman(30, Streams::new(4));
    for method in [Method::Sdd, Method::Cg, Method::Svgp, Method::Sgpr, Method::InducingSgd] {
        let mut request = request(method);
        request.scalable.samples = 4;
        request.scalable.inducing = 20;
        request.scalable.steps = Some(40);
        request.options.steps.steps = 12;
        request.scalable.blocks = quick_blocks();
        request.scalable.refining_rows = 0;
        if method != Method::Cg {
            request.scalable.batch = Some(32);
        }
        let straight = fit(&request);
        let path = folder.path().join(format!("{}.checkpoint", method.name()));
        request.scalable.checkpoint = Some(path.clone());
        // Every step is due.
        request.scalable.checkpoint_seconds = 1e-9;
        let table = table();
        let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
        let mut seen = 0;
        let stopped = Model::fit_prepared(prepared.clone(), &request, &mut |_, stage| {
            let late = match stage {
                FitStage::Solve | FitStage::Bound => true,
                FitStage::Search => method == Method::Sgpr,
                FitStage::Blocks { .. } | FitStage::Neighbourhoods | FitStage::EvidenceSearch { .. } => false,
            };
            seen += usize::from(late);
            if seen == 5 { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
        assert!(stopped.was_interrupted() && path.exists(), "{method:?}");
        // Other data: refused, and the checkpoint stays.
        let fewer = Prepared::from_table(&table, &(0..200).collect::<Vec<_>>(), &request).unwrap();
        let refused = Model::fit_prepared(fewer, &request, &mut |_, _| Signal::Continue);
        assert!(matches!(refused, Err(ModelError::OtherCheckpoint { .. })), "{method:?}");
        let mut other = request.clone();
        other.scalable.features.count = 999;
        other.initial_noise = 0.2;
        let refused =
            Model::fit_prepared(prepared.clone(), &other, &mut |_, _| Signal::Continue).unwrap_err();
        let names = "differs in initial_noise, scalable.features.count: begin anew with --fresh";
        assert!(refused.to_string().contains(names), "{refused}");
        let resumed = Model::fit_prepared(prepared, &request, &mut |_, _| Signal::Continue).unwrap();
        assert!(!path.exists());
        assert_eq!(resumed.header().fit.scalable.as_ref().unwrap().resumed_from, 5, "{method:?}");
        assert_eq!(resumed.header().hyperparameters, straight.header().hyperparameters, "{method:?}");
        assert_eq!(
            resumed.predict(&fresh, None).unwrap(),
            straight.predict(&fresh, None).unwrap(),
            "{method:?}"
        );
    }
}

/// The search for hyperparameters goes on behind the neighbourhoods that it had finished, and limits may be other ones.
#[test]
fn interrupted_searches_go_on_behind_their_neighbourhoods() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search.checkpoint");
    let mut request = request(Method::Sdd);
    request.scalable.samples = 2;
    request.scalable.steps = Some(10);
    request.options.steps.steps = 8;
    request.scalable.search = HyperparameterSearch::Neighbourhoods;
    request.scalable.neighbourhoods = Neighbourhoods { count: 3, size: 60, seed: 0 };
    let straight = fit(&request);
    assert!(
        !straight.header().fit.hyperpriors.is_empty(),
        "the weak prior of lengthscales is among the beliefs"
    );
    request.scalable.checkpoint = Some(path.clone());
    let table = table();
    let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
    let stopped = Model::fit_prepared(prepared.clone(), &request, &mut |progress, stage| match stage {
        FitStage::Neighbourhoods if progress.part == 2 => Signal::Stop,
        _ => Signal::Continue,
    });
    assert!(matches!(stopped, Err(ModelError::Interrupted)) && path.exists());
    request.scalable.seconds = Some(1000.0);
    request.options.memory_limit *= 2;
    let mut first = None;
    let resumed = Model::fit_prepared(prepared, &request, &mut |progress, stage| {
        if *stage == FitStage::Neighbourhoods {
            first.get_or_insert(progress.part);
        }
        Signal::Continue
    })
    .unwrap();
    assert_eq!(first, Some(2));
    assert_eq!(resumed.header().hyperparameters, straight.header().hyperparameters);
    let (a, b) = (resumed.header().fit.scalable.as_ref(), straight.header().fit.scalable.as_ref());
    assert_eq!(a.unwrap().neighbourhood_evidences, b.unwrap().neighbourhood_evidences);
    assert_eq!(a.unwrap().hyperparameter_source, b.unwrap().hyperparameter_source);
}

/// Searches on all rows: near the exact maximum, in the plan, and behind an interruption where they were.
#[test]
fn stochastic_searches_find_the_evidence_and_go_on() {
    let exact = fit(&request(Method::Exact));
    let folder = tempfile::tempdir().unwrap();
    let table = table();
    let mut request = request(Method::Cg);
    (request.scalable.samples, request.scalable.steps) = (4, Some(50));
    let search = StochasticSearch {
        steps: 100,
        probes: 64,
        kind: ProbeKind::Signs,
        iterations: 1000,
        ..Default::default()
    };
    request.scalable.search = HyperparameterSearch::Stochastic(search);
    let straight = fit(&request);
    let summary = straight.header().fit.scalable.clone().unwrap();
    assert!(summary.hyperparameter_source.contains("all rows with 64 probes"), "{summary:?}");
    let found = summary.search.unwrap();
    assert!(found.steps == 100 && found.solver_steps >= 100 && found.unsolved == 0, "{found:?}");
    assert!(summary.neighbourhood_evidences.is_empty());
    // What was found is worth little less than the maximum, with the beliefs that both share.
    let evidence = |model: &Model| {
        let mut at = self::request(Method::Exact);
        at.options.steps.steps = 0;
        at.kernel = model.header().kernel.clone();
        let prepared = Prepared::from_table(&table, &Split::all(300).train, &at).unwrap();
        let kernel = at.kernel.build::<f64>(&prepared.schema.feature_names()).unwrap();
        let noise = posterior::likelihoods::Gaussian::new(0.1, at.noise_floor);
        let mut process = posterior::gp::exact::ExactGp::new(kernel, at.mean, noise, 10, 1);
        let values: Vec<f64> = model.header().hyperparameters.iter().flat_map(|h| h.values.clone()).collect();
        posterior::optim::Parameters::set_values(&mut process, &values);
        posterior::gp::exact::log_evidence_and_gradient(&process, &prepared.data, None).unwrap().value
    };
    let (best, reached) = (exact.header().fit.log_evidence.unwrap(), evidence(&straight));
    assert!((evidence(&exact) - best).abs() < 1e-8 * best.abs());
    let start = {
        let mut begun = request.clone();
        let tiny = StochasticSearch { steps: 1, learning_rate: 1e-9, ..search };
        begun.scalable.search = HyperparameterSearch::Stochastic(tiny);
        evidence(&fit(&begun))
    };
    assert!(best - reached < 0.05 * (best - start), "{best} {reached} {start}");
    // An interruption within the tenth step, then the same request.
    let path = folder.path().join("search.checkpoint");
    request.scalable.checkpoint = Some(path.clone());
    request.scalable.checkpoint_seconds = 1e-9;
    for refined in [false, true] {
        let short = StochasticSearch { steps: 12, probes: 4, kind: ProbeKind::Pathwise, refined, ..search };
        request.scalable.search = HyperparameterSearch::Stochastic(short);
        request.scalable.features.count = 64;
        request.scalable.blocks = quick_blocks();
        request.scalable.refining_rows = 100;
        request.options.steps.steps = 5;
        let straight = fit(&FitRequest {
            scalable: posterior::ScalableSettings { checkpoint: None, ..request.scalable.clone() },
            ..request.clone()
        });
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
        assert_eq!(resumed.header().hyperparameters, straight.header().hyperparameters);
        let sizes: Vec<Vec<usize>> =
            straight.header().fit.scalable.as_ref().unwrap().blocks.iter().map(|b| b.sizes.clone()).collect();
        assert_eq!(sizes, if refined { vec![vec![60, 60], vec![100, 50]] } else { Vec::new() });
    }
    // Steps that lead to where no model is do not end in a file that cannot be read.
    let wild = StochasticSearch { steps: 2, learning_rate: 1e4, ..search };
    request.scalable.search = HyperparameterSearch::Stochastic(wild);
    let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
    assert!(Model::fit_prepared(prepared, &request, &mut |_, _| Signal::Continue).is_err());
    let _ = std::fs::remove_file(&path);
    // Solves on all rows are in the plan.
    let planned = |search| {
        let mut request = request.clone();
        request.scalable.search = search;
        ScalablePlan::new(&request, Method::Cg, 100_000, 5)
    };
    let many = StochasticSearch { probes: 1000, ..search };
    let (plan, without) =
        (planned(HyperparameterSearch::Stochastic(many)), planned(HyperparameterSearch::Neighbourhoods));
    assert!(plan.peak_bytes > without.peak_bytes + 8 * 100_000 * 1000, "{plan} {without}");
    assert!(plan.hyperparameter_flops > without.hyperparameter_flops);
    for (change, words) in [
        (StochasticSearch { probes: 0, ..search }, "probes"),
        (StochasticSearch { learning_rate: f64::NAN, ..search }, "learning rate"),
    ] {
        request.scalable.search = HyperparameterSearch::Stochastic(change);
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
    let exact = fit(&request(Method::Exact));
    let fresh = synthetic::friedman(20, Streams::new(5));
    let mut seen: Vec<Predictions> = Vec::new();
    for (form, frequencies) in [
        (FeatureForm::Paired, FrequencyDraw::Independent),
        (FeatureForm::Phase, FrequencyDraw::Independent),
        (FeatureForm::Paired, FrequencyDraw::Orthogonal),
        (FeatureForm::Paired, FrequencyDraw::QuasiRandom),
    ] {
        let mut request = request(Method::Cg);
        request.scalable.hyperparameters = Some(exact.header().hyperparameters.clone());
        (request.scalable.features.form, request.scalable.features.frequencies) = (form, frequencies);
        request.scalable.samples = 8;
        let model = fit(&request);
        model.save(&path).unwrap();
        let again = Model::load(&path).unwrap();
        let settings = again.header().fit.scalable.as_ref().unwrap().settings.clone().unwrap();
        assert_eq!(settings.features, request.scalable.features);
        let predictions = model.predict(&fresh, None).unwrap();
        assert_eq!(again.predict(&fresh, None).unwrap(), predictions);
        assert!(seen.iter().all(|s| s.latent_deviation != predictions.latent_deviation));
        seen.push(predictions);
    }
    for (choice, radius) in [
        (InducingChoice::KMeans, false),
        (InducingChoice::Cover { radius: 0.1 }, true),
        (InducingChoice::Pruned { neighbours: 100, ratio: 1.0 }, true),
    ] {
        for method in [Method::Sgpr, Method::InducingSgd] {
            let mut request = request(method);
            request.scalable.hyperparameters = Some(exact.header().hyperparameters.clone());
            (request.scalable.choice, request.scalable.inducing, request.scalable.steps) =
                (choice, 40, Some(2));
            let summary = fit(&request).header().fit.scalable.clone().unwrap();
            assert!(summary.inducing <= 40 && summary.inducing > 0);
            assert_eq!(summary.inducing_radius.is_some(), radius);
            assert_eq!(summary.inducing_moved, method == Method::Sgpr);
            assert!(summary.inducing_radius.is_none_or(|r| r > 0.1));
        }
    }
    // Among counts they stay: moved, they would become negative somewhere.
    let mut counts = request(Method::Svgp);
    counts.kernel = "tanimoto".parse().unwrap();
    counts.scalable.inducing = 10;
    counts.scalable.steps = Some(3);
    let source = synthetic::friedman(60, Streams::new(6));
    let rows: Vec<usize> = (0..60).collect();
    let model = Model::fit(&source, &rows, &counts, &mut |_, _| Signal::Continue).unwrap();
    assert!(!model.header().fit.scalable.as_ref().unwrap().inducing_moved);
    // What inducing-sgd cannot have, neighbourhoods of nothing.
    let mut wrong = request(Method::InducingSgd);
    wrong.scalable.tolerance = Some(0.1);
    let mut none = request(Method::Sdd);
    none.scalable.search = HyperparameterSearch::Neighbourhoods;
    none.scalable.neighbourhoods.count = 0;
    let mut long = request(Method::Svgp);
    long.scalable.variational = VariationalOptimizer::NaturalGradient { length: 1.5, warm_up: 0 };
    for (request, words) in [(wrong, "inducing-sgd"), (none, "neighbourhoods"), (long, "natural-gradient")] {
        let error = Model::fit(&table(), &rows, &request, &mut |_, _| Signal::Stop).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Inducing points move also where hyperparameters are given, and the result says where those come from.
#[test]
fn given_hyperparameters_stay_and_inducing_points_move() {
    let exact = fit(&request(Method::Exact));
    for method in [Method::Sgpr, Method::Svgp] {
        let mut request = request(method);
        request.scalable.inducing = 15;
        request.scalable.steps = Some(30);
        request.scalable.hyperparameters = Some(exact.header().hyperparameters.clone());
        let bound = |learn| {
            let mut request = request.clone();
            request.scalable.learn_inducing = learn;
            let model = fit(&request);
            assert_eq!(model.header().hyperparameters, exact.header().hyperparameters);
            let summary = model.header().fit.scalable.clone().unwrap();
            assert_eq!(summary.hyperparameter_source, "given");
            assert!(model.header().fit.hyperpriors.is_empty());
            summary.bound.unwrap()
        };
        assert!(bound(true) > bound(false), "{method:?}");
    }
}

#[test]
fn methods_are_chosen_with_a_reason_and_plans_are_kept() {
    let auto = |rows, kernel: &str, gigabytes: f64| {
        let mut request = request(Method::Auto);
        request.kernel = kernel.parse().unwrap();
        request.options.memory_limit = (gigabytes * 1e9) as u64;
        choose(&request, rows, &["hour".to_string(), "b".to_string()])
    };
    assert_eq!(auto(2000, "matern32(ard)", 8.0).method, Method::Exact);
    assert_eq!(auto(4000, "matern32(ard)", 0.15).method, Method::Sdd);
    // Where nothing fits, what is refused is the least that would do.
    assert_eq!(auto(300, "matern32(ard)", 0.001).method, Method::Exact);
    assert_eq!(auto(2000, "matern32(ard)", 0.02).method, Method::Svgp);
    let large = auto(1_000_000, "matern32(ard)", 80.0);
    assert!(large.method == Method::Sdd && large.why.contains("1000000 rows"), "{large:?}");
    // 201 columns of weights in double precision, six times.
    let narrow = auto(1_000_000, "matern32(ard)", 8.0);
    assert!(
        narrow.method == Method::Svgp && narrow.why.contains("for stochastic dual descent"),
        "{narrow:?}"
    );
    let periodic = auto(100_000, "periodic(hour)", 8.0);
    assert!(periodic.method == Method::Sgpr && periodic.why.contains("random features"), "{periodic:?}");
    let mut tiny = request(Method::Sdd);
    tiny.options.memory_limit = 1 << 20;
    let table = table();
    let error = Model::fit(&table, &Split::all(300).train, &tiny, &mut |_, _| Signal::Continue).unwrap_err();
    assert!(error.to_string().contains("above the limit"), "{error}");
    // What a preconditioner keeps is part of the plan.
    let planned = |preconditioner| {
        let mut request = request(Method::Cg);
        request.scalable.preconditioner = preconditioner;
        ScalablePlan::new(&request, Method::Cg, 100_000, 5).peak_bytes
    };
    let pivoted = |rank| PreconditionerChoice::PivotedCholesky { rank, relative_tolerance: 0.0 };
    assert_eq!(planned(pivoted(300)) - planned(PreconditionerChoice::None), 8 * 300 * 100_000);
    assert!(planned(PreconditionerChoice::Nystrom { rank: 300, seed: 0 }) > planned(pivoted(300)));
    // Hyperparameters that no model of this request can have: an unknown name, noise below the floor.
    let exact = fit(&request(Method::Exact));
    let given = |change: &dyn Fn(&mut Vec<posterior::Hyperparameter>)| {
        let mut request = request(Method::Sdd);
        let mut values = exact.header().hyperparameters.clone();
        change(&mut values);
        request.scalable.hyperparameters = Some(values);
        Model::fit(&table, &Split::all(300).train, &request, &mut |_, _| Signal::Stop)
            .unwrap_err()
            .to_string()
    };
    let error = given(&|h| {
        h.push(posterior::Hyperparameter { name: "matern32.lenghtscale".into(), values: vec![1.0] })
    });
    assert!(error.contains("`matern32.lenghtscale` is given"), "{error}");
    let error =
        given(&|h| h.iter_mut().filter(|h| h.name == "noise_variance").for_each(|h| h.values[0] = 3.9e-5));
    assert!(error.contains("0.000039") && error.contains("noise floor"), "{error}");
    // Hyperparameters of another kernel.
    let mut foreign = request(Method::Sdd);
    foreign.scalable.hyperparameters = Some(vec![]);
    let error =
        Model::fit(&table, &Split::all(300).train, &foreign, &mut |_, _| Signal::Continue).unwrap_err();
    assert!(error.to_string().contains("no hyperparameter `"), "{error}");
    for change in
        [|r: &mut FitRequest| r.scalable.samples = 0, |r: &mut FitRequest| r.scalable.step_size = Some(-1.0)]
    {
        let mut wrong = request(Method::Sdd);
        change(&mut wrong);
        assert!(matches!(
            Model::fit(&table, &Split::all(300).train, &wrong, &mut |_, _| Signal::Continue),
            Err(ModelError::Setting { .. })
        ));
    }
}
