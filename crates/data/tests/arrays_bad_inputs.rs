//! Broken and hostile files of arrays and images, with the message that each one gets.

mod common;

use common::{gzip, npy, peak_kb};
use posterior_data::{
    ArrayValues, CifarLabels, DataError, NumericArray, ReadOptions, read_array, read_arrays, read_cifar,
    read_idx, read_images, write_npy, write_npz,
};
use std::io::Write;
use std::path::Path;

const LIMIT: u64 = 1 << 20;

/// The message of reading these bytes as a file of that name.
fn message<T>(
    name: &str,
    bytes: &[u8],
    read: impl Fn(&Path, &ReadOptions) -> Result<T, DataError>,
) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let Err(error) = read(&path, &ReadOptions::limited(LIMIT)) else {
        panic!("{name}: {} bytes were read without an error", bytes.len());
    };
    let message = error.to_string();
    assert!(message.contains(name), "{message}");
    message
}

fn header(kind: &str, shape: &str) -> String {
    format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}")
}

fn idx(kind: u8, shape: &[u32], data: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, kind, shape.len() as u8];
    out.extend(shape.iter().flat_map(|d| d.to_be_bytes()));
    out.extend_from_slice(data);
    out
}

#[test]
fn every_bad_npy_gets_its_message() {
    let good = npy(&header("<f8", "(4,)"), &[0; 32]);
    let zipped = gzip(&good);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a.npy", vec![], "it does not begin with the NPY mark"),
        ("a.npy", b"a,b\n1,2\n".to_vec(), "it does not begin with the NPY mark"),
        ("a.npy", good[..5].to_vec(), "it does not begin with the NPY mark"),
        ("a.npy", good[..6].to_vec(), "it is cut off within its header"),
        ("a.npy", good[..9].to_vec(), "it is cut off within its header"),
        ("a.npy", good[..60].to_vec(), "it is cut off within its header"),
        ("a.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(), "it is cut off within its header"),
        ("a.npy", b"\x93NUMPY\x02\x00\xff\xff".to_vec(), "it is cut off within its header"),
        ("a.npy", b"\x93NUMPY\x09\x00\x01\x00{}".to_vec(), "format version 9 is not known"),
        ("a.npy", npy(&"[".repeat(40_000), &[]), "longer or more deeply nested"),
        ("a.npy", npy("{'descr': '<f8'}", &[]), "is not a valid NPY file"),
        (
            "a.npy",
            good[..good.len() - 1].to_vec(),
            "it declares 4 values (32 bytes), but only 31 bytes follow its header; it is cut off",
        ),
        ("a.npy", [&good[..], b"x"].concat(), "it declares 4 values (32 bytes), but more bytes follow"),
        ("a.npy.gz", gzip(&good[..good.len() - 1]), "but only 31 bytes follow its header"),
        ("a.npy.gz", gzip(&[&good[..], b"x"].concat()), "but more bytes follow"),
        ("a.npy.gz", zipped[..zipped.len() / 2].to_vec(), "is not a valid gzip file"),
        ("a.npy.gz", zipped[..zipped.len() - 1].to_vec(), "is not a valid gzip file"),
        ("a.npy.gz", zipped[..2].to_vec(), "is not a valid gzip file"),
        (
            "a.npy",
            npy(&header("<f8", "(4294967295, 4294967295)"), &[0; 64]),
            "it declares 4294967295 x 4294967295 values (147573952520956936200 bytes), but only 64 bytes follow",
        ),
        (
            "a.npy.gz",
            gzip(&npy(&header("<f8", "(4294967295, 1000)"), &[0; 64])),
            "declares 4294967295 x 1000 values, 34359738360000 bytes in memory, but the memory limit for reading is 1048576 bytes",
        ),
        // The product is beyond 64 bits.
        (
            "a.npy",
            npy(&header("<f8", "(4294967296, 4294967296, 4294967296)"), &[0; 64]),
            "is not a valid NPY file",
        ),
        // 2^17 + 1 signed bytes fit the limit in the file, not as the 64-bit numbers that they become.
        ("a.npy", npy(&header("|i1", "(131073,)"), &[0; 131_073]), "1048584 bytes in memory"),
        (
            "a.npy",
            npy(&header("<f8", "(4611686018427387904, 0)"), &[]),
            "36893488147419103232 bytes in memory",
        ),
        (
            "a.npy",
            npy(&header("<u8", "(2,)"), &[[0; 8], [0xff; 8]].concat()),
            "value 2 is a whole number beyond 2^63 - 1",
        ),
        (
            "a.npy",
            npy(&header("|b1", "(3,)"), &[0, 1, 2]),
            "value 3 is a truth value that is neither 0 nor 1",
        ),
        ("a.npy", npy(&header("<c16", "(1,)"), &[0; 16]), "elements of type <c16 are not read; convert"),
        ("a.npy", npy(&header("<f16", "(1,)"), &[0; 16]), "elements of type <f16 are not read; convert"),
        ("a.npy", npy(&header("<U3", "(1,)"), &[0; 12]), "elements of type <U3 are not read; convert"),
        ("a.npy", npy(&header("|O", "(1,)"), &[0; 12]), "elements of type |O are not read; convert"),
        (
            "a.npy",
            npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", &[0; 8]),
            "structured arrays are not read",
        ),
        ("a.txt", b"1,2\n".to_vec(), "is not an array that can be read: it begins neither as NPY nor as NPZ"),
        ("a.npz", b"PK\x03\x04".to_vec(), "is not a valid NPZ file"),
        ("a.npz", b"text".to_vec(), "is not a valid NPZ file"),
    ];
    for (name, bytes, expected) in cases {
        for read in [read_array, read_images] {
            if name != "a.txt" {
                let message = message(name, &bytes, read);
                assert!(message.contains(expected), "{message}");
            }
        }
        let message = message(name, &bytes, read_array);
        assert!(message.contains(expected), "{message}");
    }
    let missing = read_array(Path::new("nowhere.npy"), &ReadOptions::for_arrays()).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read nowhere.npy"), "{missing}");
    let nowhere = NumericArray::new(vec![1], ArrayValues::U8(vec![1])).unwrap();
    let missing = write_npy(Path::new("/nowhere/a.npy"), &nowhere).unwrap_err().to_string();
    assert!(missing.starts_with("cannot write /nowhere/a.npy"), "{missing}");
    let directory = tempfile::tempdir().unwrap();
    let many = NumericArray::new(vec![1; 30_000], ArrayValues::U8(vec![1])).unwrap();
    let refused = write_npy(&directory.path().join("a.npy"), &many).unwrap_err().to_string();
    assert!(refused.contains("an array of 30000 dimensions has no place in an NPY header"), "{refused}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn broken_archives_name_the_array() {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let good = npy(&header("|u1", "(700000,)"), &vec![7; 700_000]);
    for (name, content) in
        [("x.npy", &good[..]), ("y.npy", &good[..]), ("z.npy", &good[..1_000]), ("notes.txt", b"hello")]
    {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    let bytes = archive.finish().unwrap().into_inner();
    let named = |name: &'static str| {
        move |path: &Path, options: &ReadOptions| {
            read_array(Path::new(&format!("{}:{name}", path.display())), options)
        }
    };
    let cut = message("a.npz", &bytes, named("z"));
    assert!(
        cut.contains(
            "a.npz:z is not a valid NPY file: it declares 700000 values (700000 bytes), but only 872"
        ),
        "{cut}"
    );
    let unknown = message("a.npz", &bytes, named("notes.txt"));
    assert!(unknown.contains("has no array `notes.txt`; its arrays are: x, y, z"), "{unknown}");
    // Each fits the limit of 2^20 bytes, two do not.
    let two = message("a.npz", &bytes, read_arrays);
    assert!(
        two.contains("a.npz:y declares 700000 values, 700000 bytes in memory, but the memory limit"),
        "{two}"
    );
    // A stored byte that was changed is found by its checksum.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npz");
    write_npz(&path, &[("x", &NumericArray::new(vec![1000], ArrayValues::U8(vec![7; 1000])).unwrap())])
        .unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[600] ^= 1;
    let changed = message("a.npz", &bytes, read_array);
    assert!(changed.contains("a.npz:x is not a valid NPZ file") && changed.contains("checksum"), "{changed}");
    let empty = message("a.npz", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", read_array);
    assert!(empty.contains("holds 0 arrays"), "{empty}");
}

#[test]
fn every_bad_idx_gets_its_message() {
    let good = idx(8, &[2, 1, 2], &[1, 2, 3, 4]);
    let zipped = gzip(&good);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "it begins with the bytes []"),
        (good[..3].to_vec(), "it begins with the bytes [00, 00, 08]"),
        (b"5,0,4\n1,9,2\n".to_vec(), "not with the magic number of IDX, 00 00 TYPE RANK"),
        (idx(0x0a, &[1], &[1]), "its magic number names the element type 0x0a"),
        (idx(8, &[], &[]), "its magic number declares no dimensions"),
        (good[..4].to_vec(), "it is cut off within the 3 dimensions that its magic number declares"),
        (good[..15].to_vec(), "it is cut off within the 3 dimensions that its magic number declares"),
        (good[..16].to_vec(), "it declares 2 x 1 x 2 values (4 bytes), but only 0 bytes follow its header"),
        (good[..19].to_vec(), "it declares 2 x 1 x 2 values (4 bytes), but only 3 bytes follow its header"),
        ([&good[..], &[0]].concat(), "it declares 2 x 1 x 2 values (4 bytes), but more bytes follow"),
        (idx(8, &[2, 0, 2], &[]), "dimension 2 of 3 is 0, so it holds nothing"),
        (idx(8, &[0], &[]), "dimension 1 of 1 is 0, so it holds nothing"),
        (
            idx(8, &[u32::MAX, 28, 28], &[0; 784]),
            "declares 4294967295 x 28 x 28 values (3367254359280 bytes), but only 784",
        ),
        (
            gzip(&idx(8, &[u32::MAX, 28, 28], &[0; 784])),
            "3367254359280 bytes in memory, but the memory limit",
        ),
        (gzip(&idx(14, &[u32::MAX; 255], &[])), "bytes in memory, but the memory limit"),
        (idx(14, &[u32::MAX; 255], &[]), "bytes), but only 0 bytes follow"),
        (gzip(&idx(8, &[1000, 28, 28], &[0; 784])), "(784000 bytes), but only 784 bytes follow"),
        (gzip(&good[..15]), "it is cut off within the 3 dimensions"),
        (zipped[..zipped.len() - 9].to_vec(), "is not a valid gzip file"),
        (zipped[..zipped.len() - 4].to_vec(), "is not a valid gzip file"),
        (
            idx(8, &[LIMIT as u32 + 1], &vec![0; LIMIT as usize + 1]),
            "1048577 bytes in memory, but the memory limit",
        ),
    ];
    for (bytes, expected) in cases {
        let message = message("a-ubyte", &bytes, read_idx);
        assert!(message.contains(expected), "{message}");
    }
    let mut wrong_checksum = zipped.clone();
    let at = wrong_checksum.len() - 8;
    wrong_checksum[at] ^= 1;
    assert!(message("a-ubyte", &wrong_checksum, read_idx).contains("is not a valid gzip file"));
}

