//! Models of large tables: every method against the exact one, files, interruptions, refusals.

use posterior::data::{Selection, Split, Table, synthetic};
use posterior::gp::iterative::Neighbourhoods;
use posterior::linalg::random::Streams;
use posterior::linalg::solve::PreconditionerChoice;
use posterior::optim::Signal;
use posterior::{
    FitEvent, FitRequest, KernelPrecision, Method, Model, ModelError, Predictions, Prepared,
    ProcessPosterior, ScalablePlan, choose,
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
    request.scalable.features = 1000;
    request.scalable.precision = KernelPrecision::Double;
    request.scalable.inducing = 120;
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

#[test]
fn every_method_agrees_with_the_exact_one_and_survives_its_file() {
    let exact = fit(&request(Method::Exact));
    let fresh = synthetic::friedman(60, Streams::new(2));
    let truth = exact.predict(&fresh, None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (method, steps, tolerance, ratio) in [
        (Method::Cg, 500, 0.01, 0.4),
        (Method::Sdd, 15_000, 0.02, 0.4),
        (Method::Sgd, 3000, f64::INFINITY, f64::INFINITY),
        (Method::InducingSgd, 4000, f64::INFINITY, f64::INFINITY),
        // As far as 120 points in ten dimensions can: within a standard deviation of the exact mean, and not surer than twice too much.
        (Method::Sgpr, 1, 1.0, 1.0),
        (Method::Svgp, 400, 1.0, 1.0),
    ] {
        let mut request = request(method);
        request.scalable.hyperparameters = Some(exact.header().hyperparameters.clone());
        request.scalable.steps = Some(steps);
        request.scalable.tolerance = (method == Method::Cg).then_some(1e-8);
        request.scalable.batch = (method != Method::Cg && method != Method::Sgpr).then_some(64);
        request.scalable.learn_inducing = false;
        // Latent variances are a fiftieth of the prior's here, so prior functions must be accurate to less: the error of features falls with the root of their number.
        (request.scalable.samples, request.scalable.features) = (200, 4000);
        let model = fit(&request);
        let predictions = model.predict(&fresh, None).unwrap();
        let (mean, variance) = compare(&predictions, &truth);
        assert!(mean < tolerance && (variance - 1.0).abs() < ratio, "{method:?}: {mean} {variance}");
        if tolerance.is_infinite() {
            // Descent on the primal is slow where eigenvalues are small: far from done, it explains a part of the exact mean and is less sure.
            let level = truth.mean.iter().sum::<f64>() / truth.mean.len() as f64;
            let error: f64 = predictions.mean.iter().zip(&truth.mean).map(|(a, b)| (a - b).powi(2)).sum();
            let spread: f64 = truth.mean.iter().map(|b| (b - level).powi(2)).sum();
            assert!(error < 0.8 * spread && variance > 0.9, "{method:?}: {error} of {spread}, {variance}");
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
    let error = single.sample(&fresh, &rows, 5, 0, 16 * 40 * 200 - 1).unwrap_err().to_string();
    assert!(error.contains("samples at 40 rows need 128000 bytes"), "{error}");
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
        request.scalable.neighbourhoods = Neighbourhoods { count: 1, size: 60, seed: 0 };
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
        let stopped = Model::fit_prepared(prepared.clone(), &request, &mut |event| {
            let late = match event {
                FitEvent::Solve { .. } | FitEvent::Bound { .. } => true,
                FitEvent::Search { .. } => method == Method::Sgpr,
                FitEvent::Neighbourhood { .. } => false,
            };
            seen += usize::from(late);
            if seen == 5 { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
        assert!(stopped.was_interrupted() && path.exists(), "{method:?}");
        // Other data: refused, and the checkpoint stays.
        let fewer = Prepared::from_table(&table, &(0..200).collect::<Vec<_>>(), &request).unwrap();
        let refused = Model::fit_prepared(fewer, &request, &mut |_| Signal::Continue);
        assert!(matches!(refused, Err(ModelError::OtherCheckpoint { .. })), "{method:?}");
        let resumed = Model::fit_prepared(prepared, &request, &mut |_| Signal::Continue).unwrap();
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
    request.scalable.neighbourhoods = Neighbourhoods { count: 3, size: 60, seed: 0 };
    let straight = fit(&request);
    assert!(
        !straight.header().fit.hyperpriors.is_empty(),
        "the weak prior of lengthscales is among the beliefs"
    );
    request.scalable.checkpoint = Some(path.clone());
    let table = table();
    let prepared = Prepared::from_table(&table, &Split::all(300).train, &request).unwrap();
    let stopped = Model::fit_prepared(prepared.clone(), &request, &mut |event| match event {
        FitEvent::Neighbourhood { done: 2, .. } => Signal::Stop,
        _ => Signal::Continue,
    });
    assert!(matches!(stopped, Err(ModelError::Interrupted)) && path.exists());
    request.scalable.seconds = Some(1000.0);
    request.options.memory_limit *= 2;
    let mut first = None;
    let resumed = Model::fit_prepared(prepared, &request, &mut |event| {
        if let FitEvent::Neighbourhood { done, .. } = event {
            first.get_or_insert(*done);
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
    assert_eq!(auto(2000, "matern32(ard)", 0.02).method, Method::Sdd);
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
