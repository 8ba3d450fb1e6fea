//! Functions that the mathematics library lacks.

pub(crate) mod normal_tail;
pub(crate) mod polygamma;
pub(crate) mod saddle_point;
pub(crate) mod softmax;
