//! What a user says about single parameters before a search: that they stay, or where they may go.

use crate::parameters::{Free, entries};
use crate::{OptimError, Parameters, Segment, Transform};
use serde::{Deserialize, Serialize};

/// A named parameter that a search must not move, or not beyond bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// It stays at a natural value, for every entry of its block.
    Fixed {
        /// A block, such as `noise_variance`, or an entry of one, such as `matern32.lengthscale[2]`, counted from 0. What stands before the last dot may be left out where only one block ends so.
        parameter: String,
        /// Its value; the one that the model has where none is given.
        value: Option<f64>,
    },
    /// It stays between two natural values.
    Between {
        /// As above.
        parameter: String,
        /// The least value.
        lower: f64,
        /// The greatest value.
        upper: f64,
    },
}

impl Constraint {
    /// The block or entry that it speaks of.
    pub fn parameter(&self) -> &str {
        match self {
            Self::Fixed { parameter, .. } | Self::Between { parameter, .. } => parameter,
        }
    }
}

/// The unconstrained vector of a model some of whose parameters are held or bounded: what [`Parameters`] says, entry by entry, with constraints laid over it.
#[derive(Clone, Debug)]
pub struct Constrained {
    /// What moves, and between which bounds.
    free: Free,
    /// `matern32.lengthscale[2]` for every natural value.
    names: Vec<String>,
    /// Which of them a user has bounded; others may have bounds of their own.
    bounded: Vec<bool>,
}

/// Entries of small blocks by their names; of larger ones the block's name alone, which stands for all of it.
fn listed(blocks: &[&str], names: &[String]) -> String {
    const MOST: usize = 32;
    let mut out: Vec<&str> = Vec::new();
    for (block, name) in blocks.iter().zip(names) {
        let many = blocks.iter().filter(|other| *other == block).count() > MOST;
        let shown = if many { *block } else { name };
        if out.last() != Some(&shown) {
            out.push(shown);
        }
    }
    out.join(", ")
}

impl Constrained {
    /// Lays constraints over a model, and moves its values to where they allow.
    ///
    /// # Errors
    /// [`OptimError::Constraint`] for a parameter that the model does not have, a value or bounds that it cannot take, and two constraints on one entry.
    pub fn new(model: &mut dyn Parameters, constraints: &[Constraint]) -> Result<Self, OptimError> {
        let segments = model.segments();
        let mut entries: Vec<(Transform, usize)> = entries(&segments).collect();
        let names: Vec<String> = segments.iter().flat_map(Segment::entry_names).collect();
        let blocks: Vec<&str> =
            segments.iter().flat_map(|s| std::iter::repeat_n(s.name.as_str(), s.len())).collect();
        let mut values = model.values();
        let mut spoken_for = vec![false; entries.len()];
        let mut bounded = vec![false; entries.len()];
        for constraint in constraints {
            let parameter = constraint.parameter();
            let refuse =
                |problem: String| Err(OptimError::Constraint { parameter: parameter.into(), problem });
            let called = |of: &dyn Fn(&str) -> bool| -> Vec<usize> {
                (0..entries.len()).filter(|&i| of(blocks[i]) || of(&names[i])).collect()
            };
            let mut matching = called(&|name| name == parameter);
            if matching.is_empty() {
                matching = called(&|name| name.rsplit('.').next() == Some(parameter));
                let mut several: Vec<&str> = matching.iter().map(|&i| blocks[i]).collect();
                several.dedup();
                if several.len() > 1 {
                    return refuse(format!(
                        "several end so, of which one must be named: {}",
                        several.join(", ")
                    ));
                }
            }
            if matching.is_empty() {
                return refuse(format!("there is no such parameter; there are: {}", listed(&blocks, &names)));
            }
            for i in matching {
                if std::mem::replace(&mut spoken_for[i], true) {
                    return refuse(format!("two constraints speak of {}", names[i]));
                }
                let positive = !matches!(entries[i].0, Transform::Identity | Transform::Fixed);
                let least = if let Transform::LogAbove { lower } = entries[i].0 { lower } else { 0.0 };
                match *constraint {
                    Constraint::Fixed { value, .. } => {
                        let value = value.unwrap_or(values[i]);
                        if !entries[i].0.admits(entries[i].1, value) {
                            let floor = if least > 0.0 { ", its floor" } else { "" };
                            return refuse(format!(
                                "it cannot be {value}; it must be finite and above {least}{floor}"
                            ));
                        }
                        values[i] = value;
                        entries[i].0 = Transform::Fixed;
                    }
                    Constraint::Between { lower, upper, .. } => {
                        let fine = lower.is_finite() && upper.is_finite() && lower < upper;
                        if !fine || (positive && lower <= 0.0) {
                            return refuse(format!(
                                "{lower} to {upper} are no bounds: the lower must be below the upper, and above 0 for positive parameters"
                            ));
                        }
                        bounded[i] = true;
                        if positive && lower < least {
                            return refuse(format!("its lower bound {lower} is below the floor {least}"));
                        }
                        entries[i].0 = if positive {
                            Transform::LogBounded { lower, upper }
                        } else {
                            Transform::Bounded { lower, upper }
                        };
                        // Off the bounds, where no search could move it away.
                        let (transform, position) = entries[i];
                        let inside = transform.inverse(position, values[i]).clamp(-4.0, 4.0);
                        if values[i] <= lower || values[i] >= upper {
                            values[i] = transform.forward(position, inside);
                        }
                    }
                }
            }
        }
        model.set_values(&values);
        Ok(Self { free: Free::new(entries), names, bounded })
    }

