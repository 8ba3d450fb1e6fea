//! Settings of the methods for networks, above all of those whose posterior is found by a search of its own.

use super::CurvatureArg;
use clap::{ArgAction, Args, ValueEnum};
use posterior::gp::generalised::{Family, Mode, Regulariser};
use posterior::linearised::sampled::{Space, Update};
use posterior::optim::UpdateRule;
use posterior::options::numbers;

/// Whether something takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SwitchArg {
    /// It does
    On,
    /// It does not
    Off,
}

/// Where the kernel of a fixed-mean process looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelInputsArg {
    /// At the network's inputs
    Inputs,
    /// At the features before its last layer
    Features,
}

/// What a fixed-mean process does not learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FreezeArg {
    /// Where the inducing points are
    InducingPoints,
    /// The prior variance
    Prior,
    /// The noise
    Noise,
    /// The kernel's own hyperparameters
    Kernel,
    /// The covariance between outputs
    Outputs,
}

/// How samples are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SolverArg {
    /// Conjugate gradients on all examples
    ConjugateGradients,
    /// Stochastic gradients with momentum
    Descent,
    /// Stochastic dual descent on the tangent kernel, for few examples
    DualDescent,
}

/// Settings that not every method for networks has, with the methods that have them.
pub(crate) const SETTINGS: [(&[&str], &[CurvatureArg]); 18] = {
    use CurvatureArg::{
        Auto, Ella, FixedMean, FunctionSpace, Gwi, Kronecker, LastLayerKronecker, LowRank, MeanField,
        Sampled, Subnetwork, Valla,
    };
    [
        (&["seconds"], &[Auto]),
        (&["fisher"], &[Kronecker, LastLayerKronecker]),
        (&["rank"], &[LowRank, Ella]),
        (&["points"], &[FunctionSpace]),
        (&["subnetwork-size", "subnetwork-choice"], &[Subnetwork]),
        (&["kernel", "kernel-inputs"], &[FixedMean, Gwi]),
        (&["inducing-points"], &[FixedMean, Valla, Gwi]),
        (
            &["regulariser", "regulariser-weight", "regulariser-mode", "variational-kernel", "update-rule"],
            &[Gwi],
        ),
        (&["alpha", "energy-draws"], &[FixedMean, Valla]),
        (&["companion"], &[FixedMean]),
        (&["freeze", "closed-form", "trajectory-every"], &[FixedMean, Valla]),
        (&["validate-every", "patience"], &[FixedMean, Valla, Gwi, Ella]),
        (&["steps"], &[FixedMean, Valla, Gwi]),
        (&["landmarks"], &[Ella]),
        (&["samples"], &[Sampled, MeanField]),
        (&["em-samples", "em-steps", "solver", "space", "update"], &[Sampled]),
        (&["epochs"], &[Sampled, MeanField]),
        (&["batch", "learning-rate"], &[FixedMean, Valla, Gwi, Sampled, MeanField]),
    ]
};

