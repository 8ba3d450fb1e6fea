//! Every operation over many configurations, in double precision: values against loops written from the definition, first
//! and second derivatives against differences of the values, and each map against its transpose.

mod activation_table;
mod activations;
mod affine;
mod case;
mod check;
mod convolution;
mod joins;
mod linear;
mod norms;
mod numbers;
mod pools;
mod rearrange;
mod references;
mod refusals;
mod tape;
mod training;
