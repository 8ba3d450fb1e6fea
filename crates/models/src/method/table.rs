//! The tables of methods: the only lists of them.

use super::{
    Reader, embedded, exact, generalised, independent, inducing, laplace, low_rank, network, pathwise,
};
use crate::TableSource;
use crate::record::NetworkHeader;

/// Hands all methods to the macro `$then`: what each is, its name in Rust, its name on the command line and in files, and its settings, which implement `MethodSettings`.
macro_rules! methods {
    ($then:ident) => {
        $then! {
            /// Chosen by size, memory and time
            Auto = "auto" => crate::options::AutoOptions,
            /// Cholesky of the whole kernel matrix: the reference, for thousands of rows; memory grows with their square
            Exact = "exact" => crate::options::ExactOptions,
            /// Conjugate gradients: large tables with enough noise; each step looks at all pairs of rows
            Cg = "cg" => crate::options::CgOptions,
            /// Stochastic gradient descent on the primal objective: a baseline for large tables
            Sgd = "sgd" => crate::options::SgdOptions,
            /// Stochastic dual descent: the method of choice for large tables; variances are those of samples
            Sdd = "sdd" => crate::options::SddOptions,
            /// Sketch-and-project: blocks of rows, each solved nearly exactly; for little noise and smooth functions
            Sap = "sap" => crate::options::SapOptions,
            /// Stochastic gradient descent on weights of inducing points: very many rows of a smooth function
            InducingSgd = "inducing-sgd" => crate::options::InducingSgdOptions,
            /// The collapsed bound of inducing points (Titsias): many rows of a smooth function, all at a time
            Sgpr = "sgpr" => crate::options::SgprOptions,
            /// The stochastic bound of inducing points (Hensman): any number of rows, every likelihood, from disk
            Svgp = "svgp" => crate::options::SvgpOptions,
            /// A network's outputs as basis functions, all rows at a time: functions that no kernel suits
            Dbk = "dbk" => crate::options::DbkOptions,
            /// A network's outputs as basis functions, on batches: the same for any number of rows
            Svdbk = "svdbk" => crate::options::DbkOptions,
            /// A kernel behind a network, by inducing points or itself (`dense`), all rows at a time
            Dkl = "dkl" => crate::options::DklOptions,
            /// A kernel behind a network, by inducing points, on batches: any number of rows
            Svdkl = "svdkl" => crate::options::DklOptions,
            /// Generalised variational inference: means and covariances that are free of each other
            Gvi = "gvi" => crate::options::GviOptions,
        }
    };
}

/// Readers of processes.
pub(crate) static READERS: &[(&str, Reader<TableSource>)] = &[
    (exact::KIND, exact::read),
    (embedded::KIND, embedded::read),
    (pathwise::SINGLE, pathwise::read::<f32>),
    (pathwise::DOUBLE, pathwise::read::<f64>),
    (inducing::KIND, inducing::read),
    (low_rank::KIND, low_rank::read),
    (generalised::KIND, generalised::read),
    (laplace::KIND, laplace::read),
    (independent::KIND, independent::read),
];

/// Readers of networks.
pub(crate) static NETWORK_READERS: &[(&str, Reader<NetworkHeader>)] = &[(network::KIND, network::read)];
