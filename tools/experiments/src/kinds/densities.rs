//! Densities of Gamma and Beta variables, of their logarithms and logits, and the Gaussians that stand for those; with divergences by quadrature.
//!
//! Serves figures 1, 6 and 7 of Bui's *Likelihood approximations via Gaussian approximate inference*.

use crate::kinds::prelude::*;
use crate::labels::MATCHINGS;
use posterior_likelihoods::gaussianised::{Matching, beta, gamma};

use std::f64::consts::PI;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    #[serde(rename = "density")]
    densities: Vec<Density>,
}

/// Which variable.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Family {
    /// `Gamma(first, rate second)`, by its logarithm.
    Gamma,
    /// `Beta(first, second)`, by its logit.
    Beta,
}

#[derive(Clone, Debug, Deserialize)]
struct Density {
    /// Its name.
    name: String,
    /// Which variable.
    family: Family,
    /// Shape, or first parameter.
    first: f64,
    /// Rate, or second parameter.
    second: f64,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("density", self.densities.iter().map(|d| d.name.as_str()))?;
        let range = 1e-3..=1e3;
        if self.densities.iter().any(|d| !range.contains(&d.first) || !range.contains(&d.second)) {
            return refused("[[density]]: `first` and `second` are between 0.001 and 1000");
        }
        Ok(())
    }
}

/// A log density of a logarithm or logit.
type LogDensity<'a> = &'a dyn Fn(f64) -> f64;

/// A Gaussian.
#[derive(Clone, Copy, Debug)]
struct Normal {
    mean: f64,
    variance: f64,
}

impl Normal {
    fn log_density(self, at: f64) -> f64 {
        -0.5 * ((2.0 * PI * self.variance).ln() + (at - self.mean).powi(2) / self.variance)
    }
}

impl Density {
    /// Log density of the logarithm or logit.
    fn log_density(&self, at: f64) -> f64 {
        let (a, b) = (self.first, self.second);
        match self.family {
            Family::Gamma => a * at - b * at.exp() + a * b.ln() - libm::lgamma(a),
            Family::Beta => {
                let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
                -a * softplus(-at) - b * softplus(at) + libm::lgamma(a + b)
                    - libm::lgamma(a)
                    - libm::lgamma(b)
            }
        }
    }

    fn fit(&self, matching: Matching) -> Option<Normal> {
        let found = match self.family {
            Family::Gamma => gamma(matching, self.first, self.second),
            Family::Beta => beta(matching, self.first, self.second),
        };
        let observation = found.ok()?.observation;
        Some(Normal { mean: observation.target, variance: observation.variance })
    }

    /// Where all but 1e-15 or so of the mass is: tails fall as `e^{first ψ}` and `e^{-second ψ}` (of a Gamma variable faster).
    fn range(&self) -> (f64, f64) {
        let (a, b) = (self.first, self.second);
        match self.family {
            Family::Gamma => ((a / b).ln() - 8.0 - 40.0 / a, (a / b).ln() + 8.0 + 8.0 / a.sqrt().min(1.0)),
            Family::Beta => ((a / b).ln() - 8.0 - 40.0 / a, (a / b).ln() + 8.0 + 40.0 / b),
        }
    }

    /// The trapezoid rule over a range; integrands vanish at its ends.
    fn integral(range: (f64, f64), f: impl Fn(f64) -> f64) -> f64 {
        const NODES: usize = 20_000;
        let step = (range.1 - range.0) / NODES as f64;
        step * (0..=NODES).map(|i| f(range.0 + step * i as f64)).sum::<f64>()
    }

    /// `KL(q ‖ p)`.
    fn reverse(&self, q: Normal) -> f64 {
        let reach = 12.0 * q.variance.sqrt();
        Self::integral((q.mean - reach, q.mean + reach), |x| {
            let log = q.log_density(x);
            log.exp() * (log - self.log_density(x))
        })
    }

