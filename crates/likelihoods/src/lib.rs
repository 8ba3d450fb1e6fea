//! How observations scatter around latent function values.
