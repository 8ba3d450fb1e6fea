//! The file as a whole: operator sets, inputs and outputs, which nodes matter.

use super::definitions::{ModelProto, TensorProto, ValueInfoProto};
use super::error::{OnnxError, short};
use super::external::DataFiles;
use super::inputs::{Fed, fed};
use super::node::Node;
use super::{OPSETS, OnnxOptions, patterns};
use prost::Message;
use prost::bytes::{Buf, Bytes};
use std::collections::{HashMap, HashSet};

/// Fields of the graph and of its nodes that a file may hold: each becomes a record in memory much larger than its bytes.
const MOST_RECORDS: usize = 1_000_000;

/// A checked file.
pub(super) struct Model<'a> {
    /// The nodes that the output needs, in order.
    pub(super) nodes: Vec<Node>,
    pub(super) initialisers: HashMap<&'a str, &'a TensorProto>,
    /// What it is fed, in its order.
    pub(super) inputs: Vec<Fed>,
    pub(super) output: String,
    /// Whether the batch axis is dynamic (otherwise it is fixed to 1).
    pub(super) dynamic: bool,
    /// The number of examples, more than 1, that the file was written for: it is read as if the batch axis were dynamic.
    pub(super) fixed: Option<usize>,
    pub(super) opset: i64,
    pub(super) producer: String,
    pub(super) options: OnnxOptions,
    pub(super) notes: Vec<String>,
    /// Where numbers are that are not in the file itself.
    pub(super) data: &'a DataFiles,
}

/// The messages of the file.
pub(super) fn decode(bytes: Vec<u8>, file: &str) -> Result<ModelProto, OnnxError> {
    let malformed = |problem: String| OnnxError::Malformed { file: file.into(), problem };
    if bytes.is_empty() {
        return Err(malformed("it is empty".into()));
    }
    let bytes = Bytes::from(bytes);
    let mut records = 0;
    // Nodes of the graph and of functions, and tensors of the graph and of nodes' attributes, whose entries say where numbers are.
    for path in [&[7, 1][..], &[7, 5], &[7, 1, 5, 5], &[25, 7], &[25, 7, 5, 5]] {
        count_records(bytes.clone(), path, &mut records)
            .ok_or_else(|| malformed("it is cut off, or something else".into()))?;
    }
    if records > MOST_RECORDS {
        let problem = format!("it holds {records} records, more than {MOST_RECORDS}");
        return Err(OnnxError::Limit { file: file.into(), problem });
    }
    ModelProto::decode(bytes).map_err(|e| malformed(e.to_string()))
}

/// Counts the fields of a message that are no numbers, and those of the messages along `path` in it; None where the bytes are no message.
fn count_records(mut bytes: Bytes, path: &[u64], records: &mut usize) -> Option<()> {
    let varint = |bytes: &mut Bytes| prost::decode_length_delimiter(bytes).ok();
    while bytes.has_remaining() {
        let key = varint(&mut bytes)? as u64;
        *records += usize::from(key & 7 == 2);
        let skip = match key & 7 {
            0 => {
                // Any of ten bytes, the last with its highest bit clear.
                let length = bytes.iter().take(10).position(|b| b & 0x80 == 0)? + 1;
                bytes.advance(length);
                0
            }
            1 => 8,
            2 => varint(&mut bytes)?,
            5 => 4,
            _ => return None,
        };
        if skip > bytes.remaining() {
            return None;
        }
        let inside = bytes.split_to(skip);
        if let (2, Some((&field, rest))) = (key & 7, path.split_first())
            && key >> 3 == field
        {
            count_records(inside, rest, records)?;
        }
    }
    Some(())
}

