//! Against fits that had all rows from the beginning, and against themselves after a file.

use super::model::StreamModel;
use super::score::RunningScore;
use crate::options::{InferenceName, LikelihoodName, SgprOptions, SvgpOptions};
use crate::{FitRequest, Method, Model, ModelData, Observed, Question, Saved, choose_likelihood};
use posterior_data::{Column, Selection, Table, Values};
use posterior_optim::Signal;
use std::sync::Arc;

fn wave(k: f64) -> f64 {
    (k * 12.9898).sin()
}

/// Rows of two features with a number, a class and a count.
fn table(n: usize, from: usize) -> Arc<Table> {
    let x = |i: usize, j: usize| 2.0 * wave((2 * (i + from) + j) as f64 + 0.4);
    let f = |i: usize| (1.5 * x(i, 0)).sin() + 0.5 * x(i, 1);
    let noise = |i: usize| 0.3 * wave(7.0 * (i + from) as f64);
    let class =
        |i: usize| ["left", "middle", "right"][((f(i) + noise(i) + 2.0) * 0.75).clamp(0.0, 2.0) as usize];
    let column = |name: &str, of: &dyn Fn(usize) -> f64| Column::numeric(name, (0..n).map(of).collect());
    let classes = Values::Text((0..n).map(|i| Some(class(i).to_string())).collect());
    let columns = vec![
        column("a", &|i| x(i, 0)),
        column("b", &|i| x(i, 1)),
        column("y", &|i| f(i) + noise(i)),
        Column { name: "class".into(), values: classes },
        column("count", &|i| ((f(i) + noise(i)).exp() * 2.0).round()),
    ];
    Arc::new(Table::new("stream.csv", columns))
}

fn request(target: &str, method: Method) -> FitRequest {
    let features = Some(vec!["a".into(), "b".into()]);
    FitRequest {
        columns: Selection { target: target.into(), features, ..Selection::default() },
        method,
        ..FitRequest::default()
    }
}

/// Few inducing points that stay, and rows of their own scale of time.
fn sgpr(inducing: usize) -> Method {
    let mut options = SgprOptions { fixed_inducing: true, ..SgprOptions::default() };
    options.inducing.inducing = Some(inducing);
    options.large.held_back = Some(0);
    Method::Sgpr(options)
}

fn numbers(table: &Table, method: Method) -> Model {
    let rows: Vec<usize> = (0..table.rows()).collect();
    Model::fit(table, &rows, &request("y", method), &mut |_, _| Signal::Continue).unwrap()
}

fn labels(table: &Table, target: &str, likelihood: LikelihoodName, asked: FitRequest) -> Model {
    let rows: Vec<usize> = (0..table.rows()).collect();
    let chosen = choose_likelihood(table, target, &rows, likelihood, &Selection::default()).unwrap();
    let observed = Observed::from_table(table, &rows, &asked, chosen).unwrap();
    Model::fit_observed(observed, &asked, &mut |_, _| Signal::Continue).unwrap()
}

fn classes(table: &Table) -> Model {
    let mut asked = request("class", sgpr(24));
    asked.output.inference = InferenceName::Gaussianised;
    asked.output.pseudo_count = Some(crate::options::PseudoCount::Given(0.1));
    labels(table, "class", LikelihoodName::Categorical, asked)
}

/// Latent means and deviations at some rows.
fn said(model: &Model, table: &Arc<Table>) -> (Vec<f64>, Vec<f64>) {
    let data = ModelData::of_table(Table::clone(table)).unwrap();
    let found = model.predictive(&data, &Question::default()).unwrap();
    (found.latent_mean, found.latent_deviation)
}

fn learned(mut model: StreamModel, table: &Table, batch: usize) -> StreamModel {
    let rows: Vec<usize> = (0..table.rows()).collect();
    rows.chunks(batch).for_each(|rows| model.learn(table, rows).unwrap());
    model
}

fn near(a: &(Vec<f64>, Vec<f64>), b: &(Vec<f64>, Vec<f64>), tolerance: f64) {
    for (a, b) in [(&a.0, &b.0), (&a.1, &b.1)] {
        let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < tolerance, "{worst}");
    }
}

