//! Categories, several targets and sums of kernels through fits: against matrices made by hand, and solved by elimination.

use crate::options::set;
use posterior::data::{Column, Missing, Selection, Split, Table, Unseen, Values};
use posterior::models::{Hyperparameter, SharePlaces};
use posterior::optim::Signal;
use posterior::options::{MethodName, PriorSettings, Start};
use posterior::{FitRequest, Model};
use serde_json::{Value, json};

/// `A⁻¹ b` by elimination with pivots.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        b[k] = (b[k] - (k + 1..n).map(|j| a[k][j] * b[j]).sum::<f64>()) / a[k][k];
    }
    b
}

fn matern32(distance: f64) -> f64 {
    let q = 3f64.sqrt() * distance.abs();
    (1.0 + q) * (-q).exp()
}

const TASKS: [&str; 3] = ["left", "middle", "right"];
const PLACES: usize = 9;

fn place(i: usize) -> f64 {
    0.7 * i as f64 + (i as f64).sin()
}

/// A complete grid of places and tasks, task after task.
fn tasks(task: impl Fn(usize) -> Option<String>) -> Table {
    let rows = PLACES * TASKS.len();
    let y = |r: usize| (place(r % PLACES)).sin() * (1.0 + (r / PLACES) as f64) + 0.1 * (r as f64 * 7.7).sin();
    Table::new(
        "tasks",
        vec![
            Column::numeric("time", (0..rows).map(|r| place(r % PLACES)).collect()),
            Column { name: "task".into(), values: Values::Text((0..rows).map(task).collect()) },
            Column::numeric("y", (0..rows).map(y).collect()),
        ],
    )
}

fn known(r: usize) -> Option<String> {
    Some(TASKS[r / PLACES].to_string())
}

fn given(values: &[(&str, &[f64])]) -> Start {
    let one =
        |(name, values): &(&str, &[f64])| Hyperparameter { name: (*name).into(), values: values.to_vec() };
    Start::given(values.iter().map(one).collect())
}

fn request(kernel: &str) -> FitRequest {
    FitRequest {
        columns: Selection {
            target: "y".into(),
            categories: vec!["task".into()],
            missing: Missing::Mean,
            ..Default::default()
        },
        method: MethodName::Exact.into(),
        prior: PriorSettings { kernel: kernel.parse().unwrap(), ..PriorSettings::default() },
        ..Default::default()
    }
}

fn fit(table: &Table, request: &FitRequest) -> Model {
    let rows = Split::all(table.rows()).train;
    Model::fit(table, &rows, request, &mut |_, _| Signal::Continue).unwrap()
}

const LOADINGS: [f64; 6] = [0.9, 0.1, 0.5, -0.8, -0.4, 0.6];
const SPECIFIC: [f64; 3] = [0.3, 0.7, 0.2];

/// `(A A' + diag κ) / t` with the mean row behind.
fn covariance() -> [[f64; 4]; 4] {
    let row = |i: usize| match i {
        3 => [0, 1].map(|k| (0..3).map(|i| LOADINGS[2 * i + k]).sum::<f64>() / 3.0),
        _ => [LOADINGS[2 * i], LOADINGS[2 * i + 1]],
    };
    let dot = |i: usize, j: usize| row(i)[0] * row(j)[0] + row(i)[1] * row(j)[1];
    let total = (0..3).map(|i| dot(i, i) + SPECIFIC[i]).sum::<f64>() / 3.0;
    std::array::from_fn(|i| {
        std::array::from_fn(|j| match (i == j, i) {
            (true, 3) => 1.0,
            (true, _) => (dot(i, i) + SPECIFIC[i]) / total,
            (false, _) => dot(i, j) / total,
        })
    })
}

