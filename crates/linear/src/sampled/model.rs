//! Features, data and the curvature at the expansion point.

use crate::curvature::{FisherEstimate, OutputCurvature};
use crate::features::{BatchSource, FeatureMap, Linearised, chunks};
use crate::{LinearError, check};
use faer::{ColMut, Mat, MatRef};
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_optim::Signal;
use std::ops::Range;

/// Told the examples that are done and all of them; says whether to go on.
pub(super) type Observer<'a> = &'a mut dyn FnMut(usize, usize) -> Signal;

/// A linear model with scaled features `phi diag(s)` and the curvature `B` of its likelihood at the expansion point.
pub struct SampledModel<'a, T: Real, F: FeatureMap<T>> {
    features: &'a F,
    source: &'a dyn BatchSource<F::Inputs>,
    likelihood: &'a OutputLikelihood,
    scales: Option<Vec<f64>>,
    precision: std::marker::PhantomData<T>,
}

/// What a pass shows of some examples: their numbers, their features and `B`.
pub(super) type Visit<'a, T> =
    dyn FnMut(&[usize], &dyn Linearised<T>, &OutputCurvature<'_>) -> Result<(), LinearError> + 'a;

impl<'a, T: Real, F: FeatureMap<T>> SampledModel<'a, T, F> {
    /// Of features as they are.
    pub fn new(
        features: &'a F,
        source: &'a dyn BatchSource<F::Inputs>,
        likelihood: &'a OutputLikelihood,
    ) -> Self {
        Self { features, source, likelihood, scales: None, precision: std::marker::PhantomData }
    }

    /// The same with scaled features; a scale of zero takes a weight out of the model.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn scaled(self, scales: Vec<f64>) -> Result<Self, LinearError> {
        check::same("scales", self.dimension(), scales.len())?;
        check::finite("scale", &scales)?;
        Ok(Self { scales: Some(scales), ..self })
    }

    /// Weights, d.
    pub fn dimension(&self) -> usize {
        self.features.dimension()
    }

    /// Examples, n.
    pub fn examples(&self) -> usize {
        self.source.examples()
    }

    /// The features as they are, unscaled.
    pub fn features(&self) -> &'a F {
        self.features
    }

    /// The data.
    pub fn source(&self) -> &'a dyn BatchSource<F::Inputs> {
        self.source
    }

    /// The likelihood.
    pub fn likelihood(&self) -> &'a OutputLikelihood {
        self.likelihood
    }

    /// The scales, if they are not all one.
    pub fn scales(&self) -> Option<&[f64]> {
        self.scales.as_deref()
    }

    /// Weights in the features' own coordinates, `s z`, of vectors in those of the model.
    pub fn unscaled(&self, z: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = z.to_owned();
        self.scale(&mut out);
        out
    }

    /// Multiplies each row by its scale.
    pub(super) fn scale(&self, z: &mut Mat<f64>) {
        if let Some(scales) = &self.scales {
            parallel::columns(z.as_mut(), 1, |_, column| {
                column.iter_mut().zip(scales).for_each(|(v, s)| *v *= s);
            });
        }
    }

    /// `s z` in the features' precision.
    pub(super) fn rounded(&self, z: MatRef<'_, f64>) -> Mat<T> {
        match &self.scales {
            Some(s) => Mat::from_fn(z.nrows(), z.ncols(), |i, j| T::from_f64(s[i] * z[(i, j)])),
            None => Mat::from_fn(z.nrows(), z.ncols(), |i, j| T::from_f64(z[(i, j)])),
        }
    }

    /// A pass over all examples, or some, so many at once.
    pub(super) fn pass(
        &self,
        at_once: usize,
        chosen: Option<&[usize]>,
        observer: Observer<'_>,
        visit: &mut Visit<'_, T>,
    ) -> Result<(), LinearError> {
        let likelihood = self.likelihood;
        let mut see = |numbers: &[usize], inputs: F::Inputs, targets: &[f64]| {
            let features = self.features.at(inputs)?;
            let outputs = features.outputs();
            if let Some(position) = outputs.iter().position(|f| !f.is_finite()) {
                return Err(LinearError::Output { example: numbers[position / likelihood.outputs()] });
            }
            let (estimate, first) = (FisherEstimate::Exact, numbers[0]);
            let observed = OutputCurvature { likelihood, estimate, targets, outputs: &outputs, first };
            visit(numbers, &*features, &observed)
        };
        if let Some(chosen) = chosen {
            return self.source.picked(chosen, at_once, &mut see);
        }
        let count = self.source.examples();
        for range in chunks(count, at_once) {
            let numbers: Vec<usize> = range.clone().collect();
            let (inputs, targets) = self.source.batch(range.clone())?;
            see(&numbers, inputs, &targets)?;
            if observer(range.end, count) == Signal::Stop {
                return Err(LinearError::Interrupted);
            }
        }
        Ok(())
    }

    /// `sum_i |phi_i z_j|²_(B_i)` of each vector, `z` of d x k: one pass with products from one side.
    ///
    /// # Errors
    /// Those of the features and of reading the data; [`LinearError::Interrupted`].
    pub fn squared_outputs(
        &self,
        z: MatRef<'_, f64>,
        observer: Observer<'_>,
    ) -> Result<Vec<f64>, LinearError> {
        check::same("rows of the samples", self.dimension(), z.nrows())?;
        let z = self.rounded(z);
        let mut squares = vec![0.0; z.ncols()];
        let at_once = self.features.examples_at_once(z.ncols());
        self.pass(at_once, None, observer, &mut |_, features, observed| {
            let mut tangents = features.apply(z.as_ref())?;
            curve(observed, 0..features.shape().0, &mut tangents, &mut squares);
            Ok(())
        })?;
        Ok(squares)
    }

    /// `diag(s) sum_i Phi_i' B_i Phi_i diag(s) z` over all examples or some; adds `sum_i |phi_i z_j|²_(B_i)` to `squares`.
    pub(crate) fn curvature_product(
        &self,
        z: MatRef<'_, f64>,
        chosen: Option<&[usize]>,
        squares: &mut [f64],
        observer: Observer<'_>,
    ) -> Result<Mat<f64>, LinearError> {
        let mut sum = Mat::zeros(z.nrows(), z.ncols());
        let z = self.rounded(z);
        let at_once = self.features.examples_through_at_once(z.ncols());
        self.pass(at_once, chosen, observer, &mut |_, features, observed| {
            let own = features.apply_through(z.as_ref(), &mut |examples, tangents| {
                curve(observed, examples, tangents, squares);
            })?;
            add(&mut sum, &own);
            Ok(())
        })?;
        self.scale(&mut sum);
        Ok(sum)
    }
}

