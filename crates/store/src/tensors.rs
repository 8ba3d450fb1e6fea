//! Named arrays in memory, on the way to a file and back.

use crate::StoreError;
use faer::{Mat, MatRef};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A precision that files know.
pub trait Element: Copy + Send + Sync + 'static {
    /// Numbers as a file takes them.
    fn numbers(values: &[Self]) -> Numbers<'_>;
    /// Values of a tensor.
    fn values(values: Vec<Self>) -> TensorValues;
    /// The values of a tensor; None for those of another precision.
    fn of(values: TensorValues) -> Option<Vec<Self>>;
}

macro_rules! element {
    ($type:ident, $variant:ident) => {
        impl Element for $type {
            fn numbers(values: &[Self]) -> Numbers<'_> {
                Numbers::$variant(values)
            }
            fn values(values: Vec<Self>) -> TensorValues {
                TensorValues::$variant(values)
            }
            fn of(values: TensorValues) -> Option<Vec<Self>> {
                if let TensorValues::$variant(values) = values { Some(values) } else { None }
            }
        }
    };
}

element!(f32, F32);
element!(f64, F64);

/// Numbers to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numbers<'a> {
    /// Double precision.
    F64(&'a [f64]),
    /// Single precision.
    F32(&'a [f32]),
}

impl Numbers<'_> {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::F32(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn to_values(self) -> TensorValues {
        match self {
            Self::F64(values) => TensorValues::F64(values.to_vec()),
            Self::F32(values) => TensorValues::F32(values.to_vec()),
        }
    }
}

/// The values of a [`Tensor`].
#[derive(Clone, Debug, PartialEq)]
pub enum TensorValues {
    /// Double precision.
    F64(Vec<f64>),
    /// Single precision.
    F32(Vec<f32>),
}

impl TensorValues {
    /// The same to be written.
    pub fn numbers(&self) -> Numbers<'_> {
        match self {
            Self::F64(values) => Numbers::F64(values),
            Self::F32(values) => Numbers::F32(values),
        }
    }
}

/// A named array, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Sizes of its dimensions.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: TensorValues,
}

/// Arrays by name; those that were read remember their file, for messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors {
    path: PathBuf,
    arrays: BTreeMap<String, Tensor>,
}

impl Tensors {
    /// None yet, of a file.
    pub(crate) fn of(path: &Path) -> Self {
        Self { path: path.into(), arrays: BTreeMap::new() }
    }

    /// The file that they were read from; empty for others.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// That the file is damaged.
    pub fn corrupt(&self, reason: impl ToString) -> StoreError {
        StoreError::Corrupt { path: self.path.clone(), reason: reason.to_string() }
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Tensor)> {
        self.arrays.iter()
    }

