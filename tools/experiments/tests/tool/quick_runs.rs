//! Experiments: every file of the project is valid and shows what was published when run quickly.

// Errors of experiments carry paths and causes; tests do not mind their size.
#![allow(clippy::result_large_err)]

use posterior_experiments::{
    Experiment, ExperimentError, Listed, Outcome, RunOptions, embedded, kinds, list, run,
};
use posterior_optim::Signal;
use std::path::Path;
use std::sync::LazyLock;

/// An experiment of the project with parts of its file replaced. Its data are where the repository's root counts them from.
pub(crate) fn changed(name: &str, changes: &[(&str, &str)]) -> Result<Experiment, ExperimentError> {
    let at = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(at.join(format!("files/{name}.toml"))).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{name}: {from}");
        text = text.replace(from, to);
    }
    Experiment::parse(&text, &at.join(format!("../../{name}.toml")))
}

pub(crate) fn quick(name: &str) -> Outcome {
    quick_with(name, &[])
}

/// The same with parts of the file replaced.
pub(crate) fn quick_with(name: &str, changes: &[(&str, &str)]) -> Outcome {
    let options = RunOptions { quick: true, ..RunOptions::default() };
    run(&changed(name, changes).unwrap(), &options, &mut |_| Signal::Continue).unwrap()
}

#[test]
fn digits_by_made_up_images() {
    let outcome = quick("thesis_mnist");
    assert!(outcome.published.iter().all(|p| p.found.is_some()), "{:?}", outcome.published);
    // Whoever knows nothing about four classes is surprised by ln 4, and right in a quarter of 200 cases, give or take three hundredths.
    for network in ["CNN", "ResNet"] {
        for cell in
            ["network alone", "mode, single", "mode, layerwise", "trained, single", "trained, layerwise"]
        {
            let of = |key: &str| number(&outcome, &["networks", network, cell, key]);
            assert!(of("nll") < 4f64.ln() && of("accuracy") > 0.35, "{network}, {cell}: {:?}", outcome.mean);
        }
    }
}

/// Runs quickly; everything that the file expects must hold, and there must be something.
fn holds(name: &str) -> Outcome {
    holds_but(name, &[])
}

/// The same, but for claims about long training (weights before a layer norm grow while a network is trained, and quick networks hardly are), about seconds, or
/// about the real data.
fn holds_but(name: &str, not_of_quick_runs: &[&str]) -> Outcome {
    let outcome = quick(name);
    let claims: Vec<&str> = outcome.expectations.iter().map(|e| e.expectation.claim.as_str()).collect();
    assert!(not_of_quick_runs.iter().all(|c| claims.contains(c)) && claims.len() > not_of_quick_runs.len());
    for e in
        outcome.expectations.iter().filter(|e| !not_of_quick_runs.contains(&e.expectation.claim.as_str()))
    {
        assert_eq!(e.holds, Some(true), "{}: {:?} against {:?}", e.expectation.claim, e.found, e.compared);
    }
    assert!(outcome.published.iter().all(|p| p.found.is_some()), "{:?}", outcome.published);
    outcome
}

pub(crate) fn number(outcome: &Outcome, path: &[&str]) -> f64 {
    path.iter().fold(&outcome.mean, |value, key| &value[*key]).as_f64().unwrap()
}

#[test]
fn every_file_is_an_experiment() {
    let listed = embedded();
    let files = list(&Path::new(env!("CARGO_MANIFEST_DIR")).join("files")).unwrap();
    let names = |list: &[Listed]| list.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    assert!(listed.len() >= 5 && names(&listed) == names(&files));
    for one in &listed {
        assert!(kinds().any(|k| k.0 == one.kind), "{}: {}", one.name, one.title);
        assert!(one.quick && !one.source.is_empty(), "{}", one.name);
    }
}

#[test]
fn losses_of_classes_in_the_plane() {
    let outcome = holds("gaussianised_toy_classes");
    // Nobody is surer than the targets are far apart, give or take what the network's bends add.
    for method in ["one-hot", "laplace", "variational"] {
        let of = |key: &str| number(&outcome, &["methods", method, key]);
        assert!(of("confidence") < of("ceiling") + 0.05, "{method}: {:?}", outcome.mean);
    }
    let html = outcome.report().to_html();
    assert_eq!(html.matches("class=\"map\"").count(), 6, "a map for each loss");
}