impl<'a> Model<'a> {
    pub(super) fn check(
        model: &'a ModelProto,
        file: &str,
        options: &OnnxOptions,
        data: &'a DataFiles,
    ) -> Result<Self, OnnxError> {
        let malformed = |problem: String| OnnxError::Malformed { file: file.into(), problem };
        let opset = opset(model, file)?;
        let graph = model.graph.as_ref().ok_or_else(|| malformed("it holds no graph".into()))?;
        if !graph.sparse_initializer.is_empty() {
            return Err(malformed("it holds sparse initialisers, which are not supported".into()));
        }
        let mut initialisers = HashMap::new();
        for tensor in &graph.initializer {
            let name = tensor.name.as_deref().unwrap_or_default();
            if name.is_empty() || initialisers.insert(name, tensor).is_some() {
                return Err(malformed(format!(
                    "two initialisers are called `{}` (or one has no name)",
                    short(name)
                )));
            }
        }
        let (inputs, batch) = fed(&graph.input, &initialisers, file)?;
        let output = output(&graph.output, options, file)?;
        let (dynamic, fixed) = (batch != Some(1), batch.filter(|&b| b > 1));
        let mut notes = Vec::new();
        if let Some(batch) = fixed {
            notes.push(format!("the file is for {batch} examples at a time: it is read for any number"));
        }
        let mut nodes: Vec<Node> = graph.node.iter().map(Node::new).collect();
        let producers = producers(&nodes, &initialisers, &inputs).map_err(malformed)?;
        patterns::recognise(&mut nodes, &producers, &initialisers, data, &mut notes);
        let nodes = needed(nodes, &producers, &output);
        let text = |t: &Option<String>| t.as_deref().map(short).unwrap_or_default();
        let producer =
            format!("{} {}", text(&model.producer_name), text(&model.producer_version)).trim().to_string();
        Ok(Self {
            nodes,
            initialisers,
            inputs,
            output,
            dynamic,
            fixed,
            opset,
            producer,
            options: options.clone(),
            notes,
            data,
        })
    }
}

fn opset(model: &ModelProto, file: &str) -> Result<i64, OnnxError> {
    let error = |problem: String| OnnxError::Opset { file: file.into(), problem };
    let own = |domain: &Option<String>| matches!(domain.as_deref().unwrap_or_default(), "" | "ai.onnx");
    let mut versions = model.opset_import.iter().filter(|o| own(&o.domain));
    let version = versions.next().and_then(|o| o.version);
    let version = version.ok_or_else(|| error("it does not say which operator set it uses".into()))?;
    if !OPSETS.contains(&version) {
        return Err(error(format!("it uses operator set {version}")));
    }
    Ok(version)
}

/// Names for a message, as many as fit.
fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let (all, mut text) = (names.len(), String::new());
    for (i, name) in names.enumerate() {
        if i > 0 && text.len() + name.len() > 120 {
            return format!("{text} and {} more", all - i);
        }
        text += if i > 0 { ", " } else { "" };
        text += &format!("`{}`", short(name));
    }
    text
}

fn output(outputs: &[ValueInfoProto], options: &OnnxOptions, file: &str) -> Result<String, OnnxError> {
    let names: Vec<&str> = outputs.iter().filter_map(|v| v.name.as_deref()).collect();
    let listed = listed(names.iter().copied());
    let error = |problem: String| OnnxError::Interface { file: file.into(), problem };
    match (&options.output, &names[..]) {
        (Some(wanted), _) if names.contains(&wanted.as_str()) => Ok(wanted.clone()),
        (Some(wanted), _) => {
            Err(error(format!("there is no output `{}`; there are {listed}", short(wanted))))
        }
        (None, [only]) => Ok((*only).to_string()),
        (None, _) => Err(error(format!(
            "the model has {} outputs ({listed}): choose one, --onnx-output NAME",
            names.len()
        ))),
    }
}

/// Which node makes a value; every name may be made once.
fn producers(
    nodes: &[Node],
    initialisers: &HashMap<&str, &TensorProto>,
    inputs: &[Fed],
) -> Result<HashMap<String, usize>, String> {
    let mut producers = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for output in node.outputs.iter().filter(|o| !o.is_empty()) {
            let taken = initialisers.contains_key(output.as_str())
                || inputs.iter().any(|input| input.name == *output);
            if producers.insert(output.clone(), i).is_some() || taken {
                return Err(format!("the value `{}` is made twice", short(output)));
            }
        }
    }
    Ok(producers)
}

/// The nodes that the output depends on, in their order.
fn needed(nodes: Vec<Node>, producers: &HashMap<String, usize>, output: &str) -> Vec<Node> {
    let mut found = HashSet::new();
    let mut open: Vec<usize> = producers.get(output).copied().into_iter().collect();
    while let Some(i) = open.pop() {
        if found.insert(i) {
            open.extend(nodes[i].inputs.iter().filter_map(|name| producers.get(name)));
        }
    }
    nodes.into_iter().enumerate().filter(|(i, _)| found.contains(i)).map(|(_, node)| node).collect()
}
