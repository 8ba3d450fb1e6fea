//! Cells of Arrow arrays: numbers of every width as doubles, text however it is stored, without a copy of the array in between.

use crate::Values;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::DataType;
use std::fmt::Display;

/// Whether a column of this type holds text.
pub(super) fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => {
            matches!(**values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        _ => false,
    }
}

/// Whether its values are cells of a table.
pub(super) fn is_flat(kind: &DataType) -> bool {
    is_text(kind) || kind.is_numeric() || matches!(kind, DataType::Boolean | DataType::Null)
}

/// Adds the cells of an array; None is missing, as NaN is among numbers.
///
/// # Errors
/// A sentence, for an array of another kind than the column.
pub(crate) fn push(values: &mut Values, array: &ArrayRef) -> Result<(), String> {
    match values {
        Values::Numeric(out) => push_numbers(out, array),
        Values::Text(out) => {
            out.reserve(array.len());
            each_text(array, &mut |text| out.push(text.map(String::from)))
        }
    }
}

fn other(array: &ArrayRef) -> Result<(), String> {
    Err(format!("a column holds {} where its schema says otherwise", array.data_type()))
}

/// Calls `each` with every text of an array.
pub(super) fn each_text(array: &ArrayRef, each: &mut dyn FnMut(Option<&str>)) -> Result<(), String> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().for_each(each),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(each),
        DataType::Utf8View => array.as_string_view().iter().for_each(each),
        DataType::Dictionary(_, _) => {
            let array = array.as_any_dictionary();
            let (keys, words) = (array.keys(), array.values());
            // Without words there are no keys.
            let places = if words.is_empty() { vec![0; keys.len()] } else { array.normalized_keys() };
            let place = |row: usize| (keys.is_valid(row) && !words.is_empty()).then_some(places[row]);
            let places = (0..keys.len()).map(place);
            match words.data_type() {
                DataType::Utf8 => {
                    let words = words.as_string::<i32>();
                    places.for_each(|p| each(p.filter(|p| words.is_valid(*p)).map(|p| words.value(p))));
                }
                DataType::LargeUtf8 => {
                    let words = words.as_string::<i64>();
                    places.for_each(|p| each(p.filter(|p| words.is_valid(*p)).map(|p| words.value(p))));
                }
                DataType::Utf8View => {
                    let words = words.as_string_view();
                    places.for_each(|p| each(p.filter(|p| words.is_valid(*p)).map(|p| words.value(p))));
                }
                _ => return other(words),
            }
        }
        _ => return other(array),
    }
    Ok(())
}

fn push_numbers(out: &mut Vec<f64>, array: &ArrayRef) -> Result<(), String> {
    match array.data_type() {
        DataType::Float64 => primitive::<Float64Type>(out, array, |v| v),
        DataType::Float32 => primitive::<Float32Type>(out, array, f64::from),
        DataType::Float16 => primitive::<Float16Type>(out, array, f64::from),
        DataType::Int64 => primitive::<Int64Type>(out, array, |v| v as f64),
        DataType::Int32 => primitive::<Int32Type>(out, array, f64::from),
        DataType::Int16 => primitive::<Int16Type>(out, array, f64::from),
        DataType::Int8 => primitive::<Int8Type>(out, array, f64::from),
        DataType::UInt64 => primitive::<UInt64Type>(out, array, |v| v as f64),
        DataType::UInt32 => primitive::<UInt32Type>(out, array, f64::from),
        DataType::UInt16 => primitive::<UInt16Type>(out, array, f64::from),
        DataType::UInt8 => primitive::<UInt8Type>(out, array, f64::from),
        DataType::Decimal32(_, scale) => primitive::<Decimal32Type>(out, array, decimal(*scale)),
        DataType::Decimal64(_, scale) => primitive::<Decimal64Type>(out, array, decimal(*scale)),
        DataType::Decimal128(_, scale) => primitive::<Decimal128Type>(out, array, decimal(*scale)),
        DataType::Decimal256(_, scale) => primitive::<Decimal256Type>(out, array, decimal(*scale)),
        DataType::Boolean => {
            out.extend(array.as_boolean().iter().map(|v| v.map_or(f64::NAN, f64::from)));
        }
        DataType::Null => out.extend(std::iter::repeat_n(f64::NAN, array.len())),
        _ => return other(array),
    }
    Ok(())
}

