//! The file of the project, a run that is small, and what it is made of.

use super::network::{View, train};
use super::report::interpolated;
use super::settings::{Choice, Settings};
use super::{prior, problem::Problem, scores};
use crate::kinds::prelude::*;
use crate::{Experiment, Outcome, RunOptions, run};
use posterior_linalg::operator::LinearOperator;
use posterior_optim::Signal;
use posterior_tomography::design::equidistant;
use posterior_tomography::psnr;
use std::path::{Path, PathBuf};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("files/tomography_angles.toml")
}

/// 16 x 16 pixels, eight candidates of which two are the pilot scan.
fn small(more: &str) -> String {
    format!(
        r#"
title = "t"
source = "s"
kind = "tomography-angles"
images = 2
filter_steps = 4
{more}
scan = {{ side = 16, candidates = 8, pilot = 2, noise = 0.05 }}
design = {{ most = 6, samples = 24, stabiliser = 0.0, refresh_every = 2, scale_draws = 8, stored_pixels = 256 }}
network = {{ channels = [4, 4, 4], skips = [1, 1], norm = false, sigmoid = false }}
pilot_training = {{ iterations = 30, learning_rate = 1e-2, weight = 1e-3 }}
scored_training = {{ iterations = 5, learning_rate = 1e-2, weight = 1e-3 }}
further_training = {{ iterations = 5, learning_rate = 1e-2, weight = 1e-3 }}
total_variation = {{ pilot_weight = 5e-3, weight = 1e-3, steps = 100, tolerance = 1e-2 }}
scores = {{ total_variation = [2, 4, 6], network = [4, 6], table = [4, 5] }}
[[method]]
name = "even"
choice = "equidistant"
[[method]]
name = "random"
choice = "random"
[[method]]
name = "matern"
choice = "matern"
acquisition = "information"
[[method]]
name = "g"
choice = "g-prior"
acquisition = "variance"
[[method]]
name = "filters"
choice = "filters"
acquisition = "diagonal-information"
[[method]]
name = "retrained"
choice = "retrained"
acquisition = "variance"
images = 1
"#
    )
}

fn parsed(text: &str) -> Result<Experiment, crate::ExperimentError> {
    Experiment::parse(text, Path::new("folder/small.toml"))
}

fn run_small(journal: Option<PathBuf>) -> Outcome {
    let options = RunOptions { journal, ..RunOptions::default() };
    run(&parsed(&small("")).unwrap(), &options, &mut |_| Signal::Continue).unwrap()
}

/// All numbers, but seconds.
fn numbers(value: &Value, out: &mut Vec<f64>) {
    match value {
        Value::Object(map) => {
            map.iter().filter(|(key, _)| !key.starts_with("seconds")).for_each(|(_, own)| numbers(own, out));
        }
        Value::Array(list) => list.iter().for_each(|own| numbers(own, out)),
        Value::Number(number) => out.extend(number.as_f64()),
        _ => {}
    }
}

#[test]
fn the_file_has_every_prior_and_criterion_and_counts_that_have_equidistant_scans() {
    let experiment = Experiment::read(&path()).unwrap();
    let settings: Settings = crate::kinds::settings(&experiment.settings).unwrap();
    let of = |choice: Choice| settings.methods.iter().filter(|m| m.choice == choice).count();
    assert_eq!(
        [Choice::Isotropic, Choice::Matern, Choice::GPrior, Choice::Filters, Choice::Retrained].map(of),
        [1, 1, 3, 1, 1]
    );
    let scan = &settings.scan;
    let there: Vec<usize> = (settings.scores.total_variation.iter().copied())
        .filter(|n| equidistant(scan.candidates, scan.pilot, *n).is_ok())
        .collect();
    assert_eq!(there, [5, 10, 20, 25, 40]);
    assert!(settings.scores.network.iter().all(|n| there.contains(n)));
}

#[test]
fn unknown_keys_are_named_at_once_and_settings_that_make_no_design_are_refused() {
    let wrong = |text: &str| parsed(text).unwrap_err().to_string();
    let text = small("photons = 3").replace("samples = 24", "samples = 24, sampels = 2");
    let error = wrong(&text);
    assert!(error.contains("photons") && error.contains("design.sampels"), "{error}");
    let error = wrong(&small("").replace("pilot = 2", "pilot = 3"));
    assert!(error.contains("scan.pilot"), "{error}");
    let error = wrong(&small("").replace("choice = \"random\"", "choice = \"isotropic\""));
    assert!(error.contains("acquisition"), "{error}");
    let error = wrong(&small("").replace("noise = 0.05", "noise = 0.0"));
    assert!(error.contains("scan.noise"), "{error}");
    let error = wrong(&small("").replace("table = [4, 5]", "table = [4, 7]"));
    assert!(error.contains("[scores]"), "{error}");
}

