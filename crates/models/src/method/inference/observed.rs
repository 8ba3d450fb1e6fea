//! Rows of a table as a process under any likelihood sees them.

use super::events;
use super::target::ChosenLikelihood;
use crate::method::deep::Scatter;
use crate::options::ClassWeights;
use crate::prepare::{parting, row_weights, unscaled};
use crate::rows::{Prints, Split, set_aside};
use crate::{FitRequest, ModelError, Target, TrainingRows};
use faer::Mat;
use posterior_data::{InputRanges, Notes, Schema, Split as DrawnSplit, Standardisation, Table};
use posterior_gp::{GpError, Observations};
use posterior_kernels::Kernel;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::random::Streams;
use posterior_notes::fixes::{INFERENCE_LAPLACE, LIKELIHOOD_GAUSSIAN};

/// Rows that are ready to be learned from.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Roles of the columns.
    pub(crate) schema: Schema,
    /// Means and scales of the features; the target's are 0 and 1.
    pub(crate) standardisation: Standardisation,
    /// Standardised inputs, targets as the likelihood takes them, weights.
    pub(crate) data: Observations,
    /// What the targets are.
    pub(crate) target: Target,
    /// Their likelihood, to begin with.
    pub(crate) likelihood: OutputLikelihood,
    /// Why this one.
    pub(crate) why: String,
    /// What was found and done.
    pub(crate) notes: Notes,
    /// What is odd about the target.
    pub(crate) odd: Vec<String>,
    /// Which rows these are.
    pub(crate) training: TrainingRows,
    /// Where the inputs lie, in their own units.
    pub(crate) input_ranges: InputRanges,
}

impl Observed {
    /// From the given rows of a table, whose target was looked at.
    ///
    /// # Errors
    /// [`ModelError::Data`] naming the cell; [`ModelError::Request`] for noise that such targets do not have, or weights of classes that there are not.
    pub fn from_table(
        table: &Table,
        rows: &[usize],
        request: &FitRequest,
        chosen: ChosenLikelihood,
    ) -> Result<Self, ModelError> {
        Self::of_rows(table, rows, request, chosen).map_err(|error| error.in_table(table))
    }

    fn of_rows(
        table: &Table,
        rows: &[usize],
        request: &FitRequest,
        chosen: ChosenLikelihood,
    ) -> Result<Self, ModelError> {
        let Some((likelihood, mut target)) = chosen.likelihood else {
            return Err(ModelError::Request("the target has Gaussian noise".into()));
        };
        if request.columns.noise.is_some() {
            let name = likelihood.name();
            return Err(ModelError::Request(format!(
                "--noise is the variance of Gaussian noise; {name} targets have none of their own: leave it out, or take {LIKELIHOOD_GAUSSIAN}"
            )));
        }
        if let Some(name) = request.output.target_transform.asked() {
            return Err(ModelError::Usage(format!(
                "--target-transform {name} is for numbers with Gaussian noise, and the target is taken as {}: leave it out, or take {LIKELIHOOD_GAUSSIAN}",
                chosen.why
            )));
        }
        if request.output.window.is_some() {
            return Err(ModelError::Usage(format!(
                "--window is for events (--likelihood cox), and the target is taken as {}",
                chosen.why
            )));
        }
        if request.columns.exposure.is_some() && !matches!(target, Target::Counts { .. }) {
            return Err(ModelError::Usage(no_exposure(&chosen.why)));
        }
        let schema = Schema::learn(table, &request.roles(), rows)?;
        let mut extracted = target.extract(&schema, table, rows)?;
        let targets = extracted.y.take().unwrap_or_default();
        // Classes and counts have a scale of their own.
        let scaled: Vec<f64> = match target {
            Target::Numbers { mean, scale } => targets.iter().map(|y| mean + scale * y).collect(),
            Target::Classes { .. } | Target::Counts { .. } | Target::Events { .. } => Vec::new(),
        };
        request.require_targets(&table.source, &schema.target, targets.len(), scaled)?;
        let counts = request.prior.kernel.count_columns(&schema.feature_names());
        schema.check_counts(&table.source, &counts, extracted.x.as_ref(), &extracted.rows)?;
        let unscaled = unscaled(&schema, request);
        let weights = weights(table, request, &target, &extracted.rows, &targets)?;
        let training = TrainingRows::of_table(extracted.x.as_ref(), &targets);
        let input_ranges = InputRanges::learn(&schema, extracted.x.as_ref());
        let none = vec![0.0; targets.len()];
        let standardisation = Standardisation::learn(extracted.x.as_ref(), &none).keeping(&unscaled);
        let inputs = standardisation.features(extracted.x.as_ref());
        if let (Some(exposures), Target::Counts { rate }) = (&extracted.exposures, &mut target) {
            // Counts that are all 0 have no rate: half an event gives the least that can be told from them.
            *rate = targets.iter().sum::<f64>().max(0.5) / exposures.iter().sum::<f64>();
        }
        let targets = Mat::from_fn(targets.len(), 1, |i, _| targets[i]);
        let mut data = Observations::new(inputs, targets, None)?;
        if let Some(weights) = weights {
            data = data.with_weights(weights)?;
        }
        let parting = parting(table, &request.columns, &extracted.rows)?;
        extracted.notes.hints = schema.hints(extracted.x.as_ref(), parting.is_some());
        if let Some(parting) = parting {
            data = data.with_parting(parting)?;
        }
        if let Some(offsets) = target.offsets(extracted.exposures.as_deref()) {
            data = data.with_offsets(offsets)?;
        }
        let (why, odd, notes) = (chosen.why, chosen.notes, extracted.notes);
        Ok(Self {
            schema,
            standardisation,
            data,
            target,
            likelihood,
            why,
            notes,
            odd,
            training,
            input_ranges,
        })
    }