    /// The shape of one; None where it is not there.
    pub fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.arrays.get(name).map(|tensor| tensor.shape.clone())
    }

    /// Adds an array of this shape.
    pub fn insert<T: Element>(&mut self, name: impl Into<String>, shape: Vec<usize>, values: &[T]) {
        self.insert_values(name, shape, T::numbers(values).to_values());
    }

    /// As [`Self::insert`] without a copy.
    pub fn insert_values(&mut self, name: impl Into<String>, shape: Vec<usize>, values: TensorValues) {
        self.arrays.insert(name.into(), Tensor { shape, values });
    }

    /// Adds a vector.
    pub fn insert_vector<T: Element>(&mut self, name: impl Into<String>, values: &[T]) {
        self.insert(name, vec![values.len()], values);
    }

    /// Adds a matrix, row by row.
    pub fn insert_matrix(&mut self, name: impl Into<String>, m: MatRef<'_, f64>) {
        let values: Vec<f64> =
            (0..m.nrows()).flat_map(|i| m.row(i).iter().copied().collect::<Vec<_>>()).collect();
        self.insert_values(name, vec![m.nrows(), m.ncols()], TensorValues::F64(values));
    }

    /// Adds a matrix of either precision column by column, `[columns, rows]`.
    pub fn insert_columns<T: Element>(&mut self, name: impl Into<String>, m: MatRef<'_, T>) {
        let values: Vec<T> =
            (0..m.ncols()).flat_map(|j| m.col(j).iter().copied().collect::<Vec<_>>()).collect();
        self.insert_values(name, vec![m.ncols(), m.nrows()], T::values(values));
    }

    /// Adds the lower triangle of a square matrix, column after column.
    pub fn insert_triangle(&mut self, name: impl Into<String>, factor: MatRef<'_, f64>) {
        let n = factor.nrows();
        let mut values = Vec::with_capacity(n * (n + 1) / 2);
        (0..n).for_each(|j| values.extend(factor.col(j).subrows(j, n - j).iter().copied()));
        self.insert_values(name, vec![values.len()], TensorValues::F64(values));
    }

    /// Adds all of another's arrays, with something before their names.
    pub fn extend_under(&mut self, prefix: &str, others: Self) {
        self.arrays.extend(others.arrays.into_iter().map(|(name, array)| (format!("{prefix}{name}"), array)));
    }

    /// Takes out the arrays whose names begin so, without that beginning; of the same file.
    pub fn take_under(&mut self, prefix: &str) -> Self {
        let (own, rest) = std::mem::take(&mut self.arrays)
            .into_iter()
            .partition(|(name, _): &(String, Tensor)| name.starts_with(prefix));
        self.arrays = rest;
        let own: BTreeMap<String, Tensor> = own;
        let own = own.into_iter().map(|(name, array)| (name[prefix.len()..].to_string(), array)).collect();
        Self { path: self.path.clone(), arrays: own }
    }

    /// Takes an array out, checking shape and precision.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is absent or of another shape or precision.
    pub fn take<T: Element>(&mut self, name: &str, shape: &[usize]) -> Result<Vec<T>, StoreError> {
        let Some(tensor) = self.arrays.remove(name) else {
            return Err(self.corrupt(format!("tensor `{name}` is missing")));
        };
        if tensor.shape != shape {
            return Err(
                self.corrupt(format!("tensor `{name}` has shape {:?}, expected {shape:?}", tensor.shape))
            );
        }
        T::of(tensor.values)
            .ok_or_else(|| self.corrupt(format!("tensor `{name}` has another precision than expected")))
    }

    /// Takes a vector out.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f64>, StoreError> {
        self.take(name, &[length])
    }

    /// Takes a vector out where it is there.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn optional_vector(&mut self, name: &str, length: usize) -> Result<Option<Vec<f64>>, StoreError> {
        self.arrays.contains_key(name).then(|| self.vector(name, length)).transpose()
    }

    /// Takes a matrix out.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Mat<f64>, StoreError> {
        let values = self.take::<f64>(name, &[rows, columns])?;
        Ok(Mat::from_fn(rows, columns, |i, j| values[i * columns + j]))
    }

    /// Takes a matrix out that [`Self::insert_columns`] put in; of any size, where `rows` and `columns` are None.
    ///
    /// # Errors
    /// As [`Self::take`]; also where it is no matrix.
    pub fn columns<T: Element>(
        &mut self,
        name: &str,
        size: Option<(usize, usize)>,
    ) -> Result<Mat<T>, StoreError> {
        let shape = match (size, self.shape(name)) {
            (Some((rows, columns)), _) => vec![columns, rows],
            (None, Some(shape)) if shape.len() == 2 => shape,
            _ => return Err(self.corrupt(format!("tensor `{name}` is missing or no matrix"))),
        };
        let values = self.take::<T>(name, &shape)?;
        Ok(Mat::from_fn(shape[1], shape[0], |i, j| values[j * shape[1] + i]))
    }

    /// Takes a lower triangle out; above it are zeros.
    ///
    /// # Errors
    /// As [`Self::take`]; also for an order that overflows.
    pub fn triangle(&mut self, name: &str, n: usize) -> Result<Mat<f64>, StoreError> {
        let packed = n.checked_mul(n + 1).map(|m| m / 2);
        let packed = packed.ok_or_else(|| self.corrupt("its size overflows"))?;
        let values = self.vector(name, packed)?;
        let mut out = Mat::zeros(n, n);
        let mut rest = &values[..];
        for j in 0..n {
            let (column, others) = rest.split_at(n - j);
            column.iter().enumerate().for_each(|(i, &v)| out[(j + i, j)] = v);
            rest = others;
        }
        Ok(out)
    }

    /// As [`Self::triangle`] for a Cholesky factor.
    ///
    /// # Errors
    /// As [`Self::triangle`]; also where its diagonal is not positive.
    pub fn factor(&mut self, name: &str, n: usize) -> Result<Mat<f64>, StoreError> {
        let factor = self.triangle(name, n)?;
        if (0..n).any(|i| factor[(i, i)] <= 0.0) {
            return Err(self.corrupt(format!("the diagonal of `{name}` is not positive")));
        }
        Ok(factor)
    }
}
