//! From what was told to the rows to label next.

use super::batch::{Choosing, choose};
use super::criterion::{Doubt, Latent, Scoring};
use super::model::{learn, prior_kernel};
use super::spread::spread;
use super::{
    Answer, ClassGaussianLabels, Criterion, LabelPlan, Labelling, Pool, PoolPosterior, Question, Reason,
};
use crate::DecisionError;
use faer::Mat;
use posterior_likelihoods::LikelihoodError;
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;
use posterior_optim::Signal;
use serde::Serialize;

/// Most rows of one round.
pub const MOST_ASKED: usize = 10_000;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelStage {
    /// Hyperparameters.
    Evidence,
    /// Rows, one after the other.
    Rows,
}

/// What a round asked for, and by what.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueryRound {
    /// Numbers of the new questions.
    pub ids: Vec<usize>,
    /// Hyperparameters that the rows were chosen by: names and values, on standardised columns and in standard units; empty where rows were spread.
    pub hyperparameters: Vec<(String, Vec<f64>)>,
    /// Whether they were learned in this round.
    pub learned_now: bool,
    /// What was chosen or left out, and why.
    pub notes: Vec<String>,
}

/// What is unsure about the rows that have no label, on average; nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PoolDoubt {
    /// Rows without a label.
    pub rows: usize,
    /// Mean entropy of their predictions.
    pub entropy: f64,
    /// The part of it that labels would remove.
    pub removable: f64,
}

/// Labelled rows by their places in the pool, and their classes.
struct LabelledRows {
    places: Vec<usize>,
    classes: Vec<usize>,
    pending: Vec<usize>,
    taken: Vec<usize>,
    /// Rows of the file that are not among those that can be asked for.
    elsewhere: usize,
}

impl Labelling {
    /// What asking for `count` rows takes, the table of the pool included.
    pub fn plan(&self, pool: &Pool, count: usize) -> LabelPlan {
        let labels = self.questions.iter().filter(|q| q.label().is_some()).count();
        let pending = self.questions.iter().filter(|q| q.is_pending()).count();
        let again = self.learned.as_ref().is_none_or(|l| l.is_outgrown(labels, self.classes.len()));
        LabelPlan::new(
            (pool.rows.len(), pool.inputs.ncols(), pool.table.memory()),
            (self.classes.len().max(2), &self.settings.gaussianised),
            (labels.max(self.settings.initial), pending + count),
            again,
        )
    }

    fn told(&self, pool: &Pool) -> LabelledRows {
        let mut told = LabelledRows {
            places: Vec::new(),
            classes: Vec::new(),
            pending: Vec::new(),
            taken: Vec::new(),
            elsewhere: 0,
        };
        for question in &self.questions {
            let Some(place) = pool.place(question.row) else {
                told.elsewhere += 1;
                continue;
            };
            told.taken.push(place);
            match (&question.answer, self.class_of(question)) {
                (_, Some(class)) => {
                    told.places.push(place);
                    told.classes.push(class);
                }
                (Answer::Pending, _) => told.pending.push(place),
                _ => {}
            }
        }
        told
    }

    /// Classes of which there is a label.
    fn seen(&self) -> usize {
        self.counts().iter().filter(|count| **count > 0).count()
    }

    /// Asks for `count` rows (1 to [`MOST_ASKED`]; fewer where there are not so many left), pending until something is told of them. They are functions of the seed, the rounds and what was told: a
    /// crash between two calls changes nothing.
    ///
    /// Cost: that of [`Self::plan`].
    ///
    /// # Errors
    /// [`DecisionError::Ask`] when nothing is left to be asked for; [`DecisionError::LabelMemory`] for a plan above `memory` bytes; [`DecisionError::Gp`], [`DecisionError::Interrupted`].
    pub fn ask(
        &mut self,
        pool: &Pool,
        count: usize,
        memory: u64,
        observer: &mut dyn FnMut(LabelStage, usize, usize) -> Signal,
    ) -> Result<QueryRound, DecisionError> {
        if count == 0 || count > MOST_ASKED {
            return Err(DecisionError::Ask(format!(
                "{count} rows were asked for; ask for 1 to {MOST_ASKED} at a time"
            )));
        }
        self.plan(pool, count).check(memory)?;
        let told = self.told(pool);
        let mut is_taken = vec![false; pool.rows.len()];
        told.taken.iter().for_each(|&place| is_taken[place] = true);
        let free: Vec<usize> = (0..is_taken.len()).filter(|&place| !is_taken[place]).collect();
        if free.is_empty() {
            let pending = told.pending.len();
            return Err(DecisionError::Ask(format!(
                "nothing is left: all {} rows of the pool were asked for or labelled{}",
                pool.rows.len(),
                if pending > 0 { format!(", {pending} of them are still pending") } else { String::new() }
            )));
        }
        let mut asked = QueryRound {
            ids: Vec::new(),
            hyperparameters: Vec::new(),
            learned_now: false,
            notes: Vec::new(),
        };
        if free.len() < count {
            asked
                .notes
                .push(format!("{} rows are left, fewer than the {count} that were asked for", free.len()));
        }
        if told.elsewhere > 0 {
            asked.notes.push(format!(
                "{} rows with answers have missing cells and are not learned from",
                told.elsewhere
            ));
        }
        let count = count.min(free.len());
        let streams = Streams::new(self.settings.seed).child("decisions/label-round", self.rounds as u64);
        let known = told.places.len() + told.pending.len();
        let first = match self.seen() {
            0 | 1 => count,
            _ => self.settings.initial.saturating_sub(known).min(count),
        };
        let spread_rows = spread(pool.inputs.as_ref(), &told.taken, &free, first, streams);
        if first > 0 {
            asked.notes.push(match (self.seen(), told.places.len()) {
                (0, _) => "no label was told yet: rows are spread over the pool".into(),
                (1, labels) => format!("all {labels} labels are of one class: rows are spread over the pool"),
                _ => format!(
                    "{} rows are spread over the pool, to begin with {} in all",
                    first, self.settings.initial
                ),
            });
        }
        let mut questions: Vec<Question> =
            spread_rows.iter().map(|&place| question(pool, place, Reason::Spread, (None, None))).collect();
        let rest = count - first;
        if rest > 0 {
            let again = self.learn_if_outgrown(pool, &told, observer)?;
            asked.learned_now = again;
            asked.hyperparameters =
                self.learned.as_ref().map(|l| l.hyperparameters.clone()).unwrap_or_default();
            let (mut posterior, gaussian_labels) = self.condition(pool, &told)?;
            let scoring = Scoring::new(self.settings.criterion, &gaussian_labels, self.settings.seed)?;
            let pending: Vec<usize> = told.pending.iter().chain(&spread_rows).copied().collect();
            spread_rows.iter().for_each(|&place| is_taken[place] = true);
            let free: Vec<usize> = free.into_iter().filter(|&place| !is_taken[place]).collect();
            let choosing = Choosing {
                gaussian_labels: &gaussian_labels,
                scoring: &scoring,
                pending: &pending,
                free: &free,
                streams,
            };
            let chosen = choose(&mut posterior, choosing, rest, &mut |done, total| {
                observer(LabelStage::Rows, done, total)
            })?;
            questions.extend(chosen.into_iter().map(|chosen| {
                let value = (self.settings.criterion != Criterion::Random).then_some(chosen.value);
                question(pool, chosen.row, Reason::Criterion, (value, Some(chosen.probabilities)))
            }));
        }
        self.rounds += 1;
        for mut question in questions {
            (question.id, question.round) = (self.questions.len() + 1, self.rounds);
            asked.ids.push(question.id);
            self.questions.push(question);
        }
        Ok(asked)
    }

