//! Cells of Parquet columns: numbers of every width as doubles, text, dates and times as text; what is no cell is refused by name.

use super::times::{self, Unit};
use crate::Values;
use num_bigint::BigInt;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;
use std::fmt::Display;

/// Digits of the widest decimal that is read.
const MOST_DIGITS: i32 = 76;

/// Its bytes.
const WIDEST_DECIMAL: usize = 32;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Text.
    Text,
    /// Numbers as they stand, booleans as 0 and 1.
    Number,
    /// Whole numbers without a sign.
    Unsigned,
    /// Whole numbers of so many decimal places.
    Decimal(i32),
    /// Numbers of 16 bits.
    Half,
    /// Days from 1970, as text.
    Date,
    /// Moments from 1970, as text in universal time whatever their zone.
    Instant(Unit),
    /// The same as days and nanoseconds in them.
    Julian,
    /// Times of day, as text.
    Time(Unit),
    /// 16 bytes, as text.
    Uuid,
}

impl Meaning {
    /// Of a column; of others, such as dates, the name of their type.
    pub(super) fn of(column: &ColumnDescriptor) -> std::result::Result<Self, String> {
        use ConvertedType as Old;
        let physical = column.physical_type();
        let whole = matches!(physical, Physical::INT32 | Physical::INT64);
        let bytes = matches!(physical, Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY);
        Ok(match (column.logical_type_ref(), column.converted_type()) {
            // All cells are missing.
            (Some(LogicalType::Unknown), _) if physical == Physical::BYTE_ARRAY => Self::Text,
            (Some(LogicalType::Unknown), _) if !bytes && physical != Physical::INT96 => Self::Number,
            (Some(LogicalType::Decimal(_)), _) | (None, Old::DECIMAL) if whole || bytes => {
                let (digits, length) = (column.type_precision(), column.type_length());
                if digits > MOST_DIGITS || length > WIDEST_DECIMAL as i32 {
                    return Err(format!("decimal of more than {MOST_DIGITS} digits"));
                }
                Self::Decimal(column.type_scale())
            }
            (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), _)
            | (None, Old::UTF8 | Old::ENUM | Old::JSON)
                if physical == Physical::BYTE_ARRAY =>
            {
                Self::Text
            }
            (Some(LogicalType::Float16), _) if column.type_length() == 2 => Self::Half,
            (Some(LogicalType::Integer(kind)), _) if whole && !kind.is_signed => Self::Unsigned,
            (Some(LogicalType::Integer(_)), _) if whole => Self::Number,
            (None, Old::UINT_8 | Old::UINT_16 | Old::UINT_32 | Old::UINT_64) if whole => Self::Unsigned,
            (None, Old::NONE | Old::INT_8 | Old::INT_16 | Old::INT_32 | Old::INT_64) if whole => Self::Number,
            (None, _) if matches!(physical, Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE) => {
                Self::Number
            }
            (Some(LogicalType::Timestamp(kind)), _) if physical == Physical::INT64 => {
                Self::Instant(unit(&kind.unit))
            }
            (None, Old::TIMESTAMP_MILLIS) if physical == Physical::INT64 => Self::Instant(Unit::Milli),
            (None, Old::TIMESTAMP_MICROS) if physical == Physical::INT64 => Self::Instant(Unit::Micro),
            (Some(LogicalType::Time(kind)), _) if whole => Self::Time(unit(&kind.unit)),
            (None, Old::TIME_MILLIS) if whole => Self::Time(Unit::Milli),
            (None, Old::TIME_MICROS) if whole => Self::Time(Unit::Micro),
            (Some(LogicalType::Date), _) | (None, Old::DATE) if physical == Physical::INT32 => Self::Date,
            (Some(LogicalType::Uuid), _) if column.type_length() == 16 => Self::Uuid,
            (None, _) if physical == Physical::INT96 => Self::Julian,
            _ if bytes => return Err("binary".into()),
            _ => return Err(format!("{physical} of a special kind").to_lowercase()),
        })
    }
}

