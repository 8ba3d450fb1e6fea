//! The file of the project, choices against brute force, and what is refused.

use super::chosen::Under;
use super::classes::{ClassImages, DataSettings};
use super::method::{MethodSettings, Prior};
use super::mosaic::mosaic;
use super::pixels::Reference;
use super::{Chosen, Settings};
use crate::kinds::prelude::*;
use crate::{Experiment, Outcome, RunOptions, run};
use posterior_kernels::inducing::greedy_variance;
use posterior_kernels::matrix::KernelMatrix;
use posterior_kernels::{KernelExpression, gram};
use posterior_optim::Signal;
use std::path::{Path, PathBuf};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("files/generalised_galleries.toml")
}

fn text() -> String {
    std::fs::read_to_string(path()).unwrap()
}

/// A file with some parts replaced; where they stand more than once, everywhere.
fn changed(changes: &[(&str, &str)]) -> Result<Experiment, ExperimentError> {
    let change = |text: String, (from, to): &(&str, &str)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    Experiment::parse(&changes.iter().fold(text(), change), &path())
}

fn quick(experiment: &Experiment, journal: Option<PathBuf>) -> Result<Outcome, ExperimentError> {
    let options = RunOptions { quick: true, journal, ..RunOptions::default() };
    run(experiment, &options, &mut |_| Signal::Continue)
}

fn made_up() -> ClassImages {
    let folder = PathBuf::new();
    DataSettings { folder, classes: 3, images: 40, scale: 1.0 / 255.0 }.read(Path::new(".")).unwrap()
}

#[test]
fn the_galleries_run_quickly() {
    let outcome = quick(&Experiment::read(&path()).unwrap(), None).unwrap();
    assert!(outcome.expectations.iter().all(|e| e.found.is_some() && e.compared.is_some()));
    let number = |method: &str, key: &str| outcome.mean["methods"][method][key].as_f64().unwrap();
    for method in ["fcnn-nngp", "cnn-nngp", "fcnn-map", "cnn-map", "fcnn-map-learned", "cnn-map-learned"] {
        for key in ["explained", "worst", "correlation", "pixels_explained"] {
            assert!((0.0..=1.0 + 1e-9).contains(&number(method, key)), "{method}: {key}");
        }
        // What greedy choice lowers is lower than by chance.
        assert!(number(method, "worst") < number(method, "worst_by_random"), "{method}");
        assert!(number(method, "points") <= 4.0);
    }
    // Chance chooses what chance chooses.
    assert_eq!((number("random", "shared_with_random"), number("random", "pixels_over_random")), (4.0, 1.0));
    for method in ["fcnn-map-learned", "cnn-map-learned"] {
        assert_eq!(number(method, "steps"), 60.0);
        // Whoever knows nothing of three classes is surprised by ln 3.
        assert!(number(method, "risk") < 3f64.ln() && number(method, "kept") <= 4.0);
    }
    let html = outcome.report().to_html();
    assert_eq!(html.matches("class=\"pixels\"").count(), 8);
    assert!(html.contains("What was chosen, under the kernel that chose") && html.contains("Learning"));
    let rows = outcome.by_seed[0].series["cnn-nngp"].as_array().unwrap();
    assert!(rows.iter().all(|own| own.as_array().unwrap().iter().all(|row| row.as_u64().unwrap() < 40)));
}

#[test]
fn finished_choices_are_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("finished.jsonl");
    let experiment = Experiment::read(&path()).unwrap();
    let options = RunOptions { quick: true, journal: Some(journal.clone()), ..RunOptions::default() };
    // Six methods of three classes, and the first that learns: it is told to stop on its way.
    let stopped = run(&experiment, &options, &mut |event| {
        if event.stage == "fcnn-map-learned" && event.done >= 5 { Signal::Stop } else { Signal::Continue }
    });
    assert!(matches!(stopped, Err(ExperimentError::Interrupted)), "{stopped:?}");
    assert_eq!(std::fs::read_to_string(&journal).unwrap().lines().count(), 18);
    let outcome = quick(&experiment, Some(journal.clone())).unwrap();
    let whole = quick(&experiment, None).unwrap();
    assert_eq!((outcome.reused, &outcome.mean), (18, &whole.mean));
    assert_eq!(quick(&experiment, Some(journal.clone())).unwrap().reused, 20);
    // Steps of learning are nothing to those that do not learn.
    let longer = changed(&[("epochs = 30", "epochs = 31")]).unwrap();
    assert_eq!(quick(&longer, Some(journal)).unwrap().reused, 18);
}

