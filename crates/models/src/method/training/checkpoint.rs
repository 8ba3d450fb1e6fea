//! Where an interrupted fit stands: one file, written in one step, read only by the same fit.

use super::budget::Allowance;
use crate::network::digest;
use crate::options::MethodName;
use crate::prepare::in_blocks;
use crate::{
    EvidenceSearchSummary, FitRequest, FitStage, Hyperparameter, Method, ModelError, SolverPrecision,
};
use faer::Mat;
use posterior_data::Schema;
use posterior_gp::RowSource;
use posterior_gp::iterative::{
    BlockFit, NeighbourhoodFit, SearchHeader, SearchState, SolverState, StateHeader,
};
use posterior_notes::fixes::{CHECKPOINT, FRESH};
use posterior_optim::{Observer, Reason, Signal};
use posterior_store::{
    Checkpoint, Identity, RowsDigest, StoreError, Tensors, numbers_from_tensors, numbers_to_tensors,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

const METHOD: &str = "process checkpoint";

/// What a solver is expected to take on all rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Forecast {
    /// Which.
    pub(crate) method: MethodName,
    /// Steps that predictions took on two numbers of rows, those beyond the last that was tried extrapolated; none where they came no nearer.
    pub(crate) steps: [Option<f64>; 2],
    /// Seconds on all rows; none where nothing can be expected.
    pub(crate) seconds: Option<f64>,
}

/// What those are told whose fit is another.
fn remedy() -> String {
    format!("begin anew with {FRESH}, which removes it, or name another file with {CHECKPOINT}")
}

/// Settings that no number depends on: limits, places (rows are the same wherever they are), and what follows the fit.
const NOT_OF_NUMBERS: [&str; 7] =
    ["checkpoint", "checkpoint-every", "fresh", "time-budget", "memory", "from-disk", "calibrate"];

/// Everything that the numbers depend on: settings, roles, data. Neither limits of time and memory nor places are among it: the same command with a larger budget goes on.
fn identity(
    schema: &Schema,
    data: &dyn RowSource,
    request: &FitRequest,
    method: &Method,
) -> Result<Identity, ModelError> {
    // Of the request: what `auto` leads to has no starts of its own.
    let restarts = request.restarts();
    let mut request = request.clone();
    request.method = method.clone();
    // A precision is the same whether it was asked for or is the usual one.
    if let Some(options) = request.method.iterative_mut() {
        options.system.precision = Some(options.system.precision());
    }
    let mut settings = posterior_store::to_shown_value(&request).map_err(StoreError::from)?;
    if let Some(settings) = settings.as_object_mut() {
        NOT_OF_NUMBERS.iter().for_each(|key| drop(settings.remove(*key)));
        settings.insert("restarts".into(), restarts.into());
        // The same name may be another network by now.
        let features = method.deep().map(|(options, ..)| &options.network);
        let basis = features.or(method.gvi().map(|options| &options.kernel_network));
        let mean = method.gvi().and_then(|options| options.mean_network.as_ref());
        let named = [("network", basis.and_then(|own| own.basis.as_ref())), ("mean-network", mean)];
        for (name, path) in named {
            if let Some(path) = path {
                settings.insert(name.into(), digest(path).unwrap_or_default().into());
            }
        }
    }
    let schema = posterior_store::to_shown_value(schema).map_err(StoreError::from)?.to_string();
    let mut digest = RowsDigest::new(&schema);
    in_blocks(data, |_, block| {
        let sides = [block.noise_variances(), block.weights(), block.offsets()];
        for i in 0..block.rows() {
            let numbers = block.inputs().row(i).iter().chain(block.targets().row(i).iter());
            // One that is not there is told from one that is 0.
            let sides = sides.iter().map(|side| side.map_or(f64::NAN, |values| values[i]));
            digest.add(numbers.copied().chain(sides));
        }
    })?;
    Ok(Identity { settings, data: digest.finish() })
}

