//! One design on one image, from the pilot scan to its last angle.

use super::known::{Known, Root};
use super::network::{Trained, View};
use super::prior;
use super::settings::{Choice, MethodSettings, Settings};
use crate::kinds::prelude::*;
use posterior_linalg::operator::LinearOperator;
use posterior_tomography::design::{
    DesignMethod, DesignSettings, DesignState, Designer, Score, equidistant, largest_gaps, random,
};
use posterior_tomography::{Projector, TomographyError};
use std::rc::Rc;

/// Steps whose scores are kept for pictures.
const SHOWN: usize = 8;

/// PSNR of a network's picture after so many angles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NetworkScore {
    /// Angles.
    pub(super) angles: usize,
    /// At the lowest loss (dB).
    pub(super) quality: f64,
    /// The highest of any iterate (dB), chosen with the truth.
    pub(super) quality_with_truth: f64,
}

impl NetworkScore {
    pub(super) fn of(angles: usize, trained: &Trained) -> Self {
        Self { angles, quality: trained.quality, quality_with_truth: trained.quality_with_truth }
    }
}

/// What was chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Design {
    /// Angles in order, the pilot's first.
    pub(super) chosen: Vec<usize>,
    /// What every candidate was worth at each of the first steps; None of those that were in the design.
    pub(super) scores: Vec<Vec<Option<f64>>>,
    /// Of the networks that were trained on the way.
    pub(super) networks: Vec<NetworkScore>,
}

impl Design {
    /// The angles of the scan of `count` angles, if the method has such a scan. Equidistant scans are no continuations of one another.
    pub(super) fn at(
        &self,
        method: &MethodSettings,
        settings: &Settings,
        count: usize,
    ) -> Option<Vec<usize>> {
        match method.choice {
            Choice::Equidistant => equidistant(settings.scan.candidates, settings.scan.pilot, count).ok(),
            _ => self.chosen.get(..count).map(<[usize]>::to_vec),
        }
    }
}

