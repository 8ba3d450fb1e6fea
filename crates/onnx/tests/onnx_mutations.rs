//! Valid ONNX files, damaged in many ways: no panic escapes, nothing hangs, memory stays bounded.
//!
//! `POSTERIOR_FUZZ_ITERATIONS=1000000 cargo test --release -p posterior-onnx --test onnx_mutations` damages each a million times.

mod damage;

use damage::{PEAK_LIMIT_KB, damage, iterations, peak_kb, use_it};
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_onnx::definitions::ModelProto;
use posterior_onnx::{OnnxOptions, SUPPORTED, parse_onnx_with};
use prost::Message;
use rand::RngExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A valid file with one to three changes of its meaning: operators, attributes, inputs, shapes, whole numbers, operator sets.
fn twist(bytes: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    const NUMBERS: [i64; 12] = [0, 1, 2, 3, 5, -1, -2, 16, 1 << 20, 1 << 40, i64::MAX, i64::MIN];
    let mut model = ModelProto::decode(bytes).unwrap();
    for _ in 0..rng.random_range(1..4) {
        let number = NUMBERS[rng.random_range(0..NUMBERS.len())];
        let choice = rng.random_range(0..10);
        let graph = model.graph.as_mut().unwrap();
        let names: Vec<String> =
            graph.node.iter().flat_map(|n| n.inputs_and_outputs()).chain([String::new()]).collect();
        let name = names[rng.random_range(0..names.len())].clone();
        let count = graph.node.len();
        let node = &mut graph.node[rng.random_range(0..count)];
        let attributes = node.attribute.len();
        match choice {
            0 => node.op_type = Some(SUPPORTED[rng.random_range(0..SUPPORTED.len())].into()),
            1 | 2 if attributes > 0 => {
                let attribute = &mut node.attribute[rng.random_range(0..attributes)];
                let entries = attribute.ints.len();
                match entries {
                    0 => attribute.i = Some(number),
                    _ => attribute.ints[rng.random_range(0..entries)] = number,
                }
            }
            3 if attributes > 0 => {
                node.attribute.remove(rng.random_range(0..attributes));
            }
            4 if !node.input.is_empty() => {
                let at = rng.random_range(0..node.input.len());
                node.input[at] = name;
            }
            5 => node.input.push(name),
            6 => model.opset_import[0].version = Some(rng.random_range(9..26)),
            7 => {
                let dims = &mut graph.input[0]
                    .r#type
                    .as_mut()
                    .unwrap()
                    .tensor_type
                    .as_mut()
                    .unwrap()
                    .shape
                    .as_mut()
                    .unwrap()
                    .dim;
                let at = rng.random_range(0..dims.len());
                dims[at].dim_value = Some(number);
            }
            _ if !graph.initializer.is_empty() => {
                let at = rng.random_range(0..graph.initializer.len());
                let tensor = &mut graph.initializer[at];
                let bytes = tensor.raw_data.as_ref().map_or(0, |raw| raw.len());
                if tensor.data_type == Some(7) && bytes >= 8 {
                    let mut raw = tensor.raw_data.as_ref().unwrap().to_vec();
                    let at = 8 * rng.random_range(0..bytes / 8);
                    raw[at..at + 8].copy_from_slice(&number.to_le_bytes());
                    tensor.raw_data = Some(raw.into());
                } else if rng.random() {
                    tensor.dims.reverse();
                } else {
                    tensor.dims.push(1);
                }
            }
            _ => {}
        }
    }
    model.encode_to_vec()
}

trait Names {
    fn inputs_and_outputs(&self) -> Vec<String>;
}

impl Names for posterior_onnx::definitions::NodeProto {
    fn inputs_and_outputs(&self) -> Vec<String> {
        self.input.iter().chain(&self.output).cloned().collect()
    }
}

#[test]
fn damaged_and_twisted_files_are_errors_or_networks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "onnx"))
        .collect();
    files.sort();
    assert!(files.len() > 10);
    let options = [OnnxOptions::default(), OnnxOptions { strip_final_softmax: true, ..Default::default() }];
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let valid = std::fs::read(&path).unwrap();
        let mut rng = Streams::new(7).stream(&name);
        for (what, change) in
            [("damaged", damage as fn(&[u8], &mut ChaCha8Rng) -> Vec<u8>), ("twisted", twist)]
        {
            let (mut accepted, mut slowest) = (0, Duration::ZERO);
            for i in 0..iterations() {
                let bytes = change(&valid, &mut rng);
                let started = Instant::now();
                let read = parse_onnx_with(bytes, &name, &options[i as usize % 2]);
                slowest = slowest.max(started.elapsed());
                if let Ok(imported) = read {
                    accepted += 1;
                    use_it(&name, &imported);
                }
            }
            let peak = peak_kb();
            println!(
                "{name}, {what}: {accepted} of {} still readable, slowest {slowest:.1?}, peak {peak} kB",
                iterations()
            );
            assert!(slowest < Duration::from_secs(1), "{name}: {slowest:?}");
            assert!(peak < PEAK_LIMIT_KB, "{name}: {peak} kB");
        }
    }
}