/// Numbers: in batches of any size the same posterior, which is that of a collapsed bound on all rows together.
#[test]
fn rows_of_a_stream_are_rows_of_the_fit() {
    let (first, second, test) = (table(60, 0), table(45, 60), table(20, 500));
    let model = numbers(&first, sgpr(25));
    let start = |most| StreamModel::start(Saved::from(model.clone()), most).unwrap();
    near(&said(start(0).model(), &test), &said(&model, &test), 1e-9);
    let whole = said(learned(start(25), &second, 45).model(), &test);
    for batch in [1, 7] {
        near(&said(learned(start(25), &second, batch).model(), &test), &whole, 1e-7);
    }
    // The same by dense algebra: the bound's posterior over the inducing values from all rows at once, in the units of the first fit.
    let posterior = model.process().unwrap().predictor().inducing()[0];
    let standard = &model.process().unwrap().inputs().standardisation;
    let both = [&first, &second].map(|t| {
        let rows: Vec<usize> = (0..t.rows()).collect();
        let extracted = model.process().unwrap().extract(t, &rows, true).unwrap();
        let y: Vec<f64> = extracted.y.unwrap().iter().map(|y| standard.target(*y)).collect();
        (
            posterior.whitened_features(standard.features(extracted.x.as_ref()).as_ref()).unwrap(),
            y,
            extracted.x,
        )
    });
    let noise = posterior.likelihood().shared_noise_variance().unwrap();
    let m = posterior.inducing().nrows();
    let mut precision = faer::Mat::<f64>::identity(m, m);
    let mut shift = faer::Mat::<f64>::zeros(m, 1);
    for (a, y, x) in &both {
        precision += (1.0 / noise) * (a * a.transpose());
        let prior = posterior.mean().evaluate(standard.features(x.as_ref()).as_ref());
        let rest = faer::Mat::from_fn(y.len(), 1, |i, _| (y[i] - prior[(i, 0)]) / noise);
        shift += a * rest;
    }
    let q = posterior_gp::inducing::InducingDistribution::from_natural(&[precision], shift.as_ref()).unwrap();
    let inputs = model.process().unwrap().standard_inputs(&test).unwrap();
    let expected = posterior.with_distribution(q).unwrap().latent(inputs.as_ref()).unwrap();
    let own: Vec<f64> = expected.mean.col(0).iter().map(|v| standard.target_back(*v)).collect();
    let deviations: Vec<f64> =
        expected.variance.col(0).iter().map(|v| standard.variance_back(*v).sqrt()).collect();
    near(&whole, &(own, deviations), 1e-7);
}

/// Where rows come that the points say little about, points are added, and predictions get better.
#[test]
fn points_are_added_where_rows_come_that_they_cannot_say() {
    let far = |t: Arc<Table>| {
        let mut t = Arc::unwrap_or_clone(t);
        let Values::Numeric(a) = &mut t.columns[0].values else { unreachable!() };
        a.iter_mut().for_each(|a| *a += 6.0);
        Arc::new(t)
    };
    let (first, second, test) = (table(60, 0), far(table(60, 60)), far(table(25, 500)));
    let model = numbers(&first, sgpr(5));
    let start = |most| StreamModel::start(Saved::from(model.clone()), most).unwrap();
    let fixed = learned(start(0), &second, 20);
    let grown = learned(start(200), &second, 20);
    assert!(grown.streamed().added_inducing > 0 && fixed.streamed().added_inducing == 0);
    let truth = |m: &StreamModel| {
        let mut score = RunningScore::default();
        let rows: Vec<usize> = (0..test.rows()).collect();
        m.answer(&test, &rows, true, &mut score).unwrap();
        score.all.averages().unwrap()
    };
    assert_eq!(fixed.streamed().rows, 60);
    // More points, less that is not said.
    let (few, many) = (said(fixed.model(), &test), said(grown.model(), &test));
    assert!(many.1.iter().sum::<f64>() < few.1.iter().sum::<f64>());
    assert!(truth(&grown).nll < truth(&fixed).nll, "{:?} {:?}", truth(&grown), truth(&fixed));
}

