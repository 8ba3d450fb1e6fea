//! **Files**: weights and networks in the formats of other tools.
//!
//! | module | reads and writes |
//! |---|---|
//! | [`onnx`] | models as `torch.onnx.export` and others write them |
//! | [`safetensors`] | named tensors, as PyTorch exchanges them |

pub mod onnx;
pub mod safetensors;
