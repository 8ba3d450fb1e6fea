//! The `posterior-experiments` binary; what it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    posterior_experiments::main()
}
