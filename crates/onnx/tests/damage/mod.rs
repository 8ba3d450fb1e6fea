//! What the tests with damaged files share.

use posterior_linalg::random::ChaCha8Rng;
use posterior_networks::Array;
use posterior_onnx::Imported;
use rand::RngExt;

/// Memory at most, in kB.
pub(crate) const PEAK_LIMIT_KB: u64 = 200_000;

/// Changes of each file.
pub(crate) fn iterations() -> u64 {
    std::env::var("POSTERIOR_FUZZ_ITERATIONS").ok().and_then(|v| v.parse().ok()).unwrap_or(1_500)
}

/// One to four changes: bits, bytes, telling numbers, cuts, insertions and copies of pieces.
pub(crate) fn damage(bytes: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    const TELLING: [&[u8]; 6] =
        [&[0], &[0x7f], &[0xff], &[0xff; 9], &[0x80, 0x80, 0x80, 0x80, 0x10], &[0xff; 4]];
    let mut out = bytes.to_vec();
    for _ in 0..rng.random_range(1..5) {
        if out.is_empty() {
            break;
        }
        let at = rng.random_range(0..out.len());
        match rng.random_range(0..7) {
            0 => out[at] ^= 1 << rng.random_range(0..8),
            1 => out[at] = rng.random(),
            2 => out.truncate(at),
            3 => out.insert(at, rng.random()),
            4 => {
                let number = TELLING[rng.random_range(0..TELLING.len())];
                let end = (at + number.len()).min(out.len());
                out[at..end].copy_from_slice(&number[..end - at]);
            }
            5 => out[at] = out[at].wrapping_add(rng.random_range(0..3)).wrapping_sub(1),
            _ => {
                let end = (at + rng.random_range(1..64)).min(out.len());
                let piece = out[at..end].to_vec();
                let to = rng.random_range(0..=out.len());
                out.splice(to..to, piece);
            }
        }
    }
    out
}

/// The most memory that this process has had.
pub(crate) fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
    line.split_whitespace().nth(1).and_then(|v| v.parse().ok()).unwrap_or(0)
}

/// What was read must be a network, and compute without a panic where that is quick.
pub(crate) fn use_it(name: &str, imported: &Imported) {
    let graph = &imported.graph;
    if graph.activations() > 1 << 16 || graph.flops() > 1 << 24 {
        return;
    }
    let network =
        imported.network::<f64>().unwrap_or_else(|e| panic!("{name}: what was read is no network: {e}"));
    let shape: Vec<usize> = std::iter::once(2).chain(graph.input_shape().iter().copied()).collect();
    let length = shape.iter().product();
    if let Ok(y) = network.forward(&Array::new(shape, vec![1.0; length])) {
        assert_eq!(y.shape()[1..], *graph.output_shape(), "{name}");
    }
}
