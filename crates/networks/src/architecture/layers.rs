//! Any network, layer by layer.

use super::building::{flatten, wrong};
use super::layer_text;
use crate::graph::{Graph, GraphBuilder, GraphError, Node, ParameterSlot, Recurrent, Value};
use crate::operation::{Initial, Operation};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;

pub(super) const KIND: &str = "layers";

/// What the network's input is called in `inputs`.
pub(super) const INPUT: &str = "input";

/// Layers of a file at most: recurrent layers of networks from elsewhere are written down step by step.
pub(super) const MOST_LAYERS: usize = 100_000;

/// What one layer of a file does: an [`Operation`], or one of the usual combinations.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LayerOperation {
    /// One operation.
    Plain(Operation),
    /// Layer norm over the last `axes` axes with `weight` and `bias`.
    LayerNorm {
        /// How many axes.
        axes: usize,
        /// Added to the variance.
        epsilon: f64,
    },
    /// RMS norm over the last `axes` axes with `weight`.
    RmsNorm {
        /// How many axes.
        axes: usize,
        /// Added to the mean of squares.
        epsilon: f64,
    },
    /// Group norm of channels with `weight` and `bias`.
    GroupNorm {
        /// How many groups.
        groups: usize,
        /// Added to the variance.
        epsilon: f64,
    },
    /// All values on one axis.
    Flatten,
    /// Recurrent layers, with PyTorch's names of parameters.
    Recurrent(Recurrent),
}

/// One `[[layer]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerEntry {
    /// Unique name; parameters are called `name.weight`, `name.bias`, ... unless `parameters` says otherwise.
    pub name: String,
    /// What it does.
    pub operation: LayerOperation,
    /// The layers it reads (`input` for the network's input); None for the layer before.
    pub inputs: Option<Vec<String>>,
    /// Full names of its parameters in the operation's order; a name that exists shares that parameter.
    pub parameters: Vec<String>,
}

/// A network written layer by layer.
///
/// ```toml
/// kind = "layers"
/// input = [3, 32, 32]
///
/// [[layer]]
/// name = "conv"
/// operation = "convolution"
/// outputs = 8
/// kernel = 3
/// padding = 1
///
/// [[layer]]
/// name = "act"
/// operation = "relu"
///
/// [[layer]]
/// name = "sum"
/// operation = "add"
/// inputs = ["act", "conv"]
///
/// [[layer]]
/// name = "flat"
/// operation = "flatten"
///
/// [[layer]]
/// name = "head"
/// operation = "linear"
/// outputs = 10
/// ```
///
/// Operations and their settings are those of [`Operation`] in snake case (`linear`, `convolution`, `batch_norm`, `max_pool`, ...), each activation by its
/// name, `scale` with `factor`, `concatenate` with `axis`, `reshape` with `shape`, and `flatten`, `layer_norm` and `rms_norm` (`axes`, `epsilon`), `group_norm` (`groups`,
/// `epsilon`), `lstm`, `gru` and `rnn` (`hidden`, `layers`, `bidirectional`, `bias`, `returns`; see [`Recurrent`]). Where convolutions and pools take a list for the axes, one number stands for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    /// Shape of an example.
    pub input: Vec<usize>,
    /// Name of the layer that the network returns; the last one where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What `inputs` call the network's input: `input` where left out. For networks that have a layer of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_name: Option<String>,
    /// The layers in order: a layer reads only what stands before it.
    #[serde(rename = "layer", default)]
    pub layers: Vec<LayerEntry>,
    /// Every parameter in its order, where order, shapes, constants or beginnings are not those that the layers give by themselves; else empty.
    #[serde(rename = "parameter", default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ParameterEntry>,
}

/// One `[[parameter]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterEntry {
    /// Full name.
    pub name: String,
    /// Shape in files; it may leave out axes of length 1 of the shape that the layer needs, or add some.
    pub shape: Vec<usize>,
    /// Whether it is trained; constants are not.
    pub trainable: bool,
    /// How it begins before training.
    pub initial: Initial,
}