/// What was found so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Hyperparameters; none while they are still searched for.
    pub(crate) hyperparameters: Vec<Hyperparameter>,
    /// The stages of a search on blocks that are finished, and the parameters that each found.
    pub(crate) blocks: Vec<(BlockFit, Vec<f64>)>,
    /// What the evidence wanted the noise to be, where it was raised.
    pub(crate) noise_raised_from: Option<f64>,
    /// What the evidence wanted, where the search was limited to what can be solved.
    pub(crate) wanted: Option<Wanted>,
    /// The neighbourhoods that are finished.
    pub(crate) neighbourhoods: Vec<NeighbourhoodFit>,
    /// Seconds they took.
    pub(crate) seconds: f64,
    /// What was noted on the way.
    pub(crate) largest_jitter: f64,
    /// Why a search on all rows that was to follow blocks left them as they were.
    pub(crate) following_failed: Option<String>,
    /// What solvers were expected to take, the first at its end first.
    pub(crate) forecasts: Vec<Forecast>,
    /// What a search on all rows did.
    pub(crate) search: Option<EvidenceSearchSummary>,
    /// Of fits to labels: finished searches by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) searches: BTreeMap<String, FoundSearch>,
    /// Of fits to labels: latent functions that are finished.
    pub(crate) functions: usize,
}

/// What the evidence wanted, where that was more than can be solved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    /// The hyperparameters.
    pub(crate) hyperparameters: Vec<Hyperparameter>,
    /// Their function's variance over their noise's.
    pub(crate) ratio: f64,
    /// What the function's variance was bounded by instead.
    pub(crate) largest: f64,
    /// Nats of each of some rows by which the evidence is less for it.
    pub(crate) fall: f64,
}

/// What a search ended with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FoundSearch {
    /// The parameters; none where they are told otherwise.
    pub(crate) values: Vec<f64>,
    /// Why it ended.
    pub(crate) reason: Reason,
    /// Its steps.
    pub(crate) steps: usize,
    /// Its evaluations.
    pub(crate) evaluations: usize,
    /// Largest jitter that one of them needed.
    pub(crate) largest_jitter: f64,
    /// Parameters at a bound that was set for them, with the bound.
    pub(crate) at_bounds: Vec<(String, f64)>,
}

impl FoundSearch {
    /// With why it ended, its steps and its evaluations.
    pub(crate) fn new(
        values: Vec<f64>,
        (reason, steps, evaluations): (Reason, usize, usize),
        largest_jitter: f64,
        at_bounds: Vec<(String, f64)>,
    ) -> Self {
        Self { values, reason, steps, evaluations, largest_jitter, at_bounds }
    }
}

/// Where a fit stands; blocks of numbers are tensors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    found: Found,
    /// The solver's small part; its blocks are tensors.
    solver: Option<StateHeader>,
    /// Names of the blocks, in order.
    blocks: Vec<String>,
    /// The small part of a search over all rows; its solutions are a tensor.
    search: Option<Value>,
    /// The state of a bound's optimiser.
    bound: Option<Value>,
}

/// What is under way beside what was found.
pub(crate) enum Stage<T: SolverPrecision> {
    /// Nothing.
    Between,
    /// Nothing, but a search has left solutions that the next solve begins with.
    Solved(Mat<T>),
    /// A search over all rows.
    Search(SearchState<T>),
    /// A solve.
    Solver(SolverState<T>),
    /// A bound's optimiser, as text.
    Bound(Value),
}

/// Saves states now and then; does nothing where there is no place for them.
pub(crate) struct CheckpointWriter {
    place: Option<(PathBuf, Identity)>,
    every: f64,
    last: Instant,
    failed: Option<StoreError>,
}

impl CheckpointWriter {
    /// Keeps states of the fit with this identity at a path, at most every so many seconds.
    pub(crate) fn new(place: Option<(PathBuf, Identity)>, every: f64) -> Self {
        Self { place, every, last: Instant::now(), failed: None }
    }

    /// Keeps states of a fit to these rows where its method names a place for them.
    ///
    /// # Errors
    /// Rows that cannot be read.
    pub(crate) fn of(
        schema: &Schema,
        data: &dyn RowSource,
        request: &FitRequest,
        method: &Method,
    ) -> Result<Self, ModelError> {
        let large = method.large();
        let path = large.and_then(|large| large.checkpoint.clone());
        let place = path.map(|path| Ok::<_, ModelError>((path, identity(schema, data, request, method)?)));
        let every = large.map_or(f64::INFINITY, |large| large.checkpoint_every);
        Ok(Self::new(place.transpose()?, every))
    }

