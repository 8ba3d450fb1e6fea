//! Flags of searches that would have no effect: refused where the command line shows it, and told to the fit where only network and data do.

use crate::args::CurvatureArg::{Ella, FixedMean, Gwi, Temperature, Valla};
use crate::args::{CurvatureArg, FreezeArg, LaplaceArgs, PredictiveArg};
use crate::laplace_searches::on_inputs;
use crate::output::Failure;
use posterior::laplace::{LikelihoodKind, Needs};
use posterior::linearised::{Mode, NoiseModel, PriorKind};

/// Refuses a flag for a reason, where it was given.
fn none(given: bool, flag: &str, why: &str) -> Result<(), Failure> {
    if given { Err(Failure::usage(format!("--{flag} has no effect {why}"))) } else { Ok(()) }
}

/// Refuses flags of a search that would have no effect.
pub(crate) fn check(a: &LaplaceArgs, method: CurvatureArg) -> Result<(), Failure> {
    let s = &a.searches;
    let frozen = |what| s.freeze.contains(&what);
    let features = method == FixedMean && !on_inputs(a);
    let gaussian = a.likelihood == LikelihoodKind::Gaussian;
    let tangent =
        "with --method valla, whose kernel is the network's tangent and has nothing of its own to learn";
    none(frozen(FreezeArg::Kernel) && method == Valla, "set freeze=kernel", tangent)?;
    none(frozen(FreezeArg::Outputs) && method == Valla, "set freeze=outputs", tangent)?;
    let apart = "with a kernel on features, under which outputs have no covariance of their own";
    none(frozen(FreezeArg::Outputs) && features, "set freeze=outputs", apart)?;
    let noiseless = "without --likelihood gaussian: no other likelihood here has noise that is learned";
    none(frozen(FreezeArg::Noise) && !gaussian, "set freeze=noise", noiseless)?;
    let scaled = a.noise == Some(NoiseModel::Scale);
    none(scaled && s.closed_form, "set noise=scale", "beside --set closed-form, which learns no noise")?;
    none(
        scaled && frozen(FreezeArg::Noise),
        "set noise=scale",
        "beside --set freeze=noise, which learns none",
    )?;
    let moves = !frozen(FreezeArg::InducingPoints) && !s.closed_form;
    let still = "where inducing points do not move (--set closed-form, --set freeze=inducing-points)";
    none(s.trajectory_every.is_some() && !moves, "set trajectory-every", still)?;
    let once = method == Ella && s.patience.is_some() && s.validate_every.is_none();
    none(once, "set patience", "without --set validate-every=N: ella then makes one whole pass")?;
    let certain = "with --method fixed-mean, gwi and temperature, which take all weights as certain";
    none(a.without_affine && matches!(method, Temperature | FixedMean | Gwi), "set without-affine", certain)
}

/// What was asked for by flags whose effect depends on network and data.
pub(crate) fn conditions(a: &LaplaceArgs, method: CurvatureArg) -> Vec<(String, Needs)> {
    let s = &a.searches;
    let inputs = method == FixedMean && on_inputs(a);
    let looks = matches!(method, FixedMean | Valla | Gwi | Ella);
    let frozen = |what| s.freeze.contains(&what);
    let held = frozen(FreezeArg::Outputs);
    let all = [
        (looks && s.validate_every.is_some(), "--set validate-every", Needs::UnseenRows),
        (looks && s.patience.is_some(), "--set patience", Needs::UnseenRows),
        (held, "--set freeze=outputs", Needs::SeveralOutputs),
        (inputs && !held && a.precision.is_some(), "--set precision", Needs::PriorVariance),
        (inputs && !held && frozen(FreezeArg::Prior), "--set freeze=prior", Needs::PriorVariance),
    ];
    all.into_iter().filter(|c| c.0).map(|(_, flag, needs)| (flag.to_string(), needs)).collect()
}

/// Refuses flags about error bars where none are made: a folder of networks without a curvature is an ensemble of them as they are.
pub(crate) fn check_plain_ensemble(a: &LaplaceArgs) -> Result<(), Failure> {
    let fixed = a.noise == Some(NoiseModel::Fixed);
    let given = [
        (a.seconds.is_some(), "set seconds"),
        (a.tune.is_some(), "tune"),
        (a.prior != PriorKind::Auto, "set prior"),
        (a.precision.is_some(), "set precision"),
        (a.mode != Mode::Auto, "set mode"),
        (a.without_affine, "set without-affine"),
        (a.predictive.is_some_and(|p| p != PredictiveArg::PlugIn), "predictive"),
        (a.noise.is_some() && !fixed, "set noise"),
        (a.initial_noise.is_some() && !fixed, "set initial-noise"),
    ];
    match given.iter().find(|g| g.0) {
        None => Ok(()),
        Some((_, flag)) => none(
            true,
            flag,
            "on a folder of networks without --method, which is an ensemble of them as they are, without error bars of their own: name a curvature, or leave it out",
        ),
    }
}
