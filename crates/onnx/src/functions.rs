//! **Functions** of a model: nodes that stand for several, as older exporters of PyTorch write them. Each call becomes the nodes that it stands for.

use super::definitions::{AttributeProto, FunctionProto, ModelProto, NodeProto};
use super::error::{OnnxError, short};
use std::collections::HashMap;

/// Functions within functions at most.
const DEEPEST: usize = 16;

/// The functions of a model by domain and name, and what their nodes may still cost.
struct Functions<'a> {
    known: HashMap<(&'a str, &'a str), &'a FunctionProto>,
    /// Bytes of nodes that may still be made.
    room: u64,
    calls: usize,
}

/// Puts the nodes of functions in the place of calls, in a file of `size` bytes.
///
/// # Errors
/// When functions call each other without end, would become too many nodes, or use another operator set than the model.
pub(super) fn inline(model: &mut ModelProto, file: &str, size: u64) -> Result<(), OnnxError> {
    let functions = std::mem::take(&mut model.functions);
    if functions.is_empty() {
        return Ok(());
    }
    let malformed = |problem: String| OnnxError::Malformed { file: file.into(), problem };
    let name = |f: &FunctionProto| short(f.name.as_deref().unwrap_or_default());
    let mut known = HashMap::new();
    for function in &functions {
        let domain = function.domain.as_deref().unwrap_or_default();
        let own = |d: &Option<String>| matches!(d.as_deref().unwrap_or_default(), "" | "ai.onnx");
        let version = |list: &[super::definitions::OperatorSetIdProto]| {
            list.iter().find(|o| own(&o.domain)).and_then(|o| o.version)
        };
        let differs =
            version(&function.opset_import).is_some_and(|v| Some(v) != version(&model.opset_import));
        if differs {
            let problem =
                format!("its function `{}` uses another operator set than the model", name(function));
            return Err(OnnxError::Opset { file: file.into(), problem });
        }
        let key = (domain, function.name.as_deref().unwrap_or_default());
        if known.insert(key, function).is_some() {
            return Err(malformed(format!("two functions are called `{}`", name(function))));
        }
    }
    let mut state = Functions { known, room: 64 * size + (1 << 20), calls: 0 };
    if let Some(graph) = &mut model.graph {
        let mut nodes = Vec::with_capacity(graph.node.len());
        for node in std::mem::take(&mut graph.node) {
            state.expand(node, 0, &mut nodes).map_err(malformed)?;
        }
        graph.node = nodes;
    }
    Ok(())
}

impl Functions<'_> {
    /// Adds a node, or those that it stands for.
    fn expand(&mut self, call: NodeProto, depth: usize, out: &mut Vec<NodeProto>) -> Result<(), String> {
        let key = (call.domain.as_deref().unwrap_or_default(), call.op_type.as_deref().unwrap_or_default());
        let Some(&function) = self.known.get(&key).filter(|_| !key.0.is_empty()) else {
            out.push(call);
            return Ok(());
        };
        if depth == DEEPEST {
            return Err(format!("its functions call each other more than {DEEPEST} deep"));
        }
        self.calls += 1;
        self.take(64 * (function.input.len() + function.output.len() + 1))?;
        // Names of files do not begin so.
        let prefix = format!("\0{}/", self.calls);
        let actual = |formal: &[String], given: &[String]| -> Vec<(String, String)> {
            let given = given.iter().cloned().chain(std::iter::repeat(String::new()));
            formal.iter().cloned().zip(given).collect()
        };
        let mut names: HashMap<String, String> = actual(&function.input, &call.input).into_iter().collect();
        // An output that is not used still needs a name.
        let outputs =
            actual(&function.output, &call.output).into_iter().filter(|(_, given)| !given.is_empty());
        names.extend(outputs);
        let caller = call.name.as_deref().unwrap_or_default();
        for inner in &function.node {
            let renamed = |list: &[String]| -> Vec<String> {
                let rename = |name: &String| match names.get(name) {
                    Some(given) => given.clone(),
                    None if name.is_empty() => String::new(),
                    None => format!("{prefix}{name}"),
                };
                list.iter().map(rename).collect()
            };
            let attribute: Vec<AttributeProto> =
                inner.attribute.iter().filter_map(|a| resolved(a, &call, function)).collect();
            let node = NodeProto {
                input: renamed(&inner.input),
                output: renamed(&inner.output),
                name: Some(format!("{}/{}", short(caller), inner.name.as_deref().unwrap_or_default())),
                attribute,
                ..inner.clone()
            };
            self.pay(&node)?;
            self.expand(node, depth + 1, out)?;
        }
        Ok(())
    }

    /// Takes what a node needs in memory from what is left.
    fn pay(&mut self, node: &NodeProto) -> Result<(), String> {
        let texts: usize = node.input.iter().chain(&node.output).map(|name| name.len() + 32).sum();
        let numbers = |a: &AttributeProto| {
            let tensor = a.t.as_ref().map_or(0, |t| {
                t.dims.len()
                    + t.float_data.len()
                    + t.int32_data.len()
                    + t.int64_data.len()
                    + t.double_data.len()
            });
            a.ints.len() + a.floats.len() + 8 * a.strings.len() + tensor + 64
        };
        let attributes: usize = node.attribute.iter().map(numbers).sum();
        self.take(256 + texts + 8 * attributes)
    }

    /// Takes so many bytes from what is left.
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.room = self.room.saturating_sub(bytes as u64);
        if self.room == 0 { Err("its functions become more nodes than fit its size".into()) } else { Ok(()) }
    }
}

/// An attribute of a node inside a function: its own, that of the call, or the one that the function has where the call has none.
fn resolved(inner: &AttributeProto, call: &NodeProto, function: &FunctionProto) -> Option<AttributeProto> {
    let Some(reference) = inner.ref_attr_name.as_deref().filter(|r| !r.is_empty()) else {
        return Some(inner.clone());
    };
    let named = |list: &[AttributeProto]| list.iter().find(|a| a.name.as_deref() == Some(reference)).cloned();
    let given = named(&call.attribute).or_else(|| named(&function.attribute_proto))?;
    Some(AttributeProto { name: inner.name.clone(), ..given })
}