    /// What an earlier run of the same fit left; None where there is nothing.
    pub(crate) fn load(&self) -> Result<Option<Saved>, StoreError> {
        match &self.place {
            Some((path, identity)) if path.exists() => load(path, identity).map(Some),
            _ => Ok(None),
        }
    }

    /// The state of a bound's or a training's optimiser that an earlier run left.
    pub(crate) fn bound<S: DeserializeOwned>(&self) -> Result<Option<S>, StoreError> {
        self.load()?.map_or(Ok(None), |mut saved| saved.bound())
    }

    /// Saves at once.
    pub(crate) fn save<T: SolverPrecision>(
        &mut self,
        found: &Found,
        stage: Stage<T>,
    ) -> Result<(), StoreError> {
        self.last = Instant::now();
        match &self.place {
            Some((path, identity)) => save(path, identity, found, stage),
            None => Ok(()),
        }
    }

    /// Saves where it is due or the last chance, and passes the signal on; a failure to save is a reason to stop, told by [`Self::finish`].
    pub(crate) fn observe<T: SolverPrecision>(
        &mut self,
        signal: Signal,
        found: &Found,
        stage: impl FnOnce() -> Result<Stage<T>, serde_json::Error>,
    ) -> Signal {
        let due = self.last.elapsed().as_secs_f64() >= self.every;
        if self.place.is_none() || !(due || signal == Signal::Stop) {
            return signal;
        }
        let saved = stage().map_err(StoreError::from).and_then(|stage| self.save(found, stage));
        match saved {
            Ok(()) => signal,
            Err(error) => {
                self.failed = Some(error);
                Signal::Stop
            }
        }
    }

    /// The failure of a save, if there was one.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Removes what a finished fit does not need; a file that cannot be removed does no harm.
    pub(crate) fn clear(&self) {
        if let Some((path, _)) = &self.place {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl CheckpointWriter {
    /// Keeps the state of a training that stands alone.
    pub(crate) fn keeping<'k>(&'k mut self, found: &'k mut Found) -> Keeping<'k> {
        Keeping { checkpoints: self, found, clock: None }
    }
}

/// Who keeps the state of one long training, so that an interrupted one goes on.
pub(crate) struct Keeping<'k> {
    pub(crate) checkpoints: &'k mut CheckpointWriter,
    /// What was found before it.
    pub(crate) found: &'k mut Found,
    /// What counts the time of the fit; none where the state itself counts its own.
    pub(crate) clock: Option<Allowance>,
}

impl Keeping<'_> {
    /// Keeps a state where that is due or the last chance, and passes the signal on.
    pub(crate) fn observe(
        &mut self,
        signal: Signal,
        state: impl FnOnce() -> Result<Value, serde_json::Error>,
    ) -> Signal {
        if let Some(clock) = self.clock {
            self.found.seconds = clock.elapsed();
        }
        self.checkpoints.observe::<f64>(signal, self.found, || Ok(Stage::Bound(state()?)))
    }
}

/// Who keeps how training goes, and who is told of it.
pub(crate) type Watched<'w, 'k, 'o> = (&'w mut Keeping<'k>, &'w mut Observer<'o, FitStage>);

/// A state that was read.
pub(crate) struct Saved {
    state: State,
    tensors: Tensors,
}

/// Name of the tensor of a search's solutions.
const SOLUTIONS: &str = "search_solutions";

/// First part of the names of tensors that belong to the state of a search.
const SEARCH: &str = "search";

/// First part of the names of tensors that belong to a bound's state.
const BOUND: &str = "bound";

fn save<T: SolverPrecision>(
    path: &Path,
    identity: &Identity,
    found: &Found,
    stage: Stage<T>,
) -> Result<(), StoreError> {
    let mut tensors = Tensors::default();
    let mut state = State { found: found.clone(), ..State::default() };
    match stage {
        Stage::Between => {}
        Stage::Solved(weights) => tensors.insert_columns(SOLUTIONS, weights.as_ref()),
        Stage::Search(SearchState { header, weights }) => {
            if let Some(weights) = weights {
                tensors.insert_columns(SOLUTIONS, weights.as_ref());
            }
            // A state that is not written whole must not pass for one.
            let mut value = posterior_store::to_value(&header)?;
            numbers_to_tensors(&mut value, SEARCH, &mut tensors);
            state.search = Some(value);
        }
        Stage::Solver(SolverState { header, blocks }) => {
            for (name, block) in blocks {
                tensors.insert_columns(name.clone(), block.as_ref());
                state.blocks.push(name);
            }
            state.solver = Some(header);
        }
        Stage::Bound(mut value) => {
            numbers_to_tensors(&mut value, BOUND, &mut tensors);
            state.bound = Some(value);
        }
    }
    Checkpoint { method: METHOD.into(), identity: identity.clone(), state }.write(tensors, path)
}

fn load(path: &Path, identity: &Identity) -> Result<Saved, StoreError> {
    let (mut state, mut tensors) = Checkpoint::<State>::read(path, METHOD, identity, &remedy())?;
    for (value, name) in [(&mut state.search, SEARCH), (&mut state.bound, BOUND)] {
        if let Some(value) = value {
            numbers_from_tensors(value, name, &mut tensors);
        }
    }
    Ok(Saved { state, tensors })
}

impl Saved {
    /// What was found.
    pub(crate) fn found(&self) -> &Found {
        &self.state.found
    }

