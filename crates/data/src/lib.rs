//! Tables: reading them, choosing roles, splitting, standardising, writing, and making them up; arrays and images for networks.
//!
//! ```
//! use posterior_data::{ReadOptions, Schema, Selection, Standardisation, parse_table};
//! use std::path::Path;
//!
//! let text = b"size,colour,price\n1,red,10\n2,blue,\n3,red,31\n4,red,42\n".to_vec();
//! let table = parse_table(text, Path::new("houses.csv"), None, &ReadOptions::default())?;
//! let selection = Selection { target: "price".into(), features: Some(vec!["size".into()]), ..Selection::default() };
//! let rows: Vec<usize> = (0..table.rows()).filter(|row| *row != 1).collect();
//! let extracted = Schema::learn(&table, &selection, &rows)?.extract(&table, &rows, true)?;
//! let standard = Standardisation::learn(extracted.x.as_ref(), extracted.y.as_deref().unwrap_or_default());
//! assert!(standard.features(extracted.x.as_ref()).sum().abs() < 1e-12);
//! // A row without a target teaches nothing and can be predicted; any other cell that is missing is an error with its place, unless it was said what to do with it.
//! let schema = Schema::learn(&table, &selection, &[0, 1])?;
//! assert_eq!(schema.extract(&table, &[0, 1], true)?.rows, [0]);
//! assert_eq!(schema.extract(&table, &[0, 1], false)?.rows, [0, 1]);
//! # Ok::<(), posterior_data::DataError>(())
//! ```
//!
//! | module | idea |
//! |---|---|
//! | [`Table`] | named columns of numbers or text, as they stand in the file |
//! | [`read_table`] | delimited text of any dialect and encoding, JSON lines, Excel, Parquet, NPY, NPZ, gzip: one entry, hostile files included |
//! | [`TextOptions`] | delimiter, decimal mark and encoding of texts, said instead of guessed |
//! | [`read_tables`] | several files of the same columns as one table |
//! | [`stream`] | large CSV and Parquet files, part by part |
//! | [`arriving`] | rows that arrive one after the other |
//! | [`RowFile`] | rows of numbers on disk, for tables that do not fit memory |
//! | [`Schema`] | which column plays which role; learned on training rows, applied to any later table |
//! | [`ClassNames`], [`TargetSketch`] | labels and counts as targets, and what a column looks like before anyone says which |
//! | [`Standardisation`] | means and scales of the training rows |
//! | [`FeatureMap`] | monotone maps of skewed features |
//! | [`TargetTransform`] | monotone maps of a skewed target, and the way back |
//! | [`RowFingerprints`] | which rows a model was trained on |
//! | [`InputRanges`] | where inputs lay in training, and whether later ones lie elsewhere |
//! | [`Split`] | which rows train and which test |
//! | [`write_table`] | CSV and Parquet in one atomic step |
//! | [`create_atomically`] | any file: whole or not at all, where links lead |
//! | [`check_outputs`] | what may be written where, before the work |
//! | [`FileLock`] | one process at a time |
//! | [`NumericArray`] | numbers of any rank: [`read_array`], [`read_images`] and [`ImageSet`] for NPY, NPZ, IDX and CIFAR files |
//! | [`read_feature_matrix`] | numbers from any of these files as one matrix, with a column of labels apart |
//! | [`transform`] | images rotated and corrupted, for tests under shift |
//! | [`synthetic`] | seeded problems with known truth |
//!
//! Rows are counted from 1 in messages, the header not included; from 0 in code.

mod arrays;
pub mod arriving;
mod destination;
mod error;
mod feature_map;
mod features;
mod fingerprint;
mod labels;
mod limits;
mod ranges;
mod read;
mod row_file;
mod schema;
mod split;
mod standardise;
pub mod stream;
mod support;
pub mod synthetic;
mod table;
mod target_transform;
pub mod transform;
mod write;

pub use arrays::{
    ArrayValues, CifarImages, CifarLabels, ImageSet, NonFinite, NumericArray, PictureFormat, read_array,
    read_arrays, read_cifar, read_idx, read_images, read_picture, write_npy, write_npz, write_picture,
};
pub use destination::{Output, OutputKind, REPORT_MARK, check_outputs};
pub use error::DataError;
pub use feature_map::FeatureMap;
pub use features::{FeatureMatrix, FeatureOptions, read_feature_matrix};
pub use fingerprint::{RowFingerprints, row_fingerprint, table_fingerprints};
pub use labels::{
    ClassNames, LEAST_TARGETS, TargetSketch, counts_of_rows, finite_targets, present, refuse_nearly_numbers,
    require_targets,
};
pub use posterior_store::{
    FileLock, LockHolder, StoreError, create_atomically, json, open_regular, replace_atomically, resolved,
    to_shown_value,
};
pub use ranges::{Departure, InputMoments, InputRange, InputRanges, LEAST_ROWS, Sign};
pub use read::{
    DecimalMark, Delimiter, NumberMark, ReadOptions, TextEncoding, TextOptions, is_table_name, parse_table,
    read_table, read_tables, split_part_name,
};
pub use row_file::{RowFile, RowWriter, row_bytes};
pub use schema::{
    ColumnDates, Cycle, Extracted, Feature, Missing, MissingTarget, Notes, Reading, Schema, Selection,
    TimeForm, Unseen, Wave, dates_of,
};
pub use split::{Split, distinct as distinct_folds, folds_of_rows, groups_of_rows, times_of_rows};
pub use standardise::{Standardisation, TransformedTarget};
pub use support::Support;
pub use table::{Column, Table, TableFile, Values, Written, within_range};
pub use target_transform::TargetTransform;
pub use write::{CsvOptions, lines_of, write_parts, write_table, write_table_as};
