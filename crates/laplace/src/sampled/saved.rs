//! Where a fit stands, as arrays and small facts.

use super::options::Space;
use super::solve::AnyState;
use crate::LaplaceError;
use crate::checkpointer::SavedState;
use crate::scores::GridPoint;
use faer::Mat;
use posterior_gp::iterative::{SolverState as DualState, StateHeader};
use posterior_linear::sampled::{EmState, SavedEm, SavedSolver, SolverFacts, SolverState};
use posterior_optim::Reason;
use posterior_store::{StoreError, Tensors};
use serde::{Deserialize, Serialize};

const METHOD: &str = "sampled";

/// The small part.
#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    /// In whose coordinates the arrays are.
    space: Space,
    /// Why the turns ended, where they are over and samples for predictions are being solved for.
    turns_ended: Option<Reason>,
    #[serde(flatten)]
    turns: SavedEm<AnyFacts>,
    /// What unseen examples have scored so far.
    scored: Vec<GridPoint>,
}

/// The small part of a solver's state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "solver", rename_all = "kebab-case")]
pub(super) enum AnyFacts {
    DualDescent {
        header: StateHeader,
        blocks: Vec<String>,
    },
    #[serde(untagged)]
    Weights(SolverFacts),
}

impl SavedSolver for AnyState {
    type Facts = AnyFacts;

    fn facts(&self, put: &mut dyn FnMut(&str, &Mat<f64>)) -> AnyFacts {
        match self {
            Self::Weights(own) => AnyFacts::Weights(own.facts(put)),
            Self::Dual(own) => {
                own.blocks.iter().for_each(|(name, block)| put(name, block));
                let blocks = own.blocks.iter().map(|b| b.0.clone()).collect();
                AnyFacts::DualDescent { header: own.header.clone(), blocks }
            }
        }
    }

    fn restored(
        facts: AnyFacts,
        take: &mut dyn FnMut(&str) -> Result<Mat<f64>, StoreError>,
    ) -> Result<Self, StoreError> {
        Ok(match facts {
            AnyFacts::Weights(own) => Self::Weights(SolverState::restored(own, take)?),
            AnyFacts::DualDescent { header, blocks } => {
                let blocks = blocks.into_iter().map(|name| Ok((name.clone(), take(&name)?)));
                Self::Dual(DualState { header, blocks: blocks.collect::<Result<_, StoreError>>()? })
            }
        })
    }
}

/// The state as it is kept: why the turns ended, if they are over, and what was scored since.
pub(super) fn save(
    space: Space,
    (turns_ended, scored): (Option<Reason>, &[GridPoint]),
    state: &EmState<AnyState>,
) -> SavedState {
    let mut tensors = Tensors::default();
    let turns = SavedEm::of(state, &mut tensors);
    let facts = Facts { space, turns_ended, turns, scored: scored.to_vec() };
    SavedState::new(METHOD, &facts, tensors)
}

/// Why turns ended, if they were over, what was scored since, and where they stand.
type Opened = (Option<Reason>, Vec<GridPoint>, EmState<AnyState>);

/// The state again, of a fit in this space; why its turns ended, if they were over, and what was scored since.
pub(super) fn open(saved: SavedState, space: Space) -> Result<Opened, LaplaceError> {
    let (facts, mut tensors): (Facts, Tensors) = saved.open(METHOD)?;
    if facts.space != space {
        let name = |space| match space {
            Space::Weights => "weights",
            Space::Functions => "functions",
        };
        return Err(LaplaceError::Request(format!(
            "what was kept is of samples in the space of {0}, not {1}: ask for that space (`--set space={0}`), or start again without it",
            name(facts.space),
            name(space)
        )));
    }
    let state = facts.turns.restored(&mut tensors)?;
    Ok((facts.turns_ended, facts.scored, state))
}

/// Refuses a state whose mode or samples have not so many coordinates.
pub(super) fn check_dimension(state: &EmState<AnyState>, dimension: usize) -> Result<(), LaplaceError> {
    match state.other_dimension(dimension) {
        None => Ok(()),
        Some(own) => Err(LaplaceError::Request(format!(
            "what was kept of the samples has {own} coordinates, this fit {dimension}: start again without it"
        ))),
    }
}
