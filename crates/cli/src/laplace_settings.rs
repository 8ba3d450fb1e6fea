//! From the flags of `fit --network` to a request; a flag that would have no effect is wrong usage.

use crate::args::{
    Cli, ContinueArgs, CurvatureArg, FisherArg, LaplaceArgs, PredictiveArg, TuneArg, chosen_integration, only,
};
use crate::output::Failure;
use crate::settings::checkpoint_place;
use crate::{laplace_effects, laplace_searches};
use posterior::data::Selection;
use posterior::laplace::{
    CurvatureChoice, DataSource, LaplaceRequest, LikelihoodKind, NetworkSource, NumberFormat,
    ValidationSource,
};
use posterior::likelihoods::Link;
use posterior::linearised::{Approximation, FitOptions, Mode, NoiseModel, PriorKind, Tune, Weights};
use posterior::options::Limits;
use std::path::PathBuf;

/// Bytes of a fit where no limit is given.
const MEMORY: u64 = 8_000_000_000;

/// The data of a fit.
fn data(a: &LaplaceArgs) -> DataSource {
    let (inputs, data) = a.inputs.files(&a.data);
    DataSource {
        data,
        inputs,
        labels: a.labels.clone(),
        text: a.text,
        columns: Selection {
            target: a.target.clone().unwrap_or_default(),
            features: a.features.clone(),
            ..Selection::default()
        },
        preprocess: a.preprocess,
        mean: a.mean.clone(),
        deviation: a.std.clone(),
        class_names: a.class_names.clone(),
    }
}

/// The options of a continued fit: those of before, but for what can be chosen anew.
pub(crate) fn continued(a: &ContinueArgs, before: &FitOptions) -> Result<FitOptions, Failure> {
    if a.seed != 0 && a.predictive != Some(PredictiveArg::MonteCarlo) {
        return Err(Failure::usage(
            "--seed cannot be changed by --continue, but for --predictive monte-carlo".into(),
        ));
    }
    let mut options = before.clone();
    if let Some(tune) = a.tune {
        if options.approximation.is_learned() {
            return Err(Failure::usage(format!(
                "--tune has no effect on a model by --method {}, which keeps what its search has chosen",
                options.approximation.name()
            )));
        }
        options.tune = tune_of(tune, None);
    }
    if let Some(chosen) = chosen_integration(a.predictive, a.predictive_samples, a.seed)? {
        options.integration = chosen;
    }
    if let Some(samples) = a.samples {
        let Approximation::Sampled(own) = &mut options.approximation else {
            let problem =
                "--set samples belongs to models by --method sampled, which then get as many in all";
            return Err(Failure::usage(problem.into()));
        };
        own.samples = samples;
    }
    options.memory = a.memory.unwrap_or(MEMORY);
    Ok(options)
}

fn tune_of(tune: TuneArg, folds: Option<usize>) -> Tune {
    match tune {
        TuneArg::Evidence => Tune::Evidence,
        TuneArg::Mackay => Tune::Mackay,
        TuneArg::Validation => Tune::Validation,
        TuneArg::CrossValidation => Tune::CrossValidation { folds: folds.unwrap_or(5) },
        TuneArg::None => Tune::None,
    }
}