impl Meaning {
    /// Whether cells are texts.
    pub(super) fn is_text(self) -> bool {
        self == Self::Text || self.is_written()
    }

    /// Whether cells are texts that are made of something short.
    pub(super) fn is_written(self) -> bool {
        matches!(self, Self::Date | Self::Instant(_) | Self::Julian | Self::Time(_) | Self::Uuid)
    }
}

fn unit(unit: &TimeUnit) -> Unit {
    match unit {
        TimeUnit::MILLIS => Unit::Milli,
        TimeUnit::MICROS => Unit::Micro,
        TimeUnit::NANOS => Unit::Nano,
    }
}

/// Adds at most `most` cells of a column; their number. None is missing, as NaN is among numbers. `text` hears what the texts take, in bytes, before
/// they are copied: a dictionary makes much text of few bytes.
///
/// # Errors
/// When a page cannot be decoded, and those of `text`.
pub(super) fn push<E: From<ParquetError>>(
    reader: &mut ColumnReader,
    meaning: Meaning,
    most: usize,
    out: &mut Values,
    text: impl FnOnce(&[Option<usize>]) -> std::result::Result<(), E>,
) -> std::result::Result<usize, E> {
    use ColumnReader as C;
    let out = match out {
        Values::Numeric(out) => out,
        Values::Text(out) => {
            use Meaning as M;
            return match (reader, meaning) {
                (C::ByteArrayColumnReader(r), M::Text) => texts(r, most, out, text),
                (C::Int32ColumnReader(r), M::Date) => written(r, most, out, text, |v| times::date(*v)),
                (C::Int64ColumnReader(r), M::Instant(unit)) => {
                    written(r, most, out, text, |v| times::instant(unit.nanos(*v)))
                }
                (C::Int96ColumnReader(r), M::Julian) => {
                    written(r, most, out, text, |v| times::instant(times::julian(v.data())))
                }
                (C::Int32ColumnReader(r), M::Time(unit)) => {
                    written(r, most, out, text, |v| times::time(unit.nanos(i64::from(*v))))
                }
                (C::Int64ColumnReader(r), M::Time(unit)) => {
                    written(r, most, out, text, |v| times::time(unit.nanos(*v)))
                }
                (C::FixedLenByteArrayColumnReader(r), M::Uuid) => {
                    written(r, most, out, text, |v| times::uuid(v.data()))
                }
                _ => Err(contradiction().into()),
            };
        }
    };
    let places = if let Meaning::Decimal(places) = meaning { Some(places) } else { None };
    let rows = match (reader, meaning) {
        (C::Int32ColumnReader(r), Meaning::Unsigned) => numbers(r, most, out, |v| f64::from(*v as u32)),
        (C::Int64ColumnReader(r), Meaning::Unsigned) => numbers(r, most, out, |v| *v as u64 as f64),
        (C::Int32ColumnReader(r), _) => match places {
            Some(places) => numbers(r, most, out, |v| decimal(v, places)),
            None => numbers(r, most, out, |v| f64::from(*v)),
        },
        (C::Int64ColumnReader(r), _) => match places {
            Some(places) => numbers(r, most, out, |v| decimal(v, places)),
            None => numbers(r, most, out, |v| *v as f64),
        },
        (C::BoolColumnReader(r), Meaning::Number) => numbers(r, most, out, |v| f64::from(*v)),
        (C::FloatColumnReader(r), Meaning::Number) => numbers(r, most, out, |v| f64::from(*v)),
        (C::DoubleColumnReader(r), Meaning::Number) => numbers(r, most, out, |v| *v),
        (C::ByteArrayColumnReader(r), Meaning::Decimal(places)) => {
            wide_decimals(r, most, out, ByteArray::data, places)
        }
        (C::FixedLenByteArrayColumnReader(r), Meaning::Decimal(places)) => {
            wide_decimals(r, most, out, |v| v.data(), places)
        }
        (C::FixedLenByteArrayColumnReader(r), Meaning::Half) => numbers(r, most, out, |v| match *v.data() {
            [low, high] => f64::from(half::f16::from_le_bytes([low, high])),
            _ => f64::NAN,
        }),
        _ => Err(contradiction()),
    };
    Ok(rows?)
}