/// Means and deviations of `B ⊗ K` on a complete grid, of every task and of a row with an empty cell.
#[test]
fn several_targets_are_the_model_of_coregionalisation() {
    let table = tasks(known);
    let mut request = request("matern32(ard) * categorical(task, rank=2)");
    let (variance, lengthscale, noise, level) = (1.4, 0.8, 0.05, 0.2);
    request.start = given(&[
        ("matern32*categorical.variance", &[variance]),
        ("matern32.lengthscale", &[lengthscale]),
        ("categorical.loading", &LOADINGS),
        ("categorical.specific", &SPECIFIC),
        ("noise_variance", &[noise]),
        ("mean.constant", &[level]),
    ]);
    let model = fit(&table, &request);
    let standard = &model.process().unwrap().inputs().standardisation;
    // Columns of categories are 0 and 1 as they were.
    assert_eq!(standard.feature_scales[1..], [1.0; 3]);
    assert_eq!(standard.feature_means[1..], [0.0; 3]);
    let b = covariance();
    let time = |x: f64| (x - standard.feature_means[0]) / standard.feature_scales[0];
    let k = |x: f64, z: f64| variance * matern32((time(x) - time(z)) / lengthscale);
    let n = PLACES * TASKS.len();
    let (at, of) = (|r: usize| place(r % PLACES), |r: usize| r / PLACES);
    let gram: Vec<Vec<f64>> = (0..n)
        .map(|r| {
            (0..n).map(|s| b[of(r)][of(s)] * k(at(r), at(s)) + if r == s { noise } else { 0.0 }).collect()
        })
        .collect();
    let Values::Numeric(y) = &table.columns[2].values else { panic!() };
    let residual: Vec<f64> =
        y.iter().map(|y| (y - standard.target_mean) / standard.target_scale - level).collect();
    let weights = solve(gram.clone(), residual);
    let asked = Table::new(
        "new",
        vec![
            Column::numeric("time", vec![1.3; 4]),
            Column {
                name: "task".into(),
                values: Values::Text(
                    TASKS.iter().map(|t| Some((*t).to_string())).chain(std::iter::once(None)).collect(),
                ),
            },
        ],
    );
    let predicted = model.process().unwrap().predict(&asked, None).unwrap();
    assert_eq!(predicted.data.filled_cells, 1);
    for task in 0..4 {
        let cross: Vec<f64> = (0..n).map(|r| b[task][of(r)] * k(1.3, at(r))).collect();
        let mean = level + cross.iter().zip(&weights).map(|(c, w)| c * w).sum::<f64>();
        let whitened = solve(gram.clone(), cross.clone());
        let own = b[task][task] * variance - cross.iter().zip(whitened).map(|(c, w)| c * w).sum::<f64>();
        let scale = standard.target_scale;
        assert!((predicted.mean[task] - (standard.target_mean + scale * mean)).abs() < 1e-9);
        assert!((predicted.latent_deviation[task] - scale * own.sqrt()).abs() < 1e-9);
    }
    // What inspect says of the categories is B.
    let parts = model.process().unwrap().parts();
    let found = &parts.categories[0];
    assert_eq!((found.column.as_str(), found.categories.as_slice()), ("task", &TASKS.map(String::from)[..]));
    (0..16).for_each(|k| assert!((found.covariance[k / 4][k % 4] - b[k / 4][k % 4]).abs() < 1e-14));
    let text = model.described();
    let correlation = format!("{:.3}", b[0][1] / (b[0][0] * b[1][1]).sqrt());
    assert!(
        text.contains("Correlations of the functions of `task`") && text.contains(&correlation),
        "{text}"
    );
    assert!(text.contains("categorical.loading [task=left, 1]"), "{text}");
}