/// `B` times the outputs of each vector, for some of the batch's examples; adds `sum_i |f_i|²_(B_i)` of each vector to `squares`. Sums within a column, which is one thread's.
pub(super) fn curve<T: Real>(
    observed: &OutputCurvature<'_>,
    examples: Range<usize>,
    tangents: &mut Mat<T>,
    squares: &mut [f64],
) {
    let (likelihood, c) = (observed.likelihood, observed.likelihood.outputs());
    let columns = tangents.col_iter_mut().zip(squares).collect();
    parallel::consume(columns, |(mut column, square): (ColMut<'_, T>, &mut f64)| {
        let (mut u, mut product) = (vec![0.0; c], vec![0.0; c]);
        for (i, example) in examples.clone().enumerate() {
            (0..c).for_each(|o| u[o] = column[i * c + o].to_f64());
            likelihood.curvature_product(
                observed.target(example),
                observed.output(example),
                &u,
                &mut product,
            );
            *square += u.iter().zip(&product).map(|(u, b)| u * b).sum::<f64>();
            (0..c).for_each(|o| column[i * c + o] = T::from_f64(product[o]));
        }
    });
}

/// Adds a block to a sum in doubles.
pub(super) fn add<T: Real>(sum: &mut Mat<f64>, own: &Mat<T>) {
    parallel::columns(sum.as_mut(), 1, |j, sum| {
        sum.iter_mut().zip(own.col(j).iter()).for_each(|(s, v)| *s += v.to_f64());
    });
}

/// Numbers as a matrix of one column.
pub(super) fn column(values: &[f64]) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(values, values.len(), 1)
}
