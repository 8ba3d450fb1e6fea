//! Models with their numbers in a file beside them, both damaged in many ways: no panic, nothing hangs, memory stays bounded, and nothing
//! outside the folder is read.
//!
//! `POSTERIOR_FUZZ_ITERATIONS=1000000 cargo test --release -p posterior-onnx --test onnx_external` makes a million changes.

mod damage;

use damage::{PEAK_LIMIT_KB, damage, iterations, peak_kb, use_it};
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_onnx::definitions::{ModelProto, StringStringEntryProto, TensorProto};
use posterior_onnx::{OnnxError, parse_onnx, read_onnx};
use prost::Message;
use rand::RngExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A number that only the file outside holds.
const SECRET: f32 = 12345.5;

/// Moves the numbers of every tensor of at least `least` bytes to a data file, as exporters do.
fn move_out(model: &mut ModelProto, location: &str, least: usize) -> Vec<u8> {
    let mut data = Vec::new();
    for tensor in &mut model.graph.as_mut().unwrap().initializer {
        if tensor.raw_data.as_ref().is_none_or(|raw| raw.len() < least) {
            continue;
        }
        let raw = tensor.raw_data.take().unwrap();
        data.resize(data.len().next_multiple_of(16), 0);
        let entry =
            |key: &str, value: String| StringStringEntryProto { key: Some(key.into()), value: Some(value) };
        tensor.external_data = vec![
            entry("location", location.into()),
            entry("offset", data.len().to_string()),
            entry("length", raw.len().to_string()),
        ];
        tensor.data_location = Some(1);
        data.extend_from_slice(&raw);
    }
    data
}

fn stored(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx").join(name)).unwrap()
}

#[test]
fn numbers_outside_are_those_inside() {
    for name in ["lenet_unfolded.onnx", "transformer_script.onnx", "unet_half.onnx", "tokens.onnx"] {
        let inside = parse_onnx(stored(name), name).unwrap();
        for least in [1, 200] {
            let folder = tempfile::tempdir().unwrap();
            let mut model = ModelProto::decode(&stored(name)[..]).unwrap();
            let data = move_out(&mut model, "net.onnx.data", least);
            assert!(least > 1 || !data.is_empty());
            let path = folder.path().join("net.onnx");
            std::fs::write(&path, model.encode_to_vec()).unwrap();
            std::fs::write(folder.path().join("net.onnx.data"), data).unwrap();
            let read = read_onnx(&path).unwrap();
            assert_eq!(read.graph, inside.graph, "{name}");
            assert_eq!(read.parameters, inside.parameters, "{name}");
        }
    }
}

/// A tensor far inside a large file costs what it holds, not what the file holds.
#[test]
fn large_files_are_read_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = ModelProto::decode(&stored("lenet_unfolded.onnx")[..]).unwrap();
    let data = move_out(&mut model, "net.onnx.data", 1);
    let far = 6u64 << 30;
    for tensor in &mut model.graph.as_mut().unwrap().initializer {
        for entry in tensor.external_data.iter_mut().filter(|e| e.key.as_deref() == Some("offset")) {
            let offset: u64 = entry.value.as_ref().unwrap().parse().unwrap();
            entry.value = Some((offset + far).to_string());
        }
    }
    let path = folder.path().join("net.onnx");
    std::fs::write(&path, model.encode_to_vec()).unwrap();
    // A sparse file: six gigabytes of nothing in front.
    let mut file = std::fs::File::create(folder.path().join("net.onnx.data")).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(far)).unwrap();
    std::io::Write::write_all(&mut file, &data).unwrap();
    let started = Instant::now();
    let read = read_onnx(&path).unwrap();
    assert_eq!(read.parameters, parse_onnx(stored("lenet_unfolded.onnx"), "inside").unwrap().parameters);
    assert!(started.elapsed() < Duration::from_secs(1));
    assert!(peak_kb() < PEAK_LIMIT_KB);
}