#[test]
fn every_bad_cifar_gets_its_message() {
    let ten = |read: &Path, options: &ReadOptions| read_cifar(read, CifarLabels::Ten, options);
    let hundred = |read: &Path, options: &ReadOptions| read_cifar(read, CifarLabels::HundredCoarse, options);
    let mut records = vec![0; 3 * 3073];
    records[2 * 3073] = 10;
    let bad_label = message("a.bin", &records, ten);
    assert!(
        bad_label.contains("a.bin, record 3: the label is 10, but classes run from 0 to 9"),
        "{bad_label}"
    );
    for (at, label, expected) in [
        (3074, 20, "record 2: the coarse label is 20, but classes run from 0 to 19"),
        (1, 100, "record 1: the fine label is 100, but classes run from 0 to 99"),
    ] {
        let mut records = vec![0; 2 * 3074];
        records[at] = label;
        for found in [message("a.bin", &records, hundred), message("a.bin", &records, read_images)] {
            assert!(found.contains(expected), "{found}");
        }
    }
    assert!(message("a.bin", &[], ten).contains("it is empty"));
    let cut = message("a.bin", &records[..2 * 3073 - 1], ten);
    assert!(cut.contains("it holds 1 records of 3073 bytes and 3072 bytes more; it is cut off"), "{cut}");
    let zipped = gzip(&records);
    assert!(message("a.bin.gz", &zipped[..zipped.len() / 2], ten).contains("is not a valid gzip file"));
    let large = vec![0; 3073 * 400];
    for bytes in [&large, &gzip(&large)] {
        assert!(message("a.bin", bytes, ten).contains("more than 1048576 bytes of data"));
    }
}