impl Layers {
    /// The names that `operation` may have.
    pub fn operations() -> Vec<&'static str> {
        layer_text::names()
    }

    pub(super) fn graph(&self) -> Result<Graph, GraphError> {
        if self.layers.len() > MOST_LAYERS {
            return Err(wrong(KIND, format!("there are more than {MOST_LAYERS} layers")));
        }
        let mut b = GraphBuilder::new(&self.input)?;
        let input_name = self.input_name.as_deref().unwrap_or(INPUT);
        let mut values: HashMap<&str, Value> = HashMap::from([(input_name, Value::INPUT)]);
        let mut last = None;
        for layer in &self.layers {
            if layer.name == input_name {
                let problem =
                    format!("a layer is called `{input_name}`, which is the name of the network's input");
                return Err(wrong(KIND, problem));
            }
            let previous = last.unwrap_or(Value::INPUT);
            let inputs: Vec<Value> = match &layer.inputs {
                None if matches!(layer.operation, LayerOperation::Plain(Operation::Learned(_))) => vec![],
                None => vec![previous],
                Some(names) => names
                    .iter()
                    .map(|name| {
                        values.get(name.as_str()).copied().ok_or_else(|| {
                            wrong(
                                KIND,
                                format!("layer `{}` reads `{name}`, which is no earlier layer", layer.name),
                            )
                        })
                    })
                    .collect::<Result<_, _>>()?,
            };
            let value = layer.add(&mut b, &inputs)?;
            values.insert(&layer.name, value);
            last = Some(value);
        }
        let output = match &self.output {
            Some(name) => values
                .get(name.as_str())
                .copied()
                .ok_or_else(|| wrong(KIND, format!("`output` names `{name}`, which is no layer")))?,
            None => last.ok_or_else(|| wrong(KIND, "there is no [[layer]]"))?,
        };
        let mut graph = b.finish(output)?;
        if !self.parameters.is_empty() {
            graph.parameters = self.ordered_parameters(&mut graph)?;
        }
        Ok(graph)
    }

    /// The parameters as listed; nodes are pointed to their new positions.
    fn ordered_parameters(&self, graph: &mut Graph) -> Result<Vec<ParameterSlot>, GraphError> {
        let positions: HashMap<&str, usize> =
            graph.parameters.iter().enumerate().map(|(i, p)| (p.name.as_str(), i)).collect();
        let mut moved: Vec<Option<usize>> = vec![None; graph.parameters.len()];
        let mut out = Vec::with_capacity(self.parameters.len());
        for entry in &self.parameters {
            let name = &entry.name;
            let Some(&from) = positions.get(name.as_str()).filter(|i| moved[**i].is_none()) else {
                let problem =
                    format!("[[parameter]] `{name}` is no parameter of a layer, or is listed twice");
                return Err(wrong(KIND, problem));
            };
            let own = &graph.parameters[from].shape;
            let long = |shape: &[usize]| shape.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
            if long(own) != long(&entry.shape) {
                let shape = &entry.shape;
                return Err(wrong(
                    KIND,
                    format!("[[parameter]] `{name}` has shape {shape:?}, its layer needs {own:?}"),
                ));
            }
            let number = match entry.initial {
                Initial::Uniform(v) | Initial::Normal(v) | Initial::Constant(v) => v,
            };
            if !number.is_finite() {
                return Err(wrong(KIND, format!("[[parameter]] `{name}` begins with {number}")));
            }
            moved[from] = Some(out.len());
            out.push(ParameterSlot {
                name: name.clone(),
                shape: entry.shape.clone(),
                trainable: entry.trainable,
                initial: entry.initial,
            });
        }
        if let Some(missing) = moved.iter().position(Option::is_none) {
            let name = &graph.parameters[missing].name;
            let problem =
                format!("`{name}` is not among the [[parameter]] entries: list every parameter or none");
            return Err(wrong(KIND, problem));
        }
        for node in &mut graph.nodes {
            node.parameters.iter_mut().for_each(|p| *p = moved[*p].unwrap_or(*p));
        }
        let statistics = |node: &Node| match node.operation {
            Operation::BatchNorm(_) => node.parameters.iter().skip(2).copied().find(|p| out[*p].trainable),
            _ => None,
        };
        if let Some((node, p)) = graph.nodes.iter().find_map(|n| Some((&n.name, statistics(n)?))) {
            let name = &out[p].name;
            let problem = format!(
                "[[parameter]] `{name}` is a statistic of `{node}` and cannot be trained by gradients"
            );
            return Err(wrong(KIND, problem));
        }
        Ok(out)
    }
}

