//! Where an interrupted fit of labels stands: what its searches found, in one file that is written after them, now and then and when the fit is interrupted.
//!
//! Searches take nearly all of the time of such a fit, and what each of them begins from follows from the request, the rows and what was found before. So a fit that is begun again takes from the file what was found, computes
//! posteriors from that, and goes on with the search that was interrupted, from its beginning; the stochastic bound, which is one long search, goes on at its last step. Iterative solvers have checkpoints of their own beside the
//! file, one for each function, and functions that are finished are kept as models.

use super::observed::Observed;
use crate::method::training::{Allowance, CheckpointWriter, Found, FoundSearch, Keeping, Stage, begin_anew};
use crate::{FitRequest, FitStage, Model, ModelError};
use posterior_optim::{Observer, Signal};
use posterior_store::StoreError;
use std::path::{Path, PathBuf};

/// Who keeps a fit and hears of it.
pub(crate) type FitMonitor<'k, 'o> = (&'k mut Journal, &'k mut Observer<'o, FitStage>);

/// The file, and what is in it.
pub(crate) struct Journal {
    path: Option<PathBuf>,
    checkpoints: CheckpointWriter,
    found: Found,
    /// The budget, of which earlier runs had their part.
    allowance: Allowance,
}

impl Journal {
    /// What an earlier run of the same fit left, or nothing. Nothing is kept where the request names no place.
    ///
    /// # Errors
    /// [`StoreError::OtherCheckpoint`] with what differs, damaged files.
    pub(crate) fn open(observed: &Observed, request: &FitRequest) -> Result<Self, ModelError> {
        let large = request.method.large();
        let path = large.and_then(|large| large.checkpoint.clone());
        if large.is_some_and(|large| large.fresh) {
            path.iter().for_each(|path| remove_functions(path));
            begin_anew(request)?;
        }
        let checkpoints = CheckpointWriter::of(&observed.schema, &observed.data, request, &request.method)?;
        let found = checkpoints.load()?.map_or_else(Found::default, |saved| saved.found().clone());
        let allowance = Allowance::new(request.limits.time).after(found.seconds);
        Ok(Self { path, checkpoints, found, allowance })
    }

    /// Seconds that the fit took so far, those of earlier runs included.
    pub(crate) fn spent(&self) -> f64 {
        self.allowance.elapsed()
    }

    /// Seconds of the budget that are left, never none.
    pub(crate) fn left(&self) -> Option<f64> {
        self.allowance.until(1.0).map(|left| left.max(f64::MIN_POSITIVE))
    }

    /// What the search of this name found: in an earlier run, or now, and then it is kept.
    ///
    /// # Errors
    /// Those of the search, and a file that cannot be written.
    pub(crate) fn once(
        &mut self,
        name: &str,
        search: impl FnOnce() -> Result<FoundSearch, ModelError>,
    ) -> Result<FoundSearch, ModelError> {
        if let Some(found) = self.found.searches.get(name) {
            return Ok(found.clone());
        }
        let found = search();
        if matches!(found, Err(ModelError::Interrupted)) {
            self.keep()?;
        }
        let found = found?;
        self.found.searches.insert(name.into(), found.clone());
        self.found.seconds = self.spent();
        // A fit of a second writes nothing.
        self.checkpoints.observe::<f64>(Signal::Continue, &self.found, || Ok(Stage::Between));
        self.checkpoints.finish()?;
        Ok(found)
    }

    /// The process of function k: of an earlier run, or fitted now; `fit` is told where its own checkpoint belongs. What has a closed form (not `iterative`) is not kept.
    ///
    /// # Errors
    /// Those of the fit, and files that cannot be read or written.
    pub(crate) fn function(
        &mut self,
        k: usize,
        iterative: bool,
        fit: impl FnOnce(Option<PathBuf>) -> Result<Model, ModelError>,
    ) -> Result<Model, ModelError> {
        let Some(path) = self.path.as_ref().filter(|_| iterative) else { return fit(None) };
        let finished = finished(path, k);
        if k < self.found.functions {
            return Ok(Model::load(&finished)?);
        }
        let fitted = fit(Some(under_way(path, k)))?;
        if !fitted.was_interrupted() {
            fitted.container()?.replace(&finished)?;
            self.found.functions = k + 1;
            self.keep()?;
        }
        Ok(fitted)
    }

    /// Who keeps the state of one long training, the time of this fit with it.
    pub(crate) fn keeping(&mut self) -> Keeping<'_> {
        let clock = Some(self.allowance);
        Keeping { checkpoints: &mut self.checkpoints, found: &mut self.found, clock }
    }

    /// Removes what a finished fit does not need.
    pub(crate) fn clear(&self) {
        self.path.iter().for_each(|path| remove_functions(path));
        self.checkpoints.clear();
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        self.found.seconds = self.spent();
        self.checkpoints.save::<f64>(&self.found, Stage::Between)
    }
}

/// Where the solver of function k keeps its state.
fn under_way(path: &Path, k: usize) -> PathBuf {
    beside(path, &format!("function-{k}"))
}

