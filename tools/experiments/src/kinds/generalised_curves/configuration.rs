//! **The grid**: every combination of the options of the published sweep, 2 · 3 · 5 · 2 · 7 · 3 = 1,260 of them, and the published winner of each curve.
//!
//! Source: spec `generalised_variational_inference`, sections 16.1 and 17 (appendix A.4, table 7.1).

use super::prior::PriorKernel;
use crate::kinds::prelude::*;
use posterior_gp::generalised::{Family, Mode, Regulariser};
use std::fmt;

/// The table `[grid]`: values of each option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Grid {
    /// Inducing points are the root of the number of rows of this power (the tables' alpha).
    pub(crate) powers: Vec<u32>,
    /// Kernels of the process that regularises.
    pub(crate) priors: Vec<PriorKernel>,
    /// Variational kernels.
    pub(crate) kernels: Vec<Family>,
    /// Whether the prior regularises or its posterior.
    pub(crate) modes: Vec<Mode>,
    /// What keeps the process near it.
    pub(crate) regularisers: Vec<Regulariser>,
    /// Step sizes.
    pub(crate) rates: Vec<f64>,
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Configuration {
    /// See [`Grid::powers`].
    pub(crate) power: u32,
    /// The kernel of the process that regularises.
    pub(crate) prior: PriorKernel,
    /// The variational kernel.
    pub(crate) kernel: Family,
    /// Which process regularises.
    pub(crate) mode: Mode,
    /// What keeps the process near it.
    pub(crate) regulariser: Regulariser,
    /// The step size.
    pub(crate) rate: f64,
}

/// What has a name in files, shown by it.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: Serialize> fmt::Display for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}

/// Options that configurations differ in, in the order of their names and of [`Configuration::values`].
pub(crate) const OPTIONS: [&str; 6] = ["power", "prior", "kernel", "mode", "regulariser", "rate"];

impl Configuration {
    /// The names of its values. They are keys of numbers, whose paths are cut at points: `projected-renyi=0,5`.
    pub(crate) fn values(&self) -> [String; 6] {
        [
            self.power.to_string(),
            Named(self.prior).to_string(),
            Named(self.kernel).to_string(),
            Named(self.mode).to_string(),
            self.regulariser.to_string().replace('.', ","),
            format!("{:e}", self.rate),
        ]
    }

    /// Refuses numbers without a meaning.
    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=8).contains(&self.power) {
            return refused("the power of the number of inducing points is from 1 to 8");
        }
        if !positive(self.rate) {
            return refused("step sizes are positive");
        }
        Ok(())
    }

    /// M for n rows.
    pub(crate) fn points(&self, rows: usize) -> usize {
        points_of(self.power, rows)
    }
}

/// The largest number whose power is no more than n, in whole numbers, which do not round (spec `generalised_variational_inference`, section 4).
pub(crate) fn points_of(power: u32, rows: usize) -> usize {
    let below = |m: &usize| m.checked_pow(power).is_some_and(|power| power <= rows);
    (1..=rows).take_while(below).last().unwrap_or(1)
}

impl Grid {
    /// Every combination, the step size changing first.
    pub(crate) fn configurations(&self) -> Vec<Configuration> {
        let mut out = Vec::new();
        for &power in &self.powers {
            for &prior in &self.priors {
                for &kernel in &self.kernels {
                    for &mode in &self.modes {
                        for &regulariser in &self.regularisers {
                            let with =
                                |&rate: &f64| Configuration { power, prior, kernel, mode, regulariser, rate };
                            out.extend(self.rates.iter().map(with));
                        }
                    }
                }
            }
        }
        out
    }

    /// Refuses empty lists, and values that are named twice.
    pub(crate) fn check(&self) -> Result<()> {
        fn once<T: PartialEq>(name: &str, values: &[T]) -> Result<()> {
            match each_once(values) {
                true => Ok(()),
                false => refused(format!("[grid]: `{name}` has at least one value, each once")),
            }
        }
        once("powers", &self.powers)?;
        once("priors", &self.priors)?;
        once("kernels", &self.kernels)?;
        once("modes", &self.modes)?;
        once("regularisers", &self.regularisers)?;
        once("rates", &self.rates)?;
        self.configurations().iter().try_for_each(Configuration::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_roots_that_do_not_round() {
        // Those of the published sweep, and perfect powers, whose roots in floating point fall short.
        for (power, rows, points) in [
            (2, 600, 24),
            (3, 600, 8),
            (2, 400, 20),
            (3, 400, 7),
            (3, 1000, 10),
            (3, 125, 5),
            (2, 1, 1),
            (1, 9, 9),
        ] {
            assert_eq!(points_of(power, rows), points, "{power} {rows}");
        }
    }

    #[test]
    fn names_are_those_of_files_without_points() {
        let text = "power = 3\nprior = 'mapping-linear'\nkernel = 'fixed-sparse-posterior'\nmode = 'posterior'\nregulariser = 'projected-renyi=0.5'\nrate = 0.001";
        let found: Configuration = toml::from_str(text).unwrap();
        let expected =
            ["3", "mapping-linear", "fixed-sparse-posterior", "posterior", "projected-renyi=0,5", "1e-3"];
        assert_eq!(found.values(), expected);
        assert!(Configuration { rate: 0.0, ..found }.check().is_err());
        assert!(Configuration { power: 0, ..found }.check().is_err());
    }
}
