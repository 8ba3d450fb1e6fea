//! Arrays and images: what is still read is consistent.

use super::{READ_LIMIT, judge};
use crate::common::{damage, gzip, iterations, npy};
use posterior_data::{
    ArrayValues, CifarLabels, ImageSet, NumericArray, ReadOptions, read_array, read_arrays, read_cifar,
    read_idx, read_images, write_npz,
};
use posterior_linalg::random::Streams;
use std::path::Path;
use std::time::{Duration, Instant};

/// How many readers accept the file; their results must hold together.
fn read_all(path: &Path) -> usize {
    let options = ReadOptions::limited(READ_LIMIT);
    let mut arrays: Vec<NumericArray> = Vec::new();
    arrays.extend(read_array(path, &options));
    arrays.extend(read_images(path, &options));
    arrays.extend(read_idx(path, &options));
    arrays.extend(read_arrays(path, &options).into_iter().flatten().map(|(_, array)| array));
    for kind in [CifarLabels::Ten, CifarLabels::HundredCoarse] {
        if let Ok(read) = read_cifar(path, kind, &options) {
            assert_eq!(read.labels.len(), read.images.examples());
            arrays.push(read.images);
        }
    }
    if let Ok(set) = ImageSet::read(&[path.to_path_buf()], &[], &options) {
        assert!(set.labels.is_none_or(|labels| labels.len() == set.images.examples()));
        arrays.push(set.images);
    }
    for array in &arrays {
        assert_eq!(array.shape().iter().product::<usize>(), array.len());
        assert!(array.values().memory() <= READ_LIMIT);
        assert_eq!(array.to_f64().len(), array.len());
        if let Some(found) = array.first_non_finite() {
            assert!(found.position.iter().zip(array.shape()).all(|(at, size)| at < size));
        }
    }
    arrays.len()
}

fn run(name: &str, valid: &[u8], readers: usize) {
    // In memory where there is such a folder, so that a busy disk does not count.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, valid).unwrap();
    assert_eq!(read_all(&path), readers, "{name}");
    let mut rng = Streams::new(12).stream(name);
    let (started, count) = (Instant::now(), iterations());
    let (mut accepted, mut slowest) = (0, Duration::ZERO);
    for _ in 0..count {
        std::fs::write(&path, damage(valid, &mut rng)).unwrap();
        let begun = Instant::now();
        accepted += usize::from(read_all(&path) > 0);
        slowest = slowest.max(begun.elapsed());
    }
    judge(name, count, accepted, started, slowest);
}

fn idx() -> Vec<u8> {
    let mut out = vec![0, 0, 0x0d, 3, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 2];
    out.extend((0..24).flat_map(|v| (v as f32).to_be_bytes()));
    out
}

fn archive() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npz");
    let x = NumericArray::new(vec![3, 4], ArrayValues::F64((0..12).map(f64::from).collect())).unwrap();
    let y = NumericArray::new(vec![3], ArrayValues::U8(vec![1, 2, 3])).unwrap();
    write_npz(&path, &[("x", &x), ("y", &y)]).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn damaged_files_are_errors_or_arrays() {
    let fortran = npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 4), }", &[7; 96]);
    // The numbers: which of the readers take the undamaged file.
    run("a.npy", &fortran, 3);
    run("a.npy.gz", &gzip(&fortran), 3);
    run("a.npz", &archive(), 2);
    run("a-ubyte", &idx(), 3);
    run("a-ubyte.gz", &gzip(&idx()), 3);
    let cifar = [vec![3; 3073], vec![9; 3073]].concat();
    run("a.bin", &cifar, 3);
    run("a.bin.gz", &gzip(&cifar), 3);
}