/// A process through random features and an iterative solver says the same, and so does the file.
#[test]
fn categories_are_fitted_and_sampled_by_solvers_and_kept_in_files() {
    let table = tasks(known);
    // Loadings are negative, and are kept and read as such.
    let mut loaded = request("warp(matern32(ard) * categorical(task, rank=2))");
    set(&mut loaded, json!({"restarts": 1, "steps": 20}));
    let signed = fit(&table, &loaded);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signed.posterior");
    signed.save(&path).unwrap();
    assert_eq!(Model::load(&path).unwrap().process().unwrap().parts(), signed.process().unwrap().parts());
    loaded.start = Start::given(signed.process().unwrap().record().hyperparameters.clone());
    let negative = |h: &Hyperparameter| h.name == "categorical.loading" && h.values.iter().any(|v| *v < 0.0);
    assert!(
        signed.process().unwrap().record().hyperparameters.iter().any(negative),
        "{:?}",
        signed.process().unwrap().record().hyperparameters
    );
    for method in [MethodName::Cg, MethodName::Sgpr] {
        loaded.method = method.into();
        set(
            &mut loaded,
            json!({"samples": 4, "random-features": 50, "inducing": 10, "steps": 3, "held-back": 0}),
        );
        let model = fit(&table, &loaded);
        model.save(&path).unwrap();
        let again = Model::load(&path).unwrap();
        assert_eq!(
            again.process().unwrap().predict(&table, None).unwrap().mean,
            model.process().unwrap().predict(&table, None).unwrap().mean
        );
    }
    let mut exact = request("matern32(ard) * categorical(task)");
    set(&mut exact, json!({"restarts": 1, "steps": 20}));
    let first = fit(&table, &exact);
    // Without priors on a lengthscale that is no distance.
    let believed: Vec<&str> = first
        .process()
        .unwrap()
        .record()
        .fit
        .gaussian()
        .unwrap()
        .hyperpriors
        .iter()
        .map(|h| h.parameter.as_str())
        .collect();
    assert_eq!(believed, ["matern32*categorical.variance", "matern32.lengthscale", "noise_variance"]);
    let mut other = exact.clone();
    other.start = Start::given(first.process().unwrap().record().hyperparameters.clone());
    other.method = MethodName::Cg.into();
    set(
        &mut other,
        json!({"precision": "double", "samples": 64, "random-features": 500, "tolerance": 1e-8, "held-back": 0}),
    );
    let solved = fit(&table, &other);
    let (a, b) = (
        first.process().unwrap().predict(&table, None).unwrap(),
        solved.process().unwrap().predict(&table, None).unwrap(),
    );
    let scale = first.process().unwrap().inputs().standardisation.target_scale;
    for i in 0..a.mean.len() {
        assert!((a.mean[i] - b.mean[i]).abs() < 1e-4 * scale, "{} {}", a.mean[i], b.mean[i]);
    }
    let path = folder.path().join("m.posterior");
    first.save(&path).unwrap();
    let again = Model::load(&path).unwrap();
    assert_eq!(again.process().unwrap().predict(&table, None).unwrap().mean, a.mean);
    assert_eq!(again.process().unwrap().parts(), first.process().unwrap().parts());
    // A category that training did not have is counted, and named where that is asked for.
    let strange = tasks(|_| Some("top".to_string()));
    let found = again.process().unwrap().predict(&strange, None).unwrap();
    assert_eq!(found.data.unseen_categories, strange.rows());
    exact.columns.unseen = Unseen::Error;
    let refused = fit(&table, &exact).process().unwrap().predict(&strange, None).unwrap_err().to_string();
    assert!(refused.contains("`top`"), "{refused}");
}

/// Rows whose columns have sines, a product and a line in them.
fn rows(n: usize) -> Table {
    let x = |i: usize, d: usize| ((i * (3 + 2 * d) + d) as f64 * 0.618_033_988_7).fract();
    let y = |i: usize| (6.0 * x(i, 0)).sin() + 2.0 * x(i, 1) * x(i, 2) + 0.05 * (i as f64 * 3.3).sin();
    let mut columns: Vec<Column> =
        (0..3).map(|d| Column::numeric(format!("x{}", d + 1), (0..n).map(|i| x(i, d)).collect())).collect();
    columns.push(Column::numeric("y", (0..n).map(y).collect()));
    Table::new("rows", columns)
}