fn primitive<T: ArrowPrimitiveType>(out: &mut Vec<f64>, array: &ArrayRef, number: impl Fn(T::Native) -> f64) {
    out.extend(array.as_primitive::<T>().iter().map(|v| v.map_or(f64::NAN, &number)));
}

/// A whole number of so many decimal places as the nearest double, by way of its digits: a division would round twice.
fn decimal<N: Display>(scale: i8) -> impl Fn(N) -> f64 {
    move |v| format!("{v}e{}", -i32::from(scale)).parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int8Type as Key;
    use arrow_array::{
        BooleanArray, Decimal128Array, Decimal256Array, DictionaryArray, Float16Array, Int64Array,
        LargeStringArray, NullArray, StringArray, StringViewArray, UInt8Array,
    };
    use std::sync::Arc;

    fn numbers(array: impl Array + 'static) -> Vec<f64> {
        let mut values = Values::Numeric(vec![]);
        push(&mut values, &(Arc::new(array) as ArrayRef)).unwrap();
        let Values::Numeric(numbers) = values else { panic!() };
        numbers
    }

    fn texts(array: impl Array + 'static) -> Vec<Option<String>> {
        let mut values = Values::Text(vec![]);
        push(&mut values, &(Arc::new(array) as ArrayRef)).unwrap();
        let Values::Text(texts) = values else { panic!() };
        texts
    }

    #[test]
    fn numbers_of_every_kind_become_doubles() {
        assert_eq!(numbers(UInt8Array::from(vec![0, 255])), [0.0, 255.0]);
        assert_eq!(numbers(Int64Array::from(vec![i64::MIN, 7])), [-(2f64.powi(63)), 7.0]);
        assert_eq!(numbers(Float16Array::from(vec![half::f16::from_f32(-1.5)])), [-1.5]);
        let missing = numbers(BooleanArray::from(vec![Some(true), None, Some(false)]));
        assert!(missing[0] == 1.0 && missing[1].is_nan() && missing[2] == 0.0);
        assert!(numbers(NullArray::new(3)).iter().all(|v| v.is_nan()));
        // The nearest doubles of what is written, however many digits it has.
        let decimals = Decimal128Array::from(vec![3, -123_456, 12_345_678_901_234_567_891, 0]);
        let decimals = decimals.with_precision_and_scale(30, 5).unwrap();
        assert_eq!(numbers(decimals), [3e-5, -1.234_56, 123_456_789_012_345.67, 0.0]);
        let decimals = Decimal128Array::from(vec![12]).with_precision_and_scale(20, -3).unwrap();
        assert_eq!(numbers(decimals), [12_000.0]);
        let decimals = Decimal256Array::from_iter_values([i256(7)]).with_precision_and_scale(70, 2).unwrap();
        assert_eq!(numbers(decimals), [0.07]);
    }

    fn i256(v: i64) -> <Decimal256Type as ArrowPrimitiveType>::Native {
        <Decimal256Type as ArrowPrimitiveType>::Native::from(v)
    }

    #[test]
    fn text_is_the_same_however_it_is_stored() {
        let words = [Some("a"), None, Some(""), Some("a")];
        let expected: Vec<Option<String>> = words.iter().map(|w| w.map(String::from)).collect();
        assert_eq!(texts(StringArray::from(words.to_vec())), expected);
        assert_eq!(texts(LargeStringArray::from(words.to_vec())), expected);
        assert_eq!(texts(StringViewArray::from(words.to_vec())), expected);
        let dictionary: DictionaryArray<Key> = words.into_iter().collect();
        assert_eq!(texts(dictionary), expected);
        // A word that is missing, and a dictionary without words.
        let keys = arrow_array::Int8Array::from(vec![Some(1), Some(0), None]);
        let list = StringArray::from(vec![None, Some("b")]);
        let dictionary = DictionaryArray::<Key>::new(keys, Arc::new(list));
        assert_eq!(texts(dictionary), [Some("b".to_string()), None, None]);
        let empty: DictionaryArray<Key> = [None::<&str>, None].into_iter().collect();
        assert_eq!(texts(empty), [None, None]);
    }

    #[test]
    fn an_array_that_contradicts_its_column_is_an_error() {
        let words = Arc::new(StringArray::from(vec!["1"])) as ArrayRef;
        assert!(push(&mut Values::Numeric(vec![]), &words).unwrap_err().contains("Utf8"));
        let numbers = Arc::new(Int64Array::from(vec![1])) as ArrayRef;
        assert!(push(&mut Values::Text(vec![]), &numbers).is_err());
    }
}