impl LayerEntry {
    fn add(&self, b: &mut GraphBuilder, inputs: &[Value]) -> Result<Value, GraphError> {
        if let LayerOperation::Plain(operation) = &self.operation {
            let parameters: Vec<&str> = self.parameters.iter().map(String::as_str).collect();
            return b.add_named(&self.name, operation.clone(), inputs, &parameters);
        }
        if !self.parameters.is_empty() {
            let problem = "names its parameters, which norms, recurrent layers and flattenings cannot do: their names are `NAME.weight`, `NAME.bias`, and those of PyTorch";
            return Err(wrong(KIND, format!("layer `{}` {problem}", self.name)));
        }
        let &[x] = inputs else {
            return Err(wrong(
                KIND,
                format!("layer `{}` reads {} values, it takes one", self.name, inputs.len()),
            ));
        };
        match self.operation {
            LayerOperation::LayerNorm { axes, epsilon } => b.layer_norm(&self.name, axes, epsilon, x),
            LayerOperation::RmsNorm { axes, epsilon } => b.rms_norm(&self.name, axes, epsilon, x),
            LayerOperation::GroupNorm { groups, epsilon } => b.group_norm(&self.name, groups, epsilon, x),
            LayerOperation::Recurrent(ref recurrent) => b.recurrent(&self.name, recurrent, x),
            LayerOperation::Flatten | LayerOperation::Plain(_) => flatten(b, &self.name, x),
        }
    }
}

impl Serialize for LayerEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (operation, settings) = layer_text::split(&self.operation).map_err(S::Error::custom)?;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("operation", &operation)?;
        if let Some(inputs) = &self.inputs {
            map.serialize_entry("inputs", inputs)?;
        }
        if !self.parameters.is_empty() {
            map.serialize_entry("parameters", &self.parameters)?;
        }
        for (key, value) in &settings {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// One name or a list of names.
struct NameList(Vec<String>);

impl<'de> Deserialize<'de> for NameList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(name) => Ok(Self(vec![name])),
            toml::Value::Array(list) => list
                .into_iter()
                .map(|value| match value {
                    toml::Value::String(name) => Ok(name),
                    other => Err(D::Error::custom(format!("{other} is not the name of a layer"))),
                })
                .collect::<Result<_, _>>()
                .map(Self),
            other => Err(D::Error::custom(format!("{other} is neither a name nor a list of names"))),
        }
    }
}

impl<'de> Deserialize<'de> for LayerEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = LayerEntry;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a layer with name, operation and its settings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LayerEntry, A::Error> {
                let (mut name, mut operation, mut inputs) = (None::<String>, None::<String>, None);
                let (mut parameters, mut settings) = (Vec::new(), toml::Table::new());
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "name" => name = Some(map.next_value()?),
                        "operation" => operation = Some(map.next_value()?),
                        "inputs" => inputs = Some(map.next_value::<NameList>()?.0),
                        "parameters" => parameters = map.next_value::<NameList>()?.0,
                        _ => {
                            settings.insert(key, map.next_value()?);
                        }
                    }
                }
                let name = name.ok_or_else(|| A::Error::custom("a layer has no `name`"))?;
                let wrong = |problem: String| A::Error::custom(format!("layer `{name}`: {problem}"));
                let operation = operation.ok_or_else(|| wrong("`operation` is missing".into()))?;
                let operation = layer_text::gather(&operation, settings)
                    .map_err(|problem| wrong(format!("operation \"{operation}\": {problem}")))?;
                Ok(LayerEntry { name, operation, inputs, parameters })
            }
        }
        deserializer.deserialize_map(Entry)
    }
}