#[test]
fn a_small_run_is_finite_and_goes_on_from_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("finished.jsonl");
    let first = run_small(Some(journal.clone()));
    let mut found = Vec::new();
    numbers(&first.mean, &mut found);
    assert!(found.len() > 100 && found.iter().all(|v| v.is_finite()), "{}", found.len());
    let number = |keys: [&str; 3]| {
        let value = keys.iter().fold(&first.mean, |value, key| &value[*key]);
        value.as_f64().unwrap_or_else(|| panic!("no number at {keys:?}"))
    };
    // All scans begin with the pilot; what is no scan of a method has no number.
    assert_eq!(
        number(["total_variation", "random", "angles_2"]),
        number(["total_variation", "g", "angles_2"])
    );
    assert!(first.mean["total_variation"]["even"]["angles_6"].is_null());
    // Longer scans than the last equidistant one have no margin.
    assert!(number(["linearised", "g", "margin_3"]).is_finite());
    assert!(first.mean["linearised"]["g"]["margin_5"].is_null());
    assert!(first.report().to_html().contains("The prior by filters"));
    // Killed in the middle of a line behind the fifth part: these are read, the others made again, and nothing differs.
    let text = std::fs::read_to_string(&journal).unwrap();
    let parts: Vec<&str> = text.lines().collect();
    // Two networks, two searches, pictures, six methods on one image and five on the other.
    assert_eq!(parts.len(), 2 + 2 + 1 + 6 + 5);
    std::fs::write(&journal, format!("{}\n{}", parts[..5].join("\n"), &parts[5][..40])).unwrap();
    let second = run_small(Some(journal.clone()));
    let mut again = Vec::new();
    numbers(&second.mean, &mut again);
    assert_eq!(found, again);
    assert!(second.reused >= 5, "{}", second.reused);
    // A run whose parts are all there trains nothing: pictures and eleven methods are read.
    let third = run_small(Some(journal));
    assert_eq!(third.reused, 12);
    assert_eq!(third.mean, second.mean);
}

#[test]
fn leading_blocks_of_one_factor_are_the_scans_by_themselves() {
    let settings: Settings = crate::kinds::settings(&parsed(&small("")).unwrap().settings).unwrap();
    let problem = Problem::new(&settings.scan, 3, 1).unwrap();
    let root = prior::matern(&problem.pilot_scan().unwrap(), problem.noise_variance).unwrap();
    let root = root.root(4.0).unwrap();
    let angles = [0, 4, 2, 7, 1];
    let picture = vec![0.1; 256];
    let means = |angles: &[usize], counts: &[usize]| {
        let scan = problem.scan(angles).unwrap();
        scores::means(&root, &scan, &picture, problem.noise_variance, angles.len(), counts).unwrap()
    };
    let nested = means(&angles, &[2, 3, 5]);
    for (count, mean) in [2, 3, 5].into_iter().zip(&nested) {
        let alone = &means(&angles[..count], &[count])[0];
        assert!(mean.iter().zip(alone).all(|(a, b)| (a - b).abs() < 1e-8));
    }
    // More angles are a better picture, and the scan's own measurements are explained.
    assert!(psnr(&nested[2], &problem.truth) > psnr(&nested[0], &problem.truth));
}

#[test]
fn stored_roots_have_the_covariance_of_products() {
    let settings: Settings = crate::kinds::settings(&parsed(&small("")).unwrap().settings).unwrap();
    let problem = Problem::new(&settings.scan, 3, 0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut journal = crate::journal::Journal::open(&folder.path().join("j"), true).unwrap();
    let mut observer = |_: &crate::Event<'_>| Signal::Continue;
    let mut context = crate::context::Context::new(0, folder.path(), &mut observer, &mut journal);
    let how = (&settings.network, &settings.pilot_training);
    let pilot = problem.pilot_scan().unwrap();
    let trained = train(&pilot, &problem.truth, how, (None, 3), "trained", &mut context).unwrap();
    let view = View::new(&trained, &settings.network, &pilot).unwrap();
    let tangent = view.tangent().unwrap();
    let independent =
        prior::g_prior(&tangent, &pilot, problem.noise_variance, (8, 3), "scales", &mut context);
    let hyperparameters =
        prior::filters(&view, &pilot, problem.noise_variance, 4, "filters", &mut context).unwrap();
    let filters = prior::filter_root(&tangent, &view, &hyperparameters);
    for root in [independent.unwrap(), filters.unwrap()] {
        let jacobian = view.jacobian(&tangent, "jacobian", &mut context).unwrap();
        let stored = prior::stored(jacobian.as_ref(), root.prior(), "stored", &mut context).unwrap();
        let unit = Mat::<f64>::identity(256, 256);
        let product =
            |root: &dyn LinearOperator<f64>| root.multiply(root.multiply_transpose(unit.as_ref()).as_ref());
        let (a, b) = (product(&root), product(&stored));
        let largest = (0..256).map(|i| a[(i, i)]).fold(0.0, f64::max);
        // Single precision on both sides.
        let same = |i: usize, j: usize| (a[(i, j)] - b[(i, j)]).abs() < 1e-5 * largest;
        assert!((0..256).all(|i| (0..256).all(|j| same(i, j))));
    }
}

#[test]
fn curves_are_straight_between_counts_and_end_with_them() {
    let curve = [(5, 10.0), (10, 20.0), (20, 22.0)];
    assert_eq!(interpolated(&curve, 10), Some(20.0));
    assert_eq!(interpolated(&curve, 15), Some(21.0));
    assert_eq!((interpolated(&curve, 4), interpolated(&curve, 21)), (None, None));
}
