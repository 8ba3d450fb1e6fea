//! **Learned features**: what a network makes of a row as the features of a low-rank model ([`posterior_linear::low_rank`]), or as what a kernel acts on.
//!
//! [`NetworkEmbedding`] is the network with the way back to its weights; an exact process has its kernel matrix on what it makes of the rows ([`posterior_linear::embedding`]), the others are features:
//!
//! | type | features | kernel |
//! |---|---|---|
//! | [`NetworkFeatures`] | its outputs | `g(x)ᵀ g(z)`: a deep basis kernel |
//! | [`DeepInducing`] | inducing points' whitened ones, behind a network or at the rows themselves | `k(g(x), g(z))`: deep kernel learning; `k(x, z)`: a sparse process |
//!
//! [`MappedKernel`] is a kernel on what such a map makes of the rows, for whatever takes a kernel.
//!
//! A network that was trained elsewhere is as good a start as one that was drawn; one that is kept as it is ([`NetworkFeatures::frozen`]) makes the model Bayesian regression on its outputs, or on what its last layer read where that was taken off ([`Network::without_last_layer`](posterior_networks::Network::without_last_layer)).

mod embedding;
mod inducing;
mod mapped;
mod network;

pub use embedding::NetworkEmbedding;
pub use inducing::DeepInducing;
pub use mapped::MappedKernel;
pub use network::NetworkFeatures;

#[cfg(test)]
mod tests;