    /// Seconds that earlier runs took for hyperparameters, and for the search or solve under way.
    pub(crate) fn seconds(&self) -> f64 {
        let search = self.state.search.as_ref().and_then(|v| v.get("seconds")).and_then(Value::as_f64);
        self.state.found.seconds
            + self.state.solver.as_ref().map_or(0.0, |s| s.seconds)
            + search.unwrap_or(0.0)
    }

    /// Whether a solve was under way.
    pub(crate) fn has_solver(&self) -> bool {
        self.state.solver.is_some()
    }

    /// The solver's state, if it had begun.
    pub(crate) fn solver<T: SolverPrecision>(&mut self) -> Result<Option<SolverState<T>>, StoreError> {
        let Some(header) = self.state.solver.take() else { return Ok(None) };
        let names = std::mem::take(&mut self.state.blocks).into_iter();
        let blocks = names.map(|name| Ok((name.clone(), self.tensors.columns(&name, None)?)));
        Ok(Some(SolverState { header, blocks: blocks.collect::<Result<_, StoreError>>()? }))
    }

    /// What a finished search left for the next solve to begin with.
    pub(crate) fn solutions<T: SolverPrecision>(&mut self) -> Result<Option<Mat<T>>, StoreError> {
        let kept = self.state.search.is_none() && self.tensors.shape(SOLUTIONS).is_some();
        kept.then(|| self.tensors.columns(SOLUTIONS, None)).transpose()
    }

    /// The state of a search over all rows, if it had begun.
    pub(crate) fn search<T: SolverPrecision>(&mut self) -> Result<Option<SearchState<T>>, StoreError> {
        let Some(value) = self.state.search.take() else { return Ok(None) };
        let header = serde_json::from_value(value);
        let header: SearchHeader = header.map_err(|e| self.tensors.corrupt(format!("its search: {e}")))?;
        let kept = self.tensors.shape(SOLUTIONS).is_some();
        let weights = kept.then(|| self.tensors.columns(SOLUTIONS, None)).transpose()?;
        Ok(Some(SearchState { header, weights }))
    }

    /// The state of a bound's optimiser, if it had begun.
    fn bound<S: DeserializeOwned>(&mut self) -> Result<Option<S>, StoreError> {
        let Some(value) = self.state.bound.take() else { return Ok(None) };
        let state = serde_json::from_value(value);
        state.map(Some).map_err(|e| self.tensors.corrupt(format!("its bound: {e}")))
    }
}

/// Removes what an earlier fit left where that is asked for.
pub(crate) fn begin_anew(request: &FitRequest) -> Result<(), ModelError> {
    let Some(large) = request.method.large().filter(|large| large.fresh) else { return Ok(()) };
    match large.checkpoint.as_ref().filter(|path| path.exists()) {
        Some(path) => std::fs::remove_file(path)
            .map_err(|source| StoreError::Write { path: path.into(), source }.into()),
        None => Ok(()),
    }
}
