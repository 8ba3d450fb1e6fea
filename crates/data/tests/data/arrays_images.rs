//! IDX and CIFAR files made by hand, formats told apart, images put together with labels.

use crate::common::{gzip, npy};
use posterior_data::{
    ArrayValues, CifarLabels, DataError, ImageSet, NumericArray, ReadOptions, read_cifar, read_idx,
    read_images, write_npy, write_npz,
};
use std::path::PathBuf;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn options() -> ReadOptions {
    ReadOptions::for_arrays()
}

fn array(shape: &[usize], values: ArrayValues) -> NumericArray {
    NumericArray::new(shape.to_vec(), values).unwrap()
}

fn idx(kind: u8, shape: &[u32], data: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, kind, shape.len() as u8];
    out.extend(shape.iter().flat_map(|d| d.to_be_bytes()));
    out.extend_from_slice(data);
    out
}

/// A record whose pixel `i` is `first + i`, modulo 256.
fn record(labels: &[u8], first: u8) -> Vec<u8> {
    let mut out = labels.to_vec();
    out.extend((0..3072).map(|i| first.wrapping_add(i as u8)));
    out
}

fn pixels(firsts: &[u8]) -> NumericArray {
    let values = firsts.iter().flat_map(|first| record(&[], *first)).collect();
    array(&[firsts.len(), 3, 32, 32], ArrayValues::U8(values))
}

#[test]
fn every_idx_type_and_rank_is_read() {
    let folder = Folder::new();
    let cases: Vec<(u8, Vec<u8>, ArrayValues)> = vec![
        (0x08, vec![0, 255], ArrayValues::U8(vec![0, 255])),
        (0x09, vec![0x80, 0x7f], ArrayValues::I64(vec![-128, 127])),
        (0x0b, vec![0x01, 0x02, 0xff, 0xfe], ArrayValues::I64(vec![258, -2])),
        (0x0c, vec![0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff], ArrayValues::I64(vec![256, -1])),
        (0x0d, vec![0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0], ArrayValues::F32(vec![1.5, -2.0])),
        (0x0e, [1f64.to_be_bytes(), (-0.25f64).to_be_bytes()].concat(), ArrayValues::F64(vec![1.0, -0.25])),
    ];
    for (kind, data, values) in cases {
        for shape in [vec![2], vec![2, 1], vec![1, 1, 2, 1], [vec![1; 254], vec![2]].concat()] {
            let bytes = idx(kind, &shape, &data);
            let expected = array(&shape.iter().map(|d| *d as usize).collect::<Vec<_>>(), values.clone());
            for path in [folder.file("x-ubyte", &bytes), folder.file("x.gz", &gzip(&bytes))] {
                assert_eq!(read_idx(&path, &options()).unwrap(), expected, "{kind:#x} {shape:?}");
                assert_eq!(read_images(&path, &options()).unwrap(), expected, "{kind:#x} {shape:?}");
            }
        }
    }
}

#[test]
fn cifar_records_are_taken_apart() {
    let folder = Folder::new();
    let ten = [record(&[3], 7), record(&[0], 200), record(&[9], 1)].concat();
    for path in [folder.file("ten.bin", &ten), folder.file("ten.bin.gz", &gzip(&ten))] {
        let read = read_cifar(&path, CifarLabels::Ten, &options()).unwrap();
        assert_eq!((read.labels, read.images), (vec![3, 0, 9], pixels(&[7, 200, 1])));
        assert_eq!(read_images(&path, &options()).unwrap(), pixels(&[7, 200, 1]));
    }
    let hundred = folder.file("hundred.bin", &[record(&[19, 99], 5), record(&[0, 42], 6)].concat());
    for (kind, labels) in [(CifarLabels::HundredFine, [99, 42]), (CifarLabels::HundredCoarse, [19, 0])] {
        let read = read_cifar(&hundred, kind, &options()).unwrap();
        assert_eq!((&read.labels[..], &read.images), (&labels[..], &pixels(&[5, 6])));
        assert!(labels.iter().all(|l| usize::from(*l) < kind.classes()));
    }
    let set =
        ImageSet::read_cifar(std::slice::from_ref(&hundred), CifarLabels::HundredCoarse, &options()).unwrap();
    assert_eq!(set.labels, Some(vec![19, 0]));
    // A position by hand: the green plane begins at 1024, and its row 2, column 3 is 67 further.
    let ArrayValues::U8(values) = pixels(&[0]).into_parts().1 else { panic!() };
    assert_eq!(values[32 * 32 + 2 * 32 + 3], ((1024 + 67) % 256) as u8);
}

#[test]
fn a_cifar_file_that_begins_as_idx_does_is_cifar_if_called_so() {
    let folder = Folder::new();
    let mut bytes = record(&[0], 0);
    bytes[1..4].copy_from_slice(&[0, 8, 1]);
    let read = read_images(&folder.file("batch.bin", &bytes), &options()).unwrap();
    assert_eq!(read.shape(), [1, 3, 32, 32]);
    let message = read_images(&folder.file("batch", &bytes), &options()).unwrap_err().to_string();
    assert!(message.contains("is not a valid IDX file"), "{message}");
}