#[test]
fn losses_of_digits_and_of_features() {
    let digits = quick("gaussianised_digits");
    for method in
        ["exact", "one-hot", "moment-original 1/10", "moment 1/10", "laplace 1/10", "variational 1/10"]
    {
        // A quarter of 200 by chance, give or take three hundredths.
        assert!(number(&digits, &["methods", method, "accuracy"]) > 0.35, "{method}: {:?}", digits.mean);
        let epochs = digits.by_seed[0].series[method].as_array().unwrap();
        let last = epochs.last().unwrap()["nll"].as_f64().unwrap();
        assert!((last - number(&digits, &["methods", method, "nll"])).abs() < 1e-5 && epochs.len() == 6);
    }
    // Of two pseudo-counts the one with the least NLL of the labels that it was trained on.
    let chosen = number(&digits, &["best", "variational", "by_train_nll", "train_nll"]);
    for method in ["variational 1/100", "variational 1/10"] {
        assert!(number(&digits, &["methods", method, "train_nll"]) >= chosen);
    }
    let photographs = quick("gaussianised_photographs");
    assert!(photographs.published.len() == 42 && photographs.published.iter().all(|p| p.found.is_some()));
    for method in ["exact", "variational 1/10"] {
        let of = |keys: [&str; 3]| number(&photographs, &["methods", method, keys[0], keys[1], keys[2]]);
        assert!(number(&photographs, &["methods", method, "accuracy"]) > 0.8, "{method}");
        for key in ["by_probability", "by_logit"] {
            assert!(of(["foreign", "digits", key]) > 0.6, "{method}, {key}: {:?}", photographs.mean);
        }
    }
}

#[test]
fn approximations_on_three_clusters() {
    let outcome = holds("toy_regression");
    // The two exact forms agree in everything, hyperparameters included.
    let of = |method: &str, key: &str| number(&outcome, &["methods", method, key]);
    for key in ["prior_precision", "noise_variance", "effective_dimension"] {
        let (a, b) = (of("full", key), of("function space", key));
        assert!((a / b - 1.0).abs() < 1e-3, "{key}: {a} {b}");
    }
}

#[test]
fn the_norm_of_trained_weights_widens_error_bars() {
    holds_but(
        "thesis_error_bars",
        &[
            "the norm of the trained weights gives wider error bars",
            "the trained weights are longer than the linear model's optimum",
        ],
    );
}

