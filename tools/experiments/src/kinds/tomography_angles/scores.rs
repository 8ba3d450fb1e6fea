//! What three reconstructions make of a design.

use super::design::{Design, NetworkScore, follow};
use super::known::Known;
use super::problem::Scan;
use super::settings::{MethodSettings, SmoothnessSettings};
use crate::kinds::prelude::*;
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo, JitterPolicy};
use posterior_linalg::operator::LinearOperator;
use posterior_tomography::measured::ObservedPrior;
use posterior_tomography::reconstruction::{
    Method, TotalVariationRequest, TotalVariationSolver, reconstruct,
};
use posterior_tomography::running::Checkpointer;
use posterior_tomography::total_variation::PrimalDualOptions;
use posterior_tomography::{TomographyError, psnr};

/// A design with its scores: PSNR (dB) by number of angles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ScoredDesign {
    /// The design.
    pub(super) design: Design,
    /// Seconds that it took, with what it shares with others where it was the first to ask for it.
    pub(super) seconds: f64,
    /// Of total variation.
    pub(super) total_variation: Vec<(usize, f64)>,
    /// Of the linear model of the pilot's network, the same for all methods.
    pub(super) linearised: Vec<(usize, f64)>,
    /// Of the deep image prior.
    pub(super) networks: Vec<NetworkScore>,
}

/// Follows a method on an image and scores it.
///
/// # Errors
/// Those of the design and of reconstructions; interruption.
pub(super) fn run(
    known: &mut Known<'_>,
    method: &MethodSettings,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<ScoredDesign> {
    let clock = std::time::Instant::now();
    let design = follow(known, method, stage, context)?;
    let seconds = clock.elapsed().as_secs_f64();
    let settings = known.settings;
    let at = |count: usize| design.at(method, settings, count);
    let mut total_variation = Vec::new();
    for &count in &settings.scores.total_variation {
        let Some(angles) = at(count) else { continue };
        let own = &settings.total_variation;
        let weight = if count == settings.scan.pilot { own.pilot_weight } else { own.weight };
        let scan = known.problem.scan(&angles)?;
        total_variation.push((count, smoothest(&scan, &known.problem.truth, weight, own, stage, context)?));
    }
    let linearised = linearised(known, &design, method, stage, context)?;
    let mut networks = design.networks.clone();
    for &count in &settings.scores.network {
        let Some(angles) = at(count) else { continue };
        if networks.iter().any(|score| score.angles == count) {
            continue;
        }
        let scan = known.problem.scan(&angles)?;
        let pilot = known.trained(context)?;
        let trained = known.further(&pilot, &scan, &settings.scored_training, stage, context)?;
        networks.push(NetworkScore::of(count, &trained));
    }
    networks.sort_by_key(|score| score.angles);
    Ok(ScoredDesign { design, seconds, total_variation, linearised, networks })
}

/// PSNR of the picture by total variation.
fn smoothest(
    scan: &Scan,
    truth: &[f64],
    weight: f64,
    own: &SmoothnessSettings,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<f64> {
    let solver =
        PrimalDualOptions { steps: own.steps, tolerance: own.tolerance, ..PrimalDualOptions::default() };
    let method = Method::TotalVariation(TotalVariationRequest {
        weight: Some(weight),
        solver: TotalVariationSolver::PrimalDual(solver),
        seed: 0,
    });
    let Scan { projector, sinogram } = scan;
    let mut watch = |_, done, all, _| context.tell(stage, done, all);
    let found = reconstruct(projector, sinogram, &method, None, None, &mut Checkpointer::none(), &mut watch)?;
    Ok(psnr(&found.picture, truth))
}

/// PSNR of the linear model's mean at every count that the method has a scan of.
fn linearised(
    known: &mut Known<'_>,
    design: &Design,
    method: &MethodSettings,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<Vec<(usize, f64)>> {
    let settings = known.settings;
    let view = known.view(context)?;
    let tangent = view.tangent()?;
    let picture: Vec<f64> = tangent.picture().iter().map(|v| v * view.unit).collect();
    let root = known.g_prior(&tangent, &view, stage, context)?;
    let counts: Vec<usize> = (settings.scan.pilot..=settings.design.most).collect();
    let scans: Vec<(usize, Vec<usize>)> =
        counts.iter().filter_map(|&n| Some((n, design.at(method, settings, n)?))).collect();
    // Scans that continue one another share a factor.
    let nested = scans.windows(2).all(|w| w[1].1.starts_with(&w[0].1));
    let mut groups: Vec<(&[usize], Vec<usize>)> = Vec::new();
    match scans.last() {
        Some((_, longest)) if nested => groups.push((longest, scans.iter().map(|s| s.0).collect())),
        _ => groups.extend(scans.iter().map(|(n, angles)| (angles.as_slice(), vec![*n]))),
    }
    let mut out = Vec::new();
    for (angles, counts) in groups {
        let scan = known.problem.scan(angles)?;
        let noise = known.problem.noise_variance;
        let means = means(&*root, &scan, &picture, noise, angles.len(), &counts)?;
        for (count, mean) in counts.iter().zip(means) {
            out.push((*count, psnr(&mean, &known.problem.truth)));
        }
        context.step(stage, out.len(), scans.len())?;
    }
    Ok(out)
}

/// Means `g + K T' C^-1 (y - T g)` under the first so many angles of a scan of all `angles`, for each of some counts: the leading blocks of one factor are their factors.
///
/// Cost: a product with K for each measurement, `c³/3` flops.
///
/// # Errors
/// A covariance that is not finite.
pub(super) fn means(
    root: &dyn LinearOperator<f64>,
    scan: &Scan,
    picture: &[f64],
    noise_variance: f64,
    angles: usize,
    counts: &[usize],
) -> Result<Vec<Vec<f64>>> {
    let failed = TomographyError::from;
    let observed = ObservedPrior::new(root, &scan.projector, noise_variance).map_err(failed)?;
    let factor = observed.factor(JitterPolicy::default()).map_err(failed)?;
    let (c, each) = (observed.rows(), observed.rows() / angles.max(1));
    let there = scan.projector.project(picture)?;
    let residual: Vec<f64> = scan.sinogram.iter().zip(there).map(|(y, g)| y - g).collect();
    let mut coefficients = Mat::zeros(c, counts.len());
    for (j, count) in counts.iter().enumerate() {
        let own = count * each;
        let leading = factor.factor().submatrix(0, 0, own, own).to_owned();
        let leading = Cholesky::from_factor(leading, CholeskyInfo::default());
        let solved = leading.solve(MatRef::from_column_major_slice(&residual[..own], own, 1));
        coefficients.as_mut().submatrix_mut(0, j, own, 1).copy_from(&solved);
    }
    let moved = observed.cross(coefficients.as_ref());
    let mean = |j: usize| picture.iter().zip(moved.col_as_slice(j)).map(|(g, m)| g + m).collect();
    Ok((0..counts.len()).map(mean).collect())
}
