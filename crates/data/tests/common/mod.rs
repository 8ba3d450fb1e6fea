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

/// A sheet of a workbook: its name and the XML of its rows.
pub struct Sheet<'a> {
    pub name: &'a str,
    pub rows: &'a str,
}

/// The parts of a workbook. The shared texts are `size` and `red & blue`; cells of the styles 1 to 4 are dates, dates with a time, times and durations.
pub fn workbook_parts(sheets: &[Sheet<'_>]) -> Vec<(String, String)> {
    let relationships = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let (mut listed, mut related) = (String::new(), String::new());
    let mut parts = Vec::new();
    for (i, sheet) in (1..).zip(sheets) {
        listed += &format!(r#"<sheet name="{}" sheetId="{i}" r:id="rId{i}"/>"#, sheet.name);
        related += &format!(
            r#"<Relationship Id="rId{i}" Type="{relationships}/worksheet" Target="worksheets/sheet{i}.xml"/>"#
        );
        let content = format!(
            r#"<?xml version="1.0" encoding="UTF-8"?><worksheet><dimension ref="A1:B2"/><sheetData>{}</sheetData></worksheet>"#,
            sheet.rows
        );
        parts.push((format!("xl/worksheets/sheet{i}.xml"), content));
    }
    let formats: String = [0, 14, 22, 21, 46].map(|id| format!(r#"<xf numFmtId="{id}"/>"#)).concat();
    let fixed = [
        (
            "_rels/.rels",
            format!(
                r#"<Relationships><Relationship Id="rId1" Type="{relationships}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
            ),
        ),
        (
            "xl/workbook.xml",
            format!(r#"<workbook xmlns:r="{relationships}"><sheets>{listed}</sheets></workbook>"#),
        ),
        ("xl/_rels/workbook.xml.rels", format!("<Relationships>{related}</Relationships>")),
        ("xl/styles.xml", format!("<styleSheet><cellXfs>{formats}</cellXfs></styleSheet>")),
        (
            "xl/sharedStrings.xml",
            r#"<sst uniqueCount="2"><si><t>size</t></si><si><r><t>red</t></r><r><t xml:space="preserve"> &amp; blue</t></r></si></sst>"#
                .to_string(),
        ),
    ];
    parts.extend(fixed.map(|(name, content)| (name.to_string(), content)));
    parts
}

/// A workbook of these sheets, with some parts replaced.
pub fn workbook(sheets: &[Sheet<'_>], replaced: &[(&str, &str)]) -> Vec<u8> {
    let parts = workbook_parts(sheets);
    let content = |(name, content)| {
        let other = replaced.iter().find(|(other, _)| *other == name);
        (name, other.map_or(content, |(_, content)| *content))
    };
    zipped(&parts.iter().map(|(n, c)| content((n.as_str(), c.as_str()))).collect::<Vec<_>>())
}

/// An archive of these members.
pub fn zipped(members: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in members {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