    /// From the given rows of a table, each of which is an event in the window of the request.
    ///
    /// # Errors
    /// [`ModelError::Usage`] without a window and for what means nothing to events, [`ModelError::Data`] naming the cell, [`ModelError::Request`] for events outside of the window, by row and column, and for too few of them.
    pub fn of_events(table: &Table, rows: &[usize], request: &FitRequest) -> Result<Self, ModelError> {
        events::observed(table, rows, request)
    }

    /// Rows that a step may look at: of events those of their quadrature as well.
    pub(crate) fn rows_to_learn(&self) -> usize {
        let nodes =
            if matches!(self.target, Target::Events { .. }) { events::nodes_for(self.rows()) } else { 0 };
        self.rows() + nodes
    }

    /// What learned features are told of the targets.
    pub(crate) fn scatter(&self) -> Scatter {
        match self.target {
            Target::Events { .. } => Scatter::Events,
            _ => Scatter::Labels { functions: self.likelihood.outputs() },
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.data.rows()
    }

    /// What the target is taken for, and why.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Roles of the columns.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Names of the model's inputs.
    pub fn feature_names(&self) -> Vec<String> {
        self.schema.feature_names()
    }

    /// Targets as the likelihood takes them.
    pub(crate) fn targets(&self) -> Vec<f64> {
        self.data.targets().col(0).iter().copied().collect()
    }

    /// The class of each row, so that splits can leave out their share of each; None where there are no classes.
    pub(crate) fn strata(&self) -> Option<Vec<usize>> {
        match &self.target {
            Target::Classes { .. } => Some(self.targets().iter().map(|y| *y as usize).collect()),
            Target::Counts { .. } | Target::Numbers { .. } | Target::Events { .. } => None,
        }
    }

    /// `count` rows that are drawn at random, of which every class has its share, apart from the rest and without duplicates in it ([`Split`]). Events may come twice at one place and are no duplicates.
    pub(crate) fn apart(&self, count: usize, streams: Streams) -> Result<Split, GpError> {
        let n = self.rows();
        let fraction = count as f64 / n as f64;
        if let Some(parting) = self.data.parting() {
            return Split::whole(parting, fraction, streams);
        }
        let drawn = match self.strata() {
            Some(classes) => DrawnSplit::stratified(&classes, fraction, streams),
            None => DrawnSplit::random(n, fraction, streams),
        };
        let split = Split::as_drawn(drawn.train, drawn.test);
        match self.target {
            Target::Events { .. } => Ok(split),
            _ => Ok(split.without_training_duplicates(&Prints::of(&self.data)?)),
        }
    }

    /// Rows to learn from, and rows to stop and to choose by, which `who` needs ("deep kernels need").
    ///
    /// # Errors
    /// [`ModelError::Request`] where too few rows, or too few of every class, leave none.
    pub(crate) fn set_aside(&self, who: &str, seed: u64) -> Result<Split, ModelError> {
        let n = self.rows();
        let split = self.apart(set_aside(n)?, Streams::new(seed).child("model/set-aside", 0))?;
        match split.validation.is_empty() {
            false => Ok(split),
            true => Err(ModelError::Request(format!(
                "{who} rows to stop and to choose by, and of these {n} none can be spared: every class has too few; take {INFERENCE_LAPLACE}"
            ))),
        }
    }

    /// A kernel where a search for such targets begins: at numbers as they are and logarithms of counts; where it begins by itself for labels and events, which are no function's values.
    pub(crate) fn begin(&self, kernel: &mut dyn Kernel<f64>) {
        let targets = self.targets();
        match self.target {
            Target::Numbers { .. } => kernel.begin(self.data.inputs(), &targets),
            Target::Counts { .. } => {
                let logarithms: Vec<f64> = targets.iter().map(|count| (count + 0.5).ln()).collect();
                kernel.begin(self.data.inputs(), &logarithms);
            }
            Target::Classes { .. } | Target::Events { .. } => {}
        }
    }

    /// The given rows only.
    pub(crate) fn select(&self, rows: &[usize]) -> Result<Self, ModelError> {
        Ok(Self { data: self.data.select(rows)?, ..self.clone() })
    }
}

/// Why the targets have no exposures.
pub fn no_exposure(what: &str) -> String {
    format!(
        "--exposure is for counts (--likelihood poisson or negative-binomial), and the target is taken as {what}"
    )
}

/// What each row counts; None where all count the same.
fn weights(
    table: &Table,
    request: &FitRequest,
    target: &Target,
    rows: &[usize],
    targets: &[f64],
) -> Result<Option<Vec<f64>>, ModelError> {
    let asked = &request.output;
    let mut out = vec![1.0; rows.len()];
    match (&asked.class_weights, target) {
        (ClassWeights::Equal, _) => {}
        (weights, Target::Classes { names }) => {
            let mut of_class = vec![1.0; names.count()];
            match weights {
                ClassWeights::Given(pairs) => {
                    for (label, weight) in pairs {
                        let Some(class) = names.class(label) else {
                            let known = names.names().join(", ");
                            return Err(ModelError::Request(format!(
                                "--class-weights names `{label}`, which is no class; the classes are: {known}"
                            )));
                        };
                        of_class[class] = *weight;
                    }
                }
                _ => {
                    let mut counts = vec![0usize; names.count()];
                    targets.iter().for_each(|&class| counts[class as usize] += 1);
                    for (weight, count) in of_class.iter_mut().zip(&counts) {
                        *weight = rows.len() as f64 / (names.count() as f64 * (*count).max(1) as f64);
                    }
                }
            }
            out.iter_mut().zip(targets).for_each(|(w, &class)| *w *= of_class[class as usize]);
        }
        _ => {
            return Err(ModelError::Request(
                "--class-weights are for classes, and the target has none".into(),
            ));
        }
    }
    if let Some(column) = &asked.row_weights {
        let read = row_weights(table, column, rows)?;
        out.iter_mut().zip(read).for_each(|(w, own)| *w *= own);
    }
    let equal = *out.first().unwrap_or(&1.0);
    Ok((asked.class_weights != ClassWeights::Equal || asked.row_weights.is_some())
        .then_some(out)
        .filter(|out| equal != 1.0 || out.iter().any(|w| *w != equal)))
}