/// Refuses pairs of choices that have no meaning together.
fn check_pairs(cli: &Cli, a: &LaplaceArgs, likelihood: LikelihoodKind) -> Result<(), Failure> {
    let curvature = a.curvature.unwrap_or(CurvatureArg::Auto);
    laplace_searches::check(cli, a, curvature)?;
    let gaussian = likelihood == LikelihoodKind::Gaussian;
    let bridge = a.predictive == Some(PredictiveArg::Bridge);
    only(bridge, "predictive bridge", likelihood == LikelihoodKind::Categorical, "--likelihood categorical")?;
    let sampled = a.predictive == Some(PredictiveArg::MonteCarlo);
    let inexact = "likelihoods without Gaussian noise, under which probit is exact";
    only(sampled, "predictive monte-carlo", !gaussian, inexact)?;
    let dual = curvature == CurvatureArg::FunctionSpace;
    let closed =
        "curvatures of weights; in function space it is known under Gaussian noise and from all points";
    let known = !dual || (gaussian && a.points.is_none());
    only(a.mode == Mode::Linearised, "set mode=linearised", known, closed)?;
    let others = "curvatures of weights, not to --method function-space";
    only(a.mode == Mode::LinearisedSimple, "set mode=linearised-simple", !dual, others)?;
    let several = !matches!(a.prior, PriorKind::Auto | PriorKind::Scalar);
    let one = dual || curvature == CurvatureArg::Ella;
    let others = "curvatures of weights, not to function-space and ella";
    only(several, "set prior of several precisions", !one, others)?;
    let kronecker = matches!(curvature, CurvatureArg::Kronecker | CurvatureArg::LastLayerKronecker);
    let diagonal = a.prior == PriorKind::Diagonal;
    only(diagonal, "set prior=diagonal", !kronecker, "curvatures without Kronecker factors")?;
    let last = matches!(
        curvature,
        CurvatureArg::LastLayer | CurvatureArg::LastLayerKronecker | CurvatureArg::LastLayerDiagonal
    );
    only(a.without_affine, "set without-affine", !last && a.weights.is_empty(), "curvatures of all weights")?;
    use CurvatureArg::{Auto, LowRank, Temperature};
    // Of a folder of networks those are kept that are finished.
    let folder = a.network.as_ref().is_some_and(|path| path.is_dir());
    let kept = folder || !(dual || matches!(curvature, Auto | LowRank | Temperature));
    let saved = "a named curvature that keeps what it has on the way (all but auto, low-rank, function-space and temperature), or to a folder of networks";
    cli.only(&["resume", "checkpoint"], kept, saved)
}

/// The request of a new fit.
pub(crate) fn request(cli: &Cli, a: &LaplaceArgs) -> Result<LaplaceRequest, Failure> {
    let network = match (&a.network, &a.head) {
        (Some(path), _) => NetworkSource::File {
            path: path.clone(),
            architecture: a.architecture.clone(),
            output: a.onnx_output.clone(),
            strip_softmax: a.strip_softmax,
        },
        (None, Some(path)) => NetworkSource::Head { path: path.clone() },
        (None, None) => return Err(Failure::usage("--network or --head is needed".into())),
    };
    let likelihood = a.likelihood;
    let gaussian = likelihood == LikelihoodKind::Gaussian;
    cli.only(&["noise", "initial-noise"], gaussian, "--likelihood gaussian")?;
    let unknown = a.noise == Some(NoiseModel::Fixed) && a.initial_noise.is_none();
    only(unknown, "set noise=fixed", false, "--set initial-noise=X: say how much there is")?;
    only(a.link != Link::Logit, "link", likelihood == LikelihoodKind::Bernoulli, "--likelihood bernoulli")?;
    let automatic = a.curvature.unwrap_or(CurvatureArg::Auto) == CurvatureArg::Auto;
    let tune = a.tune.unwrap_or(TuneArg::Evidence);
    if automatic && tune == TuneArg::CrossValidation {
        let problem = "--tune cross-validation is for a named curvature: name one";
        return Err(Failure::usage(problem.into()));
    }
    only(a.folds.is_some(), "set folds", tune == TuneArg::CrossValidation, "--tune cross-validation")?;
    let held_out = matches!(tune, TuneArg::Validation | TuneArg::CrossValidation);
    only(a.allow_seen_rows, "allow-seen-rows", held_out, "--tune validation and cross-validation")?;
    let classes = matches!(likelihood, LikelihoodKind::Categorical | LikelihoodKind::Bernoulli);
    only(!a.class_names.is_empty(), "class-names", classes, "--likelihood categorical and bernoulli")?;
    let categorical = likelihood == LikelihoodKind::Categorical;
    cli.only(&["strip-softmax"], categorical, "--likelihood categorical")?;
    check_pairs(cli, a, likelihood)?;
    let method = a.curvature.unwrap_or(CurvatureArg::Auto);
    let (weights, approximation, curvature) = curvature(a)?;
    // A search has these among its own options.
    let search = approximation.is_learned();
    let options = FitOptions {
        weights,
        affine: !a.without_affine,
        approximation,
        prior: if search { PriorKind::Auto } else { a.prior.clone() },
        initial_precision: a.precision.filter(|_| !search).unwrap_or(1.0),
        tune: if search { Tune::Evidence } else { tune_of(tune, a.folds) },
        noise: a.noise.filter(|_| !search).unwrap_or_default(),
        mode: a.mode,
        ..FitOptions::default()
    };
    Ok(LaplaceRequest {
        network,
        numbers: match (a.float32, a.float64) {
            (true, _) => NumberFormat::Single,
            (_, true) => NumberFormat::Double,
            _ => NumberFormat::AsFile,
        },
        data: data(a),
        validation: ValidationSource {
            data: a.validation_data.clone(),
            labels: a.validation_labels.clone(),
            fraction: a.validation_fraction.unwrap_or(0.0),
            allow_seen: a.allow_seen_rows,
            calibrate: a.calibrate,
        },
        likelihood,
        link: a.link,
        initial_noise: a.initial_noise,
        weight_decay: a.weight_decay,
        curvature,
        limits: Limits { time: a.seconds, memory: a.memory },
        seed: a.seed,
        predictive: chosen_integration(a.predictive, a.predictive_samples, a.seed)?,
        options,
        conditions: laplace_effects::conditions(a, method),
        checkpoint: Some(checkpoint(a)),
        resume: a.resume,
    })
}