/// Labels as numbers: the same in batches of any size, and better at later rows than the fit alone.
#[test]
fn labels_are_learned_as_the_fit_learns_them() {
    let (first, second, test) = (table(80, 0), table(120, 80), table(60, 900));
    let model = classes(&first);
    let start = || StreamModel::start(Saved::from(model.clone()), 24).unwrap();
    let whole = learned(start(), &second, 120);
    near(&said(learned(start(), &second, 11).model(), &test), &said(whole.model(), &test), 1e-6);
    let score = |m: &StreamModel| {
        let (mut score, rows) = (RunningScore::default(), (0..test.rows()).collect::<Vec<_>>());
        let answer = m.answer(&test, &rows, true, &mut score).unwrap();
        assert_eq!(answer.columns[0].len(), 60);
        score.all.averages().unwrap()
    };
    let (before, after) = (score(&start()), score(&whole));
    assert!(after.nll < before.nll && after.nll < after.baseline_nll, "{before:?} {after:?}");
    assert!(after.hits > 0.6 && after.squares < after.baseline_squares);
}

/// Other likelihoods: a batch is learned as the bound of the batch has it, with the posterior before it as prior; the slopes of that bound in the inducing means vanish.
#[test]
fn other_likelihoods_are_learned_by_the_bound_of_a_batch() {
    let (first, second) = (table(60, 0), table(30, 60));
    let mut options = SvgpOptions::default();
    options.large.iterations = Some(60);
    options.inducing.inducing = Some(15);
    options.large.held_back = Some(0);
    let mut asked = request("count", Method::Svgp(options));
    asked.output.inference = InferenceName::Variational;
    let model = labels(&first, "count", LikelihoodName::Poisson, asked);
    let before = model.process().unwrap().predictor().inducing()[0].clone();
    let start = StreamModel::start(Saved::from(model), 15).unwrap();
    let after = learned(start, &second, 30);
    let found = &after.process().unwrap();
    let posterior = found.predictor().inducing()[0];
    let rows: Vec<usize> = (0..30).collect();
    let extracted = found.extract(&second, &rows, true).unwrap();
    let x = found.inputs().standardisation.features(extracted.x.as_ref());
    let y = extracted.y.unwrap();
    let features = posterior.whitened_features(x.as_ref()).unwrap();
    let (precisions, shifts) = before.distribution().natural();
    let prior = |v: &faer::Mat<f64>| -> f64 {
        // log N(v; before) up to a constant.
        let half = &precisions[0] * v;
        (v.transpose() * shifts.as_ref())[(0, 0)] - 0.5 * (v.transpose() * half)[(0, 0)]
    };
    // Under q with this mean and the covariance that was found; E exp f = exp(mean + variance / 2) for counts.
    let variance = posterior.latent(x.as_ref()).unwrap().variance;
    let offset = posterior.mean().evaluate(x.as_ref());
    let bound = |v: &faer::Mat<f64>| -> f64 {
        let f = features.transpose() * v + &offset;
        let each = |i: usize| y[i] * f[(i, 0)] - (f[(i, 0)] + 0.5 * variance[(i, 0)]).exp();
        (0..30).map(each).sum::<f64>() + prior(v)
    };
    let at = posterior.distribution().mean().to_owned();
    let best = bound(&at);
    for j in 0..at.nrows() {
        for step in [-0.02, 0.02] {
            let mut moved = at.clone();
            moved[(j, 0)] += step;
            assert!(bound(&moved) < best + 1e-7, "{j}: {} {best}", bound(&moved));
        }
    }
    assert_eq!(after.streamed().rows, 30);
}