#[test]
fn what_is_no_image_at_all_is_said_to_be_so() {
    for text in [&b""[..], b"label,pixel\n3,7\n", b"\x89PNG\r\n\x1a\n"] {
        let found = message("a.csv", text, read_images);
        let expected = format!(
            "its {} bytes begin as none of NPY, NPZ and IDX do, and are no whole number of CIFAR",
            text.len()
        );
        assert!(found.contains(&expected), "{found}");
    }
    let directory = tempfile::tempdir().unwrap();
    let error = read_images(directory.path(), &ReadOptions::for_arrays()).unwrap_err();
    assert!(matches!(error, DataError::Read { .. }), "{error}");
}

/// 256 MiB of zeros in 256 kB of gzip, under headers that declare little, the limit, and far too much.
#[test]
fn a_bomb_takes_no_memory() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut bombs = Vec::new();
    for count in [1u32, 1 << 20, u32::MAX] {
        encoder.write_all(&idx(8, &[count], &[])).unwrap();
        for _ in 0..256 {
            encoder.write_all(&vec![0; 1 << 20]).unwrap();
        }
        let next = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        bombs.push(std::mem::replace(&mut encoder, next).finish().unwrap());
    }
    let before = peak_kb();
    for (bomb, expected) in bombs.iter().zip(["more bytes follow", "more bytes follow", "the memory limit"]) {
        assert!(bomb.len() < 1 << 19);
        let found = message("a-ubyte", bomb, read_idx);
        assert!(found.contains(expected), "{found}");
        assert!(message("a.bin", bomb, read_images).contains("more than 1048576 bytes"));
    }
    let grown = peak_kb() - before;
    assert!(grown < 64 << 10, "{grown} kB");
}
