//! What a Gaussian process is conditioned on.

use crate::GpError;
use faer::{Mat, MatRef};

/// How rows are parted where some are left out to judge by: never two of one group, or of one time, on two sides.
#[derive(Clone, Debug, PartialEq)]
pub enum Parting {
    /// The group of each row (n), such as a patient.
    Groups(Vec<usize>),
    /// The time of each row (n): what is left out is newer than all that is learned from.
    Times(Vec<f64>),
}

impl Parting {
    /// That of the given rows.
    fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Groups(groups) => Self::Groups(rows.iter().map(|&i| groups[i]).collect()),
            Self::Times(times) => Self::Times(rows.iter().map(|&i| times[i]).collect()),
        }
    }
}

/// Inputs (n x D), targets (n x t, all sharing the inputs), and optionally a known noise variance for each row.
///
/// Checked on construction: at least one row, matching sizes, finite values, positive noise.
#[derive(Clone, Debug)]
pub struct Observations {
    inputs: Mat<f64>,
    targets: Mat<f64>,
    noise_variances: Option<Vec<f64>>,
    weights: Option<Vec<f64>>,
    offsets: Option<Vec<f64>>,
    parting: Option<Parting>,
}

impl Observations {
    /// Checks and stores. The noise variances (n), in squared units of the targets, are added to the likelihood's own.
    ///
    /// # Errors
    /// [`GpError::Shape`], [`GpError::Empty`], [`GpError::NotFinite`] or [`GpError::NoiseNotPositive`].
    pub fn new(
        inputs: Mat<f64>,
        targets: Mat<f64>,
        noise_variances: Option<Vec<f64>>,
    ) -> Result<Self, GpError> {
        let rows = inputs.nrows();
        if rows == 0 {
            return Err(GpError::Empty { what: "the table of inputs" });
        }
        if targets.ncols() == 0 {
            return Err(GpError::Empty { what: "the set of targets" });
        }
        let shape = |what, actual| {
            (actual == rows).then_some(()).ok_or(GpError::Shape { what, expected: rows, actual })
        };
        shape("rows of the targets", targets.nrows())?;
        check_finite("input", inputs.as_ref())?;
        check_finite("target", targets.as_ref())?;
        if let Some(noise) = &noise_variances {
            shape("noise variances", noise.len())?;
            if let Some((row, &value)) = noise.iter().enumerate().find(|(_, v)| !(v.is_finite() && **v > 0.0))
            {
                return Err(GpError::NoiseNotPositive { row, value });
            }
        }
        Ok(Self { inputs, targets, noise_variances, weights: None, offsets: None, parting: None })
    }

    /// The same with other inputs (n x D).
    ///
    /// # Errors
    /// [`GpError::Shape`] or [`GpError::NotFinite`].
    pub fn with_inputs(mut self, inputs: Mat<f64>) -> Result<Self, GpError> {
        same_width("inputs", self.rows(), inputs.nrows())?;
        check_finite("input", inputs.as_ref())?;
        self.inputs = inputs;
        Ok(self)
    }