/// See the module.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SearchArgs {
    /// Kernel of the process, as `fit` of tables has them [default: rbf(ard) on tables, rbf * (linear + constant) on features; gwi on features rbf]
    #[arg(long, value_name = "TEXT")]
    pub kernel: Option<String>,

    /// Where the kernel looks [default: inputs of tables, features otherwise]
    #[arg(long = "set kernel-inputs", value_enum)]
    pub kernel_inputs: Option<KernelInputsArg>,

    /// Inducing points: of fixed-mean and valla in all, each of which looks at one output [default: 100, with a kernel on features 20, or two for each output]; of gwi for all outputs [default: 100]
    #[arg(long = "set inducing-points", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub inducing_points: Option<usize>,

    /// Order of the energy, from 0 (the evidence lower bound) to 1 (the predictive density) [default: 1]
    #[arg(long = "set alpha", value_name = "A", value_parser = numbers::from_none_to_all)]
    pub alpha: Option<f64>,

    /// Classes: energies as means over so many pairs of draws of the outputs instead of the probit approximation
    #[arg(long = "set energy-draws", value_name = "PAIRS", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub energy_draws: Option<usize>,

    /// The published companion process, whose mean of its own keeps lengthscales from shrinking and error bars wider [default: on with a kernel on features; with one on inputs for fewer than 5,000 rows]
    #[arg(long = "set companion", value_enum)]
    pub companion: Option<SwitchArg>,

    /// What is not learned: kernel and outputs of fixed-mean (the covariance between several outputs, with a kernel on inputs), noise of --likelihood gaussian
    #[arg(long = "set freeze", value_enum, value_delimiter = ',')]
    pub freeze: Vec<FreezeArg>,

    /// The closed-form optimum at the first inducing points instead of learning
    #[arg(long = "set closed-form", value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub closed_form: bool,

    /// Steps between two records of where the inducing points are, which --json and the model's file then have [default: none]
    #[arg(long = "set trajectory-every", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub trajectory_every: Option<usize>,

    /// What keeps a covariance near its prior: wasserstein, wasserstein-partial, projected-wasserstein, projected-renyi=0.5, projected-kl, ... as --method gvi has them [default: wasserstein]
    #[arg(long = "set regulariser", value_name = "NAME")]
    pub regulariser: Option<Regulariser>,

    /// What the regulariser is multiplied by; a Wasserstein distance has the squared unit of the outputs [default: 1]
    #[arg(long = "set regulariser-weight", value_name = "X", value_parser = numbers::positive)]
    pub regulariser_weight: Option<f64>,

    /// The process that regularises [default: prior]
    #[arg(long = "set regulariser-mode", value_enum)]
    pub regulariser_mode: Option<Mode>,

    /// Family of the covariance [default: diagonal]
    #[arg(long = "set variational-kernel", value_enum)]
    pub variational_kernel: Option<Family>,

    /// What a step computes from gradients [default: adam]
    #[arg(long = "set update-rule", value_enum)]
    pub update_rule: Option<UpdateRule>,

    /// Steps between two looks at the validation rows [default: 1000; valla and gwi 100]; ella: examples between them [default: none, one whole pass]
    #[arg(long = "set validate-every", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub validate_every: Option<usize>,

    /// Looks without a better score after which it ends [default: 10; ella 1]
    #[arg(long = "set patience", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub patience: Option<usize>,

    /// Training rows whose tangents span the features [default: 2000, or all]
    #[arg(long = "set landmarks", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub landmarks: Option<usize>,

    /// Draws of the weights that predict [default: 32; mean-field 20]
    #[arg(long = "set samples", value_name = "N", value_parser = numbers::whole(2..=numbers::MOST_KEPT))]
    pub samples: Option<usize>,

    /// Samples within expectation maximisation [default: 4]
    #[arg(long = "set em-samples", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub em_samples: Option<usize>,

    /// Rounds of expectation maximisation at most [default: 10]
    #[arg(long = "set em-steps", value_name = "N", value_parser = numbers::whole(1..=1000))]
    pub em_steps: Option<usize>,

    /// How samples are found [default: conjugate-gradients]
    #[arg(long = "set solver", value_enum)]
    pub solver: Option<SolverArg>,

    /// Where samples are found [default: whichever is less work, functions within 2 GB]
    #[arg(long = "set space", value_enum)]
    pub space: Option<Space>,

    /// How the precision follows [default: mackay]
    #[arg(long = "set update", value_enum)]
    pub update: Option<Update>,

    /// Steps at most [default: 70000; fixed-mean on features 10000, valla 40000, gwi 3000]
    #[arg(long = "set steps", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub steps: Option<usize>,

    /// Passes of mean-field [default: 12] and of `solver=descent` [default: 20]
    #[arg(long = "set epochs", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub epochs: Option<usize>,

    /// Examples of a step [default: 100; fixed-mean on features 50; gwi 128; mean-field 256]
    #[arg(long = "set batch", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub batch: Option<usize>,

    /// Size of a step [default: 1e-3; fixed-mean on features and mean-field 1e-4; gwi 1e-2]
    #[arg(long = "set learning-rate", value_name = "X", value_parser = numbers::positive)]
    pub learning_rate: Option<f64>,
}
