use super::*;
use crate::image_prior::{DeepImagePriorOptions, PretrainOptions};
use crate::running::{Checkpointer, Stage};
use crate::total_variation::PrimalDualOptions;
use crate::{Filter, ParallelBeam, Projector, TomographyError, phantom, psnr, simulate};
use posterior_linalg::random::Streams;
use posterior_networks::architecture::Unet;
use posterior_optim::{Reason, Signal};
use posterior_store::Identity;
use serde_json::json;

const SIDE: usize = 24;

fn scan() -> (Projector, Vec<f64>, Vec<f64>) {
    let projector = Projector::new(ParallelBeam::usual(SIDE, SIDE, 16).unwrap()).unwrap();
    // Brightness far from 1: nobody measures in units of the picture.
    let truth: Vec<f64> = phantom::disk(SIDE, SIDE, 8.0).into_iter().map(|v| 40.0 * v).collect();
    let scan = simulate(&projector, &truth, 0.05, Streams::new(3)).unwrap();
    (projector, scan.sinogram, truth)
}

fn go_on(_: Stage, _: usize, _: usize, _: Option<f64>) -> Signal {
    Signal::Continue
}

fn smooth(weight: Option<f64>) -> Method {
    let options = PrimalDualOptions { tolerance: 1e-3, steps: 4000, ..PrimalDualOptions::default() };
    Method::TotalVariation(TotalVariationRequest {
        weight,
        solver: TotalVariationSolver::PrimalDual(options),
        seed: 0,
    })
}

#[test]
fn total_variation_with_a_weight_that_held_back_measurements_chose_beats_filtering() {
    let (projector, sinogram, truth) = scan();
    let of = |method: &Method| {
        reconstruct(&projector, &sinogram, method, None, Some(&truth), &mut Checkpointer::none(), &mut go_on)
            .unwrap()
    };
    let (filtered, smooth) = (of(&Method::Filtered(Filter::Hann)), of(&smooth(None)));
    let quality = |r: &Reconstruction| psnr(&r.picture, &truth);
    assert!(quality(&smooth) > quality(&filtered) + 3.0, "{} {}", quality(&smooth), quality(&filtered));
    let report = &smooth.report;
    assert_eq!(report.reason, Some(Reason::Tolerance), "{report:?}");
    assert!(report.gap.unwrap() <= 1e-3);
    let held_back = report.held_back.as_ref().unwrap();
    assert!(!held_back.at_edge && held_back.trials.len() == Trials::ALL);
    assert!(held_back.trials.iter().all(|t| t.error >= held_back.trials.iter().find(|t| t.weight == held_back.weight).unwrap().error));
    // Units: the picture's brightness is about 1 within.
    assert!((report.unit / 40.0 - 1.0).abs() < 0.3, "{}", report.unit);
    // The same scan in other units is the same picture.
    let dim: Vec<f64> = sinogram.iter().map(|y| y / 1000.0).collect();
    let method = super::tests::smooth(Some(1e-3));
    let (a, b) = (of(&method), {
        let truth: Option<&[f64]> = None;
        reconstruct(&projector, &dim, &method, None, truth, &mut Checkpointer::none(), &mut go_on).unwrap()
    });
    let worst = a.picture.iter().zip(&b.picture).map(|(a, b)| (a - 1000.0 * b).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-6, "{worst}");
}

fn small() -> Method {
    Method::DeepImagePrior(Box::new(DeepImagePriorRequest {
        network: Unet { channels: vec![8, 8], skips: vec![2], sigmoid: false, ..Unet::small(true) },
        weight: Some(1e-4),
        training: DeepImagePriorOptions {
            learning_rate: 5e-3,
            iterations: 120,
            ..DeepImagePriorOptions::default()
        },
        pretraining: None,
        seed: 1,
    }))
}

