//! Programs written instruction by instruction, as `torch.save` does (its own files were read when these tests were written), and damaged ones.

use super::StateDict;
use crate::safetensors::SafetensorsError;
use posterior_linalg::random::Streams;
use rand::RngExt;
use std::io::{Cursor, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Writes a program.
#[derive(Clone, Default)]
struct Program(Vec<u8>);

impl Program {
    fn new() -> Self {
        Self(vec![0x80, 2])
    }
    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
    fn global(self, module: &str, name: &str) -> Self {
        self.raw(format!("c{module}\n{name}\n").as_bytes())
    }
    fn text(self, text: &str) -> Self {
        self.raw(b"X").raw(&(text.len() as u32).to_le_bytes()).raw(text.as_bytes())
    }
    fn whole(self, value: i64) -> Self {
        match i32::try_from(value) {
            Ok(value) => self.raw(b"J").raw(&value.to_le_bytes()),
            Err(_) => self.raw(&[0x8a, 8]).raw(&value.to_le_bytes()),
        }
    }
    fn wholes(self, values: &[i64]) -> Self {
        values.iter().fold(self.raw(b"("), |program, &v| program.whole(v)).raw(b"t")
    }
    fn ordered(self) -> Self {
        self.global("collections", "OrderedDict").raw(b")R")
    }
    /// A view of the storage `key` of so many numbers.
    fn tensor(
        self,
        class: &str,
        key: &str,
        length: i64,
        offset: i64,
        shape: &[i64],
        strides: &[i64],
    ) -> Self {
        self.global("torch._utils", "_rebuild_tensor_v2")
            .raw(b"((")
            .text("storage")
            .global("torch", class)
            .text(key)
            .text("cpu")
            .whole(length)
            .raw(b"tQ")
            .whole(offset)
            .wholes(shape)
            .wholes(strides)
            .raw(b"\x89")
            .ordered()
            .raw(b"tR")
    }
    /// A key and a small tensor of the storage `0` of 6 singles.
    fn entry(self, key: &str) -> Self {
        self.text(key).tensor("FloatStorage", "0", 6, 0, &[2, 3], &[3, 1])
    }
    fn stop(self) -> Vec<u8> {
        self.raw(b".").0
    }
}

fn archive(members: &[(&str, &[u8])], compression: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(compression)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn six() -> Vec<u8> {
    (1..=6).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

/// A file with this program and the storage `0` of six singles, 1 to 6.
fn file(program: &[u8]) -> Vec<u8> {
    let members: [(&str, &[u8]); 3] =
        [("net/data.pkl", program), ("net/byteorder", b"little"), ("net/data/0", &six())];
    archive(&members, CompressionMethod::Stored)
}

fn open(bytes: Vec<u8>) -> Result<StateDict<Cursor<Vec<u8>>>, SafetensorsError> {
    StateDict::new(Cursor::new(bytes), Path::new("net.pt"))
}

/// What a program is refused for.
fn refused(program: Program) -> String {
    let Err(error) = open(file(&program.stop())) else { panic!("it was read") };
    let text = error.to_string();
    assert!(text.starts_with("net.pt: no state dictionary") && text.len() < 300, "{text}");
    text
}

fn singles(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&c| f32::from_le_bytes(c)).collect()
}

#[test]
fn views_show_what_pytorch_shows() {
    // Name, offset, shape, strides, values.
    type View = (&'static str, i64, &'static [i64], &'static [i64], &'static [f32]);
    let program = Program::new().ordered().raw(b"q\x01(");
    let views: [View; 7] = [
        ("whole", 0, &[2, 3], &[3, 1], &[1., 2., 3., 4., 5., 6.]),
        ("transposed", 0, &[3, 2], &[1, 3], &[1., 4., 2., 5., 3., 6.]),
        ("second row", 3, &[1, 3], &[3, 1], &[4., 5., 6.]),
        ("every other", 1, &[3], &[2], &[2., 4., 6.]),
        ("repeated", 2, &[2, 2], &[0, 1], &[3., 4., 3., 4.]),
        ("one", 5, &[], &[], &[6.]),
        ("none", 0, &[0, 3], &[3, 1], &[]),
    ];
    let program = views.iter().fold(program, |program, (name, offset, shape, strides, _)| {
        program.text(name).tensor("FloatStorage", "0", 6, *offset, shape, strides)
    });
    // A dictionary's versions stand in its state, which is passed over.
    let program = program.raw(b"u}").text("_metadata").ordered().raw(b"sb");
    let mut found = open(file(&program.stop())).unwrap();
    assert_eq!(found.names().len(), views.len());
    assert!(found.notes().is_empty());
    for (name, _, shape, _, expected) in views {
        let shape: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
        assert_eq!(found.info(name), Some((safetensors::Dtype::F32, &shape[..])));
        assert_eq!(singles(&found.bytes(name).unwrap()), expected, "{name}");
    }
}

#[test]
fn checkpoints_are_searched_for_their_tensors() {
    // {"epoch": 3, "options": Namespace(rate=0.1), "model": {...}, "optimizer": {"state": {0: {"exp_avg": tensor}}}} with names that a wrapper has prefixed.
    let program = Program::new().raw(b"}(").text("epoch").raw(b"K\x03").text("options");
    let program = program.global("argparse", "Namespace").raw(b")\x81}").text("rate");
    let program = program.raw(b"G\x3f\xb9\x99\x99\x99\x99\x99\x9asb").text("model").ordered().raw(b"(");
    let program = program.entry("module.0.weight").text("module.steps").raw(b"K\x07").raw(b"u");
    let program = program.text("optimizer").raw(b"}").text("state").raw(b"}K\0}").entry("exp_avg");
    let program = program.raw(b"sssu");
    let mut found = open(file(&program.stop())).unwrap();
    assert_eq!(found.names(), ["0.weight"]);
    assert_eq!(singles(&found.bytes("0.weight").unwrap()), [1., 2., 3., 4., 5., 6.]);
    let notes = found.notes().join("\n");
    for part in ["dictionary `model`", "`module.` before all names", "1 entries beside"] {
        assert!(notes.contains(part), "{notes}");
    }
}

#[test]
fn parameters_and_memoised_storages_are_read() {
    // torch.nn.Parameter around a tensor, both kept in the memo and told again under another name.
    let program = Program::new().raw(b"}(").text("a").global("torch._utils", "_rebuild_parameter").raw(b"(");
    let program = program.tensor("FloatStorage", "0", 6, 0, &[6], &[1]).raw(b"\x88").ordered().raw(b"tR");
    let program = program.raw(b"r\0\x01\0\0").text("b").raw(b"j\0\x01\0\0u");
    let mut found = open(file(&program.stop())).unwrap();
    assert_eq!(found.names(), ["a", "b"]);
    assert_eq!(found.bytes("a").unwrap(), found.bytes("b").unwrap());
}

#[test]
fn what_only_python_can_make_is_refused_with_the_way_out() {
    let module = Program::new().global("torch.nn.modules.container", "Sequential").raw(b")\x81}b");
    let text = refused(module);
    assert!(
        text.contains("torch.nn.modules.container.Sequential") && text.contains("state_dict()"),
        "{text}"
    );
    // A call that would run a program is a name and nothing else.
    let text = refused(Program::new().global("os", "system").text("touch here").raw(b"\x85R"));
    assert!(text.contains("os.system"), "{text}");
    let text = refused(
        Program::new()
            .raw(b"}")
            .text("model")
            .ordered()
            .raw(b"(")
            .entry("a")
            .raw(b"us")
            .text("average")
            .ordered()
            .raw(b"(")
            .entry("a")
            .raw(b"us"),
    );
    assert!(text.contains("`model`, `average`"), "{text}");
    assert!(refused(Program::new().raw(b"}")).contains("holds no tensors"));
    assert!(refused(Program::new().raw(b"K\x01")).contains("no dictionary of tensors"));
    let text = refused(Program::new().raw(b"}(").raw(b"P"));
    assert!(text.contains("instruction 0x50") && text.contains("byte 4"), "{text}");
}

#[test]
fn archives_of_other_kinds_are_refused_by_name() {
    let problem = |bytes: Vec<u8>| open(bytes).unwrap_err().to_string();
    let program = Program::new().raw(b"}(").entry("a").raw(b"u").stop();
    let stored = CompressionMethod::Stored;
    assert!(problem(archive(&[("x.npy", b"")], stored)).contains("without data.pkl"));
    let script: [(&str, &[u8]); 2] = [("net/data.pkl", &program), ("net/constants.pkl", b"")];
    assert!(problem(archive(&script, stored)).contains("TorchScript"));
    let big: [(&str, &[u8]); 2] = [("net/data.pkl", &program), ("net/byteorder", b"big")];
    assert!(problem(archive(&big, stored)).contains("big-endian"));
    let only: [(&str, &[u8]); 1] = [("net/data.pkl", &program)];
    assert!(problem(archive(&only, CompressionMethod::Deflated)).contains("compressed"));
    assert!(problem(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9 ".to_vec()).contains("before 1.6"));
    assert!(problem(b"PK\x03\x04 and nothing more".to_vec()).contains("damaged archive"));
    // Its storage is not there.
    assert!(open(archive(&only, stored)).unwrap().bytes("a").unwrap_err().to_string().contains("`a`"));
}

#[test]
fn views_beyond_their_storage_are_refused() {
    for (length, offset, shape, strides) in [
        (7, 0, vec![7], vec![1]),
        (6, 1, vec![6], vec![1]),
        (6, 0, vec![3], vec![3]),
        (6, i64::MAX, vec![2], vec![1]),
        (i64::MAX, 0, vec![2], vec![i64::MAX - 1]),
        (6, 0, vec![1 << 40, 1 << 40], vec![0, 0]),
    ] {
        let program = Program::new().raw(b"}(").text("a");
        let program = program.tensor("FloatStorage", "0", length, offset, &shape, &strides).raw(b"u").stop();
        let text = open(file(&program)).unwrap().bytes("a").unwrap_err().to_string();
        assert!(text.contains("`a`"), "{text}");
    }
    let negative =
        Program::new().raw(b"}(").text("a").tensor("FloatStorage", "0", 6, -1, &[1], &[1]).raw(b"u");
    assert!(refused(negative).contains("impossible shape"));
}

#[test]
fn nesting_and_circles_do_no_harm() {
    // A million dictionaries in one another, and one that holds itself.
    let mut program = Program::new();
    for _ in 0..300_000 {
        program.0.extend(b"}K\x01");
    }
    program.0.extend(b"}");
    program.0.extend(std::iter::repeat_n(b's', 300_000));
    assert!(refused(program).contains("holds no tensors"));
    let circle = Program::new().raw(b"}q\x01").text("me").raw(b"h\x01s");
    assert!(refused(circle).contains("holds no tensors"));
    let mut many = Program::new();
    many.0.extend(std::iter::repeat_n(b')', 4_100_000));
    assert!(refused(many).contains("more than 4000000 values"));
}

/// Damaged files are errors or tensors; never panics. `POSTERIOR_FUZZ_ITERATIONS` sets how many.
#[test]
fn damaged_files_are_errors_or_tensors() {
    let iterations: u64 =
        std::env::var("POSTERIOR_FUZZ_ITERATIONS").ok().and_then(|v| v.parse().ok()).unwrap_or(3_000);
    let program = Program::new().raw(b"}(").text("model").ordered().raw(b"(");
    let program =
        program.entry("0.weight").text("0.bias").tensor("HalfStorage", "0", 12, 2, &[2, 2], &[1, 4]);
    let program = program.raw(b"uu").stop();
    let whole = file(&program);
    let mut read = 0;
    for i in 0..iterations {
        let mut rng = Streams::new(i).stream("damage");
        // Half of the files are damaged in the program alone, whose checksum is then right.
        let (mut bytes, inside) = if i % 2 == 0 { (whole.clone(), false) } else { (program.clone(), true) };
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..4) {
                0 => bytes[at] ^= 1 << rng.random_range(0..8),
                1 => bytes[at] = rng.random(),
                2 => bytes.insert(at, rng.random()),
                _ if bytes.len() > 8 => bytes.truncate(at.max(8)),
                _ => {}
            }
        }
        let bytes = if inside { file(&bytes) } else { bytes };
        if let Ok(mut found) = open(bytes) {
            for name in found.names() {
                // The shape is what a network would be asked about first.
                let small = found.info(&name).is_some_and(|(_, shape)| {
                    shape.iter().fold(1, |n: usize, &length| n.saturating_mul(length)) < 1000
                });
                if small && let Ok(bytes) = found.bytes(&name) {
                    read += usize::from(!bytes.is_empty());
                }
            }
        }
    }
    assert!(read as u64 > iterations / 20, "{read} of {iterations}: the damage leaves too little to test");
}

/// What small programs could copy again and again is bounded.
#[test]
fn what_is_named_many_times_is_kept_once() {
    // One dictionary of tensors under two names is one.
    let program = Program::new().raw(b"}(").text("model").ordered().raw(b"q\x07(");
    let program = program.entry("0.weight").raw(b"u").text("again").raw(b"h\x07u");
    let found = open(file(&program.stop())).unwrap();
    assert_eq!(found.names(), ["0.weight"]);
    assert!(found.notes()[0].contains("`model`"), "{:?}", found.notes());
    // Names that no archive has.
    let long = "k".repeat(300);
    let program =
        Program::new().raw(b"}").text("w").tensor("FloatStorage", &long, 6, 0, &[2], &[1]).raw(b"s");
    assert!(open(file(&program.stop())).unwrap_err().to_string().contains("too long"));
    let axes = [1; 13];
    let program =
        Program::new().raw(b"}").text("w").tensor("FloatStorage", "0", 6, 0, &axes, &axes).raw(b"s");
    assert!(open(file(&program.stop())).unwrap_err().to_string().contains("impossible shape"));
}
