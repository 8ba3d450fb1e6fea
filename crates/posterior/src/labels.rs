//! Classes and counts in a few lines.

use crate::process::{GpBuilder, ProcessError, no_process, table_of};
use crate::rows::Rows;
use posterior_data::{ReadOptions, Split, Table, Values, read_table};
use posterior_models::options::LikelihoodName;
use posterior_models::{
    FitRequest, Model, ModelData, ModelError, Observed, Predictive, Question, StoreError, choose_likelihood,
};
use posterior_optim::Signal;
use std::fmt::Display;
use std::path::Path;

impl GpBuilder {
    /// Learns classes from n rows of inputs (n x D) and n labels, which are told apart by their texts; [`FittedLabels::class_names`] has their order. Cost and memory: as [`Model::fit_observed`], whose plan is
    /// [`Model::plan_observed`].
    ///
    /// # Errors
    /// As [`GpBuilder::fit`]; one class only, or as many as rows.
    pub fn classify<R: Rows + ?Sized, L: Display>(
        self,
        x: &R,
        labels: &[L],
    ) -> Result<FittedLabels, ProcessError> {
        let text = labels.iter().map(|label| Some(label.to_string())).collect();
        let (table, request) = self.of_rows(x, labels.len(), Values::Text(text))?;
        labelled(&table, request, LikelihoodName::Categorical)
    }

    /// Learns counts, whole numbers from 0 that scatter at least as much as a Poisson process, from n rows of inputs (n x D).
    ///
    /// # Errors
    /// As [`GpBuilder::fit`].
    pub fn count<R: Rows + ?Sized>(self, x: &R, counts: &[u32]) -> Result<FittedLabels, ProcessError> {
        let values = Values::Numeric(counts.iter().map(|&count| f64::from(count)).collect());
        let (table, request) = self.of_rows(x, counts.len(), values)?;
        labelled(&table, request, LikelihoodName::NegativeBinomial)
    }

    /// Learns classes, counts or outliers from a table file, whose target [`GpBuilder::target`] names: as the request says (`request_mut().labels.likelihood`), or as the target looks.
    ///
    /// # Errors
    /// Those of reading the table; a target that is numbers with Gaussian noise, which [`GpBuilder::fit_file`] takes.
    pub fn fit_labels_file(self, path: impl AsRef<Path>) -> Result<FittedLabels, ProcessError> {
        let (table, request) = self.of_file(path.as_ref())?;
        labelled(&table, request, LikelihoodName::Auto)
    }
}

/// Fits to all rows; under a likelihood where none is asked for.
fn labelled(
    table: &Table,
    mut request: FitRequest,
    usual: LikelihoodName,
) -> Result<FittedLabels, ProcessError> {
    if request.labels.likelihood == LikelihoodName::Auto {
        request.labels.likelihood = usual;
    }
    let rows = Split::all(table.rows()).train;
    let selection = &request.selection;
    let chosen = choose_likelihood(table, &selection.target, &rows, request.labels.likelihood, selection)?;
    let observed = Observed::from_table(table, &rows, &request, chosen)?;
    let model = Model::fit_observed(observed, &request, &mut |_, _| Signal::Continue)?;
    Ok(FittedLabels { model })
}

/// A fitted process of classes, counts or outliers.
///
/// ```
/// use posterior::Gp;
///
/// // Two kinds that meet where the sum of both inputs is zero.
/// let x: Vec<[f64; 2]> = (0..60).map(|i| [(i % 9) as f64 / 4.0 - 1.0, (i * 7 % 60) as f64 / 30.0 - 1.0]).collect();
/// let labels: Vec<&str> = x.iter().map(|[a, b]| if a + b > 0.0 { "above" } else { "below" }).collect();
///
/// let fitted = Gp::builder().classify(&x, &labels)?;
/// assert_eq!(fitted.class_names(), ["above", "below"]);
/// let predicted = fitted.predict(&[[0.8, 0.8], [0.0, 0.0]])?;
/// let probabilities = predicted.probabilities().expect("of classes");
/// // Sure far from the other kind, and not between the two.
/// assert!(probabilities[0] > 0.9 && probabilities[2] < 0.8);
/// # Ok::<(), posterior::ProcessError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FittedLabels {
    model: Model,
}

impl FittedLabels {
    /// Opens a saved one.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with the file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let model = Model::load(path)?;
        match model.process() {
            Some(_) => Ok(Self { model }),
            None => Err(StoreError::Corrupt { path: path.into(), reason: "it is a network".into() }),
        }
    }

    /// The model: what was found and chosen, its file, scores of rows that were left out.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Names of the classes, in the order of the probabilities; none of counts and numbers.
    pub fn class_names(&self) -> Vec<String> {
        self.model.class_names()
    }

    /// What is predicted at m rows of inputs (m x D): class probabilities (`m x classes`, row after row) with the part of their entropy that more data would remove, or moments of counts and numbers.
    ///
    /// # Errors
    /// Rows of another width, numbers that are not finite.
    pub fn predict<R: Rows + ?Sized>(&self, x: &R) -> Result<Predictive, ProcessError> {
        let process = self.model.process().ok_or_else(no_process)?;
        self.asked(table_of(&process.inputs().schema, &x.to_matrix()?)?)
    }

    /// The same for the rows of a table file with the columns of the fit.
    ///
    /// # Errors
    /// Those of reading the table, missing columns, bad cells.
    pub fn predict_file(&self, path: impl AsRef<Path>) -> Result<Predictive, ProcessError> {
        self.asked(read_table(path.as_ref(), &ReadOptions::default())?)
    }

    fn asked(&self, table: Table) -> Result<Predictive, ProcessError> {
        let data = ModelData::of_table(table)?;
        let found: Result<Predictive, ModelError> = self.model.predictive(&data, &Question::default());
        Ok(found?)
    }
}