/// Rows with noise of a variance that the first fit does not know: it is found, and what was learned before is what would have been learned under it.
#[test]
fn noise_is_learned_and_rows_before_are_weighed_anew() {
    let (first, test) = (table(60, 0), table(20, 5000));
    let noisy = |from: usize, deviation: f64| {
        let mut t = Arc::unwrap_or_clone(table(1000, from));
        let white = |i: usize| {
            let u = |k: f64| wave(k).mul_add(1e4, 2e4).fract().clamp(1e-9, 1.0 - 1e-9);
            let i = (from + i) as f64;
            (-2.0 * u(i + 0.21).ln()).sqrt() * (std::f64::consts::TAU * u(i + 0.77)).cos()
        };
        let f = |a: f64, b: f64| (1.5 * a).sin() + 0.5 * b;
        let inputs: Vec<[f64; 2]> = (0..1000)
            .map(|i| {
                [0, 1].map(|j| match &t.columns[j].values {
                    Values::Numeric(v) => v[i],
                    Values::Text(_) => unreachable!(),
                })
            })
            .collect();
        let y = inputs.iter().enumerate().map(|(i, [a, b])| f(*a, *b) + deviation * white(i)).collect();
        t.columns[2] = Column::numeric("y", y);
        Arc::new(t)
    };
    let model = numbers(&first, sgpr(30));
    let start = || {
        let mut out = StreamModel::start(Saved::from(model.clone()), 30).unwrap();
        out.learn_noise(true).unwrap();
        out
    };
    for deviation in [0.3, 0.8] {
        let found = learned(start(), &noisy(100, deviation), 100);
        let noise = found.noise().unwrap();
        let own = found.deviation_in_units(noise.variance());
        // A thousand rows tell a deviation to one over the root of two thousand; five times that.
        assert!((own / deviation - 1.0).abs() < 0.12, "{deviation}: {own}");
        assert_eq!((noise.rows(), found.streamed().learned_noise), (1000, true));
        // The same posterior as under that noise from the beginning.
        let after = &found.process().unwrap();
        let (before, now) =
            (model.process().unwrap().predictor().inducing()[0], after.predictor().inducing()[0]);
        assert_eq!(now.likelihood().shared_noise_variance(), Some(noise.variance()));
        let standard = &model.process().unwrap().inputs().standardisation;
        let rows: Vec<usize> = (0..1000).collect();
        let extracted = model.process().unwrap().extract(&noisy(100, deviation), &rows, true).unwrap();
        let x = standard.features(extracted.x.as_ref());
        let a = before.whitened_features(x.as_ref()).unwrap();
        let (precisions, shifts) = before.distribution().natural();
        let m = before.inducing().nrows();
        let identity = faer::Mat::<f64>::identity(m, m);
        let anew = before.likelihood().shared_noise_variance().unwrap() / noise.variance();
        let precision =
            &identity + anew * (&precisions[0] - &identity) + (1.0 / noise.variance()) * &a * a.transpose();
        let prior = before.mean().evaluate(x.as_ref());
        let y = extracted.y.unwrap();
        let rest =
            faer::Mat::from_fn(1000, 1, |i, _| (standard.target(y[i]) - prior[(i, 0)]) / noise.variance());
        let shift = anew * shifts + &a * rest;
        let q =
            posterior_gp::inducing::InducingDistribution::from_natural(&[precision], shift.as_ref()).unwrap();
        let expected = before.with_distribution(q).unwrap();
        let at = model.process().unwrap().standard_inputs(&test).unwrap();
        let (own, expected) = (now.latent(at.as_ref()).unwrap(), expected.latent(at.as_ref()).unwrap());
        assert!((own.mean - expected.mean).norm_max() < 1e-6);
        assert!((own.variance - expected.variance).norm_max() < 1e-7);
        // Of rows that it has not seen, nine of ten are inside.
        let mut score = RunningScore::default();
        found.answer(&noisy(20_000, deviation), &rows, true, &mut score).unwrap();
        let inside = score.all.averages().unwrap().hits;
        assert!((inside - 0.9).abs() < 0.04, "{deviation}: {inside}");
    }
    // Every fiftieth row ten deviations off: it counts, but as five.
    let shifted = |by: f64| {
        let mut wild = Table::clone(&noisy(100, 0.3));
        let Values::Numeric(y) = &mut wild.columns[2].values else { unreachable!() };
        y.iter_mut().step_by(50).for_each(|y| *y += by);
        learned(start(), &wild, 100)
    };
    let found = shifted(3.0);
    let noise = found.noise().unwrap();
    assert!(noise.far() >= 10 && noise.far() <= 25, "{}", noise.far());
    let own = found.deviation_in_units(noise.variance());
    // The variance with these rows as they are is 0.09 + 9 / 50.
    assert!(own > 0.3 && own < 0.9 * (0.09f64 + 0.18).sqrt(), "{own}");
    // From another world altogether: the noise ends at its limit, and all stay numbers.
    let found = shifted(1e12);
    assert!(found.noise().unwrap().variance() <= 4.0 * (1.0 + 1e-12));
    assert!(said(found.model(), &test).1.iter().all(|v| v.is_finite()));
}

