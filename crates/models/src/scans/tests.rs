//! From files to files, where the parts alone cannot go wrong.

use super::*;
use posterior_data::{ArrayValues, NumericArray, ReadOptions, read_array, write_npy};
use posterior_linear::sampled::ConjugateOptions;
use posterior_optim::Signal;
use posterior_tomography::Filter;
use posterior_tomography::design::Acquisition;
use posterior_tomography::image_prior::DeepImagePriorOptions;
use posterior_tomography::linearised::{GPriorOptions, GPriorSolver};
use posterior_tomography::reconstruction::{DeepImagePriorRequest, Method};
use posterior_tomography::running::{Stage, Watch};
use posterior_tomography::uncertainty::{ImagePriorChoice, UncertaintyOptions};
use std::path::{Path, PathBuf};

const MEMORY: u64 = 4_000_000_000;

fn values(path: &Path) -> Vec<f64> {
    read_array(path, &ReadOptions::limited(MEMORY)).unwrap().to_f64()
}

fn go_on(_: Stage, _: usize, _: usize, _: Option<f64>) -> Signal {
    Signal::Continue
}

/// A phantom of 16 x 16 behind 8 angles.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text = "kind = \"parallel\"\nheight = 16\nwidth = 16\nangles = { count = 8 }\n";
    std::fs::write(at.join("scan.toml"), text).unwrap();
    project(&ProjectRequest {
        geometry: at.join("scan.toml"),
        image: None,
        phantom: Some(PhantomName::Digit),
        noise: 0.05,
        seed: 3,
        out: at.join("sinogram.npy"),
        image_out: None,
        memory: MEMORY,
    })
    .unwrap();
    folder
}

/// Line integrals of the scan.
fn scanned(at: &Path, sinogram: &str) -> ScanFiles {
    ScanFiles { geometry: at.join("scan.toml"), sinogram: at.join(sinogram), counts: false }
}

fn network() -> Method {
    let mut own = DeepImagePriorRequest { weight: Some(1e-4), ..DeepImagePriorRequest::default() };
    own.network.channels = vec![8, 8];
    own.network.skips = vec![2];
    own.training = DeepImagePriorOptions { iterations: 60, learning_rate: 5e-3, ..own.training };
    Method::DeepImagePrior(Box::new(own))
}

fn picture(
    at: &Path,
    method: Method,
    start: Option<PathBuf>,
    watch: &mut Watch<'_>,
) -> Result<(), ScanError> {
    let network_out = matches!(method, Method::DeepImagePrior(_)).then(|| at.join("net.safetensors"));
    let request = ReconstructRequest {
        scan: scanned(at, "sinogram.npy"),
        method,
        start,
        truth: None,
        out: at.join("picture.npy"),
        network_out,
        report: None,
        checkpoint: at.join("picture.npy.checkpoint"),
        memory: MEMORY,
    };
    reconstruct(&request, &mut |_, _| {}, watch).map(drop)
}

#[test]
fn what_is_made_at_once_leaves_the_state_of_a_longer_run_alone() {
    let folder = folder();
    let at = folder.path();
    let mut stopping = |stage: Stage, done: usize, _: usize, _: Option<f64>| {
        if stage == Stage::Training && done == 30 { Signal::Stop } else { Signal::Continue }
    };
    assert!(picture(at, network(), None, &mut stopping).unwrap_err().interrupted());
    picture(at, Method::Filtered(Filter::RamLak), None, &mut go_on).unwrap();
    let mut first = None;
    picture(at, network(), None, &mut |_, done, _, _| {
        first.get_or_insert(done);
        Signal::Continue
    })
    .unwrap();
    assert_eq!(first, Some(31));
    assert!(!at.join("picture.npy.checkpoint").exists());
    // A network to begin with is the one that is asked for.
    let Method::DeepImagePrior(mut other) = network() else { unreachable!() };
    other.network.norm = false;
    let start = Some(at.join("net.safetensors"));
    let error = picture(at, Method::DeepImagePrior(other), start.clone(), &mut go_on).unwrap_err();
    assert!(error.to_string().contains("another network"), "{error}");
    picture(at, network(), start, &mut go_on).unwrap();
}