/// Posterior means of every component from the inverse of the whole matrix, and their variances over the rows.
#[test]
fn shares_of_a_sum_are_those_of_its_components() {
    let n = 40;
    let table = rows(n);
    let mut request = request("additive(matern32, ard, order=2) + linear");
    request.columns.categories = Vec::new();
    let (variances, lengths, slope, noise) = ([0.6, 0.4], [0.5, 1.1, 2.0], 0.3, 0.04);
    request.start = given(&[
        ("additive.variance", &variances),
        ("additive.lengthscale", &lengths),
        ("linear.variance", &[slope]),
        ("noise_variance", &[noise]),
        ("mean.constant", &[-0.1]),
    ]);
    let model = fit(&table, &request);
    let data = model.process().unwrap().predictor().training().unwrap();
    let (x, y) = (data.inputs(), data.targets());
    let single = |i: usize, j: usize, d: usize| matern32((x[(i, d)] - x[(j, d)]) / lengths[d]);
    let order = |q: usize, i: usize, j: usize| {
        let [a, b, c] = [0, 1, 2].map(|d| single(i, j, d));
        variances[q - 1] / 3.0 * if q == 1 { a + b + c } else { a * b + a * c + b * c }
    };
    let linear = |i: usize, j: usize| slope * (0..3).map(|d| x[(i, d)] * x[(j, d)]).sum::<f64>();
    let gram: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let own = |j: usize| order(1, i, j) + order(2, i, j) + linear(i, j);
            (0..n).map(|j| own(j) + if i == j { noise } else { 0.0 }).collect()
        })
        .collect();
    let weights = solve(gram, (0..n).map(|i| y[(i, 0)] + 0.1).collect());
    let mean = |k: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..n).map(|i| (0..n).map(|j| k(i, j) * weights[j]).sum()).collect()
    };
    let covariance = |a: &[f64], b: &[f64]| {
        let of = |v: &[f64]| v.iter().sum::<f64>() / n as f64;
        a.iter().zip(b).map(|(x, y)| (x - of(a)) * (y - of(b))).sum::<f64>() / n as f64
    };
    let whole = mean(&|i, j| order(1, i, j) + order(2, i, j) + linear(i, j));
    let square = model.process().unwrap().inputs().standardisation.target_scale.powi(2);
    let shares = model.process().unwrap().parts().shares.unwrap();
    assert_eq!((shares.rows, shares.of, shares.components.len()), (n, n, 3));
    let own_prior = (0..n).map(|i| linear(i, i)).sum::<f64>() / n as f64;
    // Effects: kernels less their means over the rows along each of an effect's columns, and those means along the others.
    let level = |j: usize, d: usize| (0..n).map(|i| single(i, j, d)).sum::<f64>() / n as f64;
    let levels: Vec<[f64; 3]> = (0..n).map(|j| [0, 1, 2].map(|d| level(j, d))).collect();
    let nu = [0, 1, 2].map(|d| levels.iter().map(|l| l[d]).sum::<f64>() / n as f64);
    let others = |d: usize, l: &[f64; 3]| l.iter().sum::<f64>() - l[d];
    let alone = |d: usize, i: usize, j: usize| {
        let weight = (variances[0] + variances[1] * others(d, &levels[j])) / 3.0;
        weight * (single(i, j, d) - levels[j][d])
    };
    let pair = |a: usize, b: usize, i: usize, j: usize| {
        variances[1] / 3.0 * (single(i, j, a) - levels[j][a]) * (single(i, j, b) - levels[j][b])
    };
    let prior_alone = |d: usize| (variances[0] + variances[1] * others(d, &nu)) / 3.0 * (1.0 - nu[d]);
    let prior_pair = |a: usize, b: usize| variances[1] / 3.0 * (1.0 - nu[a]) * (1.0 - nu[b]);
    let pairs = [[0, 1], [0, 2], [1, 2]];
    let prior_of_order =
        [(0..3).map(prior_alone).sum::<f64>(), pairs.iter().map(|[a, b]| prior_pair(*a, *b)).sum::<f64>()];
    let all_prior = prior_of_order[0] + prior_of_order[1] + own_prior;
    let expected: [(&str, Vec<f64>, f64); 3] = [
        ("additive, order 1", mean(&|i, j| (0..3).map(|d| alone(d, i, j)).sum()), prior_of_order[0]),
        (
            "additive, order 2",
            mean(&|i, j| pairs.iter().map(|[a, b]| pair(*a, *b, i, j)).sum()),
            prior_of_order[1],
        ),
        ("linear", mean(&linear), own_prior),
    ];
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} {b}");
    for (share, (name, own, prior)) in shares.components.iter().zip(&expected) {
        assert_eq!(share.name, *name);
        close(share.prior_variance, square * prior);
        close(share.prior_share, prior / all_prior);
        close(share.variance, square * covariance(own, own));
        close(share.share, covariance(own, &whole) / covariance(&whole, &whole));
    }
    close(shares.variance, square * covariance(&whole, &whole));
    close(shares.components.iter().map(|s| s.share).sum(), 1.0);
    let first = &shares.components[0];
    for (d, column) in first.parts.iter().enumerate() {
        let own = mean(&|i, j| alone(d, i, j));
        close(column.prior_variance, square * prior_alone(d));
        assert_eq!(column.features, [["x1", "x2", "x3"][d]]);
        close(column.variance, square * covariance(&own, &own));
        close(column.share, covariance(&own, &whole) / covariance(&whole, &whole));
    }
    close(first.parts.iter().map(|s| s.share).sum(), first.share);
    let second = &shares.components[1];
    assert_eq!((second.parts.len(), shares.pairs_left_out), (3, 0));
    for (share, [a, b]) in second.parts.iter().zip(pairs) {
        let own = mean(&|i, j| pair(a, b, i, j));
        assert_eq!(share.features, [a, b].map(|d| ["x1", "x2", "x3"][d]));
        close(share.prior_variance, square * prior_pair(a, b));
        close(share.variance, square * covariance(&own, &own));
        close(share.share, covariance(&own, &whole) / covariance(&whole, &whole));
    }
    close(second.parts.iter().map(|s| s.share).sum(), second.share);
    let text = model.described();
    assert!(text.contains("additive, x1 alone") && text.contains("additive, x2 and x3 together"), "{text}");
    assert!(text.contains("additive: amplitude [order 2]"), "{text}");
    let report = model.report().unwrap();
    assert_eq!(report["parts"]["shares"]["components"][0]["parts"][1]["features"][0], "x2");

    // With every row an inducing point the bound's mean is the exact one.
    let mut bound = request.clone();
    bound.method = MethodName::Sgpr.into();
    set(
        &mut bound,
        json!({"inducing": n, "inducing-choice": "random", "fixed-inducing": true, "held-back": 0}),
    );
    let bounded = fit(&table, &bound).process().unwrap().parts().shares.unwrap();
    assert_eq!((bounded.places, bounded.of), (SharePlaces::InducingPoints, n));
    for (a, b) in bounded.components.iter().zip(&shares.components) {
        assert!((a.share - b.share).abs() < 1e-6, "{} {}", a.share, b.share);
        assert_eq!(a.parts.len(), b.parts.len());
    }

    // Solvers that keep weights say the same.
    request.method = MethodName::Cg.into();
    set(
        &mut request,
        json!({"precision": "double", "samples": 4, "random-features": 50, "tolerance": 1e-10, "held-back": 0}),
    );
    let solved = fit(&table, &request).process().unwrap().parts().shares.unwrap();
    for (a, b) in solved.components.iter().zip(&shares.components) {
        assert!((a.share - b.share).abs() < 1e-4, "{} {}", a.share, b.share);
    }
}

