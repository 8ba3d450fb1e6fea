//! Files written by hand, damaged ones, and round trips.

use super::*;
use crate::architecture::{Architecture, Perceptron, Resnet};
use crate::{Activation, Array, Graph, Network, NetworkError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;

/// A file of tensors given as (name, type, shape, bytes), with metadata, written by the rules of the format.
fn file(tensors: &[(&str, &str, &[usize], Vec<u8>)], metadata: &str) -> Vec<u8> {
    let (mut header, mut data) = (Vec::new(), Vec::new());
    if !metadata.is_empty() {
        header.push(format!("\"__metadata__\":{metadata}"));
    }
    for (name, dtype, shape, bytes) in tensors {
        let (start, end) = (data.len(), data.len() + bytes.len());
        header.push(format!(
            "\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{start},{end}]}}"
        ));
        data.extend(bytes);
    }
    let header = format!("{{{}}}", header.join(","));
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

fn place(bytes: &[u8]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.safetensors");
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

fn load<T: crate::Precision>(bytes: &[u8], graph: &Graph) -> Result<Loaded<T>, SafetensorsError> {
    let (_directory, path) = place(bytes);
    load_safetensors(&path, graph)
}

/// One linear layer from 2 inputs to 1 output.
fn line() -> Graph {
    Architecture::Perceptron(Perceptron::new(2, &[], 1, Activation::Tanh)).graph().unwrap()
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn f64s(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn every_floating_type_is_read() {
    // 1.5 and -2 by their bits: sign, exponent and fraction of each format.
    let half = [0x3e00u16, 0xc000].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let brain = [0x3fc0u16, 0xc000].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    for (dtype, bytes) in
        [("F16", half), ("BF16", brain), ("F32", f32s(&[1.5, -2.0])), ("F64", f64s(&[1.5, -2.0]))]
    {
        let bytes = file(&[("0.weight", dtype, &[1, 2], bytes), ("0.bias", "F64", &[1], f64s(&[0.1]))], "");
        let loaded = load::<f64>(&bytes, &line()).unwrap();
        assert_eq!(loaded.parameters[0].values(), [1.5, -2.0], "{dtype}");
        assert_eq!(loaded.parameters[1].values(), [0.1]);
        let widened = format!("1 tensors of type {dtype} were widened to F64, which changes no number");
        assert_eq!(loaded.notes, if dtype == "F64" { vec![] } else { vec![widened] });
        let loaded = load::<f32>(&bytes, &line()).unwrap();
        assert_eq!(loaded.parameters[1].values(), [0.1f32]);
        assert!(
            loaded.notes.contains(&"1 numbers in 1 tensors were rounded to F32".to_string()),
            "{:?}",
            loaded.notes
        );
    }
}

#[test]
fn counters_of_pytorch_are_left_out_with_a_note() {
    let counter = 7i64.to_le_bytes().to_vec();
    let bytes = file(
        &[
            ("0.weight", "F32", &[1, 2], f32s(&[1.0, 2.0])),
            ("bn1.num_batches_tracked", "I64", &[], counter),
            ("0.bias", "F32", &[1], f32s(&[3.0])),
        ],
        "{\"format\":\"pt\"}",
    );
    let loaded = load::<f32>(&bytes, &line()).unwrap();
    assert_eq!(loaded.notes, ["1 counters `num_batches_tracked` were left out: inference does not use them"]);
    assert_eq!(loaded.metadata, BTreeMap::from([("format".into(), "pt".into())]));
    assert_eq!(loaded.parameters[0].values(), [1.0, 2.0]);
}

#[test]
fn everything_that_does_not_fit_is_listed() {
    let graph = Architecture::Perceptron(Perceptron::new(2, &[2, 2], 1, Activation::Tanh)).graph().unwrap();
    let bytes = file(
        &[
            ("0.weight", "F32", &[2, 1], f32s(&[1.0, 2.0])),
            ("0.bias", "I32", &[2], f32s(&[0.0, 0.0])),
            ("2.weight", "F32", &[2, 2], f32s(&[1.0, f32::NAN, 2.0, 3.0])),
            ("2.bias", "F64", &[2], f64s(&[f64::NEG_INFINITY, 0.0])),
            ("4.bias", "F64", &[1], f64s(&[1e300])),
            ("6.weight", "F32", &[1], f32s(&[0.0])),
        ],
        "",
    );
    let Err(SafetensorsError::Network { source: NetworkError::Tensors { problems }, path }) =
        load::<f32>(&bytes, &graph)
    else {
        panic!("the tensors do not fit");
    };
    assert!(path.ends_with("w.safetensors"));
    assert_eq!(
        problems,
        [
            "`0.weight` has shape [2, 1], expected [2, 2]",
            "`0.bias` has element type I32; F16, BF16, F32 and F64 can be read",
            "`2.weight` holds NaN at position 1",
            "`2.bias` holds -inf at position 0",
            "`4.weight` of shape [1, 2] is missing",
            "`4.bias` holds 1e300 at position 0, beyond single precision",
            "`6.weight` of shape [1] is no parameter of the network",
        ]
    );
}

#[test]
fn endless_problems_are_cut() {
    let names: Vec<String> = (0..1000).map(|i| format!("x{i}")).collect();
    let tensors: Vec<_> = names.iter().map(|name| (name.as_str(), "F32", &[1][..], f32s(&[0.0]))).collect();
    let Err(SafetensorsError::Network { source: NetworkError::Tensors { problems }, .. }) =
        load::<f32>(&file(&tensors, ""), &line())
    else {
        panic!("no tensor fits");
    };
    assert_eq!((problems.len(), problems[200].as_str()), (201, "... and 802 more"));
}

#[test]
fn networks_round_trip_bit_for_bit() {
    let architecture = Architecture::Resnet(Resnet { width: 4, ..Resnet::cifar10(8) });
    let streams = posterior_linalg::random::Streams::new(3);
    let network = Network::<f64>::initialised(architecture.graph().unwrap(), streams).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("n.safetensors");
    let metadata = BTreeMap::from([
        (ARCHITECTURE_KEY.to_string(), architecture.to_toml().unwrap()),
        ("note".to_string(), "quotes \" and\nlines, é".to_string()),
    ]);
    save_safetensors(&path, &network, &metadata).unwrap();
    let first = std::fs::read(&path).unwrap();
    save_safetensors(&path, &network, &metadata).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first, "the same bytes every time");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "no temporary file remains");
    // The format's own library agrees on every tensor.
    let theirs = ::safetensors::SafeTensors::deserialize(&first).unwrap();
    assert_eq!(theirs.len(), network.graph().parameters().len());
    for (slot, values) in network.graph().parameters().iter().zip(network.parameters()) {
        let view = theirs.tensor(&slot.name).unwrap();
        assert_eq!((view.shape(), view.data()), (&slot.shape[..], &f64s(values.values())[..]));
    }
    let read = read_network::<f64>(&path, None).unwrap();
    assert_eq!((read.network.parameters(), &read.architecture), (network.parameters(), &architecture));
    assert_eq!((read.metadata.clone(), read.notes.len()), (metadata.clone(), 0));
    assert_eq!(super::metadata(&path).unwrap(), metadata);
    // Single precision too.
    let single = network.cast::<f32>().unwrap();
    save_safetensors(&path, &single, &metadata).unwrap();
    let read = read_network::<f32>(&path, Some(&architecture)).unwrap();
    assert_eq!((read.network.parameters(), read.notes.len()), (single.parameters(), 0));
    let other = Architecture::Resnet(Resnet {
        width: 4,
        names: crate::architecture::Names::Torchvision,
        ..Resnet::cifar10(8)
    });
    let error = read_network::<f32>(&path, Some(&other)).unwrap_err().to_string();
    assert!(
        error.contains("`fc.weight` of shape [10, 16] is missing") && error.contains("`linear.weight`"),
        "{error}"
    );
}

#[test]
fn a_network_needs_an_architecture() {
    let tensors =
        [("0.weight", "F32", &[1, 2][..], f32s(&[1.0, 2.0])), ("0.bias", "F32", &[1], f32s(&[3.0]))];
    let (_directory, path) = place(&file(&tensors, ""));
    let error = read_network::<f64>(&path, None).unwrap_err();
    assert!(matches!(error, SafetensorsError::NoArchitecture { .. }));
    assert!(error.to_string().contains("give an architecture file"), "{error}");
    let given = Architecture::Perceptron(Perceptron::new(2, &[], 1, Activation::Tanh));
    let read = read_network::<f64>(&path, Some(&given)).unwrap();
    assert_eq!(read.network.forward(&Array::new([1, 2], vec![1.0, 1.0])).unwrap().values(), [6.0]);
    // Damaged, impossible and different architectures in the file.
    let stored = |text: &str| {
        place(&file(&tensors, &format!("{{\"{ARCHITECTURE_KEY}\":{}}}", serde_json::json!(text))))
    };
    let (_directory, path) = stored("kind = 'perceptron'\ninputs = 2");
    let error = read_network::<f64>(&path, None).unwrap_err();
    assert!(error.to_string().contains("missing field `outputs`"), "{error}");
    let (_directory, path) = stored("kind = 'resnet'\ndepth = 7");
    assert!(matches!(read_network::<f64>(&path, None), Err(SafetensorsError::Graph { .. })));
    let read = read_network::<f64>(&path, Some(&given)).unwrap();
    assert!(read.notes.iter().any(|note| note.contains("another architecture")), "{:?}", read.notes);
}

#[test]
fn broken_files_are_refused_at_once() {
    let good =
        file(&[("0.weight", "F32", &[1, 2], f32s(&[1.0, 2.0])), ("0.bias", "F32", &[1], f32s(&[3.0]))], "");
    let mut huge = good.clone();
    huge[..8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let mut largest = good.clone();
    largest[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let entry = |shape: &str, offsets: &str| {
        let header =
            format!("{{\"0.weight\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":{offsets}}}}}");
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 8]].concat()
    };
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "only 0 bytes"),
        (vec![1, 2, 3], "only 3 bytes"),
        (good[..good.len() - 1].to_vec(), "cut off"),
        (good[..20].to_vec(), "cut off"),
        ([&good[..], &[0]].concat(), "joined"),
        (huge, "header should have 1099511627776 bytes"),
        (largest, "header should have"),
        (b"GIF89a, which is something else entirely".to_vec(), "another kind"),
        ([&3u64.to_le_bytes()[..], b"[1]"].concat(), "no JSON object"),
        ([&5u64.to_le_bytes()[..], b"{\"a\":"].concat(), "damaged"),
        (entry("[1,2]", "[8,0]"), "damaged"),
        (entry("[1,2]", "[0,18446744073709551615]"), "damaged"),
        (entry("[4611686018427387904,4611686018427387904]", "[0,8]"), "damaged"),
        (entry("[1000000000000]", "[0,4000000000000]"), "cut off"),
        (entry("[1,3]", "[0,8]"), "damaged"),
        (entry("[1,-2]", "[0,8]"), "damaged"),
    ];
    for (bytes, part) in cases {
        let error = load::<f64>(&bytes, &line()).unwrap_err();
        assert!(matches!(error, SafetensorsError::Malformed { .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let archive = load::<f64>(b"PK\x03\x04 this is something else entirely", &line()).unwrap_err();
    assert!(matches!(archive, SafetensorsError::StateDict { .. }), "{archive:?}");
    assert!(archive.to_string().contains("archive"), "{archive}");
    let directory = tempfile::tempdir().unwrap();
    assert!(load_safetensors::<f64>(directory.path(), &line()).is_err(), "a folder");
    assert!(matches!(metadata(&directory.path().join("none")), Err(SafetensorsError::Read { .. })));
    let nowhere = directory.path().join("no/such/folder/n.safetensors");
    let network = Network::<f64>::initialised(line(), posterior_linalg::random::Streams::new(1)).unwrap();
    assert!(matches!(
        save_safetensors(&nowhere, &network, &BTreeMap::new()),
        Err(SafetensorsError::Write { .. })
    ));
}

/// Damaged files end in weights or an error, never in a panic.
#[test]
fn damaged_files_do_no_harm() {
    let text = serde_json::json!("kind = 'perceptron'\ninputs = 2\nhidden = [3]\noutputs = 1").to_string();
    let good = file(
        &[
            ("0.weight", "F32", &[3, 2], f32s(&[1.0; 6])),
            ("0.bias", "F16", &[3], vec![0; 6]),
            ("2.weight", "F64", &[1, 3], f64s(&[0.5; 3])),
            ("2.bias", "BF16", &[1], vec![0; 2]),
        ],
        &format!("{{\"{ARCHITECTURE_KEY}\":{text}}}"),
    );
    let (_directory, path) = place(&good);
    assert_eq!(read_network::<f64>(&path, None).unwrap().network.graph().trainable(), 13);
    let header = 8 + u64::from_le_bytes(*good.first_chunk::<8>().unwrap()) as usize;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let (mut read, mut refused) = (0, 0);
    for round in 0..1500 {
        let mut bytes = good.clone();
        for _ in 0..1 + next(3) {
            // Mostly the header, where structure is.
            let at = if round % 4 == 0 { next(bytes.len()) } else { next(header.min(bytes.len())) };
            match next(4) {
                0 => bytes[at] ^= 1 << next(8),
                1 => bytes[at] = b"0123456789{}[],:\"x"[next(18)],
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at + 1),
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        match read_network::<f32>(&path, None) {
            Ok(_) => read += 1,
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(read > 5 && refused > 500, "{read} read, {refused} refused: the damage is of both kinds");
}