#[test]
fn a_given_noise_is_one_of_the_measurements_whatever_their_unit() {
    let folder = folder();
    let at = folder.path();
    picture(at, network(), None, &mut go_on).unwrap();
    let deviations = |times: f64| {
        let own = values(&at.join("sinogram.npy")).iter().map(|v| times * v).collect();
        write_npy(&at.join("own.npy"), &NumericArray::new(vec![8, 25], ArrayValues::F64(own)).unwrap())
            .unwrap();
        let noise_variance = Some(0.01 * times * times);
        // Solved so far that rounding of another unit is all that differs.
        let conjugate = ConjugateOptions { tolerance: 1e-5, steps: 400 };
        let solver = GPriorSolver::Measurements(conjugate.clone());
        let own = GPriorOptions { samples: 4, turns: 3, noise_variance, solver, ..GPriorOptions::default() };
        let prior = ImagePriorChoice::GPrior(own);
        let request = UncertainRequest {
            scan: scanned(at, "own.npy"),
            network: at.join("net.safetensors"),
            options: UncertaintyOptions {
                prior,
                conjugate,
                samples: 8,
                rank: Some(20),
                ..UncertaintyOptions::default()
            },
            truth: None,
            out: at.join("deviations.npy"),
            picture_out: None,
            samples_out: None,
            report: None,
            checkpoint: at.join("deviations.npy.checkpoint"),
            memory: MEMORY,
        };
        uncertainty(&request, &mut |_, _| {}, &mut go_on).unwrap();
        values(&at.join("deviations.npy"))
    };
    for (one, fifty) in deviations(1.0).iter().zip(deviations(50.0)) {
        assert!((fifty / (50.0 * one) - 1.0).abs() < 1e-3, "{one} {fifty}");
    }
}

#[test]
fn a_design_goes_on_to_the_same_angles_and_takes_counts() {
    let folder = folder();
    let at = folder.path();
    let measured = vec![0, 4];
    let all = values(&at.join("sinogram.npy"));
    let some: Vec<f64> = measured.iter().flat_map(|a| all[25 * a..25 * (a + 1)].to_vec()).collect();
    let write = |name: &str, values: Vec<f64>| {
        write_npy(&at.join(name), &NumericArray::new(vec![2, 25], ArrayValues::F64(values)).unwrap())
            .unwrap();
    };
    // So many photons that their logarithms are the line integrals, the emptiest ray among them.
    let least = some.iter().copied().fold(f64::INFINITY, f64::min);
    write("counts.npy", some.iter().map(|v| 1e9 * (least - v).exp()).collect());
    write("pilot.npy", some.iter().map(|v| v - least).collect());
    let request = |name: &str, counts, prior| DesignRequest {
        geometry: at.join("scan.toml"),
        measured: measured.clone(),
        sinogram: at.join(name),
        counts,
        prior,
        network: (prior == DesignPrior::GPrior).then(|| at.join("net.safetensors")),
        criterion: Acquisition::Variance,
        count: 4,
        samples: 64,
        seed: 2,
        checkpoint: at.join("design.checkpoint"),
        memory: MEMORY,
    };
    let run = |request: &DesignRequest, watch: &mut Watch<'_>| design(request, &mut |_, _| {}, watch);
    let angles = |found: &DesignOutcome| found.angles.iter().map(|a| a.angle).collect::<Vec<_>>();
    picture(at, network(), None, &mut go_on).unwrap();
    for prior in [DesignPrior::GPrior, DesignPrior::Matern, DesignPrior::Isotropic] {
        let whole = run(&request("pilot.npy", false, prior), &mut go_on).unwrap();
        for (stage, stop) in [(Stage::Angles, 2), (Stage::Hyperparameters, 1)] {
            let mut told = Vec::new();
            let stopped = run(&request("pilot.npy", false, prior), &mut |at, done, _, _| {
                if at == stage && done == stop { Signal::Stop } else { Signal::Continue }
            });
            match stopped {
                Err(error) => assert!(error.interrupted(), "{error}"),
                // Independent pixels have nothing to learn.
                Ok(_) => {
                    assert_eq!((prior, stage), (DesignPrior::Isotropic, Stage::Hyperparameters));
                    continue;
                }
            }
            let resumed = run(&request("pilot.npy", false, prior), &mut |at, done, _, _| {
                told.push((at, done));
                Signal::Continue
            })
            .unwrap();
            assert_eq!(whole.angles, resumed.angles, "{prior:?} {stage}");
            if stage == Stage::Angles {
                let first = told.iter().find(|(at, _)| *at == Stage::Angles);
                assert_eq!(first, Some(&(Stage::Angles, 3)), "{prior:?}");
            }
        }
        assert!(!at.join("design.checkpoint").exists());
    }
    let by_lines = run(&request("pilot.npy", false, DesignPrior::Matern), &mut go_on).unwrap();
    let by_counts = run(&request("counts.npy", true, DesignPrior::Matern), &mut go_on).unwrap();
    assert_eq!(angles(&by_lines), angles(&by_counts));
    let twice = DesignRequest { measured: vec![0, 0], ..request("pilot.npy", false, DesignPrior::Matern) };
    assert!(run(&twice, &mut go_on).unwrap_err().to_string().contains("twice"));
}