fn contradiction() -> ParquetError {
    ParquetError::General("a column holds other values than its schema says".into())
}

/// Reads rows of a column: (whether each has a value, the values).
fn read<T: DataType>(reader: &mut ColumnReaderImpl<T>, most: usize) -> Result<(Vec<bool>, Vec<T::T>)> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (rows, read, _) = reader.read_records(most, Some(&mut levels), None, &mut values)?;
    // Columns without missing cells have no levels; those of flat columns with some are 0 and 1.
    let present: Vec<bool> =
        if levels.is_empty() { vec![true; rows] } else { levels.iter().map(|l| *l > 0).collect() };
    if present.len() != rows || present.iter().filter(|p| **p).count() != read || values.len() != read {
        return Err(ParquetError::General("a column has other numbers of values than of cells".into()));
    }
    Ok((present, values))
}

fn numbers<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    most: usize,
    out: &mut Vec<f64>,
    number: impl Fn(&T::T) -> f64,
) -> Result<usize> {
    let (present, values) = read(reader, most)?;
    add(&present, values.iter().map(number), out);
    Ok(present.len())
}

/// Adds a value where there is one, NaN elsewhere.
fn add(present: &[bool], mut values: impl Iterator<Item = f64>, out: &mut Vec<f64>) {
    out.extend(present.iter().map(|p| if *p { values.next().unwrap_or(f64::NAN) } else { f64::NAN }));
}

/// Whole numbers of any width, their highest bytes first, of so many decimal places.
fn wide_decimals<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    most: usize,
    out: &mut Vec<f64>,
    bytes: impl Fn(&T::T) -> &[u8],
    places: i32,
) -> Result<usize> {
    let (present, values) = read(reader, most)?;
    if let Some(wrong) = values.iter().map(|v| bytes(v).len()).find(|n| !(1..=WIDEST_DECIMAL).contains(n)) {
        return Err(ParquetError::General(format!("a decimal of {wrong} bytes is none that can be read")));
    }
    let number = |v: &T::T| decimal(BigInt::from_signed_bytes_be(bytes(v)), places);
    add(&present, values.iter().map(number), out);
    Ok(present.len())
}

fn texts<E: From<ParquetError>>(
    reader: &mut ColumnReaderImpl<ByteArrayType>,
    most: usize,
    out: &mut Vec<Option<String>>,
    text: impl FnOnce(&[Option<usize>]) -> std::result::Result<(), E>,
) -> std::result::Result<usize, E> {
    let (present, values) = read(reader, most)?;
    let mut values = values.iter();
    let cells: Vec<Option<&ByteArray>> =
        present.iter().map(|p| if *p { values.next() } else { None }).collect();
    text(&cells.iter().map(|cell| cell.map(ByteArray::len)).collect::<Vec<_>>())?;
    for cell in &cells {
        out.push(cell.map(|c| c.as_utf8().map(String::from)).transpose()?);
    }
    Ok(cells.len())
}

/// Cells that are written as text; `write` has none for what no calendar has.
fn written<T: DataType, E: From<ParquetError>>(
    reader: &mut ColumnReaderImpl<T>,
    most: usize,
    out: &mut Vec<Option<String>>,
    text: impl FnOnce(&[Option<usize>]) -> std::result::Result<(), E>,
    write: impl Fn(&T::T) -> Option<String>,
) -> std::result::Result<usize, E> {
    let (present, values) = read(reader, most)?;
    let strange =
        || ParquetError::General("a date or time outside of the years -9999 to 9999, or of a day".into());
    let mut values = values.iter().map(|value| write(value).ok_or_else(strange));
    let cells = present.iter().map(|present| if *present { values.next().transpose() } else { Ok(None) });
    let cells: Vec<Option<String>> = cells.collect::<Result<_>>()?;
    text(&cells.iter().map(|cell| cell.as_ref().map(String::len)).collect::<Vec<_>>())?;
    out.extend(cells);
    Ok(present.len())
}