    /// The same with the number that the log-likelihood of each row is multiplied by (n): a weight of 2 is a row that occurs twice. The exact process, the stochastic bound and the Laplace approximation take
    /// weights; the other methods for Gaussian noise refuse them.
    ///
    /// # Errors
    /// [`GpError::Shape`] or [`GpError::WeightNotPositive`].
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self, GpError> {
        same_width("weights", self.rows(), weights.len())?;
        if let Some((row, &value)) = weights.iter().enumerate().find(|(_, v)| !(v.is_finite() && **v > 0.0)) {
            return Err(GpError::WeightNotPositive { row, value });
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// The same with what is added to all latent values of each row before the likelihood sees them (n): the logarithm of the exposure in which a count was counted. Latent functions, their
    /// posterior and its predictions are those without it. The stochastic bound and the Laplace approximation take offsets; methods for Gaussian noise refuse them, because a target less its offset says the same.
    ///
    /// # Errors
    /// [`GpError::Shape`] or [`GpError::NotFinite`].
    pub fn with_offsets(mut self, offsets: Vec<f64>) -> Result<Self, GpError> {
        same_width("offsets", self.rows(), offsets.len())?;
        if let Some((row, &value)) = offsets.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            return Err(GpError::NotFinite { what: "offset", row, column: 0, value });
        }
        self.offsets = Some(offsets);
        Ok(self)
    }

    /// The same with how rows are parted where some are left out (n). No posterior depends on it. Rows that are [appended](Self::extend) or [removed](Self::remove) end it.
    ///
    /// # Errors
    /// [`GpError::Shape`].
    pub fn with_parting(mut self, parting: Parting) -> Result<Self, GpError> {
        let rows = match &parting {
            Parting::Groups(groups) => groups.len(),
            Parting::Times(times) => times.len(),
        };
        same_width("groups or times", self.rows(), rows)?;
        self.parting = Some(parting);
        Ok(self)
    }

    /// Inputs, n x D.
    pub fn inputs(&self) -> MatRef<'_, f64> {
        self.inputs.as_ref()
    }

    /// Targets, n x t.
    pub fn targets(&self) -> MatRef<'_, f64> {
        self.targets.as_ref()
    }

    /// Known noise variances (n), if any.
    pub fn noise_variances(&self) -> Option<&[f64]> {
        self.noise_variances.as_deref()
    }

    /// What the log-likelihood of each row is multiplied by (n), if anything.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// What is added to the latent values of each row (n), if anything.
    pub fn offsets(&self) -> Option<&[f64]> {
        self.offsets.as_deref()
    }

    /// How rows are parted where some are left out, if it matters.
    pub fn parting(&self) -> Option<&Parting> {
        self.parting.as_ref()
    }

    /// Inputs and targets, and noise variances, weights and offsets where there are some.
    pub(crate) fn into_parts(self) -> (Mat<f64>, Mat<f64>, [Option<Vec<f64>>; 3]) {
        (self.inputs, self.targets, [self.noise_variances, self.weights, self.offsets])
    }

    /// Refuses weights and offsets, for methods of Gaussian noise.
    pub(crate) fn plain(&self) -> Result<(), GpError> {
        match (&self.weights, &self.offsets) {
            (Some(_), _) => Err(GpError::Weighted),
            (_, Some(_)) => Err(GpError::Offset),
            (None, None) => Ok(()),
        }
    }

    /// Refuses offsets.
    pub(crate) fn without_offsets(&self) -> Result<(), GpError> {
        self.offsets.as_ref().map_or(Ok(()), |_| Err(GpError::Offset))
    }

    /// Number of rows, n.
    pub fn rows(&self) -> usize {
        self.inputs.nrows()
    }

    /// The given rows, in the given order.
    ///
    /// # Errors
    /// [`GpError::Empty`] for no rows.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn select(&self, rows: &[usize]) -> Result<Self, GpError> {
        let pick = |m: &Mat<f64>| Mat::from_fn(rows.len(), m.ncols(), |i, j| m[(rows[i], j)]);
        let of_rows = |numbers: &Option<Vec<f64>>| -> Option<Vec<f64>> {
            numbers.as_ref().map(|v| rows.iter().map(|&i| v[i]).collect())
        };
        let picked = Self::new(pick(&self.inputs), pick(&self.targets), of_rows(&self.noise_variances))?;
        let parting = self.parting.as_ref().map(|own| own.select(rows));
        Ok(Self { weights: of_rows(&self.weights), offsets: of_rows(&self.offsets), parting, ..picked })
    }

    /// Appends the rows of `more`.
    ///
    /// # Errors
    /// [`GpError::Shape`] when the widths differ or only one of the two has noise variances.
    pub fn extend(&mut self, more: &Observations) -> Result<(), GpError> {
        let (n, k) = (self.rows(), more.rows());
        same_width("columns of the new inputs", self.inputs.ncols(), more.inputs.ncols())?;
        same_width("columns of the new targets", self.targets.ncols(), more.targets.ncols())?;
        let sides = [
            ("noise variances of the new rows", &self.noise_variances, &more.noise_variances),
            ("weights of the new rows", &self.weights, &more.weights),
            ("offsets of the new rows", &self.offsets, &more.offsets),
        ];
        for (what, old, new) in sides {
            if old.is_some() != new.is_some() {
                let expected = if old.is_some() { k } else { 0 };
                return Err(GpError::Shape { what, expected, actual: k - expected });
            }
        }
        for (old, new) in [
            (&mut self.noise_variances, &more.noise_variances),
            (&mut self.weights, &more.weights),
            (&mut self.offsets, &more.offsets),
        ] {
            if let (Some(old), Some(new)) = (old, new) {
                old.extend_from_slice(new);
            }
        }
        let stack = |a: &Mat<f64>, b: &Mat<f64>| {
            Mat::from_fn(n + k, a.ncols(), |i, j| if i < n { a[(i, j)] } else { b[(i - n, j)] })
        };
        self.parting = None;
        self.inputs = stack(&self.inputs, &more.inputs);
        self.targets = stack(&self.targets, &more.targets);
        Ok(())
    }

    /// Deletes row `index`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn remove(&mut self, index: usize) {
        assert!(index < self.rows(), "row {index} of {}", self.rows());
        let drop =
            |a: &Mat<f64>| Mat::from_fn(a.nrows() - 1, a.ncols(), |i, j| a[(i + usize::from(i >= index), j)]);
        self.parting = None;
        self.inputs = drop(&self.inputs);
        self.targets = drop(&self.targets);
        for numbers in [&mut self.noise_variances, &mut self.weights, &mut self.offsets].into_iter().flatten()
        {
            numbers.remove(index);
        }
    }
}

