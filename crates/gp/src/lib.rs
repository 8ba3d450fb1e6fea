//! Function space: exact Gaussian processes.