    /// Number of free entries.
    pub fn dimension(&self) -> usize {
        self.free.len()
    }

    /// Names of the free entries.
    pub fn names(&self) -> Vec<String> {
        self.free.indices().map(|i| self.names[i].clone()).collect()
    }

    /// How each natural value moves under these constraints; [`Transform::Fixed`] those that are held.
    pub fn transforms(&self) -> Vec<Transform> {
        self.free.transforms(self.names.len())
    }

    /// The unconstrained numbers of natural values (all of them).
    pub fn unconstrained(&self, values: &[f64]) -> Vec<f64> {
        self.free.unconstrained(values)
    }

    /// Moves the free entries of a model.
    ///
    /// # Panics
    /// When there is not one number for each free entry.
    pub fn set(&self, model: &mut dyn Parameters, theta: &[f64]) {
        let mut values = model.values();
        self.free.write(theta, &mut values);
        model.set_values(&values);
    }

    /// The gradient in the free entries from the one in all natural values, at the unconstrained point `theta`.
    pub fn chain(&self, theta: &[f64], natural_gradient: &[f64]) -> Vec<f64> {
        self.free.chain(theta, natural_gradient)
    }

    /// Free entries within a hundredth (on their logarithmic or linear scale) of a bound that a user set, with that bound.
    pub fn at_bounds(&self, values: &[f64]) -> Vec<(String, f64)> {
        let bound = |(i, transform, u): (usize, Transform, f64)| {
            if !self.bounded[i] {
                return None;
            }
            let (Transform::Bounded { lower, upper } | Transform::LogBounded { lower, upper }) = transform
            else {
                return None;
            };
            // logistic(∓4.6) is a hundredth from the end; averages of noisy iterates come no nearer in hundreds of steps.
            let reached = [(u < -4.6, lower), (u > 4.6, upper)].into_iter().find(|end| end.0)?;
            Some((self.names[i].clone(), reached.1))
        };
        self.free.each(values).filter_map(bound).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Example(Vec<f64>);

    impl Parameters for Example {
        fn segments(&self) -> Vec<Segment> {
            let segment = |name: &str, shape, transform| Segment { name: name.into(), shape, transform };
            vec![
                segment("scale", vec![3], Transform::Log),
                segment("shift", vec![], Transform::Identity),
                segment("noise", vec![], Transform::LogAbove { lower: 1e-4 }),
            ]
        }
        fn values(&self) -> Vec<f64> {
            self.0.clone()
        }
        fn set_values(&mut self, values: &[f64]) {
            self.0.copy_from_slice(values);
        }
    }

    fn example() -> Example {
        Example(vec![1.0, 2.0, 3.0, -0.5, 0.1])
    }

    fn fixed(parameter: &str, value: Option<f64>) -> Constraint {
        Constraint::Fixed { parameter: parameter.into(), value }
    }

    fn between(parameter: &str, lower: f64, upper: f64) -> Constraint {
        Constraint::Between { parameter: parameter.into(), lower, upper }
    }

    #[test]
    fn without_constraints_it_is_the_models_own_vector() {
        let mut model = example();
        let map = Constrained::new(&mut model, &[]).unwrap();
        assert_eq!(map.unconstrained(&model.values()), model.unconstrained());
        assert_eq!(map.names(), model.unconstrained_names());
        let theta = [0.3, -0.2, 0.7, 1.5, -2.0];
        let gradient = [1.0, -2.0, 3.0, 0.5, 4.0];
        assert_eq!(map.chain(&theta, &gradient), model.chain(&theta, &gradient));
        let mut other = example();
        map.set(&mut model, &theta);
        other.set_unconstrained(&theta);
        assert_eq!(model.0, other.0);
    }

    #[test]
    fn fixed_entries_stay_bounds_hold_and_the_chain_rule_agrees_with_differences() {
        let mut model = example();
        let constraints = [
            fixed("scale[1]", Some(7.0)),
            fixed("shift", None),
            between("noise", 0.01, 0.2),
            between("scale[2]", 4.0, 9.0),
        ];
        let map = Constrained::new(&mut model, &constraints).unwrap();
        assert_eq!(model.0[1], 7.0);
        assert!(model.0[2] > 4.0 && model.0[2] < 9.0, "moved inside its bounds: {}", model.0[2]);
        assert_eq!(map.names(), ["scale[0]", "scale[2]", "noise"]);
        for theta in [[0.1, 30.0, -30.0], [-1.0, -30.0, 30.0], [0.5, 0.2, -0.7]] {
            map.set(&mut model, &theta);
            assert_eq!((model.0[1], model.0[3]), (7.0, -0.5));
            assert!((4.0..=9.0).contains(&model.0[2]) && (0.01..=0.2).contains(&model.0[4]), "{:?}", model.0);
        }
        // f = Σ c_i v_i² as a function of the free numbers.
        let coefficients = [1.0, 2.0, 0.3, 4.0, 50.0];
        let theta = [0.5, 0.2, -0.7];
        let value = |theta: &[f64]| {
            let mut model = Example(vec![1.0, 7.0, 5.0, -0.5, 0.1]);
            map.set(&mut model, theta);
            model.0.iter().zip(coefficients).map(|(v, c)| c * v * v).sum::<f64>()
        };
        map.set(&mut model, &theta);
        let natural: Vec<f64> = model.0.iter().zip(coefficients).map(|(v, c)| 2.0 * c * v).collect();
        for (k, exact) in map.chain(&theta, &natural).into_iter().enumerate() {
            let moved = |h: f64| {
                let mut theta = theta;
                theta[k] += h;
                value(&theta)
            };
            let numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((numeric - exact).abs() < 1e-7 * (1.0 + exact.abs()), "{k}: {numeric} {exact}");
        }
    }

    #[test]
    fn what_ended_at_a_bound_is_named() {
        let mut model = example();
        let map = Constrained::new(&mut model, &[between("noise", 0.01, 0.2)]).unwrap();
        assert!(map.at_bounds(&model.values()).is_empty());
        map.set(&mut model, &[0.0, 0.0, 0.0, 0.0, -12.0]);
        assert_eq!(map.at_bounds(&model.values()), [("noise".to_string(), 0.01)]);
    }

    #[test]
    fn the_end_of_a_name_is_enough_where_it_is_the_only_one() {
        struct Sum(Vec<f64>);
        impl Parameters for Sum {
            fn segments(&self) -> Vec<Segment> {
                ["se.variance", "se.lengthscale", "periodic.variance"]
                    .map(|name| Segment { name: name.into(), shape: vec![2], transform: Transform::Log })
                    .into()
            }
            fn values(&self) -> Vec<f64> {
                self.0.clone()
            }
            fn set_values(&mut self, values: &[f64]) {
                self.0.copy_from_slice(values);
            }
        }
        let held = |name: &str| {
            let mut model = Sum(vec![1.0; 6]);
            Constrained::new(&mut model, &[fixed(name, Some(3.0))]).map(|_| model.0)
        };
        assert_eq!(held("lengthscale").unwrap(), [1.0, 1.0, 3.0, 3.0, 1.0, 1.0]);
        assert_eq!(held("lengthscale[1]").unwrap(), [1.0, 1.0, 1.0, 3.0, 1.0, 1.0]);
        let text = held("variance").unwrap_err().to_string();
        assert!(text.contains("several end so") && text.contains("se.variance, periodic.variance"), "{text}");
        assert!(held("scale").is_err() && held("").is_err());
    }

    #[test]
    fn impossible_constraints_say_why() {
        let problem = |constraints: &[Constraint]| {
            Constrained::new(&mut example(), constraints).unwrap_err().to_string()
        };
        let text = problem(&[fixed("lengthscale", None)]);
        assert!(
            text.contains("`lengthscale`") && text.contains("scale[0], scale[1], scale[2], shift, noise"),
            "{text}"
        );
        assert!(problem(&[fixed("scale[3]", None)]).contains("no such parameter"));
        assert!(problem(&[fixed("noise", Some(1e-5))]).contains("above 0.0001"));
        assert!(problem(&[fixed("scale", Some(-1.0))]).contains("cannot be -1"));
        assert!(problem(&[fixed("shift", Some(f64::NAN))]).contains("cannot be NaN"));
        assert!(problem(&[between("scale", 2.0, 1.0)]).contains("no bounds"));
        assert!(problem(&[between("scale", -1.0, 1.0)]).contains("no bounds"));
        assert!(problem(&[between("noise", 1e-6, 1.0)]).contains("below the floor"));
        assert!(problem(&[fixed("scale", None), between("scale[1]", 1.0, 2.0)]).contains("two constraints"));
    }
}