/// Where the sums of an interrupted fit go.
pub(crate) fn checkpoint(a: &LaplaceArgs) -> PathBuf {
    checkpoint_place(a.checkpoint.as_deref(), &a.run.out)
}

/// Weights and curvature.
fn curvature(a: &LaplaceArgs) -> Result<(Weights, Approximation, CurvatureChoice), Failure> {
    use CurvatureArg::{
        Auto, Block, Diagonal, Ella, FixedMean, Full, FunctionSpace, Gwi, Kronecker, LastLayer,
        LastLayerDiagonal, LastLayerKronecker, LowRank, MeanField, Sampled, Subnetwork, Temperature, Valla,
    };
    let method = a.curvature.unwrap_or(Auto);
    let last = matches!(method, LastLayer | LastLayerDiagonal | LastLayerKronecker);
    let free = !(last || matches!(method, Subnetwork | Auto | FixedMean | Gwi | Temperature));
    only(
        !a.weights.is_empty(),
        "set weights",
        free,
        "a curvature that does not choose weights itself: full, diagonal, kronecker, block, low-rank, function-space, valla, ella, sampled or mean-field",
    )?;
    let weights = match method {
        _ if last => Weights::LastLayer,
        Subnetwork => Weights::Subnetwork {
            size: a.subnetwork_size.unwrap_or(1000),
            choice: a.subnetwork_choice.unwrap_or_default(),
        },
        _ if a.weights.is_empty() => Weights::All,
        _ => Weights::Matching(a.weights.clone()),
    };
    let approximation = match method {
        Full | LastLayer | Subnetwork => Approximation::Full,
        Diagonal | LastLayerDiagonal => Approximation::Diagonal,
        Block => Approximation::Block,
        LowRank => Approximation::LowRank { rank: a.rank.unwrap_or(50), iterations: 2 },
        FunctionSpace => Approximation::FunctionSpace { points: a.points },
        FixedMean | Valla | Gwi | Ella | Sampled | MeanField | Temperature => {
            laplace_searches::approximation(a, method)?
        }
        Kronecker | LastLayerKronecker | Auto => {
            Approximation::Kronecker(a.fisher.unwrap_or(FisherArg::Exact).estimate(a.seed))
        }
    };
    Ok((
        weights,
        approximation,
        if method == Auto { CurvatureChoice::Auto } else { CurvatureChoice::Options },
    ))
}