/// Where function k is kept when it is finished.
fn finished(path: &Path, k: usize) -> PathBuf {
    beside(path, &format!("function-{k}.posterior"))
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// Removes the files of functions beside a checkpoint: there is one after the other. A file that cannot be removed does no harm.
fn remove_functions(path: &Path) {
    for k in 0.. {
        let files = [under_way(path, k), finished(path, k)];
        if files.iter().all(|file| !file.exists()) {
            return;
        }
        files.iter().for_each(|file| drop(std::fs::remove_file(file)));
    }
}

#[cfg(test)]
mod tests {
    use crate::method::inference::observed::Observed;
    use crate::method::inference::target::choose_likelihood;
    use crate::options::{
        CgOptions, InferenceName, IterativeOptions, LargeTableOptions, LikelihoodName, OutputRequest,
        SvgpOptions,
    };
    use crate::{FitRequest, Method, Model, ModelData, ModelError, Question};
    use posterior_data::{Column, Selection, Table, Values};
    use posterior_optim::Signal;
    use std::path::Path;

    fn table() -> Table {
        let wave = |k: f64| (k * 12.9898).sin();
        let x = |i: usize, j: usize| 2.0 * wave((2 * i + j) as f64 + 0.4);
        let class =
            |i: usize| ["no", "yes"][usize::from(x(i, 0) + 0.5 * x(i, 1) + wave(0.7 * i as f64) > 0.0)];
        let column = |name: &str, j: usize| Column::numeric(name, (0..60).map(|i| x(i, j)).collect());
        let classes = Values::Text((0..60).map(|i| Some(class(i).to_string())).collect());
        Table::new(
            "t.csv",
            vec![column("a", 0), column("b", 1), Column { name: "y".into(), values: classes }],
        )
    }

    fn fit(request: &FitRequest, steps: usize) -> (Result<Model, ModelError>, usize) {
        let (table, rows): (_, Vec<usize>) = (table(), (0..60).collect());
        let chosen = choose_likelihood(&table, "y", &rows, LikelihoodName::Auto, &request.columns).unwrap();
        let observed = Observed::from_table(&table, &rows, request, chosen).unwrap();
        let mut seen = 0;
        let fitted = Model::fit_observed(observed, request, &mut |_, _| {
            seen += 1;
            if seen > steps { Signal::Stop } else { Signal::Continue }
        });
        (fitted, seen)
    }

    fn predicted(model: &Model) -> Vec<f64> {
        let data = ModelData::of_table(table()).unwrap();
        let found = model.predictive(&data, &Question::default()).unwrap();
        [found.latent_mean, found.latent_deviation].concat()
    }

    /// Iterative methods of few steps, with a checkpoint.
    fn large(path: &Path) -> LargeTableOptions {
        LargeTableOptions {
            iterations: Some(40),
            held_back: Some(6),
            checkpoint: Some(path.into()),
            checkpoint_every: 1e-9,
            ..LargeTableOptions::default()
        }
    }

    #[test]
    fn interrupted_anywhere_the_same_model_comes_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.checkpoint");
        let mut iterative = IterativeOptions { large: large(&path), ..IterativeOptions::default() };
        (iterative.search.blocks, iterative.search.block_size) = (1, 40);
        let cg = CgOptions { iterative, ..CgOptions::default() };
        let svgp = SvgpOptions { large: large(&path), ..SvgpOptions::default() };
        for (inference, method, steps) in [
            (InferenceName::Gaussianised, Method::Cg(cg), 5),
            (InferenceName::Variational, Method::Svgp(svgp), 7),
        ] {
            let request = FitRequest {
                columns: Selection { target: "y".into(), ..Selection::default() },
                method,
                output: OutputRequest { inference, ..Default::default() },
                ..FitRequest::default()
            };
            let (undisturbed, all) = fit(&request, usize::MAX);
            let expected = predicted(&undisturbed.unwrap());
            assert!(!path.exists(), "a finished fit leaves no checkpoint");
            let (mut runs, mut last) = (0, 0);
            let found = loop {
                let (fitted, seen) = fit(&request, last + steps);
                runs += 1;
                match fitted {
                    Ok(fitted) => break (fitted, seen),
                    // A search that is interrupted begins anew: every run gets a little further.
                    Err(ModelError::Interrupted) => last += 1,
                    Err(other) => panic!("{other}"),
                }
                assert!(path.exists() && runs < all, "{runs}");
            };
            assert!(runs > 2 && found.1 < all, "{runs} runs, {} of {all} steps in the last", found.1);
            assert_eq!(predicted(&found.0), expected, "{}", inference.as_str());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");

            // Another fit is not gone on with.
            assert!(matches!(fit(&request, steps), (Err(ModelError::Interrupted), _)));
            let other = FitRequest { seed: 7, ..request.clone() };
            let said = fit(&other, steps).0.unwrap_err().to_string();
            assert!(said.contains("seed") && said.contains("--fresh"), "{said}");
            std::fs::remove_file(&path).unwrap();
        }
    }
}
