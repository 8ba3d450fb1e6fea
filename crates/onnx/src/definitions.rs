//! The messages of `onnx.proto` that hold a network, as far as they are read; other fields are skipped.
//!
//! Sub-graphs (in attributes) and sequences are left out on purpose: no supported operator has them, and without them
//! messages nest to a fixed depth. Encoding works too, for tests and tools.

use prost::Message;
use prost::bytes::Bytes;

/// A model file.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the format.
    #[prost(int64, optional, tag = "1")]
    pub ir_version: Option<i64>,
    /// The program that wrote it.
    #[prost(string, optional, tag = "2")]
    pub producer_name: Option<String>,
    /// And its version.
    #[prost(string, optional, tag = "3")]
    pub producer_version: Option<String>,
    /// The network.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Versions of the operator sets in use.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// What calls in the graph stand for.
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<FunctionProto>,
}

/// Nodes under a name.
#[derive(Clone, PartialEq, Message)]
pub struct FunctionProto {
    /// The name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Names of what is fed in.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Names of what comes out.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// The nodes, in an order in which they can be computed.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeProto>,
    /// Versions of the operator sets in use.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// The domain of its calls.
    #[prost(string, optional, tag = "10")]
    pub domain: Option<String>,
    /// Attributes that a call need not have.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeProto>,
}

/// An operator set.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Its domain; empty for the operators of ONNX itself.
    #[prost(string, optional, tag = "1")]
    pub domain: Option<String>,
    /// Its version.
    #[prost(int64, optional, tag = "2")]
    pub version: Option<i64>,
}

/// Nodes, weights, inputs and outputs.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The nodes, in an order in which they can be computed.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// A name. Not read, but other programs need it.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Tensors with values.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// What is fed in (and, in old files, every initialiser).
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// What comes out.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// Tensors in sparse form: only their presence is noticed.
    #[prost(bytes = "bytes", repeated, tag = "15")]
    pub sparse_initializer: Vec<Bytes>,
}

/// One operation.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Names of the values read; empty for an optional input that is left out.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the values made.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Its own name; may be empty.
    #[prost(string, optional, tag = "3")]
    pub name: Option<String>,
    /// The operator.
    #[prost(string, optional, tag = "4")]
    pub op_type: Option<String>,
    /// Constants of the operator.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The operator's domain; empty for ONNX itself.
    #[prost(string, optional, tag = "7")]
    pub domain: Option<String>,
}

/// A named constant of a node.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// Its name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// A number.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// A whole number.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// A text.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub s: Option<Bytes>,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// Numbers.
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub floats: Vec<f32>,
    /// Whole numbers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Texts.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// In a function: the attribute of the call that is meant.
    #[prost(string, optional, tag = "21")]
    pub ref_attr_name: Option<String>,
    /// Which of the fields holds the value: 1 to 4 for `f`, `i`, `s`, `t`, 6 and 7 for `floats` and `ints`. Not read, but other programs need it.
    #[prost(int32, optional, tag = "20")]
    pub r#type: Option<i32>,
}

/// A tensor with its values.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Lengths of the axes.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// The type, a number of [`element_type`].
    #[prost(int32, optional, tag = "2")]
    pub data_type: Option<i32>,
    /// Values of type float.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Values of the types of up to 32 bits.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Values of type int64.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// Its name.
    #[prost(string, optional, tag = "8")]
    pub name: Option<String>,
    /// Values in little-endian order.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub raw_data: Option<Bytes>,
    /// Values of type double.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Where the values are, if in another file: `location`, and `offset` and `length` in bytes.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// 1 where the values are in another file.
    #[prost(int32, optional, tag = "14")]
    pub data_location: Option<i32>,
}

/// A text with a name.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// The name.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// The text.
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

/// A named input or output.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// Its name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Its type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type, of which only tensors are read.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// The type of a tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// The type of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// Type of its elements, a number of [`element_type`].
    #[prost(int32, optional, tag = "1")]
    pub elem_type: Option<i32>,
    /// Its shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// A shape.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// The axes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// One axis of a shape.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// Its length, if fixed.
    #[prost(int64, optional, tag = "1")]
    pub dim_value: Option<i64>,
    /// Its name, if not.
    #[prost(string, optional, tag = "2")]
    pub dim_param: Option<String>,
}

/// Numbers that stand for element types.
#[allow(missing_docs, reason = "the names say it")]
pub mod element_type {
    pub const FLOAT: i32 = 1;
    pub const UINT8: i32 = 2;
    pub const INT8: i32 = 3;
    pub const UINT16: i32 = 4;
    pub const INT16: i32 = 5;
    pub const INT32: i32 = 6;
    pub const INT64: i32 = 7;
    pub const BOOL: i32 = 9;
    pub const FLOAT16: i32 = 10;
    pub const DOUBLE: i32 = 11;
    pub const UINT32: i32 = 12;
    pub const UINT64: i32 = 13;
    pub const BFLOAT16: i32 = 16;
}
