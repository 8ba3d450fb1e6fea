//! Slices through the weights of the first layer: log likelihood and log posterior of the network and of its linear model (thesis figure 5.4).
//!
//! The plane goes through the origin, the trained weights `v` and the optimum `w` of the linear model, all of the first layer; the other layers stay at `v` for the network and at `w` for the linear model, so
//! that each model's own point lies in its plane.

use super::conjugate::{Conjugate, Update};
use crate::kinds::prelude::*;
use crate::tangent::{Tangent, TrainedToy, product};
use crate::toy::{ToySettings, column};
use crate::training::TrainingSettings;
use posterior_linear::{LinearError, Prior};
use posterior_networks::Network;
use posterior_report::{Plane, PlaneKind, PlanePanel};
use std::ops::Range;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ToySettings,
    network: Table,
    training: TrainingSettings,
    /// The prior precision; by the evidence of the linear model if absent.
    precision: Option<f64>,
    /// Points of the grid along each direction.
    points: usize,
    /// How far the grid reaches, in units of the longer of the two vectors.
    reach: f64,
    /// Nats below the highest value at which colours end.
    depth: f64,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        let fine = (5..=1000).contains(&self.points)
            && positive(self.reach)
            && positive(self.depth)
            && self.precision.is_none_or(positive);
        if fine {
            return Ok(());
        }
        refused("`points` must lie between 5 and 1000; `reach`, `depth` and `precision` must be positive")
    }
}

/// Two orthonormal directions in the weights of the first layer.
struct Slice {
    weights: Range<usize>,
    directions: [Vec<f64>; 2],
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Slice {
    /// Through two vectors; refused where they are parallel.
    fn new(weights: Range<usize>, first: &[f64], second: &[f64]) -> Result<Self> {
        let unit = |v: Vec<f64>| {
            let length = dot(&v, &v).sqrt();
            v.into_iter().map(|v| v / length).collect::<Vec<f64>>()
        };
        let a = unit(first.to_vec());
        let along = dot(&a, second);
        let rest: Vec<f64> = second.iter().zip(&a).map(|(s, a)| s - along * a).collect();
        let b = unit(rest);
        if a.iter().chain(&b).any(|v| !v.is_finite()) {
            return refused(
                "trained weights and the linear model's optimum of the first layer span no plane",
            );
        }
        Ok(Self { weights, directions: [a, b] })
    }

    fn coordinates(&self, vector: &[f64]) -> [f64; 2] {
        [dot(&self.directions[0], vector), dot(&self.directions[1], vector)]
    }

    fn at(&self, [x, y]: [f64; 2]) -> Vec<f64> {
        self.directions[0].iter().zip(&self.directions[1]).map(|(a, b)| x * a + y * b).collect()
    }
}

/// Both models on the training data.
struct Models<'a> {
    trained: &'a TrainedToy,
    tangent: &'a Tangent,
    slice: &'a Slice,
    /// The linear model's optimum.
    mode: &'a [f64],
    precision: f64,
}

/// Where values are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    Network,
    Linear,
}

impl Models<'_> {
    /// `log p(y | .)` and `log p(y | .) - a/2 |.|²`, less what does not depend on the weights, at a point of the slice.
    fn values(&self, model: Model, point: [f64; 2]) -> Result<[f64; 2]> {
        let mut weights =
            if model == Model::Network { self.tangent.trained.clone() } else { self.mode.to_vec() };
        weights[self.slice.weights.clone()].copy_from_slice(&self.slice.at(point));
        let residuals: Vec<f64> = match model {
            Model::Network => {
                let mut network: Network<f64> = self.trained.network.clone();
                self.trained.selection.assign(&weights, network.parameters_mut());
                let outputs = network.forward(&column(&self.trained.toy.x))?.into_values();
                self.trained.toy.y.iter().zip(&outputs).map(|(y, f)| y - f).collect()
            }
            Model::Linear => {
                let outputs = product(self.tangent.features.as_ref(), &weights);
                self.tangent.targets.iter().zip(&outputs).map(|(y, f)| y - f).collect()
            }
        };
        let likelihood = -0.5 * dot(&residuals, &residuals) / self.tangent.noise_variance;
        Ok([likelihood, likelihood - 0.5 * self.precision * dot(&weights, &weights)])
    }

    /// The gradient of the log likelihood within the slice, by central differences.
    fn gradient(&self, model: Model, [x, y]: [f64; 2], step: f64) -> Result<[f64; 2]> {
        let difference = |a: [f64; 2], b: [f64; 2]| -> Result<f64> {
            Ok((self.values(model, a)?[0] - self.values(model, b)?[0]) / (2.0 * step))
        };
        Ok([difference([x + step, y], [x - step, y])?, difference([x, y + step], [x, y - step])?])
    }
}

/// The weights of the first layer that has any: they stand together in the flat vector.
fn first_layer(trained: &TrainedToy) -> Result<Range<usize>> {
    let (graph, parts) = (trained.network.graph(), trained.selection.parts());
    let layer = graph.nodes().iter().find(|node| !node.parameters.is_empty());
    let selected = |parameter: usize| layer.is_some_and(|node| node.parameters.contains(&parameter));
    let own: Vec<_> = parts.iter().filter(|p| selected(p.parameter)).collect();
    match (own.first(), own.last()) {
        (Some(first), Some(last)) => Ok(first.offset..last.offset + last.length),
        _ => refused("the network has no weights"),
    }
}

