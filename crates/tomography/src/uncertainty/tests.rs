use super::*;
use crate::linearised::{
    ConvolutionWeights, FilterPrior, GPriorOptions, GPriorSolver, ImageTangent, MeasuredTangent, PriorRoot,
    WeightPrior, scales, weight_descent,
};
use crate::measured::ObservedPrior;
use crate::reconstruction::network_view;
use crate::running::{Checkpointer, Stage};
use crate::{ParallelBeam, Projector, TomographyError, phantom, simulate};
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::random::Streams;
use posterior_linear::sampled::{ConjugateOptions, DescentOptions};
use posterior_networks::architecture::Unet;
use posterior_networks::{Architecture, Array, Network};
use posterior_optim::Signal;
use posterior_store::Identity;
use serde_json::json;

const SIDE: usize = 12;

struct Case {
    projector: Projector,
    sinogram: Vec<f64>,
    network: Network<f32>,
    input: Array<f32>,
}

fn case() -> Case {
    let projector = Projector::new(ParallelBeam::usual(SIDE, SIDE, 6).unwrap()).unwrap();
    let truth = phantom::disk(SIDE, SIDE, 4.0);
    let sinogram = simulate(&projector, &truth, 0.05, Streams::new(3)).unwrap().sinogram;
    let unet = Unet {
        input: vec![1, SIDE, SIDE],
        channels: vec![4, 4],
        skips: vec![2],
        sigmoid: false,
        ..Unet::small(true)
    };
    let network = Network::initialised(Architecture::Unet(unet).graph().unwrap(), Streams::new(1)).unwrap();
    let (scaled, input) = network_view(&projector, &sinogram).unwrap();
    Case { projector, sinogram: scaled.sinogram, network, input }
}

fn options(prior: ImagePriorChoice, samples: usize) -> UncertaintyOptions {
    UncertaintyOptions {
        prior,
        samples,
        conjugate: ConjugateOptions { tolerance: 1e-6, steps: 200 },
        rank: Some(20),
        seed: 5,
    }
}

fn g_prior() -> ImagePriorChoice {
    ImagePriorChoice::GPrior(GPriorOptions { samples: 8, turns: 4, ..GPriorOptions::default() })
}

fn filters() -> ImagePriorChoice {
    ImagePriorChoice::Filters(FilterOptions { steps: 15, ..FilterOptions::default() })
}

fn run(case: &Case, options: &UncertaintyOptions) -> Uncertainty {
    let mut watch = |_: Stage, _: usize, _: usize, _: Option<f64>| Signal::Continue;
    let network = (&case.network, case.input.clone());
    infer(&case.projector, &case.sinogram, network, options, &mut Checkpointer::none(), &mut watch).unwrap()
}

#[test]
fn deviations_are_those_of_the_exact_posterior() {
    let case = case();
    let weights = ConvolutionWeights::of(case.network.graph()).unwrap();
    let tangent = ImageTangent::new(&case.network, case.input.clone(), weights.selection()).unwrap();
    let measured = MeasuredTangent::new(&tangent, &case.projector).unwrap();
    let samples = 600;
    let patient = DescentOptions { epochs: 400, ..weight_descent() };
    let solver = GPriorSolver::Weights(patient);
    let descending = GPriorOptions { samples: 4, turns: 2, solver, ..GPriorOptions::default() };
    for (prior, samples) in
        [(g_prior(), samples), (filters(), samples), (ImagePriorChoice::GPrior(descending), 48)]
    {
        let descends =
            matches!(&prior, ImagePriorChoice::GPrior(own) if matches!(own.solver, GPriorSolver::Weights(_)));
        let found = run(&case, &options(prior.clone(), samples));
        let weight_prior = match &found.report.prior {
            PriorReport::GPrior { fit, .. } => {
                let estimate = super::options::scale_estimate(case.sinogram.len(), 5);
                let scales = scales(&measured, estimate, &mut |_, _| Signal::Continue).unwrap();
                WeightPrior::Independent(fit.deviations(&scales))
            }
            PriorReport::Filters(report) => {
                WeightPrior::Filters(FilterPrior::new(&weights, report.filters.clone()).unwrap())
            }
        };
        let root = PriorRoot::new(&tangent, weight_prior).unwrap();
        let observed = ObservedPrior::new(&root, &case.projector, found.report.noise_variance).unwrap();
        let factor = observed.factor(JitterPolicy::NONE).unwrap();
        let exact = observed.posterior_covariance(&factor);
        // The square of a root mean square of n normals is off by sqrt(2 / n), relatively: half of it for the root, five of these.
        let tolerance = 5.0 * 0.5 * (2.0 / samples as f64).sqrt();
        for (p, deviation) in found.deviations.iter().enumerate() {
            let expected = exact[(p, p)].max(0.0).sqrt();
            assert!((deviation / expected - 1.0).abs() < tolerance, "{p}: {deviation} {expected}");
        }
        assert!(
            found.report.largest_residual < if descends { 0.05 } else { 1e-5 },
            "{}",
            found.report.largest_residual
        );
        assert_eq!(found.report.weights, weights.len());
    }
}