/// The evidence by its definition, at the noise that was taken and beside it.
#[test]
fn the_noise_that_is_taken_has_the_largest_evidence() {
    let mut noise = super::noise::LearnedNoise::new(0.3, 1e-6);
    let rows: Vec<(f64, f64)> =
        (0..400).map(|i| (0.5 * wave(i as f64 + 0.1), 0.02 + 0.02 * wave(2.0 * i as f64).abs())).collect();
    noise.learn(rows.iter().copied());
    let evidence = |v: f64| -> f64 {
        let own: f64 = rows
            .iter()
            .enumerate()
            .map(|(i, (r, s))| (-((399 - i) as f64) / 1e4).exp() * -0.5 * ((s + v).ln() + r * r / (s + v)))
            .sum();
        own - 25.0 * (-400.0f64 / 1e4).exp() * (v.ln() + 0.3 / v)
    };
    let best = noise.variance();
    assert!(best < 0.3 && best > 0.05, "{best}");
    for beside in [0.97, 1.03] {
        assert!(evidence(best) > evidence(best * beside), "{beside}");
    }
    assert_eq!((noise.far(), noise.rows()), (0, 400));
    // Whatever comes, it stays where candidates are.
    noise.learn((0..20_000).map(|_| (1e150, 0.0)));
    assert!(noise.variance() <= 4.0 && noise.far() > 0);
    noise.learn((0..250_000).map(|_| (0.0, 0.0)));
    assert!(noise.variance() >= 1e-6 * (1.0 - 1e-12) && noise.variance() < 1e-5, "{}", noise.variance());
}

/// A file holds all of it: what goes on from it is the same to the last bit.
#[test]
fn it_goes_on_from_its_file_to_the_same_bits() {
    let (first, second, third, test) = (table(60, 0), table(40, 60), table(30, 100), table(20, 700));
    let numbers = Saved::from(numbers(&first, sgpr(20)));
    let classes = Saved::from(classes(&first));
    for model in [numbers, classes] {
        let mut start = StreamModel::start(model, 40).unwrap();
        if start.has_noise_to_learn() {
            start.learn_noise(true).unwrap();
        }
        let once = learned(start, &second, 13);
        let again = StreamModel::restored(once.container().unwrap(), 40).unwrap();
        assert_eq!((again.streamed(), again.noise()), (once.streamed(), once.noise()));
        let (a, b) = (learned(once, &third, 9), learned(again, &third, 9));
        assert_eq!(said(a.model(), &test), said(b.model(), &test));
        // As a model file of its own it says the same, and says where it is from.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.posterior");
        a.model().save(&path).unwrap();
        let saved = Saved::load(&path).unwrap().into_only().unwrap();
        assert_eq!(said(a.model(), &test), said(&saved, &test));
        assert!(saved.notes().iter().any(|n| n.text().contains("70 rows were learned after the fit")));
        let mut container = b.container().unwrap();
        container.tensors.take_under("model.");
        assert!(StreamModel::restored(container, 40).is_err());
    }
}

#[test]
fn models_that_cannot_go_on_are_refused_with_the_way_out() {
    let first = table(30, 0);
    let exact = numbers(&first, Method::Exact(Default::default()));
    let error = StreamModel::start(Saved::from(exact), 10).unwrap_err().to_string();
    assert!(error.contains("--method sgpr or svgp"), "{error}");
    let mut model = StreamModel::start(Saved::from(numbers(&first, sgpr(10))), 10).unwrap();
    let before = said(model.model(), &first);
    let mut bad = Table::clone(&table(5, 40));
    bad.columns[0] = Column::numeric("a", vec![1.0, 2.0, f64::NAN, 4.0, 5.0]);
    let error = model.learn(&bad, &[0, 1, 2]).unwrap_err().to_string();
    assert!(error.contains("row 3") && error.contains("`a`"), "{error}");
    assert_eq!(said(model.model(), &first), before);
    let plan = model.plan(100);
    assert!(
        plan.inducing == 10
            && plan.functions == 1
            && plan.to_string().contains("whatever the number of rows")
    );
}