#[test]
fn what_is_explained_is_the_trace_that_greedy_choice_does_not_leave() {
    let x = made_up().inputs(1);
    let names: Vec<String> = (0..x.ncols()).map(|j| format!("x{j}")).collect();
    for text in ["nngp(depth=1, relu, readout=false)", "se(lengthscale=3)", "linear + constant"] {
        let kernel = text.parse::<KernelExpression>().unwrap().build::<f64>(&names).unwrap();
        let greedy = greedy_variance(&KernelMatrix::new(&*kernel, x.as_ref()), 6, 0.0);
        let k = gram(&*kernel, x.as_ref());
        let trace: f64 = (0..x.nrows()).map(|i| k[(i, i)]).sum();
        let expected = 1.0 - greedy.residuals[5] / trace;
        let found = Under::of(&*kernel, x.as_ref(), &greedy.rows).unwrap().explained;
        assert!((found - expected).abs() < 1e-8, "{text}: {found} {expected}");
        // Of any rows: one alone explains its squared correlations.
        let alone = (0..x.nrows()).map(|i| k[(i, 3)] * k[(i, 3)] / k[(3, 3)]).sum::<f64>() / trace;
        let found = Under::of(&*kernel, x.as_ref(), &[3]).unwrap();
        assert!((found.explained - alone).abs() < 1e-12 && found.correlation == 0.0);
        let largest = |of: &dyn Fn(usize) -> f64| (0..x.nrows()).map(of).fold(0.0, f64::max);
        let worst = largest(&|i| k[(i, i)] - k[(i, 3)] * k[(i, 3)] / k[(3, 3)]) / largest(&|i| k[(i, i)]);
        assert!((found.worst - worst).abs() < 1e-10, "{text}: {} {worst}", found.worst);
        let two = Under::of(&*kernel, x.as_ref(), &[3, 8]).unwrap().correlation;
        assert!((two - (k[(3, 8)] / (k[(3, 3)] * k[(8, 8)]).sqrt()).abs()).abs() < 1e-12);
    }
}

#[test]
fn all_images_of_a_class_are_the_class() {
    let images = made_up();
    let reference = Reference::of(&images, 2);
    let all = reference.judge(&(0..40).collect::<Vec<_>>()).unwrap();
    assert!((all.explained - 1.0).abs() < 1e-6 && (all.ink - 1.0).abs() < 1e-12, "{}", all.explained);
    assert!((all.spread - 1.0).abs() < 1e-12);
    // Of two images: the mean of their means, and a quarter of their squared distance.
    let two = reference.judge(&[5, 8]).unwrap();
    let x = images.inputs(2);
    let mean_of = |i: usize| x.row(i).iter().sum::<f64>();
    let all_of: f64 = (0..40).map(mean_of).sum::<f64>() / 40.0;
    assert!((two.ink - 0.5 * (mean_of(5) + mean_of(8)) / all_of).abs() < 1e-12);
    let squares = |i: usize, j: usize| (x.row(i) - x.row(j)).squared_norm_l2();
    let mut between = 0.0;
    (0..40).for_each(|i| (0..40).for_each(|j| between += squares(i, j) / 3200.0));
    assert!((two.spread - 0.25 * squares(5, 8) / between).abs() < 1e-10);
}

#[test]
fn behind_a_network_is_the_kernel_of_what_it_makes_of_images() {
    let images = made_up();
    let settings: Settings =
        crate::kinds::settings(&changed(&[]).unwrap().settings(true).unwrap().0).unwrap();
    let method: &MethodSettings = settings.methods.iter().find(|m| m.name == "cnn-map").unwrap();
    let prior = |class: usize| -> Prior {
        method.prior(&settings.networks, &images, (class, Streams::new(1))).unwrap().unwrap()
    };
    let x = images.inputs(0);
    let x = x.subrows(0, 9);
    let own = prior(0);
    let (base, features) = own.at(x).unwrap();
    let found = gram(base, features.as_ref());
    let whole = gram(&*prior(0).whole(), x);
    assert_eq!((features.ncols(), (&found - &whole).norm_max()), (16, 0.0));
    let expected = &features * features.transpose();
    let off = Mat::from_fn(9, 9, |i, j| found[(i, j)] - expected[(i, j)] - 1.0).norm_max();
    assert!(off < 1e-12, "{off}");
    // Each class has weights of its own, and takes those of another that it is given.
    let other = prior(1);
    assert_ne!(gram(&*prior(1).whole(), x), whole);
    let values = prior(0).whole().values();
    let given = other.with_values(&values);
    let (base, features) = given.at(x).unwrap();
    assert_eq!((gram(base, features.as_ref()) - whole).norm_max(), 0.0);
}

