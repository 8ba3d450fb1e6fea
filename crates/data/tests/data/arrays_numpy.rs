//! NPY and NPZ arrays: byte for byte what NumPy writes, every element type, Fortran order, round trips.

use crate::common::{gzip, npy};
use posterior_data::{
    ArrayValues, DataError, NonFinite, NumericArray, ReadOptions, StoreError, read_array, read_arrays,
    write_npy, write_npz,
};
use proptest::prelude::*;
use std::path::Path;

fn read_bytes(name: &str, bytes: &[u8]) -> Result<NumericArray, DataError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    read_array(&path, &ReadOptions::for_arrays())
}

fn array(shape: &[usize], values: ArrayValues) -> NumericArray {
    NumericArray::new(shape.to_vec(), values).unwrap()
}

fn header(kind: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}")
}

#[test]
fn the_first_examples_are_a_smaller_array() {
    let whole = array(&[3, 2], ArrayValues::I64(vec![1, 2, 3, 4, 5, 6]));
    let first = whole.first(2);
    assert_eq!(first.shape(), [2, 2]);
    assert_eq!(first.to_f64(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(whole.first(9).to_f64(), whole.to_f64());
    assert_eq!(whole.first(0).shape(), [0, 2]);
}

/// Headers as `numpy.save` of NumPy 2.4 writes them, with the bytes of the values.
#[test]
fn files_are_those_of_numpy_byte_for_byte() {
    let doubles: Vec<u8> = (0..6).flat_map(|v| f64::from(v).to_le_bytes()).collect();
    let cases = [
        (
            header("<f8", "False", "(2, 3)"),
            doubles,
            array(&[2, 3], ArrayValues::F64((0..6).map(f64::from).collect())),
        ),
        (
            header("<f4", "False", "(2,)"),
            vec![0x00, 0x00, 0xc0, 0x3f, 0x00, 0x00, 0x00, 0xc0],
            array(&[2], ArrayValues::F32(vec![1.5, -2.0])),
        ),
        (header("|u1", "False", "()"), vec![7], array(&[], ArrayValues::U8(vec![7]))),
        (
            header("<i8", "False", "(1, 2, 1)"),
            vec![1, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            array(&[1, 2, 1], ArrayValues::I64(vec![1, -2])),
        ),
        (header("|u1", "False", "(0, 5)"), vec![], array(&[0, 5], ArrayValues::U8(vec![]))),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    for (header, data, array) in cases {
        let bytes = npy(&header, &data);
        assert_eq!(read_bytes("a.npy", &bytes).unwrap(), array, "{header}");
        assert_eq!(read_bytes("a.npy.gz", &gzip(&bytes)).unwrap(), array, "{header}");
        write_npy(&path, &array).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{header}");
        // Versions 2 and 3 differ in the length field only.
        for version in [2, 3] {
            let mut later = bytes[..10].to_vec();
            later[6] = version;
            later.extend_from_slice(&[0, 0]);
            later.extend_from_slice(&bytes[10..]);
            assert_eq!(read_bytes("a.npy", &later).unwrap(), array, "{header}");
        }
    }
}

#[test]
fn every_element_type_is_converted_without_loss() {
    let f = f64::from;
    let cases: Vec<(&str, Vec<u8>, ArrayValues)> = vec![
        ("|b1", vec![0, 1], ArrayValues::U8(vec![0, 1])),
        ("|i1", vec![0x80, 0x7f], ArrayValues::I64(vec![-128, 127])),
        ("<u2", vec![1, 2, 0xff, 0xff], ArrayValues::I64(vec![513, 65535])),
        (">u2", vec![1, 2, 0xff, 0xfe], ArrayValues::I64(vec![258, 65534])),
        ("<i2", vec![1, 2, 0xff, 0xff], ArrayValues::I64(vec![513, -1])),
        ("<u4", vec![0xff; 8], ArrayValues::I64(vec![4_294_967_295; 2])),
        (">i4", vec![0xff, 0xff, 0xff, 0xfe, 0, 0, 1, 0], ArrayValues::I64(vec![-2, 256])),
        (">i8", [(-5i64).to_be_bytes(), 6i64.to_be_bytes()].concat(), ArrayValues::I64(vec![-5, 6])),
        (
            "<u8",
            [5u64.to_le_bytes(), (u64::MAX / 2).to_le_bytes()].concat(),
            ArrayValues::I64(vec![5, i64::MAX]),
        ),
        ("<f2", vec![0x00, 0xc1, 0xff, 0x7b], ArrayValues::F32(vec![-2.5, 65504.0])),
        // The smallest half, 2^-24.
        (">f2", vec![0x00, 0x01, 0x7c, 0x00], ArrayValues::F32(vec![2f32.powi(-24), f32::INFINITY])),
        (">f4", vec![0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0], ArrayValues::F32(vec![1.5, -2.0])),
        (">f8", [f(1).to_be_bytes(), f(-3).to_be_bytes()].concat(), ArrayValues::F64(vec![1.0, -3.0])),
    ];
    for (kind, data, values) in cases {
        let read = read_bytes("a.npy", &npy(&header(kind, "False", "(2,)"), &data)).unwrap();
        assert_eq!(read, array(&[2], values), "{kind}");
    }
}

/// `numpy.asfortranarray(numpy.arange(24, dtype='>i2').reshape(2, 3, 4))` as NumPy saved it.
#[test]
fn fortran_order_becomes_row_major() {
    let order = [0, 12, 4, 16, 8, 20, 1, 13, 5, 17, 9, 21, 2, 14, 6, 18, 10, 22, 3, 15, 7, 19, 11, 23u8];
    let data: Vec<u8> = order.iter().flat_map(|v| [0, *v]).collect();
    let expected = ArrayValues::I64((0..24).collect());
    for shape in [vec![2, 3, 4], vec![2, 1, 3, 4], vec![1, 2, 3, 4, 1]] {
        let text = format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "));
        let read = read_bytes("a.npy", &npy(&header(">i2", "True", &text), &data)).unwrap();
        assert_eq!(read, array(&shape, expected.clone()));
    }
}

#[test]
fn thousands_of_dimensions_of_one_cost_nothing() {
    let shape = format!("({}256, 256{})", "1,".repeat(5_000), ",1".repeat(5_000));
    let started = std::time::Instant::now();
    let read = read_bytes("a.npy", &npy(&header("|u1", "True", &shape), &vec![3; 65536])).unwrap();
    assert_eq!((read.shape().len(), read.len()), (10_002, 65536));
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

#[test]
fn archives_give_one_array_or_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.npz");
    let logits = array(&[2, 3], ArrayValues::F32(vec![0.5, -1.0, 2.0, 1e-40, f32::NEG_INFINITY, 7.0]));
    let labels = array(&[2], ArrayValues::I64(vec![i64::MIN, i64::MAX]));
    write_npz(&path, &[("logits", &logits), ("labels.npy", &labels)]).unwrap();
    let first = std::fs::read(&path).unwrap();
    let options = ReadOptions::for_arrays();
    let named = |name: &str| read_array(Path::new(&format!("{}:{name}", path.display())), &options);
    assert_eq!(named("logits").unwrap(), logits);
    assert_eq!(named("labels.npy").unwrap(), labels);
    let all = read_arrays(&path, &options).unwrap();
    assert_eq!(all, vec![("logits".to_string(), logits.clone()), ("labels.npy".to_string(), labels)]);
    let message = read_array(&path, &options).unwrap_err().to_string();
    assert!(
        message.contains("holds 2 arrays; name one as") && message.ends_with("logits, labels.npy"),
        "{message}"
    );
    let message = named("x").unwrap_err().to_string();
    assert!(message.contains("has no array `x`; its arrays are: logits, labels.npy"), "{message}");
    write_npz(&path, &[("logits", &logits)]).unwrap();
    assert_eq!(read_array(&path, &options).unwrap(), logits);
    // Names that cannot be told apart leave the older file alone.
    for names in [["a", "a"], ["a", ""]] {
        let error = write_npz(&path, &[(names[0], &logits), (names[1], &logits)]).unwrap_err();
        assert!(matches!(error, DataError::Store(StoreError::Write { .. })), "{error}");
        assert_eq!(read_array(&path, &options).unwrap(), logits);
    }
    // The same arrays make the same bytes.
    write_npz(&path, &[("logits", &logits), ("labels.npy", &all[1].1)]).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
}

#[test]
fn the_first_value_that_is_not_finite_is_found() {
    let doubles =
        array(&[2, 2, 2], ArrayValues::F64(vec![1.0, 2.0, 3.0, 4.0, 5.0, f64::NEG_INFINITY, 7.0, f64::NAN]));
    let expected = NonFinite { position: vec![1, 0, 1], value: f64::NEG_INFINITY };
    assert_eq!(doubles.first_non_finite(), Some(expected));
    let message = doubles.require_finite(Path::new("a.npy")).unwrap_err().to_string();
    assert!(message.contains("a.npy: the value at position [1, 0, 1], counted from 0, is -inf"), "{message}");
    let singles = array(&[3], ArrayValues::F32(vec![1.0, f32::NAN, 2.0]));
    let found = singles.first_non_finite().unwrap();
    assert!(found.value.is_nan() && found.position == [1]);
    assert!(array(&[], ArrayValues::F32(vec![f32::NAN])).first_non_finite().unwrap().position.is_empty());
    for values in
        [ArrayValues::F64(vec![f64::MAX]), ArrayValues::I64(vec![i64::MIN]), ArrayValues::U8(vec![255])]
    {
        assert!(array(&[1], values).require_finite(Path::new("a.npy")).is_ok());
    }
}

#[test]
fn values_are_widened_and_rounded_as_documented() {
    let third = 1.0 / 3.0;
    let doubles = array(&[2], ArrayValues::F64(vec![third, 1e300]));
    assert_eq!((doubles.to_f64(), doubles.to_f32()), (vec![third, 1e300], vec![third as f32, f32::INFINITY]));
    let bytes = array(&[2, 1], ArrayValues::U8(vec![0, 255]));
    assert_eq!((bytes.to_f64(), bytes.to_f32()), (vec![0.0, 255.0], vec![0.0, 255.0]));
    let whole = array(&[1], ArrayValues::I64(vec![(1 << 53) + 1]));
    assert_eq!(
        (whole.to_f64(), whole.to_f32()),
        (vec![9_007_199_254_740_992.0], vec![9_007_199_254_740_992.0])
    );
    let singles = array(&[1], ArrayValues::F32(vec![0.1]));
    assert_eq!((singles.to_f64(), singles.to_f32()), (vec![f64::from(0.1f32)], vec![0.1]));
    assert_eq!((bytes.examples(), bytes.example_shape(), bytes.len()), (2, &[1][..], 2));
    let number = array(&[], ArrayValues::U8(vec![1]));
    assert_eq!((number.examples(), number.example_shape(), number.is_empty()), (1, &[][..], false));
    let error = NumericArray::new(vec![2, 2], ArrayValues::U8(vec![1; 3])).unwrap_err().to_string();
    assert!(error.contains("shape [2, 2] does not hold 3 values"), "{error}");
    assert!(NumericArray::new(vec![usize::MAX, 2], ArrayValues::U8(vec![])).is_err());
    assert!(NumericArray::new(vec![usize::MAX, 0, 2], ArrayValues::U8(vec![])).is_err());
}

fn any_array() -> impl Strategy<Value = NumericArray> {
    (prop::collection::vec(0usize..5, 0..5), 0..4).prop_flat_map(|(shape, kind)| {
        let count = shape.iter().product::<usize>();
        let bits = prop::collection::vec(any::<u64>(), count);
        bits.prop_map(move |bits| {
            let values = match kind {
                0 => ArrayValues::F32(bits.iter().map(|b| f32::from_bits(*b as u32)).collect()),
                1 => ArrayValues::F64(bits.iter().map(|b| f64::from_bits(*b)).collect()),
                2 => ArrayValues::I64(bits.iter().map(|b| *b as i64).collect()),
                _ => ArrayValues::U8(bits.iter().map(|b| *b as u8).collect()),
            };
            NumericArray::new(shape.clone(), values).unwrap()
        })
    })
}

/// NaNs included, which are equal to nothing as numbers.
fn same_bits(a: &NumericArray, b: &NumericArray) -> bool {
    let values = match (a.values(), b.values()) {
        (ArrayValues::F32(a), ArrayValues::F32(b)) => {
            a.iter().map(|v| v.to_bits()).eq(b.iter().map(|v| v.to_bits()))
        }
        (ArrayValues::F64(a), ArrayValues::F64(b)) => {
            a.iter().map(|v| v.to_bits()).eq(b.iter().map(|v| v.to_bits()))
        }
        (a, b) => a == b,
    };
    values && a.shape() == b.shape()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_written_is_read(a in any_array(), b in any_array()) {
        let directory = tempfile::tempdir().unwrap();
        let options = ReadOptions::for_arrays();
        let (one, two) = (directory.path().join("a.npy"), directory.path().join("a.npz"));
        write_npy(&one, &a).unwrap();
        prop_assert!(same_bits(&read_array(&one, &options).unwrap(), &a));
        write_npz(&two, &[("a", &a), ("b", &b)]).unwrap();
        let both = read_arrays(&two, &options).unwrap();
        prop_assert!(same_bits(&both[0].1, &a) && same_bits(&both[1].1, &b) && both.len() == 2);
    }
}