/// A whole number of so many decimal places as the nearest double, by way of its digits: a division would round twice.
fn decimal(digits: impl Display, places: i32) -> f64 {
    format!("{digits}e{}", -i64::from(places)).parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataError, ReadOptions, Table};
    use parquet::basic::Repetition;
    use parquet::data_type::{BoolType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type};
    use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
    use parquet::schema::types::Type;
    use std::path::Path;
    use std::sync::Arc;

    /// A column of a type in the text form of schemas, written by `write` into a file of its own.
    fn read_back(
        field: &str,
        write: impl Fn(&mut SerializedColumnWriter<'_>),
    ) -> std::result::Result<Table, DataError> {
        let schema =
            parquet::schema::parser::parse_message_type(&format!("message m {{ {field} }}")).unwrap();
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::default()).unwrap();
        for _ in 0..2 {
            let mut group = writer.next_row_group().unwrap();
            while let Some(mut column) = group.next_column().unwrap() {
                write(&mut column);
                column.close().unwrap();
            }
            group.close().unwrap();
        }
        writer.close().unwrap();
        super::super::parquet::parse(bytes, Path::new("t.parquet"), &ReadOptions::default())
    }

    /// The cells of one of the two groups of rows, which are the same.
    fn cells<T: DataType>(field: &str, values: &[T::T], present: Option<&[i16]>) -> Values {
        let write = |column: &mut SerializedColumnWriter<'_>| {
            column.typed::<T>().write_batch(values, present, None).unwrap();
        };
        let table = read_back(field, write).unwrap();
        let half = |n: usize| n / 2;
        match table.columns.into_iter().next().unwrap().values {
            Values::Numeric(mut v) => {
                let (n, bits) = (half(v.len()), v.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
                assert_eq!(bits[..n], bits[n..]);
                v.truncate(n);
                Values::Numeric(v)
            }
            Values::Text(mut v) => {
                let n = half(v.len());
                assert_eq!(v[..n], v[n..]);
                v.truncate(n);
                Values::Text(v)
            }
        }
    }

    fn numbers<T: DataType>(field: &str, values: &[T::T], present: Option<&[i16]>) -> Vec<f64> {
        let Values::Numeric(numbers) = cells::<T>(field, values, present) else { panic!("{field}") };
        numbers
    }

    fn fixed(bytes: &[u8]) -> FixedLenByteArray {
        ByteArray::from(bytes.to_vec()).into()
    }

    #[test]
    fn numbers_of_every_kind_become_doubles() {
        let plain = numbers::<Int32Type>("required int32 x;", &[0, -255], None);
        assert_eq!(plain, [0.0, -255.0]);
        for kind in ["INT_8", "INT_16", "INT_32", "INTEGER(8,true)"] {
            assert_eq!(
                numbers::<Int32Type>(&format!("required int32 x ({kind});"), &[-7], None),
                [-7.0],
                "{kind}"
            );
        }
        for kind in ["UINT_32", "INTEGER(32,false)"] {
            let field = format!("required int32 x ({kind});");
            assert_eq!(numbers::<Int32Type>(&field, &[-1], None), [4_294_967_295.0], "{kind}");
        }
        assert_eq!(numbers::<Int64Type>("required int64 x;", &[i64::MIN, 7], None), [-(2f64.powi(63)), 7.0]);
        let unsigned = numbers::<Int64Type>("required int64 x (UINT_64);", &[-1], None);
        assert_eq!(unsigned, [u64::MAX as f64]);
        let half = [fixed(&half::f16::from_f32(-1.5).to_le_bytes())];
        let field = "required fixed_len_byte_array(2) x (FLOAT16);";
        assert_eq!(numbers::<FixedLenByteArrayType>(field, &half, None), [-1.5]);
        let missing = numbers::<BoolType>("optional boolean x;", &[true, false], Some(&[1, 0, 1]));
        assert!(missing[0] == 1.0 && missing[1].is_nan() && missing[2] == 0.0);
        let none = numbers::<Int32Type>("optional int32 x (UNKNOWN);", &[], Some(&[0, 0, 0]));
        assert!(none.len() == 3 && none.iter().all(|v| v.is_nan()));
        let none = cells::<ByteArrayType>("optional binary x (UNKNOWN);", &[], Some(&[0, 0]));
        assert_eq!(none, Values::Text(vec![None, None]));
    }

    #[test]
    fn decimals_are_the_nearest_doubles_of_what_is_written() {
        let field = "required int32 x (DECIMAL(9,5));";
        assert_eq!(numbers::<Int32Type>(field, &[3, -123_456, 0], None), [3e-5, -1.234_56, 0.0]);
        let field = "required int64 x (DECIMAL(18,2));";
        assert_eq!(
            numbers::<Int64Type>(field, &[-7, 999_999_999_999_999_999], None),
            [-0.07, 9_999_999_999_999_999.99]
        );
        let value = 12_345_678_901_234_567_891_i128;
        let bytes = [fixed(&value.to_be_bytes()), fixed(&(-value).to_be_bytes())];
        let field = "required fixed_len_byte_array(16) x (DECIMAL(30,5));";
        let expected = [123_456_789_012_345.67, -123_456_789_012_345.67];
        assert_eq!(numbers::<FixedLenByteArrayType>(field, &bytes, None), expected);
        // As few bytes as they need, and more than an integer of 128 bits has.
        let wide = [vec![0xff], vec![7], [vec![1], vec![0; 31]].concat()].map(ByteArray::from);
        let all = numbers::<ByteArrayType>("required binary x (DECIMAL(76,2));", &wide, None);
        assert_eq!(all, [-0.01, 0.07, 2f64.powi(248) / 100.0]);
        // No decimal is as wide as this, or without digits.
        for hostile in [vec![1; 33], vec![]] {
            let write = |column: &mut SerializedColumnWriter<'_>| {
                let value = [ByteArray::from(hostile.clone())];
                column.typed::<ByteArrayType>().write_batch(&value, None, None).unwrap();
            };
            let message = read_back("required binary cents (DECIMAL(76,2));", write).unwrap_err().to_string();
            assert!(message.contains("column `cents`: ") && message.contains("a decimal of"), "{message}");
        }
    }

    #[test]
    fn text_is_the_same_however_it_is_called() {
        let words = ["a", "", "é", "a"].map(ByteArray::from);
        let expected = [Some("a"), None, Some(""), Some("é"), Some("a")].map(|w| w.map(String::from));
        for kind in ["STRING", "UTF8", "ENUM", "JSON"] {
            let field = format!("optional binary x ({kind});");
            let text = cells::<ByteArrayType>(&field, &words, Some(&[1, 0, 1, 1, 1]));
            assert_eq!(text, Values::Text(expected.to_vec()), "{kind}");
        }
        let invalid = [ByteArray::from(vec![0xff])];
        let write = |column: &mut SerializedColumnWriter<'_>| {
            column.typed::<ByteArrayType>().write_batch(&invalid, None, None).unwrap();
        };
        let message = read_back("required binary words (STRING);", write).unwrap_err().to_string();
        assert!(message.contains("column `words`") && message.contains("utf-8"), "{message}");
    }

    fn words<T: DataType>(field: &str, values: &[T::T], present: Option<&[i16]>) -> Vec<String> {
        let Values::Text(words) = cells::<T>(field, values, present) else { panic!("{field}") };
        words.into_iter().map(Option::unwrap_or_default).collect()
    }

    #[test]
    fn dates_and_times_are_texts() {
        let unix = 1_614_834_367_i64;
        let day = ["2021-03-04", "", "1969-12-31"];
        let present = Some(&[1, 0, 1][..]);
        assert_eq!(words::<Int32Type>("optional int32 x (DATE);", &[18_690, -1], present), day);
        for (kind, one) in [
            ("TIMESTAMP_MILLIS", 1000),
            ("TIMESTAMP_MICROS", 1_000_000),
            ("TIMESTAMP(MILLIS,true)", 1000),
            ("TIMESTAMP(MICROS,false)", 1_000_000),
            ("TIMESTAMP(NANOS,true)", 1_000_000_000),
        ] {
            let field = format!("optional int64 x ({kind});");
            let found = words::<Int64Type>(&field, &[unix * one, one / 4], present);
            assert_eq!(found, ["2021-03-04T05:06:07", "", "1970-01-01T00:00:00.25"], "{kind}");
        }
        let mut old = parquet::data_type::Int96::new();
        let nanos = 18_367_u64 * 1_000_000_000;
        old.set_data(nanos as u32, (nanos >> 32) as u32, 18_690 + 2_440_588);
        let found = words::<parquet::data_type::Int96Type>("required int96 x;", &[old], None);
        assert_eq!(found, ["2021-03-04T05:06:07"]);
        let found = words::<Int32Type>("required int32 x (TIME_MILLIS);", &[18_367_000, 1], None);
        assert_eq!(found, ["05:06:07", "00:00:00.001"]);
        let found = words::<Int64Type>("required int64 x (TIME(NANOS,true));", &[1, 0], None);
        assert_eq!(found, ["00:00:00.000000001", "00:00:00"]);
        let id = [fixed(&[0xab; 16])];
        let found = words::<FixedLenByteArrayType>("required fixed_len_byte_array(16) x (UUID);", &id, None);
        assert_eq!(found, ["abababab-abab-abab-abab-abababababab"]);
        for (field, value) in
            [("required int64 x (TIMESTAMP_MILLIS);", i64::MIN), ("required int64 x (TIME_MICROS);", -1)]
        {
            let write = |column: &mut SerializedColumnWriter<'_>| {
                column.typed::<Int64Type>().write_batch(&[value], None, None).unwrap();
            };
            let message = read_back(field, write).unwrap_err().to_string();
            assert!(message.contains("column `x`: ") && message.contains("-9999 to 9999"), "{message}");
        }
    }

    #[test]
    fn what_is_no_cell_is_refused_by_name() {
        for (field, kind) in [
            ("required binary x;", "binary"),
            ("required fixed_len_byte_array(12) x (INTERVAL);", "binary"),
            ("required group x { required int32 y; }", "list or group of columns"),
            ("repeated int32 x;", "list or group of columns"),
            ("required binary x (DECIMAL(77,2));", "decimal of more than 76 digits"),
            ("required fixed_len_byte_array(33) x (DECIMAL(76,2));", "decimal of more than 76 digits"),
        ] {
            let message = read_back(field, |_| ()).unwrap_err().to_string();
            let expected = format!("column `x` has type {kind}, which is no table cell");
            assert!(message.contains(&expected), "{field}: {message}");
        }
    }

    #[test]
    fn columns_of_one_name_keep_their_own_kinds() {
        let write = |column: &mut SerializedColumnWriter<'_>| {
            column.typed::<Int32Type>().write_batch(&[-1], None, None).unwrap();
        };
        let table = read_back("required int32 x; required int32 x (UINT_32);", write).unwrap();
        let both: Vec<String> = table.columns.iter().map(|c| c.cell(0)).collect();
        assert_eq!(both, ["-1", "4294967295"]);
        let message = read_back("", |_| ()).unwrap_err().to_string();
        assert!(message.contains("no columns"), "{message}");
    }

    #[test]
    fn a_column_that_contradicts_its_schema_is_an_error() {
        let schema = |physical| {
            let field =
                Type::primitive_type_builder("x", physical).with_repetition(Repetition::REQUIRED).build();
            Arc::new(
                Type::group_type_builder("m").with_fields(vec![Arc::new(field.unwrap())]).build().unwrap(),
            )
        };
        let mut bytes = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut bytes, schema(Physical::INT64), Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[1], None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        use parquet::file::reader::{FileReader, SerializedFileReader};
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let column = || reader.get_row_group(0).unwrap().get_column_reader(0).unwrap();
        let push = |meaning, out: &mut Values| {
            push(&mut column(), meaning, 1, out, |_| Ok::<(), ParquetError>(())).unwrap_err().to_string()
        };
        assert!(push(Meaning::Text, &mut Values::Text(vec![])).contains("its schema says"));
    }
}