    /// `KL(p ‖ q)`.
    fn forward(&self, q: Normal) -> f64 {
        Self::integral(self.range(), |x| {
            let log = self.log_density(x);
            log.exp() * (log - q.log_density(x))
        })
    }

    /// Slope of the log density at a Gaussian's mean in its standard deviations, and its curvature there times the variance: 0 and 1 for Laplace's.
    fn at_mode(&self, q: Normal) -> (f64, f64) {
        let step = 1e-4 * q.variance.sqrt();
        let [below, here, above] = [-step, 0.0, step].map(|by| self.log_density(q.mean + by));
        let slope = (above - below) / (2.0 * step) * q.variance.sqrt();
        (slope, -(above - 2.0 * here + below) / (step * step) * q.variance)
    }

    /// Relative errors of mean and variance of the positive variable under a log-normal.
    fn original_moments(&self, q: Normal) -> (f64, f64) {
        let (mean, square) = (self.first / self.second, self.first / self.second.powi(2));
        let own = (q.mean + 0.5 * q.variance).exp();
        (own / mean - 1.0, own * own * q.variance.exp_m1() / square - 1.0)
    }

    fn numbers(&self, q: Normal) -> Value {
        let (slope, curvature) = self.at_mode(q);
        let mut out = json!({
            "mean": q.mean, "variance": q.variance,
            "kl_to_density": self.reverse(q), "kl_from_density": self.forward(q),
            "slope_at_mean": slope.abs(), "curvature_ratio": curvature,
            // What the best of eight Gaussians nearby would gain: nothing where the divergence is least.
            "gain_nearby_to": self.gain(q, |q| self.reverse(q)),
            "gain_nearby_from": self.gain(q, |q| self.forward(q)),
        });
        if self.family == Family::Gamma {
            let (mean, variance) = self.original_moments(q);
            out["original_mean_error"] = json!(mean.abs());
            out["original_variance_error"] = json!(variance.abs());
        }
        out
    }

    fn gain(&self, q: Normal, divergence: impl Fn(Normal) -> f64) -> f64 {
        let here = divergence(q);
        let steps = [-1.0, 0.0, 1.0];
        let places = steps.into_iter().flat_map(|m| steps.map(|v| (m, v))).filter(|at| *at != (0.0, 0.0));
        let near = places.map(|(m, v)| {
            let mean = q.mean + 0.02 * m * q.variance.sqrt();
            here - divergence(Normal { mean, variance: q.variance * (1.0 + 0.02 * v) })
        });
        near.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Both densities: of logarithm or logit, and of the variable itself, whose log density is that less `log |dω/dψ|`.
    fn figures(&self, fits: &[(Matching, Normal)]) -> [Item; 2] {
        const POINTS: usize = 160;
        let wide =
            fits.iter().map(|(_, q)| (q.mean - 3.0 * q.variance.sqrt(), q.mean + 3.0 * q.variance.sqrt()));
        let (low, high) = wide.fold((f64::INFINITY, f64::NEG_INFINITY), |a, b| (a.0.min(b.0), a.1.max(b.1)));
        let grid = |low: f64, high: f64| -> Vec<f64> {
            (0..POINTS).map(|i| low + (high - low) * i as f64 / (POINTS - 1) as f64).collect()
        };
        let own: Box<dyn Fn(f64) -> f64 + '_> = Box::new(|at| self.log_density(at));
        let mut logs = vec![("density", own)];
        logs.extend(fits.iter().map(|(matching, q)| -> (&str, Box<dyn Fn(f64) -> f64 + '_>) {
            (matching.name(), Box::new(|at| q.log_density(at)))
        }));
        let lines = |x: &[f64], value: &dyn Fn(f64, LogDensity<'_>) -> f64| -> Vec<Line> {
            let along = |log: LogDensity<'_>| x.iter().map(|at| value(*at, log)).collect();
            logs.iter().map(|(name, log)| Line::new(*name, x.to_vec(), along(&**log))).collect()
        };
        let (basis, variable) = match self.family {
            Family::Gamma => ("log ω", format!("Gamma({}, {})", self.first, self.second)),
            Family::Beta => ("logit ω", format!("Beta({}, {})", self.first, self.second)),
        };
        let latent = grid(low, high);
        let original = match self.family {
            Family::Gamma => grid(0.01, 4.0 * (1.0 + self.first / self.second)),
            Family::Beta => grid(0.005, 0.995),
        };
        let transformed = |w: f64, log: LogDensity<'_>| match self.family {
            Family::Gamma => log(w.ln()) - w.ln(),
            Family::Beta => log((w / (1.0 - w)).ln()) - (w * (1.0 - w)).ln(),
        };
        let first = lines(&latent, &|at, log| log(at).exp());
        [
            Curves::new(format!("{}: {variable} by its {basis}", self.name), basis, "density", first).into(),
            Curves::new(
                format!("{}: {variable} itself", self.name),
                "ω",
                "log density",
                lines(&original, &transformed),
            )
            .into(),
        ]
    }
}