/// Trains the network, finds the linear model's optimum, walks over the slice.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let trained = TrainedToy::new(&settings.data, &settings.network, &settings.training, context)?;
    let tangent = trained.tangent(&trained.network)?;
    let precision = match settings.precision {
        Some(precision) => precision,
        None => Conjugate::new(&tangent)?.learn(Update::MacKay, 1.0, 1000).precision(),
    };
    let prior = Prior::scalar(tangent.dimension(), precision)?;
    let posterior = tangent.curvature()?.condition(&prior, 1.0).map_err(LinearError::from)?;
    let mode = tangent.mode(&posterior);
    let weights = first_layer(&trained)?;
    let (own, best) = (&tangent.trained[weights.clone()], &mode[weights.clone()]);
    let slice = Slice::new(weights.clone(), own, best)?;
    let models = Models { trained: &trained, tangent: &tangent, slice: &slice, mode: &mode, precision };
    let (norm, best_norm) = (dot(own, own).sqrt(), dot(best, best).sqrt());
    let (own, best) = (slice.coordinates(own), slice.coordinates(best));

    let half = settings.reach * norm.max(best_norm);
    let step = 2.0 * half / (settings.points - 1) as f64;
    let axis: Vec<f64> = (0..settings.points).map(|i| i as f64 * step - half).collect();
    let (mut out, mut panels) = (Measured::default(), Vec::new());
    for (name, model, point) in [("network", Model::Network, own), ("linear", Model::Linear, best)] {
        let (mut likelihood, mut whole) = (Vec::new(), Vec::new());
        for (row, &y) in axis.iter().enumerate() {
            context.step(&format!("slice of the {name} model"), row, axis.len())?;
            for &x in &axis {
                let [a, b] = models.values(model, [x, y])?;
                likelihood.push(a);
                whole.push(b);
            }
        }
        let at_point = models.values(model, point)?;
        // Along the ray of the model's own point: half as long, and twice.
        let along = |t: f64| models.values(model, [t * point[0], t * point[1]]);
        let (near, far) = (along(0.5)?, along(2.0)?);
        for (what, values, k) in [("log_likelihood", &likelihood, 0), ("log_posterior", &whole, 1)] {
            let largest = (0..values.len()).max_by(|&i, &j| values[i].total_cmp(&values[j])).unwrap_or(0);
            let place = [axis[largest % axis.len()], axis[largest / axis.len()]];
            let away = ((place[0] - point[0]).powi(2) + (place[1] - point[1]).powi(2)).sqrt();
            out.numbers[name][what] = json!({
                "at_own_point": at_point[k], "largest": values[largest],
                "distance_in_steps": away / step,
                "half_as_long": near[k] - at_point[k], "twice_as_long": far[k] - at_point[k],
                "largest_change": (near[k] - at_point[k]).abs().max((far[k] - at_point[k]).abs()),
            });
            let top = values[largest];
            panels.push(PlanePanel::new(
                format!("{}, {name} model", what.replace('_', " ")),
                PlaneKind::Amount,
                values.iter().map(|v| (v - top).max(-settings.depth)).collect(),
            ));
        }
        out.series[name] = json!({"log_likelihood": likelihood, "log_posterior": whole});
    }
    // Both models have one gradient where they touch: with the other layers at the trained weights, too.
    let touching = Models { mode: &tangent.trained, ..models };
    let small = 1e-4 * norm;
    let gradients = [Model::Network, Model::Linear].map(|model| touching.gradient(model, own, small));
    let [network, linear] = gradients;
    let (network, linear) = (network?, linear?);
    let apart = ((network[0] - linear[0]).powi(2) + (network[1] - linear[1]).powi(2)).sqrt();
    out.numbers["touching"] = json!({"gradient": dot(&linear, &linear).sqrt(), "relative_difference": apart / dot(&linear, &linear).sqrt()});
    out.numbers["norms"] = json!({"trained": norm, "optimum": best_norm, "ratio": norm / best_norm});
    out.numbers["precision"] = precision.into();
    out.series["axis"] = json!(axis);
    out.tables.push(table());
    out.facts = trained.facts;
    out.figures.push(Item::Plane(Plane {
            title: "Slices through the weights of the first layer".into(),
            x: "along the trained weights".into(),
            y: "orthogonal, towards the linear model's optimum".into(),
            grid_x: axis.clone(),
            grid_y: axis,
            panels,
            points_x: vec![own[0], best[0]],
            points_y: vec![own[1], best[1]],
            points_class: vec![0, 1],
            caption: format!(
                "Dot: trained weights; diamond: optimum of the linear model. Colours end {} nats below the highest value of each panel.",
                settings.depth
            ),
    }));
    Ok(out)
}

/// What happens along the rays.
fn table() -> NumberTable {
    let columns = [
        ("half_as_long", "weights half as long"),
        ("twice_as_long", "twice as long"),
        ("distance_in_steps", "steps from the highest value"),
    ];
    let names =
        ["network.log_likelihood", "network.log_posterior", "linear.log_likelihood", "linear.log_posterior"];
    let rows = names.map(|name| {
        let cells = columns.iter().map(|(key, _)| format!("{name}.{key}"));
        (name.replace('.', ": ").replace('_', " "), cells.collect())
    });
    NumberTable {
        title: "Nats gained along the ray from the origin through each model's own point".into(),
        head: std::iter::once("model").chain(columns.iter().map(|c| c.1)).map(String::from).collect(),
        rows: rows.to_vec(),
        caption: "A layer norm follows the first layer: the network's likelihood does not depend on its length, and its posterior has no optimum but the origin.".into(),
    }
}
