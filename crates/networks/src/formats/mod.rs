//! **Files**: weights and networks in the formats of other tools.
//!
//! | module | reads and writes |
//! |---|---|
//! | [`safetensors`] | named tensors, as PyTorch exchanges them |

pub mod safetensors;