#[test]
fn learned_precisions_are_those_of_brute_force() {
    let outcome =
        holds_but("thesis_evidence", &["the norm of the trained weights gives a smaller precision"]);
    // All updates of a conjugate model rest at the optimum, wherever they start.
    for update in ["MacKay from 500", "MacKay from 5", "max bound from 500", "max bound from 5"] {
        let found = number(&outcome, &["updates", update, "precision"]);
        let best = number(&outcome, &["brute_force", "precision"]);
        assert!((found / best - 1.0).abs() < 1e-3, "{update}: {found} {best}");
        let evidence = number(&outcome, &["updates", update, "log_evidence"]);
        assert!((evidence - number(&outcome, &["brute_force", "log_evidence"])).abs() < 1e-4);
    }
    // Bounds stay below what they bound.
    let series = &outcome.by_seed[0].series;
    let curve = |name: &str| -> Vec<f64> {
        series[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    };
    for ((exact, bound), elbo) in curve("mode").iter().zip(curve("bound")).zip(curve("elbo")) {
        assert!(*exact > bound - 1e-6 && bound > elbo - 1e-6, "{exact} {bound} {elbo}");
    }
}

#[test]
fn estimators_have_the_variances_of_their_closed_forms() {
    let outcome = holds("thesis_effective_dimension");
    for estimator in ["prediction space", "weight space"] {
        let off = number(&outcome, &["estimators", estimator, "bias_in_standard_errors"]);
        assert!(off.abs() < 4.0, "{estimator}: {off} standard errors");
    }
}

#[test]
fn scale_of_normalised_weights() {
    let outcome = holds("thesis_scale");
    // What layer norm adds to a variance, 1e-5, is up to two hundredths of the variance in this small network.
    assert!(number(&outcome, &["output_change"]) < 3e-2);
}

#[test]
fn slices_through_the_loss_show_where_the_optima_are() {
    holds_but("thesis_loss_slices", &["the trained weights are longer than the optimum"]);
}

#[test]
fn plain_laplace_leaves_the_data() {
    holds("thesis_plain_laplace");
}

#[test]
fn approximate_posteriors_beside_the_exact_one() {
    // In networks of a few hundred weights Kronecker factors leave less out than the scatter of 64 samples adds.
    let outcome = holds_but(
        "thesis_fidelity",
        &[
            "larger network: samples are closer than Kronecker factors, in divergence",
            "larger network: the same, in the distance of outputs",
            "smallest network: samples are closer than Kronecker factors, in divergence",
            "Kronecker factors get worse with the size of the network",
        ],
    );
    for network in ["tiny", "smaller"] {
        for prior in ["scalar", "layerwise"] {
            let of = |method: &str, key: &str| number(&outcome, &["networks", network, prior, method, key]);
            assert_eq!((of("exact", "symmetric_kl"), of("network alone", "variance_ratio")), (0.0, 0.0));
            assert!((of("exact", "variance_ratio") - 1.0).abs() < 1e-12);
            // All have the network's outputs as their means.
            for method in ["diagonal", "Kronecker", "64 samples"] {
                assert!(
                    of(method, "wasserstein2") > of("exact", "wasserstein2"),
                    "{network} {prior} {method}"
                );
            }
        }
    }
}

#[test]
fn precisions_by_turn_and_the_bounds_behind_them() {
    let outcome = holds("thesis_em_convergence");
    // The optimum of the bound by the full curvature is where its own turns lead.
    let of = |path: &[&str]| number(&outcome, &[&["networks", "smaller"][..], path].concat());
    assert!((of(&["bounds", "full", "over_first"]) - 1.0).abs() < 1e-12);
    let traces = &outcome.by_seed[0].series["smaller"]["scalar"];
    for (name, trace) in traces.as_object().unwrap() {
        assert_eq!(trace[0][0].as_f64(), Some(1000.0), "{name}");
    }
}

#[test]
fn expectation_maximisation_in_one_dimension() {
    // A small network that is hardly trained has other features than the published one.
    let outcome = holds_but(
        "thesis_em_illustration",
        &["after, they vary as the targets do, within a factor of three"],
    );
    let of = |state: &str, key: &str| number(&outcome, &["states", state, key]);
    // Sixteen samples tell a deviation to 2 / sqrt(2 x 16) or so, of which all points of the grid share most.
    let (found, exact) = (of("after", "gap_deviation"), of("after", "exact_gap_deviation"));
    assert!((found / exact - 1.0).abs() < 0.6, "{found} for {exact}");
    let trace = outcome.by_seed[0].series["precisions"].as_array().unwrap();
    assert_eq!(trace[0].as_f64(), Some(of("before", "precision")));
    assert_eq!(trace.last().unwrap().as_f64(), Some(of("after", "precision")));
}

#[test]
fn noise_in_the_regulariser_allows_small_batches() {
    // Four classes of 512 made-up images are known by fewer of them: the largest batches are an eighth of all, and their noise cancels within eight steps.
    let late = [
        "batches may be about sixteen times as small for the same error of the weights",
        "and in the posterior's norm, of which the loss is the square",
    ];
    let parts = tempfile::tempdir().unwrap();
    let journal = Some(parts.path().join("parts.jsonl"));
    let experiment = changed("thesis_sampling_objectives", &[]).unwrap();
    let options = RunOptions { quick: true, journal, ..RunOptions::default() };
    let outcome = run(&experiment, &options, &mut |_| Signal::Continue).unwrap();
    assert!(outcome.expectations.len() > late.len());
    for e in outcome.expectations.iter().filter(|e| !late.contains(&e.expectation.claim.as_str())) {
        assert_eq!(e.holds, Some(true), "{}: {:?} against {:?}", e.expectation.claim, e.found, e.compared);
    }
    assert!(outcome.published.iter().all(|p| p.found.is_some()), "{:?}", outcome.published);
    // The network, two sizes of batches by each objective, the variances: the same run again finds them all.
    let again = run(&experiment, &options, &mut |_| Signal::Continue).unwrap();
    assert_eq!((outcome.reused, again.reused), (0, 6));
    assert_eq!(outcome.mean, again.mean);
    let of =
        |objective: &str, batch: &str, key: &str| number(&outcome, &["objectives", objective, batch, key]);
    let start = of("standard", "smallest", "start");
    for objective in ["low-variance", "standard"] {
        for batch in ["smallest", "largest"] {
            // All begin at the same draws of the prior.
            assert_eq!(of(objective, batch, "start"), start);
            assert!(of(objective, batch, "error") < start, "{objective}, {batch}");
        }
        // More images in a batch, less noise: a larger step can be the best, and none is worse.
        assert!(of(objective, "largest", "error") < of(objective, "smallest", "error"), "{objective}");
        assert!(of(objective, "largest", "share") >= of(objective, "smallest", "share"), "{objective}");
    }
    // Steps are shares of one curvature.
    let curvature = |objective, batch| of(objective, batch, "share") / of(objective, batch, "step_size");
    let one = curvature("standard", "smallest");
    assert!((curvature("low-variance", "largest") / one - 1.0).abs() < 1e-12);
    // The loss chose: of all that were tried, the least.
    for (name, descents) in outcome.by_seed[0].series.as_object().unwrap() {
        let (objective, batch) = name.split_once(", ").unwrap();
        let tried = descents["tried"].as_array().unwrap();
        let loss = |t: &serde_json::Value| t[1].as_f64().unwrap_or(f64::INFINITY);
        let best = tried.iter().min_by(|a, b| loss(a).total_cmp(&loss(b))).unwrap();
        assert_eq!(best[0].as_f64(), Some(of(objective, batch, "share")), "{name}: {tried:?}");
    }
    // Single images' gradients: what is the less noisy at the solution is so by any batch with the same steps.
    for batch in ["batch 4", "batch 64"] {
        assert!(number(&outcome, &["noise_ratio", batch]) > 1.0, "{batch}");
    }
}

/// A network that came with its weights, on some of its images: those of the shared folder, where it is.
#[test]
fn few_samples_lead_to_the_precision_of_many() {
    let needed = ["networks/mlp_mnist.onnx", "data/mnist/train-images-idx3-ubyte.gz"];
    if needed.iter().any(|path| posterior_testing::shared(path).is_none()) {
        return;
    }
    // Thirty images determine so few directions that one sample says little about how many.
    let outcome = quick("thesis_em_traces");
    assert!(outcome.published.iter().all(|p| p.found.is_some()), "{:?}", outcome.published);
    let of = |path: &[&str]| number(&outcome, path);
    for samples in ["1 sample", "4 samples"] {
        let of = |key: &str| of(&["samples", samples, key]);
        assert!(of("arrival") <= 6.0 && of("precision") > 0.0, "{samples}: {:?}", outcome.mean);
        // No more directions are determined than there are outputs.
        assert!(of("effective_dimension") > 0.0 && of("effective_dimension") < 300.0, "{samples}");
        // MacKay's update at rest.
        let rest = of("effective_dimension") / of("mode_norm").powi(2);
        assert!((of("precision") / rest - 1.0).abs() < 1e-2, "{samples}: {rest}");
    }
    let (one, four) = (of(&["fewest", "precision"]), of(&["most", "precision"]));
    assert!((one / four).ln().abs() < 1.0 && one != four, "{one} {four}");
    assert!(of(&["repeats", "least_over_most"]) < of(&["repeats", "largest_over_most"]));
    // Every trace begins at the file's precision.
    for (name, traces) in outcome.by_seed[0].series.as_object().unwrap() {
        assert_eq!(traces[0]["precisions"][0].as_f64(), Some(1e4), "{name}");
        assert_eq!(
            traces[0]["precisions"].as_array().unwrap().len(),
            traces[0]["mode_norms"].as_array().unwrap().len() + 1
        );
    }
}

/// Every row of made-up streams once: all methods learn, and pictures and tables have what they show.
#[test]
fn classes_as_numbers_row_by_row() {
    let outcome = quick("gaussianised_streams");
    for (stream, classes) in [("plane", 4.0f64), ("digits", 4.0)] {
        let of = |method: &str, at: &str, key: &str| number(&outcome, &["streams", stream, method, at, key]);
        for method in ["moment-original", "variational", "moment", "laplace", "gauss", "filtering", "descent"]
        {
            let last = of(method, "last", "log_likelihood");
            assert!(last > -classes.ln() && last < 0.0, "{stream}, {method}: {last}");
            assert!(of(method, "last", "accuracy") > 0.5, "{stream}, {method}: {:?}", outcome.mean);
            assert_eq!(of(method, "last", "accuracy"), of(method, "n 400", "accuracy"));
            // The chosen variant is the one that predicted the first rows best.
            let ahead = number(&outcome, &["streams", stream, method, "ahead"]);
            let variants = outcome.mean["streams"][stream][method]["variants"].as_object().unwrap();
            assert!(variants.values().all(|v| v["ahead"].as_f64().unwrap() <= ahead), "{stream}, {method}");
        }
        // More rows, better probabilities; the plane is known after fifty.
        let learning = ["moment-original", "variational", "filtering"];
        for method in learning.into_iter().filter(|_| stream == "digits") {
            assert!(of(method, "last", "log_likelihood") > of(method, "n 50", "log_likelihood"), "{method}");
        }
        // Regression on indicators is never sure of a class.
        assert!(of("gauss", "last", "log_likelihood") < of("variational", "last", "log_likelihood"));
    }
    let page = outcome.report().to_html();
    for text in ["digits: accuracy", "plane: entropy after 50 rows", "digits: all variants"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn error_bars_of_tables_by_every_method() {
    let experiment = changed("error_bars_tables", &[]).unwrap();
    let options = RunOptions { quick: true, seed: Some(0), ..RunOptions::default() };
    let outcome = run(&experiment, &options, &mut |_| Signal::Continue).unwrap();
    for task in ["bike", "pol", "protein", "keggdirected"] {
        let methods = outcome.mean["tasks"][task].as_object().unwrap();
        assert_eq!(methods.len(), 10, "{task}");
        for (name, scores) in methods {
            // Standardised targets: whoever knows only their mean and deviation is surprised by 1.42 nats. Few made-up rows are scored.
            let nll = scores["nll"].as_f64().unwrap();
            assert!(nll < 1.6, "{task}, {name}: {nll}");
            // Wider intervals hold what narrower ones do.
            let levels = ["10", "20", "30", "40", "50", "60", "70", "80", "90", "95", "99"];
            let shares = levels.map(|level| scores["coverage"][level].as_f64().unwrap());
            assert!(shares.windows(2).all(|w| w[0] <= w[1]) && shares[0] < shares[10], "{name}: {shares:?}");
            assert_eq!(scores["coverage"]["95"], scores["coverage_95"], "{task}, {name}");
            // Trapezoids of a staircase of such steps, without what published ones have too much, are near its area.
            let of = |key: &str| scores[key].as_f64().unwrap();
            assert!((of("cqm_published") - 0.05 - of("cqm")).abs() < 0.05, "{task}, {name}: {scores}");
        }
        are_ranks(methods, "nll", "rank_nll");
        are_ranks(methods, "crps", "rank_crps");
    }
    let ranks = outcome.mean["ranks"].as_object().unwrap();
    assert_eq!(ranks.len(), 10);
    for key in ["nll", "crps_or_brier"] {
        // Every method is for every task, so that the mean over both is that of 1, 2, ..., 10.
        let mean = ranks.values().map(|r| r[key].as_f64().unwrap()).sum::<f64>() / 10.0;
        assert!((mean - 5.5).abs() < 1e-12, "{key}: {mean}");
    }
    assert!(ranks.values().all(|r| r["tasks"].as_f64() == Some(4.0)), "{ranks:?}");
    let html = outcome.report().to_html();
    assert!(html.contains("bike: coverage") && outcome.tables().iter().any(|t| t.title == "ranks"));
}

/// Whether the ranks of a task's methods are 1 to their number in the order of a score: they average to (n + 1) / 2, and who has the lower score has the lower rank.
fn are_ranks(methods: &serde_json::Map<String, serde_json::Value>, score: &str, rank: &str) {
    let mut pairs: Vec<(f64, f64)> =
        methods.values().map(|m| (m[score].as_f64().unwrap(), m[rank].as_f64().unwrap())).collect();
    let n = pairs.len() as f64;
    let mean = pairs.iter().map(|p| p.1).sum::<f64>() / n;
    assert!((mean - 0.5 * (n + 1.0)).abs() < 1e-12, "{pairs:?}");
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(pairs.windows(2).all(|w| (w[0].0 < w[1].0) == (w[0].1 < w[1].1)), "{pairs:?}");
}

/// A network that came with its weights, on some of its images: those of the shared folder, where it is.
#[test]
fn error_bars_of_images_by_some_methods() {
    let needed = ["networks/mlp_mnist.onnx", "data/mnist/t10k-images-idx3-ubyte.gz", "data/cifar10_jpeg"];
    if needed.iter().any(|path| posterior_testing::shared(path).is_none()) {
        return;
    }
    let outcome = quick("error_bars_images");
    let methods = outcome.mean["tasks"]["digits"].as_object().unwrap();
    assert_eq!(methods.len(), 6);
    for (name, scores) in methods {
        let of = |key: &str| scores[key].as_f64().unwrap_or_else(|| panic!("{name}: {key} in {scores}"));
        // Nobody loses what the network knows (error bars of few images are wide), all are less sure of corrupted images, and foreign ones stand out.
        assert!(of("nll") < 10f64.ln() && of("accuracy") > 0.8, "{name}: {scores}");
        assert!(of("nll_at_severity_5") > of("nll_at_severity_0"), "{name}: {scores}");
        assert!(of("joint_1") > of("joint_2") && of("foreign_auc") > 0.6, "{name}: {scores}");
        // Turned by nothing they are what they were; digits on their sides are hard to read, and nobody knows how hard.
        assert!((of("nll_turned_by_0") - of("nll_at_severity_0")).abs() < 1e-6, "{name}: {scores}");
        assert!(of("nll_turned_by_90") > of("nll_turned_by_45"), "{name}: {scores}");
        // Error bars of 300 images are so wide that surprises mend them: their own calibration says nothing here.
        assert!(name != "network" || of("ece_turned_by_90") > of("ece_turned_by_0"), "{scores}");
        assert!((0.0..=1.0).contains(&of("ece_turned_by_45")), "{name}: {scores}");
        assert!(scores.get("coverage").is_none());
    }
    are_ranks(methods, "nll", "rank_nll");
    are_ranks(methods, "brier", "rank_brier");
    // The mean over corruptions is that of one: the series has each by itself, by severity.
    let (first, beyond) =
        (&outcome.by_seed[0].series["digits"][0][0], &outcome.by_seed[0].series["digits"][0][1]);
    let own = &beyond["by_corruption"][0];
    assert_eq!((first.as_str(), own[0].as_str()), (Some("network"), Some("rotation")));
    assert_eq!(own[1], beyond["severities"]);
    let html = outcome.report().to_html();
    assert!(html.contains("digits: turned images, mean NLL") && html.contains("digits: reliability"));
}

/// Six ways to a prior precision of one network.
#[test]
fn norms_of_a_network_that_came_choose_other_precisions() {
    let needed = ["networks/mlp_mnist.onnx", "data/mnist/t10k-images-idx3-ubyte.gz", "data/cifar10_jpeg"];
    if needed.iter().any(|path| posterior_testing::shared(path).is_none()) {
        return;
    }
    let outcome = quick("thesis_photographs");
    let of = |method: &str| number(&outcome, &["tasks", "photographs", method, "nll"]);
    for prior in ["single", "layerwise"] {
        let norms =
            ["simplified optimum", "optimum", "trained weights"].map(|norm| of(&format!("{norm}, {prior}")));
        assert!(norms.iter().all(|nll| *nll > 0.0 && *nll < 10f64.ln()), "{norms:?}");
        // The last layer's optimum under so few images is short, its trained weights are long.
        assert!(norms[1] < norms[2], "{norms:?}");
    }
}

#[test]
fn whose_norm_the_evidence_charges_for_decides() {
    // A few hundred images and passes: networks are hardly trained, and their weights hardly longer than the linear model's mode.
    let outcome = quick("thesis_evidence_choices");
    for network in ["batch norm", "batch norm and biases", "Fixup"] {
        let of = |cell: &str, key: &str| number(&outcome, &["networks", network, cell, key]);
        let cells = ["mode", "trained", "mode, curvature there", "trained, curvature at the mode"];
        for cell in cells {
            assert!(of(cell, "nll") < 1.5 * 4f64.ln() && of(cell, "deviation") > 0.0, "{network}, {cell}");
        }
        // Other precisions, other error bars: W2 between Gaussians with the same mean is no less than the difference of what they scatter.
        assert!(of("training", "last_distance") > 0.0);
        assert_ne!(of("mode", "deviation"), of("mode, curvature there", "deviation"), "{network}");
        assert_ne!(of("mode", "nll"), of("trained", "nll"), "{network}");
        assert_ne!(of("mode", "smallest_precision"), of("trained", "smallest_precision"), "{network}");
    }
}

#[test]
fn variational_linearised_laplace_beside_others() {
    holds("valla_toy");
}

#[test]
fn early_stopping_keeps_the_variance_of_a_gap() {
    holds("valla_early_stopping");
}

/// What two tests look at.
static UCI: LazyLock<Outcome> = LazyLock::new(|| quick("thesis_uci"));

#[test]
fn gaussian_processes_on_made_up_tables() {
    let outcome = &*UCI;
    assert!(outcome.published.iter().all(|p| p.found.is_some()), "{:?}", outcome.published);
    for set in ["pol", "bike", "protein", "keggdirected"] {
        let of = |method: &str, key: &str| number(outcome, &["sets", set, method, key]);
        // The same linear system, solved to a hundredth: stochastic dual descent and conjugate gradients predict alike.
        assert!((of("SDD", "rmse") / of("CG", "rmse") - 1.0).abs() < 0.1, "{set}: {outcome:?}");
        for method in ["SDD", "SGD", "CG", "SVGP"] {
            let folds =
                ["fold 0", "fold 1"].map(|f| number(outcome, &["sets", set, method, "folds", f, "rmse"]));
            assert!((of(method, "rmse") - 0.5 * (folds[0] + folds[1])).abs() < 1e-12);
        }
    }
}

#[test]
fn exact_solutions_of_made_up_tables() {
    let outcome = quick("thesis_uci_exact");
    assert!(outcome.published.iter().all(|p| p.found.is_some()), "{:?}", outcome.published);
    // Made up as the other experiment makes them up: its solvers come close to these.
    let solved = &*UCI;
    // Inducing points at all 180 rows, a step of full length on all of them: the exact posterior. Gradient descent with more steps.
    let longer = quick_with(
        "thesis_uci",
        &[
            (
                "batch = 64\ninducing = 40\nfixed-inducing = true\nnatural-length = 0.3",
                "batch = 180\ninducing = 180\ninducing-choice = \"random\"\nfixed-inducing = true\nnatural-length = 1.0",
            ),
            ("method = \"sgd\"\niterations = 100", "method = \"sgd\"\niterations = 3000"),
        ],
    );
    for set in ["pol", "bike"] {
        let exact = number(&outcome, &["sets", set, "exact", "rmse"]);
        let off = |outcome: &Outcome, method: &str| {
            (number(outcome, &["sets", set, method, "rmse"]) / exact - 1.0).abs()
        };
        assert!(off(solved, "CG") < 0.05, "{set}: {exact}");
        assert!(off(&longer, "SVGP") < 1e-5 && off(solved, "SVGP") > 1e-2, "{set}: {exact}");
        assert!(off(&longer, "SGD") < off(solved, "SGD"), "{set}: {exact}");
    }
}

#[test]
fn low_noise_leaves_gradient_descent_alone() {
    let outcome = holds("thesis_low_noise");
    for set in ["pol", "bike"] {
        let low = format!("{set}-low-noise");
        let of = |set: &str, method: &str, key: &str| number(&outcome, &["sets", set, method, key]);
        // Both sets of a table see the same rows; a few steps of primal descent hardly see the noise, which divides its regulariser.
        let (learned, lowered) = (of(set, "SGD", "rmse"), of(&low, "SGD", "rmse"));
        assert!((lowered / learned - 1.0).abs() < 0.02, "{set}: {learned} {lowered}");
        // The system of conjugate gradients is worse conditioned, and what is left of the residual takes more iterations.
        let (learned, lowered) = (of(set, "CG", "steps"), of(&low, "CG", "steps"));
        assert!(lowered > learned, "{set}: {learned} {lowered}");
    }
}

#[test]
fn thinned_inducing_points_come_close_to_all_rows() {
    let outcome = holds_but("thesis_inducing_descent", &["and fewer points take less time"]);
    let points = |method: &str| number(&outcome, &["sets", "protein", method, "points"]);
    let [few, some, many] = ["inducing, ratio 1/2", "inducing, ratio 1", "inducing, ratio 2"].map(points);
    assert!(few < some && some < many && many <= points("SGD"), "{few} {some} {many}");
    assert_eq!((points("SGD"), points("SVGP")), (150.0, 40.0));
    // One point after half of the steps and one after all, later.
    let series = &outcome.by_seed[0].series["protein by seconds"]["inducing, ratio 1"];
    let course: Vec<Vec<f64>> = serde_json::from_value(series.clone()).unwrap();
    assert_eq!(course.iter().map(|c| c[1]).collect::<Vec<f64>>(), [300.0, 600.0]);
    assert_eq!(course[1][2], number(&outcome, &["sets", "protein", "inducing, ratio 1", "rmse"]));
}

/// The real tables, where they are: a few hundred rows already say more than the mean does.
#[test]
fn gaussian_processes_on_real_tables() {
    if posterior_testing::shared("data/uci/pol.csv.gz").is_none() {
        return;
    }
    let real = ("folder = \"\"", "folder = \"../shared/data/uci\"");
    let outcome =
        quick_with("thesis_uci", &[real, ("folds = [0, 1]", "folds = [0]"), ("rows = 180", "rows = 250")]);
    for set in ["pol", "bike", "protein", "keggdirected"] {
        let rmse = number(&outcome, &["sets", set, "CG", "rmse"]);
        assert!(rmse > 0.0 && rmse < 0.95, "{set}: {rmse}");
        println!("{set}: {rmse}");
    }
}

#[test]
fn thompson_sampling_beats_random_points() {
    // Solvers end after their steps, however fast the machine is.
    let outcome = quick_with("thesis_thompson", &[("seconds = 0.15", "seconds = 600.0")]);
    let of = |method: &str, key: &str| number(&outcome, &["lengths", "length 0_3", method, key]);
    // All begin with the same points. Solvers that are done find better ones, and better than chance does; a dozen random points need not.
    for method in ["SDD", "SGD", "CG", "SVGP", "random search"] {
        assert_eq!(of(method, "initial"), of("CG", "initial"), "{method}");
    }
    for method in ["SDD", "CG"] {
        assert!(of(method, "best") > of(method, "initial"), "{method}: {:?}", outcome.mean);
        assert!(of(method, "best") > of("random search", "best"), "{method}: {:?}", outcome.mean);
    }
    assert!(number(&outcome, &["lead", "random search", "difference"]) > 0.0, "{:?}", outcome.mean);
    let curve = outcome.by_seed[0].series["length 0_3 SDD"][0]["best"].as_array().unwrap();
    let values: Vec<f64> = curve.iter().map(|v| v.as_f64().unwrap()).collect();
    assert!(values.len() == 3 && values.windows(2).all(|w| w[0] <= w[1]));
}

#[test]
fn stochastic_solvers_miss_the_edges_of_the_data() {
    holds("thesis_spectral");
}

#[test]
fn solvers_on_their_way_to_the_exact_mean() {
    let outcome = holds("thesis_convergence");
    for (set, noise) in [("pol", "learned"), ("pol", "low"), ("bike", "learned"), ("bike", "low")] {
        let of = |method: &str, key: &str| number(&outcome, &["sets", set, noise, "methods", method, key]);
        let exact = number(&outcome, &["sets", set, noise, "exact", "rmse"]);
        for method in ["SGD", "SDD", "CG"] {
            // Test errors are those of the exact mean, give or take the distance from it.
            assert!((of(method, "rmse") - exact).abs() <= of(method, "from_exact") + 1e-12, "{set} {method}");
            assert!(of(method, "diverged") == 0.0 && of(method, "rise") >= 1.0);
            let course = &outcome.by_seed[0].series[set][noise][method][0]["points"];
            let steps: Vec<f64> =
                course.as_array().unwrap().iter().map(|p| p["step"].as_f64().unwrap()).collect();
            assert!(steps[0] == 1.0 && steps.windows(2).all(|w| w[0] < w[1]), "{steps:?}");
            assert_eq!(steps.last(), Some(&of(method, "steps")), "{steps:?}");
        }
    }
}

#[test]
fn objectives_and_rules_of_descent_compared() {
    // Every rule has the step that was tuned for it on the real table.
    let outcome =
        holds_but("thesis_descent_ablations", &["4.6: Nesterov's momentum is ahead of Adam in the K-norm"]);
    let of = |method: &str, key: &str| number(&outcome, &["sets", "pol", "learned", "methods", method, key]);
    // What diverged has no errors, only the steps until then.
    let lost = &outcome.mean["sets"]["pol"]["learned"]["methods"]["primal beyond its limit"];
    assert!(lost["function"].is_null() && lost["function_shown"] == "diverged", "{lost}");
    assert!(of("primal beyond its limit", "steps") < of("primal", "steps"));
    let html = outcome.report().to_html();
    assert!(html.contains("primal beyond its limit (diverged)") && html.contains("optimisers"));
}

#[test]
fn linear_models_are_functions_and_bounds_touch_their_evidence() {
    let outcome = holds("thesis_weight_space");
    let html = outcome.report().to_html();
    let shown = [
        "Functions of the prior: affine",
        "The evidence and bounds on it",
        "Samples that ask for the next points",
    ];
    assert!(shown.iter().all(|title| html.contains(title)));
}

#[test]
fn processes_in_one_dimension_beside_the_exact_one() {
    let outcome = holds("thesis_toy_processes");
    let of = |problem: &str, method: &str, region: &str, key: &str| {
        number(&outcome, &["problems", problem, method, region, key])
    };
    // Far from the data the share of the features that the data used up is missing, whatever their number.
    let mut last = 0.0;
    for count in [20, 50, 100, 500] {
        let name = format!("{count} random features");
        let ratio = of("clusters", &name, "far", "deviation_ratio");
        let left = number(&outcome, &["problems", "clusters", &name, "deviation_left"]);
        assert!((ratio / left - 1.0).abs() < 0.05, "{name}: {ratio} for {left}");
        assert!(ratio > last && ratio < 1.0, "{name}: {ratio} after {last}");
        last = ratio;
    }
    // Exact targets have the law of the collapsed posterior: 64 samples tell deviations to a tenth. The system of dense points is worse
    // conditioned; what has not converged adds variance.
    for (points, most) in [("sparse", 1.1), ("dense", 1.2)] {
        let name = format!("inducing, {points}, exact targets");
        let ratio = of("infill", &name, "collapsed", "deviation_ratio");
        assert!(ratio > 0.9 && ratio < most, "{name}: {ratio}");
    }
    // The whole domain is full of data.
    assert!(outcome.mean["problems"]["large domain"]["SDD"].get("far").is_none());
}

#[test]
fn every_size_reaches_the_same_error() {
    let outcome = quick("scaling");
    assert_eq!(number(&outcome, &["reached"]), 3.0, "{:?}", outcome.mean);
    for n in ["n 300", "n 600", "n 1200"] {
        let of = |key: &str| number(&outcome, &["sizes", n, key]);
        assert!(of("error") <= 0.25 && of("seconds") > 0.0 && of("parts_megabytes") > 0.0);
    }
}

#[test]
fn tanimoto_kernels_are_those_of_brute_force() {
    holds("tanimoto");
}

#[test]
fn labels_tell_more_where_they_are_asked_for() {
    let outcome = holds("gaussianised_active_learning");
    // Every method begins with the same labels and ends with as many; the plane is drawn for the first method and at random, at two numbers of labels each.
    let series = outcome.by_seed[0].series.as_object().unwrap();
    assert_eq!(series.len(), 14);
    let counts = |name: &str| series[name][0]["labels"].clone();
    let first = counts("words entropy, variational");
    assert!(series.keys().filter(|k| k.starts_with("words")).all(|k| counts(k) == first));
    assert!(outcome.report().to_html().contains("clusters, random, variational: 14 labels"));
}