#[test]
fn the_two_cifars_are_told_apart_even_at_a_common_length() {
    let folder = Folder::new();
    let (ten, hundred) = (3073, 3074);
    // 3074 records of 3073 bytes, or the reverse; as CIFAR-100, only the second has classes everywhere.
    let as_ten: Vec<u8> = (0..hundred).flat_map(|_| record(&[9], 100)).collect();
    let set = ImageSet::read(&[folder.file("a", &as_ten)], &[], &options()).unwrap();
    assert_eq!((set.images.examples(), set.labels.unwrap()[17]), (hundred, 9));
    let as_hundred: Vec<u8> = (0..ten).flat_map(|_| record(&[19, 99], 100)).collect();
    let set = ImageSet::read(&[folder.file("a", &as_hundred)], &[], &options()).unwrap();
    assert_eq!((set.images.examples(), set.labels.unwrap()[17]), (ten, 99));
    let black = folder.file("a.bin", &vec![0; ten * hundred]);
    let message = ImageSet::read(&[black], &[], &options()).unwrap_err().to_string();
    assert!(message.contains("it can be CIFAR-10 as well as CIFAR-100; say which"), "{message}");
}

#[test]
fn images_and_labels_are_put_together() {
    let folder = Folder::new();
    let images = folder.file("images", &idx(8, &[2, 1, 2], &[1, 2, 3, 4]));
    let more = folder.file("more.gz", &gzip(&idx(8, &[1, 1, 2], &[5, 6])));
    let labels = folder.file("labels", &idx(8, &[3], &[7, 0, 2]));
    let (first, rest) = (folder.file("l1", &idx(0x0c, &[1], &[0, 0, 1, 0])), folder.0.path().join("l2.npz"));
    write_npz(&rest, &[("y", &array(&[2, 1], ArrayValues::I64(vec![4_294_967_295, 1])))]).unwrap();
    let both = [images.clone(), more.clone()];
    let set = ImageSet::read(&both, &[labels], &options()).unwrap();
    assert_eq!(set.images, array(&[3, 1, 2], ArrayValues::U8(vec![1, 2, 3, 4, 5, 6])));
    assert_eq!(set.labels, Some(vec![7, 0, 2]));
    let set = ImageSet::read(&both, &[first, rest], &options()).unwrap();
    assert_eq!(set.labels, Some(vec![256, u32::MAX, 1]));
    assert_eq!(ImageSet::read(&[images], &[], &options()).unwrap().labels, None);
    let cifar = [folder.file("1.bin", &record(&[3], 7)), folder.file("2.bin", &record(&[8], 9))];
    let set = ImageSet::read(&cifar, &[], &options()).unwrap();
    assert_eq!((set.images, set.labels), (pixels(&[7, 9]), Some(vec![3, 8])));
    let floats = folder.0.path().join("x.npz");
    write_npz(&floats, &[("x", &array(&[1, 2], ArrayValues::F32(vec![0.5, 1.5])))]).unwrap();
    let named = PathBuf::from(format!("{}:x", floats.display()));
    let set = ImageSet::read(&[named, floats], &[], &options()).unwrap();
    assert_eq!(set.images, array(&[2, 2], ArrayValues::F32(vec![0.5, 1.5, 0.5, 1.5])));
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let folder = Folder::new();
    let images = folder.file("images", &idx(8, &[2, 1, 2], &[1, 2, 3, 4]));
    let wider = folder.file("wider", &idx(8, &[1, 1, 3], &[1, 2, 3]));
    let signed = folder.file("signed", &idx(9, &[1, 1, 2], &[1, 2]));
    let cifar = folder.file("c.bin", &record(&[3], 7));
    let labels =
        |shape: &[u32], data: &[u8]| folder.file(&format!("labels{}", data.len()), &idx(9, shape, data));
    let (three, negative) = (labels(&[3], &[1, 2, 3]), labels(&[2], &[1, 0xff]));
    let flat = folder.file("flat", &idx(8, &[2, 2], &[1, 2, 3, 4]));
    let floats = folder.file("floats", &idx(0x0d, &[2], &[0; 8]));
    let empty = folder.0.path().join("empty.npy");
    write_npy(&empty, &array(&[0, 5], ArrayValues::U8(vec![]))).unwrap();
    let number =
        folder.file("number.npy", &npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", &[7]));
    let cases: Vec<(Vec<&PathBuf>, Vec<&PathBuf>, &str)> = vec![
        (vec![&images], vec![&three], "labels3: there are 3 labels up to this file, but 2 images"),
        (vec![&images], vec![&negative], "labels2, record 2: the label is -1; classes are counted from 0"),
        (vec![&images], vec![&flat], "labels are a vector of whole numbers, but this has shape [2, 2]"),
        (vec![&images], vec![&floats], "labels are whole numbers, but these are f32"),
        (vec![&images], vec![&cifar], "a CIFAR file is no file of labels"),
        (vec![&cifar], vec![&three], "holds labels already; leave this file out"),
        (vec![&images, &wider], vec![], "its examples have shape [1, 3], those before it [1, 2]"),
        (vec![&images, &signed], vec![], "its values are i64, those before it u8"),
        (vec![&images, &cifar], vec![], "which carry labels, and other files cannot be mixed"),
        (vec![&images, &empty], vec![], "no rows are left after reading an array of shape [0, 5]"),
        (vec![&number], vec![], "no rows are left after reading an array of shape []"),
        (vec![], vec![], "name at least one"),
    ];
    for (images, labels, expected) in cases {
        let owned = |paths: Vec<&PathBuf>| paths.into_iter().cloned().collect::<Vec<_>>();
        let message = ImageSet::read(&owned(images), &owned(labels), &options()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn the_limit_holds_for_all_files_together() {
    let folder = Folder::new();
    let one = folder.file("1.bin", &record(&[3], 7));
    let read = |count: usize, memory_limit| {
        ImageSet::read_cifar(&vec![one.clone(); count], CifarLabels::Ten, &ReadOptions::limited(memory_limit))
    };
    // 3072 bytes stay of each file of 3073.
    assert_eq!(read(2, 2 * 3072 + 1).unwrap().images.examples(), 2);
    assert!(matches!(read(2, 2 * 3072), Err(DataError::TooLarge { limit: 3072, .. })));
}
