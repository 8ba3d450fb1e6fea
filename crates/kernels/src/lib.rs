//! Kernels, their gradients, and the small text form that names them.