/// Curves, amplitudes of components and orders are named and drawn.
#[test]
fn warps_and_mixtures_are_described() {
    let table = rows(40);
    let mut asked = request("warp(matern32(ard, x1, x3)) + spectral_mixture(x2, components=2)");
    asked.columns.categories = Vec::new();
    set(&mut asked, json!({"restarts": 1, "steps": 8}));
    let model = fit(&table, &asked);
    let parts = model.process().unwrap().parts();
    let columns: Vec<&str> = parts.warps.iter().map(|w| w.feature.as_str()).collect();
    assert_eq!(columns, ["x1", "x3"]);
    let standard = &model.process().unwrap().inputs().standardisation;
    for (curve, j) in parts.warps.iter().zip([0, 2]) {
        let middle = curve.x.len() / 2;
        assert!(
            (curve.x[middle] - standard.feature_means[j]).abs() < 1e-12 && curve.warped[middle].abs() < 1e-12
        );
        assert!(curve.warped.windows(2).all(|w| w[0] < w[1]));
    }
    let model_report = model.model_report().unwrap();
    assert_eq!((model_report.warps.len(), model_report.tables.len()), (2, 1));
    let names: Vec<&str> = model_report.hyperparameters.iter().map(|h| h.name.as_str()).collect();
    for name in [
        "warp.skew [x1]",
        "warp.tail [x3]",
        "matern32.lengthscale [x3]",
        "spectral_mixture: amplitude [2]",
        "spectral_mixture: period [x2, 2]",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let report: Value = model.report().unwrap();
    assert_eq!(report["parts"]["warps"][0]["x"].as_array().unwrap().len(), 101);
    let plain = fit(
        &table,
        &FitRequest { prior: PriorSettings { kernel: "se(ard)".parse().unwrap(), ..asked.prior }, ..asked },
    );
    assert!(plain.report().unwrap().get("parts").is_none());
}