/// Stops a stage in the middle, as Ctrl-C or a crash does, and goes on from the file.
fn interrupted(method: &Method, (stage, stop): (Stage, usize)) -> Reconstruction {
    let (projector, sinogram, truth) = scan();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let identity = Identity { settings: json!(method), data: "scan".into() };
    let checkpointer = || Checkpointer::in_file(&path, identity.clone());
    let mut stopping = |at: Stage, done: usize, _: usize, _: Option<f64>| {
        if at == stage && done == stop { Signal::Stop } else { Signal::Continue }
    };
    let error =
        reconstruct(&projector, &sinogram, method, None, Some(&truth), &mut checkpointer(), &mut stopping)
            .unwrap_err();
    assert!(matches!(error, TomographyError::Interrupted), "{error}");
    assert!(path.exists());
    // Another request does not go on from it.
    let other = Identity { settings: json!("another"), data: "scan".into() };
    let mut foreign = Checkpointer::in_file(&path, other);
    assert!(
        reconstruct(&projector, &sinogram, method, None, Some(&truth), &mut foreign, &mut go_on).is_err()
    );
    let mut steps = Vec::new();
    let found = reconstruct(
        &projector,
        &sinogram,
        method,
        None,
        Some(&truth),
        &mut checkpointer(),
        &mut |at, done, _, _| {
            steps.push((at, done));
            Signal::Continue
        },
    )
    .unwrap();
    // Nothing that was done is done again.
    assert_eq!(steps[0], (stage, stop + 1));
    found
}

#[test]
fn what_was_stopped_goes_on_to_the_same_picture() {
    let (projector, sinogram, truth) = scan();
    let Method::DeepImagePrior(mut whole) = small() else { unreachable!() };
    whole.weight = None;
    whole.training.iterations = 30;
    whole.pretraining = Some(PretrainOptions {
        pictures: 24,
        validation: 4,
        epochs: 2,
        batch: 4,
        ..PretrainOptions::default()
    });
    let whole = Method::DeepImagePrior(whole);
    for (method, stops) in [
        (small(), vec![(Stage::Training, 50)]),
        (smooth(Some(1e-3)), vec![(Stage::Reconstruction, 30)]),
        (smooth(None), vec![(Stage::Weight, 3), (Stage::Reconstruction, 30)]),
        (
            whole,
            vec![(Stage::Weight, 5), (Stage::Pretraining, 4), (Stage::Pretraining, 8), (Stage::Training, 20)],
        ),
    ] {
        let all = reconstruct(
            &projector,
            &sinogram,
            &method,
            None,
            Some(&truth),
            &mut Checkpointer::none(),
            &mut go_on,
        )
        .unwrap();
        for stop in stops {
            let resumed = interrupted(&method, stop);
            assert_eq!(all.picture, resumed.picture, "{stop:?}");
            assert_eq!(all.report.loss, resumed.report.loss);
            assert_eq!(all.report.weight, resumed.report.weight);
            assert_eq!(all.report.held_back, resumed.report.held_back);
            assert_eq!(all.report.pretrained_epoch, resumed.report.pretrained_epoch);
        }
    }
}

#[test]
fn a_network_makes_its_picture_again_from_the_sinogram() {
    let (projector, sinogram, truth) = scan();
    let found = reconstruct(
        &projector,
        &sinogram,
        &small(),
        None,
        Some(&truth),
        &mut Checkpointer::none(),
        &mut go_on,
    )
    .unwrap();
    let network = found.network.unwrap();
    let (scaled, input) = network_view(&projector, &sinogram).unwrap();
    let again = network.network.forward(&input).unwrap();
    for (a, b) in found.picture.iter().zip(again.values()) {
        assert!((a - f64::from(*b) * scaled.unit).abs() < 1e-6 * scaled.unit);
    }
    assert!(psnr(&found.picture, &truth) > 15.0);
    let planned = plan(&projector, &small()).unwrap();
    assert!(planned.flops > 0 && planned.within(1000, "use less").is_err());
}

#[test]
fn sinograms_of_other_scans_are_refused() {
    let (projector, sinogram, truth) = scan();
    let of = |sinogram: &[f64], truth: Option<&[f64]>| {
        reconstruct(&projector, sinogram, &smooth(None), None, truth, &mut Checkpointer::none(), &mut go_on)
            .is_err()
    };
    assert!(of(&sinogram[1..], None) && of(&sinogram, Some(&truth[1..])));
    let mut broken = sinogram.clone();
    broken[7] = f64::NAN;
    assert!(of(&broken, None));
}
