//! Files made by hand, and damage to them.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by several test binaries, none of which uses all of it"
)]

use posterior_linalg::random::ChaCha8Rng;
use rand::RngExt;
use std::io::Write;
use std::path::PathBuf;

/// How many damaged files of each format; `POSTERIOR_FUZZ_ITERATIONS` overrides.
pub fn iterations() -> u64 {
    std::env::var("POSTERIOR_FUZZ_ITERATIONS").ok().and_then(|v| v.parse().ok()).unwrap_or(3_000)
}

/// The bytes with one to four random changes.
pub fn damage(bytes: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    const INTERESTING: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
    let mut out = bytes.to_vec();
    for _ in 0..rng.random_range(1..5) {
        if out.is_empty() {
            break;
        }
        let at = rng.random_range(0..out.len());
        match rng.random_range(0..6) {
            0 => out[at] ^= 1 << rng.random_range(0..8),
            1 => out[at] = rng.random(),
            2 => out.truncate(at),
            3 => out.insert(at, rng.random()),
            4 => {
                let value = INTERESTING[rng.random_range(0..INTERESTING.len())].to_le_bytes();
                let width = [1, 2, 4, 8][rng.random_range(0..4)].min(out.len() - at);
                out[at..at + width].copy_from_slice(&value[..width]);
            }
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

/// Most memory that the process has held, in kB; 0 where the system does not say.
pub fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
    line.split_whitespace().nth(1).and_then(|v| v.parse().ok()).unwrap_or(0)
}

/// The bytes, gzipped.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An NPY file of version 1 with this header text.
pub fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut padded = header.to_string();
    while !(10 + padded.len() + 1).is_multiple_of(64) {
        padded.push(' ');
    }
    padded.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(padded.len() as u16).to_le_bytes());
    out.extend_from_slice(padded.as_bytes());
    out.extend_from_slice(data);
    out
}

/// A file of the folder of real data, or nothing and a message where the folder is absent.
pub fn shared(file: &str) -> Option<PathBuf> {
    posterior_testing::shared(&format!("data/{file}"))
}