    /// Looks for hyperparameters where there are labels enough for others.
    fn learn_if_outgrown(
        &mut self,
        pool: &Pool,
        told: &LabelledRows,
        observer: &mut dyn FnMut(LabelStage, usize, usize) -> Signal,
    ) -> Result<bool, DecisionError> {
        let (labels, classes) = (told.places.len(), self.classes.len());
        if self.learned.as_ref().is_some_and(|l| !l.is_outgrown(labels, classes)) {
            return Ok(false);
        }
        let inputs = Mat::from_fn(labels, pool.inputs.ncols(), |i, j| pool.inputs[(told.places[i], j)]);
        let (settings, names) = (&self.settings, self.pool.schema.feature_names());
        let data = (inputs.as_ref(), told.classes.as_slice());
        let mut watch = |done, total| observer(LabelStage::Evidence, done, total);
        let gaussian_labels = self.gaussian_labels()?;
        self.learned =
            Some(learn(&settings.kernel, &names, &gaussian_labels, data, settings.seed, &mut watch)?);
        Ok(true)
    }

    fn gaussian_labels(&self) -> Result<ClassGaussianLabels, DecisionError> {
        Ok(ClassGaussianLabels::new(self.classes.len(), &self.settings.gaussianised)?.standardised())
    }

    /// What is believed of every row of the pool, by the labels that were told and the hyperparameters of the last search.
    fn condition(
        &self,
        pool: &Pool,
        told: &LabelledRows,
    ) -> Result<(PoolPosterior, ClassGaussianLabels), DecisionError> {
        let gaussian_labels = self.gaussian_labels()?;
        let names = self.pool.schema.feature_names();
        let kernel = prior_kernel(&self.settings.kernel, &names, self.learned.as_ref())?;
        let observed: Vec<_> = told.classes.iter().map(|&class| gaussian_labels.of_all(class)).collect();
        let prior = PoolPosterior::prior(kernel, pool.inputs.clone(), gaussian_labels.functions());
        Ok((prior.conditioned(&told.places, &observed)?, gaussian_labels))
    }

    /// What is unsure about the rows without a label; None while there are labels of fewer than two classes, or no such rows.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn doubt(&self, pool: &Pool, memory: u64) -> Result<Option<PoolDoubt>, DecisionError> {
        if self.seen() < 2 {
            return Ok(None);
        }
        self.plan(pool, 1).check(memory)?;
        let told = self.told(pool);
        let (posterior, gaussian_labels) = self.condition(pool, &told)?;
        let scoring = Scoring::new(self.settings.criterion, &gaussian_labels, self.settings.seed)?;
        let mut labelled = vec![false; pool.rows.len()];
        told.places.iter().for_each(|&place| labelled[place] = true);
        let rows: Vec<usize> = (0..labelled.len()).filter(|&place| !labelled[place]).collect();
        let each = parallel::map(rows.len(), 2, |i| {
            let (mean, variance) = posterior.latent(rows[i], &gaussian_labels);
            scoring.doubt(Latent { mean: &mean, variance: &variance })
        });
        let each: Vec<Doubt> = each.into_iter().collect::<Result<_, LikelihoodError>>()?;
        let mean = |value: &dyn Fn(&Doubt) -> f64| each.iter().map(value).sum::<f64>() / each.len() as f64;
        Ok((!each.is_empty()).then(|| PoolDoubt {
            rows: each.len(),
            entropy: mean(&|d| d.entropy),
            removable: mean(&|d| d.removable),
        }))
    }
}

fn question(
    pool: &Pool,
    place: usize,
    reason: Reason,
    (value, believed): (Option<f64>, Option<Vec<f64>>),
) -> Question {
    Question { id: 0, row: pool.rows[place] + 1, reason, round: 0, value, believed, answer: Answer::Pending }
}