/// The same by descent on the weights.
fn descending() -> ImagePriorChoice {
    let descent = DescentOptions { epochs: 60, ..DescentOptions::default() };
    let solver = GPriorSolver::Weights(descent);
    ImagePriorChoice::GPrior(GPriorOptions { samples: 4, turns: 3, solver, ..GPriorOptions::default() })
}

#[test]
fn every_stage_goes_on_where_it_was_stopped() {
    let case = case();
    for (prior, stages) in [
        (
            g_prior(),
            vec![
                (Stage::Scales, 8),
                (Stage::Directions, 0),
                (Stage::Directions, 64),
                (Stage::Directions, 80),
                (Stage::Hyperparameters, 1),
                (Stage::Pictures, 16),
            ],
        ),
        (descending(), vec![(Stage::Hyperparameters, 1), (Stage::Pictures, 0), (Stage::Pictures, 16)]),
        (filters(), vec![(Stage::Jacobian, 64), (Stage::Hyperparameters, 3), (Stage::Pictures, 32)]),
    ] {
        // Directions of two groups.
        let options = UncertaintyOptions { rank: Some(80), ..options(prior, 40) };
        let whole = run(&case, &options);
        for (stage, stop) in stages {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("checkpoint");
            let identity = Identity { settings: json!(options), data: "scan".into() };
            let mut stopping = |at: Stage, done: usize, _: usize, _: Option<f64>| {
                if at == stage && done >= stop { Signal::Stop } else { Signal::Continue }
            };
            let network = || (&case.network, case.input.clone());
            let mut checkpointer = Checkpointer::in_file(&path, identity.clone());
            let stopped =
                infer(&case.projector, &case.sinogram, network(), &options, &mut checkpointer, &mut stopping);
            assert!(matches!(stopped, Err(TomographyError::Interrupted)), "{stage}");
            let mut checkpointer = Checkpointer::in_file(&path, identity);
            let mut first = None;
            let mut watch = |at: Stage, done: usize, _: usize, _: Option<f64>| {
                if at == stage {
                    first.get_or_insert(done);
                }
                Signal::Continue
            };
            let resumed =
                infer(&case.projector, &case.sinogram, network(), &options, &mut checkpointer, &mut watch)
                    .unwrap();
            assert_eq!(whole.deviations, resumed.deviations, "{stage}");
            assert_eq!(whole.samples, resumed.samples, "{stage}");
            // Directions, turns, steps and draws are not made again; scales and Jacobian are, from their beginning.
            if matches!(stage, Stage::Directions | Stage::Hyperparameters | Stage::Pictures) {
                assert!(first >= Some(stop), "{stage}: {first:?}");
            }
        }
    }
}

#[test]
fn plans_grow_with_what_is_asked_and_nothing_is_asked_in_vain() {
    let case = case();
    let of = |prior, samples| plan(&case.projector, case.network.graph(), &options(prior, samples)).unwrap();
    assert!(of(g_prior(), 100).bytes() > of(g_prior(), 10).bytes());
    assert!(of(g_prior(), 100).flops > of(g_prior(), 10).flops);
    // A descent's work grows with its steps, and nothing of it with a preconditioner.
    let steps = |epochs| {
        let solver = GPriorSolver::Weights(DescentOptions { epochs, ..DescentOptions::default() });
        of(ImagePriorChoice::GPrior(GPriorOptions { solver, ..GPriorOptions::default() }), 10)
    };
    assert!(steps(2000).flops > 9 * steps(200).flops);
    assert!(steps(200).blocks.iter().all(|(name, _)| name != "directions of the preconditioner"));
    assert!(of(filters(), 10).blocks.iter().any(|(name, _)| name == "rows of the Jacobian"));
    let none = options(g_prior(), 0);
    let mut watch = |_: Stage, _: usize, _: usize, _: Option<f64>| Signal::Continue;
    let network = (&case.network, case.input.clone());
    assert!(
        infer(&case.projector, &case.sinogram, network, &none, &mut Checkpointer::none(), &mut watch)
            .is_err()
    );
}