#[test]
fn images_stand_beside_each_other_in_their_order() {
    let images = made_up();
    let chosen = |rows: Vec<usize>| Chosen { rows, judged: None };
    let item = mosaic("t", &images, &[chosen(vec![3, 1]), chosen(vec![]), chosen(vec![7, 0])], 2);
    let Item::Picture(picture) = item else { panic!("no picture") };
    assert_eq!((picture.image.height, picture.image.width), (3 * 13 + 1, 2 * 13 + 1));
    let pixel = |y: usize, x: usize| picture.image.pixels[y * 27 + x];
    for (class, row, top, left) in [(0, 3, 1, 1), (0, 1, 1, 14), (2, 7, 27, 1), (2, 0, 27, 14)] {
        for i in 0..144 {
            assert_eq!(pixel(top + i / 12, left + i % 12), images.image(class, row)[i]);
        }
    }
    // Between images, and where there is none.
    assert!([pixel(0, 5), pixel(5, 13), pixel(20, 5)].iter().all(|grey| *grey == pixel(0, 0)));
    let many = mosaic("t", &images, &[chosen((0..40).collect())], 40);
    let Item::Picture(picture) = many else { panic!("no picture") };
    assert!(picture.image.width <= 512 && picture.caption.contains("the first 39 of 40 images"));
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_do() {
    let refused = |changes: &[(&str, &str)], words: &[&str]| {
        let error = changed(changes).and_then(|e| quick(&e, None).map(|_| ())).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{changes:?}: {error}");
    };
    let keys = [
        ("points = 10", "pionts = 10"),
        ("images = 5000", "image = 5000"),
        ("rate = 1e-2", "step = 1e-2"),
        ("epochs = 300", "epoch = 300"),
    ];
    refused(&keys, &["`pionts`", "`data.image`", "`learning.step`", "`method.epoch`"]);
    refused(&[("points = 10", "points = 5001")], &["`points` is 5001", "5000"]);
    refused(&[("points = 4", "points = 0")], &["`points` is 0"]);
    refused(&[("shape=12x12", "shape=10x10")], &["`cnn-nngp`, images of 12 x 12"]);
    refused(&[("se(ard, lengthscale=1)", "see(ard)")], &["`ard`", "see"]);
    refused(&[("networks.fcnn.input = [1, 12, 12]", "networks.fcnn.input = [1, 9, 16]")], &["[1, 9, 16]"]);
    refused(&[("network = \"cnn\"", "network = \"rnn\"")], &["no [networks.rnn]", "cnn, fcnn"]);
    refused(&[("name = \"ard\"", "name = \"random\"")], &["no `name` twice"]);
    refused(&[("name = \"random\"", "name = \"random\"\nepochs = 3")], &["`epochs` belong to a `kernel`"]);
    refused(&[("epochs = 20", "epochs = 0")], &["`epochs` are at least 1"]);
    refused(&[("error_rate = 0.01", "error_rate = 1.0")], &["`error_rate`"]);
    refused(&[("images = 40", "images = 40, scale = 0.0")], &["`scale`"]);
    refused(&[("folder = \"\"", "folder = \"nowhere\"")], &["are not there", "nowhere"]);
}

#[test]
fn a_class_of_too_few_images_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let header = |kind: u8, sizes: &[u32]| -> Vec<u8> {
        let start = [0, 0, 8, kind];
        start.into_iter().chain(sizes.iter().flat_map(|size| size.to_be_bytes())).collect()
    };
    let labels = [0u8, 1, 0, 2, 1, 0];
    let pixels: Vec<u8> = (0..6 * 6).collect();
    let write = |name: &str, header: Vec<u8>, body: &[u8]| {
        std::fs::write(folder.path().join(name), [&header[..], body].concat()).unwrap();
    };
    write("train-images-idx3-ubyte", header(3, &[6, 2, 3]), &pixels);
    write("train-labels-idx1-ubyte", header(1, &[6]), &labels);
    let data = |classes: usize, images: usize| {
        let settings = DataSettings { folder: PathBuf::new(), classes, images, scale: 1.0 };
        DataSettings { folder: folder.path().into(), ..settings }.read(Path::new("."))
    };
    let found = data(2, 2).unwrap();
    assert_eq!((found.sides, found.classes()), ([2, 3], 2));
    // The first two of each class, as they stand in the file.
    assert_eq!(found.image(0, 1), &pixels[12..18]);
    assert_eq!(found.image(1, 1), &pixels[24..30]);
    assert_eq!(found.inputs(1)[(0, 5)], 11.0);
    let error = data(3, 2).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("there are 1 images of class 2, `images` asks for 2"), "{error}");
}