/// Matches every density in every way that it has.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let mut out = Measured::default();
    for (done, density) in settings.densities.iter().enumerate() {
        context.step(&density.name, done, settings.densities.len())?;
        let fits: Vec<(Matching, Normal)> =
            MATCHINGS.into_iter().filter_map(|m| Some((m, density.fit(m)?))).collect();
        for (matching, q) in &fits {
            out.numbers["densities"][&density.name][matching.name()] = density.numbers(*q);
        }
        out.figures.extend(density.figures(&fits));
        out.tables.push(NumberTable::by_name(
            &density.name,
            "matching",
            &format!("densities.{}", density.name),
            fits.iter().map(|(m, _)| m.name()),
            &[
                ("mean", "mean"),
                ("variance", "variance"),
                ("kl_to_density", "KL(q ‖ p)"),
                ("kl_from_density", "KL(p ‖ q)"),
                ("slope_at_mean", "slope at the mean"),
                ("curvature_ratio", "curvature × variance"),
            ],
            "Divergences in nats, by the trapezoid rule. The slope is in standard deviations of the Gaussian.",
        ));
    }
    out.facts.push(SummaryRow::new("densities", settings.densities.len().to_string()));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_are_densities_and_matchings_minimise_what_they_say() {
        for (family, first, second) in [
            (Family::Gamma, 0.1, 1.0),
            (Family::Gamma, 3.0, 2.0),
            (Family::Beta, 1.1, 0.1),
            (Family::Beta, 2.0, 3.0),
        ] {
            let density = Density { name: "d".into(), family, first, second };
            let mass = Density::integral(density.range(), |x| density.log_density(x).exp());
            assert!((mass - 1.0).abs() < 1e-8, "{density:?}: {mass}");
            let least = |matching, of: &dyn Fn(Normal) -> f64| {
                let q = density.fit(matching).unwrap();
                assert!(density.gain(q, of) < 1e-10, "{density:?} {matching:?}");
                for other in MATCHINGS {
                    let Some(other) = density.fit(other) else { continue };
                    assert!(of(q) <= of(other) + 1e-10, "{density:?} {matching:?}");
                }
            };
            least(Matching::Variational, &|q| density.reverse(q));
            least(Matching::Moment, &|q| density.forward(q));
            let (slope, curvature) = density.at_mode(density.fit(Matching::Laplace).unwrap());
            assert!(slope.abs() < 1e-6 && (curvature - 1.0).abs() < 1e-5, "{slope} {curvature}");
            if let Some(q) = density.fit(Matching::MomentOriginal) {
                let (mean, variance) = density.original_moments(q);
                assert!(mean.abs() < 1e-12 && variance.abs() < 1e-12);
            }
        }
    }
}
