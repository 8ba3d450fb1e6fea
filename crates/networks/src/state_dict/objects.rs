//! What the stack machine builds: plain values that refer to one another by number, so that no file can make them nest too deeply to be dropped, or go round in circles.

use safetensors::Dtype;

/// A value; those of variable length stand in [`Objects`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// What has no meaning here: nothing, truth values, fractions.
    Plain,
    Whole(i64),
    Text(usize),
    Tuple(usize),
    List,
    Dictionary(usize),
    /// A class or function by name.
    Global(usize),
    Storage(usize),
    Tensor(usize),
    /// An object of a class that is not known here, by the number of the class among the globals.
    Foreign(usize),
}

/// The numbers that one or several tensors are views of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Storage {
    /// Name of the member of the archive.
    pub(super) key: String,
    pub(super) dtype: Dtype,
    /// Numbers, as declared.
    pub(super) length: usize,
}

/// A view of a storage.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    /// Its number among the storages.
    pub(super) storage: usize,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

impl View {
    /// How many numbers it shows; None beyond all sizes.
    pub(super) fn len(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |product, &length| product.checked_mul(length))
    }

    /// One beyond the last number of the storage that it shows; None beyond all sizes. Of views that show something.
    pub(super) fn end(&self) -> Option<usize> {
        let steps = self.shape.iter().zip(&self.strides);
        let mut end = self.offset.checked_add(1)?;
        for (&length, &stride) in steps {
            end = end.checked_add((length - 1).checked_mul(stride)?)?;
        }
        Some(end)
    }

    /// Places of its numbers, counted from the offset, in the order of rows.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        let mut at = vec![0; self.shape.len()];
        let mut place = 0;
        (0..self.len().unwrap_or(0)).map(move |_| {
            let here = place;
            for axis in (0..at.len()).rev() {
                at[axis] += 1;
                place += self.strides[axis];
                if at[axis] < self.shape[axis] {
                    break;
                }
                place -= at[axis] * self.strides[axis];
                at[axis] = 0;
            }
            here
        })
    }

    /// Whether its numbers stand side by side, in order.
    pub(super) fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(&length, &stride)| {
            let fits = length == 1 || stride == expected;
            expected = expected.saturating_mul(length);
            fits
        })
    }
}

/// What a file says, with the value that it ends in.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) texts: Vec<String>,
    pub(super) tuples: Vec<Vec<Value>>,
    pub(super) dictionaries: Vec<Vec<(Value, Value)>>,
    /// Module and name of classes and functions.
    pub(super) globals: Vec<(String, String)>,
    pub(super) storages: Vec<Storage>,
    pub(super) views: Vec<View>,
}

impl Objects {
    /// Keeps something and says its number.
    pub(super) fn keep<T>(list: &mut Vec<T>, value: T) -> usize {
        list.push(value);
        list.len() - 1
    }

    pub(super) fn text(&self, value: Value) -> Option<&str> {
        if let Value::Text(i) = value { self.texts.get(i).map(String::as_str) } else { None }
    }

    pub(super) fn tuple(&self, value: Value) -> Option<&[Value]> {
        if let Value::Tuple(i) = value { self.tuples.get(i).map(Vec::as_slice) } else { None }
    }

    /// A whole number from 0 on.
    pub(super) fn size(value: Value) -> Option<usize> {
        if let Value::Whole(n) = value { usize::try_from(n).ok() } else { None }
    }

    /// A tuple of a few whole numbers from 0 on: a shape or strides.
    pub(super) fn sizes(&self, value: Value) -> Option<Vec<usize>> {
        /// More axes no network's tensor has, and a program cannot copy a long tuple again and again.
        const MOST_AXES: usize = 12;
        self.tuple(value).filter(|t| t.len() <= MOST_AXES)?.iter().map(|&v| Self::size(v)).collect()
    }

    /// Whether a dictionary has a tensor by name.
    pub(super) fn has_tensors(&self, dictionary: usize) -> bool {
        let entries = self.dictionaries.get(dictionary).map(Vec::as_slice).unwrap_or_default();
        entries.iter().any(|&(key, value)| matches!(value, Value::Tensor(_)) && self.text(key).is_some())
    }

    /// The tensors of a dictionary by name, and how many of its entries are none.
    pub(super) fn tensors(&self, dictionary: usize) -> (Vec<(&str, &View)>, usize) {
        let entries = self.dictionaries.get(dictionary).map(Vec::as_slice).unwrap_or_default();
        let found: Vec<(&str, &View)> = entries
            .iter()
            .filter_map(|&(key, value)| {
                let Value::Tensor(i) = value else { return None };
                Some((self.text(key)?, self.views.get(i)?))
            })
            .collect();
        let others = entries.len() - found.len();
        (found, others)
    }
}