/// One to three changes of where numbers are said to be.
fn twist(model: &mut ModelProto, locations: &[String], rng: &mut ChaCha8Rng) {
    const NUMBERS: [&str; 12] = [
        "0",
        "1",
        "4",
        "16",
        "-1",
        "",
        "abc",
        "1e3",
        "1099511627776",
        "9223372036854775807",
        "18446744073709551615",
        "99999999999999999999999",
    ];
    for _ in 0..rng.random_range(1..4) {
        let tensors = &mut model.graph.as_mut().unwrap().initializer;
        let at = rng.random_range(0..tensors.len());
        let tensor: &mut TensorProto = &mut tensors[at];
        let count = tensor.external_data.len();
        match rng.random_range(0..8) {
            0..3 if count > 0 => {
                tensor.external_data[0].value = Some(locations[rng.random_range(0..locations.len())].clone());
            }
            3 if count > 1 => {
                let entry = rng.random_range(1..count);
                tensor.external_data[entry].value = Some(NUMBERS[rng.random_range(0..NUMBERS.len())].into());
            }
            4 if count > 0 => {
                tensor.external_data.remove(rng.random_range(0..count));
            }
            5 if count > 0 => {
                let entry = tensor.external_data[rng.random_range(0..count)].clone();
                tensor.external_data.push(entry);
            }
            6 => tensor.dims.push([0, 1, 2, -1, 1 << 20, 1 << 40, i64::MAX][rng.random_range(0..7)]),
            _ => tensor.data_type = Some(rng.random_range(0..18)),
        }
    }
}

#[test]
fn damaged_models_and_data_stay_in_their_folder() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("models");
    let beside = root.path().join("elsewhere");
    for made in [&folder, &beside, &folder.join("inner")] {
        std::fs::create_dir(made).unwrap();
    }
    let secret: Vec<u8> = (0..1 << 16).flat_map(|_| SECRET.to_le_bytes()).collect();
    for outside in [beside.join("secret"), root.path().join("secret"), folder.join("inner/secret")] {
        std::fs::write(outside, &secret).unwrap();
    }
    let mut locations: Vec<String> = [
        "net.onnx.data",
        "net.onnx",
        "",
        ".",
        "..",
        "../secret",
        "../elsewhere/secret",
        "inner",
        "inner/secret",
        "./net.onnx.data",
        "inner/../net.onnx.data",
        "..\\secret",
        "C:secret",
        "/dev/zero",
        "/dev/stdin",
        "nothing",
        "net.onnx.data\0",
        "~/secret",
        "file:///etc/passwd",
    ]
    .map(String::from)
    .to_vec();
    locations.push(beside.join("secret").display().to_string());
    locations.push("x".repeat(100_000));
    #[cfg(unix)]
    {
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.join(name)).unwrap();
        link("../elsewhere/secret", "out");
        link("inner/secret", "down");
        link("../elsewhere", "folder");
        link("/dev/zero", "zero");
        link("circle", "circle");
        link("net.onnx.data", "good");
        locations.extend(
            ["out", "down", "folder", "folder/secret", "zero", "circle", "good", "pipe"].map(String::from),
        );
        // A pipe that nobody writes to: opening it would never return.
        let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status();
        assert!(made.is_ok_and(|status| status.success()));
    }
    let path = folder.join("net.onnx");
    let data_path = folder.join("net.onnx.data");
    let mut slowest = Duration::ZERO;
    for name in ["lenet_unfolded.onnx", "tokens.onnx"] {
        let mut valid = ModelProto::decode(&stored(name)[..]).unwrap();
        let data = move_out(&mut valid, "net.onnx.data", 1);
        let mut rng = Streams::new(11).stream(name);
        let mut accepted = 0;
        for i in 0..iterations() {
            let mut model = valid.clone();
            if i % 3 != 0 {
                twist(&mut model, &locations, &mut rng);
            }
            let mut bytes = model.encode_to_vec();
            if i % 3 == 0 {
                bytes = damage(&bytes, &mut rng);
            }
            std::fs::write(&path, bytes).unwrap();
            let changed = if i % 4 == 1 { damage(&data, &mut rng) } else { data.clone() };
            std::fs::write(&data_path, changed).unwrap();
            let started = Instant::now();
            let read = read_onnx(&path);
            slowest = slowest.max(started.elapsed());
            match read {
                Ok(imported) => {
                    accepted += 1;
                    let leaked = imported.parameters.iter().any(|p| p.values().contains(&f64::from(SECRET)));
                    assert!(!leaked, "{name}, {i}: read a file outside the folder");
                    use_it(name, &imported);
                }
                Err(error) => {
                    let text = error.to_string();
                    let limited = matches!(error, OnnxError::ExternalData { .. });
                    assert!(!limited || text.chars().count() < 300, "{} characters: {text}", text.len());
                }
            }
        }
        println!("{name}: {accepted} of {} still readable, slowest {slowest:.1?}", iterations());
        assert!(accepted > 0 && accepted < iterations(), "{name}: {accepted}");
        assert!(slowest < Duration::from_secs(1), "{name}: {slowest:?}");
        assert!(peak_kb() < PEAK_LIMIT_KB, "{name}: {} kB", peak_kb());
    }
}