/// [`GpError::Shape`] unless both widths agree.
pub(crate) fn same_width(what: &'static str, expected: usize, actual: usize) -> Result<(), GpError> {
    if expected == actual { Ok(()) } else { Err(GpError::Shape { what, expected, actual }) }
}

/// The first non-finite entry, as an error.
pub(crate) fn check_finite(what: &'static str, matrix: MatRef<'_, f64>) -> Result<(), GpError> {
    for column in 0..matrix.ncols() {
        for row in 0..matrix.nrows() {
            let value = matrix[(row, column)];
            if !value.is_finite() {
                return Err(GpError::NotFinite { what, row, column, value });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_observations_are_named() {
        let x = || Mat::<f64>::from_fn(3, 2, |i, j| (i + j) as f64);
        let y = || Mat::<f64>::zeros(3, 1);
        assert!(Observations::new(x(), y(), Some(vec![0.1; 3])).is_ok());
        let message = |result: Result<Observations, GpError>| result.unwrap_err().to_string();
        assert_eq!(
            message(Observations::new(x(), Mat::zeros(2, 1), None)),
            "rows of the targets: expected 3, got 2"
        );
        assert!(message(Observations::new(Mat::zeros(0, 2), Mat::zeros(0, 1), None)).contains("is empty"));
        let mut bad = x();
        bad[(2, 1)] = f64::NAN;
        assert!(message(Observations::new(bad, y(), None)).starts_with("input row 2, column 1 is NaN"));
        assert!(message(Observations::new(x(), y(), Some(vec![0.1, 0.0, 0.1]))).contains("row 1 is 0"));
        let data = Observations::new(x(), y(), None).unwrap();
        assert!(message(data.clone().with_weights(vec![1.0, 1.0, 0.0])).contains("row 2 is 0"));
        let mut weighted = data.clone().with_weights(vec![1.0, 2.0, 3.0]).unwrap();
        assert_eq!(weighted.select(&[2, 0]).unwrap().weights(), Some(&[3.0, 1.0][..]));
        // Rows with and rows without do not go together, and nothing has changed then.
        assert!(
            message(weighted.extend(&data).map(|()| weighted.clone())).contains("weights of the new rows")
        );
        assert_eq!(weighted.rows(), 3);
        weighted.remove(1);
        assert_eq!(weighted.weights(), Some(&[1.0, 3.0][..]));
    }
}