/// Follows a method to its last angle.
///
/// # Errors
/// Those of priors, trainings and designs; interruption.
pub(super) fn follow(
    known: &mut Known<'_>,
    method: &MethodSettings,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<Design> {
    let (all, most) = (known.settings.scan.candidates, known.settings.design.most);
    let pilot = &known.problem.pilot;
    let fixed = match method.choice {
        Choice::Equidistant => {
            // The longest one that there is.
            let longest = (pilot.len()..=most).rev().find_map(|n| equidistant(all, pilot.len(), n).ok());
            Some(longest.unwrap_or_else(|| pilot.clone()))
        }
        Choice::LargestGaps => Some(largest_gaps(all, pilot, most).map_err(TomographyError::from)?),
        Choice::Random => {
            let streams = Streams::new(known.problem.seed);
            Some(random(all, pilot, most, streams).map_err(TomographyError::from)?)
        }
        _ => None,
    };
    match fixed {
        Some(chosen) => Ok(Design { chosen, ..Design::default() }),
        None => by_prior(known, method, stage, context),
    }
}

fn by_prior(
    known: &mut Known<'_>,
    method: &MethodSettings,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<Design> {
    let Some(acquisition) = method.acquisition else {
        return refused(format!("[[method]] `{}` has no acquisition", method.name));
    };
    let choices = &known.settings.design;
    let settings = DesignSettings {
        acquisition,
        method: DesignMethod::Sampled { samples: choices.samples },
        noise_variance: known.problem.noise_variance,
        stabiliser: choices.stabiliser,
        seed: known.problem.seed,
    };
    let (chosen, since) = (known.problem.pilot.clone(), known.problem.pilot.len());
    let state = DesignState { settings, chosen, since, refreshes: 0 };
    let (most, every) = (choices.most, choices.refresh_every);
    let mut walk = Walk { state, design: Design::default(), most, stage };
    match method.choice {
        Choice::Isotropic => {
            let root = prior::isotropic(&known.problem.pilot_scan()?, known.problem.noise_variance)?;
            walk.on(&known.problem.scanner, &root, most, context)?;
        }
        Choice::Matern => {
            let fit = prior::matern(&known.problem.pilot_scan()?, known.problem.noise_variance)?;
            // A lengthscale of the order of the image needs a torus of several of its lengths: four are customary.
            let root = fit.root(4.0).map_err(TomographyError::from)?;
            walk.on(&known.problem.scanner, &root, most, context)?;
        }
        Choice::Filters => {
            let view = known.view(context)?;
            let tangent = view.tangent()?;
            let root = known.filters(&tangent, &view, stage, context)?;
            walk.on(&known.problem.scanner, &*root, most, context)?;
        }
        Choice::GPrior => {
            let view = known.view(context)?;
            let tangent = view.tangent()?;
            while walk.state.chosen.len() < most {
                let root: Root<'_> = if walk.state.refreshes == 0 {
                    known.g_prior(&tangent, &view, stage, context)?
                } else {
                    // The network is that of the pilot: only what moves measurements has changed.
                    let scan = known.problem.scan(&walk.state.chosen)?;
                    known.fresh_g_prior(&tangent, &view, &scan, stage, context)?
                };
                walk.on(&known.problem.scanner, &*root, every, context)?;
            }
        }
        Choice::Retrained => retrained(known, &mut walk, every, context)?,
        Choice::Equidistant | Choice::LargestGaps | Choice::Random => {
            return refused(format!("[[method]] `{}` chooses without a prior", method.name));
        }
    }
    let Walk { state, design, .. } = walk;
    Ok(Design { chosen: state.chosen, ..design })
}

/// With the network trained on everything so far before each new prior, and once more at the end.
fn retrained(
    known: &mut Known<'_>,
    walk: &mut Walk<'_>,
    every: usize,
    context: &mut Context<'_>,
) -> Result<()> {
    let (mut trained, mut view) = (known.trained(context)?, known.view(context)?);
    walk.design.networks.push(NetworkScore::of(walk.state.chosen.len(), &trained));
    let settings = known.settings;
    while walk.state.chosen.len() < walk.most {
        {
            let tangent = view.tangent()?;
            let root = match walk.state.refreshes {
                0 => known.g_prior(&tangent, &view, walk.stage, context)?,
                _ => {
                    let scan = known.problem.scan(&walk.state.chosen)?;
                    known.fresh_g_prior(&tangent, &view, &scan, walk.stage, context)?
                }
            };
            walk.on(&known.problem.scanner, &*root, every, context)?;
        }
        let scan = known.problem.scan(&walk.state.chosen)?;
        let training = &settings.further_training;
        trained = Rc::new(known.further(&trained, &scan, training, walk.stage, context)?);
        walk.design.networks.push(NetworkScore::of(walk.state.chosen.len(), &trained));
        view = Rc::new(View::new(&trained, &settings.network, &scan)?);
    }
    Ok(())
}

/// A design under way.
struct Walk<'a> {
    state: DesignState,
    design: Design,
    most: usize,
    stage: &'a str,
}

impl Walk<'_> {
    /// A number of further angles under one prior.
    fn on(
        &mut self,
        scanner: &Projector,
        root: &dyn LinearOperator<f64>,
        further: usize,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let until = self.most.min(self.state.chosen.len() + further);
        let failed = TomographyError::from;
        let mut designer = Designer::resume(scanner, root, self.state.clone()).map_err(failed)?;
        while designer.chosen().len() < until {
            let scores = designer.scores().map_err(failed)?;
            let better = |best: Score, next: Score| if next.value > best.value { next } else { best };
            let best = scores[1..].iter().copied().fold(scores[0], better);
            if self.design.scores.len() < SHOWN {
                let mut all = vec![None; posterior_tomography::design::Scanner::angles(scanner)];
                scores.iter().for_each(|score| all[score.angle] = Some(score.value));
                self.design.scores.push(all);
            }
            designer.add(best.angle).map_err(failed)?;
            context.step(self.stage, designer.chosen().len(), self.most)?;
        }
        self.state = designer.state().clone();
        self.state.since = self.state.chosen.len();
        self.state.refreshes += 1;
        Ok(())
    }
}
