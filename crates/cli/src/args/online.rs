//! The grammar of `train --laplace`: hyperparameters that are learned with the weights.

use super::{FisherArg, numbers};
use clap::{Args, ValueEnum};
use posterior::linearised::online::Select;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnlineCurvatureArg {
    /// Kronecker factors
    Kronecker,
    /// The diagonal
    Diagonal,
    /// All entries, for small networks
    Full,
    /// Last layer: all entries; other layers keep --weight-decay
    LastLayer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnlinePriorArg {
    /// One precision
    Scalar,
    /// One for each layer
    Layerwise,
    /// One for each parameter tensor
    Parameter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnlineRuleArg {
    /// Adam on the logarithms
    Adam,
    /// MacKay's fixed points
    Mackay,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Learning the prior and the noise")]
pub(crate) struct OnlineArgs {
    /// Learn prior precisions (as weight decay) and noise by the Laplace evidence while training; --weight-decay is where they begin
    #[arg(long)]
    pub laplace: bool,

    /// Which curvature the evidence uses
    #[arg(long, value_enum, default_value = "kronecker", requires = "laplace")]
    pub laplace_curvature: OnlineCurvatureArg,

    /// Kronecker: gradients that the factors are made of [default: exact]
    #[arg(long, value_enum, requires = "laplace")]
    pub laplace_fisher: Option<FisherArg>,

    /// Weights that share a precision
    #[arg(long, value_enum, default_value = "layerwise", requires = "laplace")]
    pub laplace_prior: OnlinePriorArg,

    /// Epochs before anything is learned
    #[arg(long, value_name = "N", default_value_t = 5, requires = "laplace", value_parser = numbers::whole(0..=numbers::MOST_STEPS))]
    pub laplace_burn_in: usize,

    /// Epochs between two updates
    #[arg(long, value_name = "N", default_value_t = 5, requires = "laplace", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub laplace_every: usize,

    /// Steps of an update
    #[arg(long, value_name = "N", default_value_t = 20, requires = "laplace", value_parser = numbers::whole(1..=1_000_000))]
    pub laplace_steps: usize,

    /// What a step is
    #[arg(long, value_enum, default_value = "adam", requires = "laplace")]
    pub laplace_rule: OnlineRuleArg,

    /// Gaussian noise, curvature full or last-layer: add the evidence's first-order term, for weights that are not at a minimum
    #[arg(long, requires = "laplace")]
    pub laplace_first_order: bool,

    /// Which weights are kept
    #[arg(long, value_enum, default_value = "last", requires = "laplace")]
    pub laplace_select: Select,
}
