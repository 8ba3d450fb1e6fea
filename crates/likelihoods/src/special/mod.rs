//! Functions that the mathematics library lacks.

mod digamma;
pub(crate) mod normal_tail;
pub(crate) mod softmax;

pub(crate) use digamma::digamma;
