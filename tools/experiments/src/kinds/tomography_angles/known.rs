//! What the methods of one image share, made when it is first asked for: a run whose parts are all kept trains nothing.

use super::network::{Trained, View, train};
use super::prior;
use super::problem::{Problem, Scan};
use super::settings::{Settings, TrainingSettings};
use crate::kinds::prelude::*;
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_tomography::linearised::{FilterHyperparameters, ImageTangent, PriorRoot};
use std::rc::Rc;

/// A root of a covariance, stored or by products.
pub(super) type Root<'a> = Rc<dyn LinearOperator<f64> + 'a>;

/// A root, and what to keep of it where it was stored.
type MaybeStored<'a> = (Root<'a>, Option<Rc<Dense<f64>>>);

/// One image of a run.
pub(super) struct Known<'s> {
    /// The run's.
    pub(super) settings: &'s Settings,
    /// Number of the image.
    pub(super) image: u64,
    /// The image and its scan.
    pub(super) problem: Problem,
    trained: Option<Rc<Trained>>,
    view: Option<Rc<View>>,
    g_prior: Option<Rc<Dense<f64>>>,
    filters: Option<Rc<Dense<f64>>>,
}

impl<'s> Known<'s> {
    /// The image of a number.
    ///
    /// # Errors
    /// Sizes that make no scan.
    pub(super) fn new(settings: &'s Settings, seed: u64, image: u64) -> Result<Self> {
        let problem = Problem::new(&settings.scan, seed, image)?;
        Ok(Self { settings, image, problem, trained: None, view: None, g_prior: None, filters: None })
    }

    /// The deep image prior on the pilot scan: a part of its own.
    ///
    /// # Errors
    /// Those of training.
    pub(super) fn trained(&mut self, context: &mut Context<'_>) -> Result<Rc<Trained>> {
        if let Some(trained) = &self.trained {
            return Ok(trained.clone());
        }
        let (settings, problem) = (self.settings, &self.problem);
        let how = (&settings.network, &settings.pilot_training);
        let stage = format!("image {}: network of the pilot scan", self.image);
        let depends = (self.image, &settings.scan, how);
        let found = context.once(&stage, &depends, |context| {
            train(&problem.pilot_scan()?, &problem.truth, how, (None, problem.seed), &stage, context)
        })?;
        let found = Rc::new(found);
        self.trained = Some(found.clone());
        Ok(found)
    }

    /// A network trained further on another scan.
    ///
    /// # Errors
    /// Those of training.
    pub(super) fn further(
        &self,
        from: &Trained,
        scan: &Scan,
        training: &TrainingSettings,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Trained> {
        let start = from.network(&self.settings.network, self.settings.scan.side)?;
        let how = (&self.settings.network, training);
        train(scan, &self.problem.truth, how, (Some(start), self.problem.seed), stage, context)
    }

    /// The pilot's network with what it looks at.
    ///
    /// # Errors
    /// As [`Self::trained`].
    pub(super) fn view(&mut self, context: &mut Context<'_>) -> Result<Rc<View>> {
        if let Some(view) = &self.view {
            return Ok(view.clone());
        }
        let trained = self.trained(context)?;
        let scan = self.problem.pilot_scan()?;
        let view = Rc::new(View::new(&trained, &self.settings.network, &scan)?);
        self.view = Some(view.clone());
        Ok(view)
    }

    /// The g-prior of the pilot scan.
    ///
    /// # Errors
    /// A network that moves no measurement, interruption.
    pub(super) fn g_prior<'a>(
        &mut self,
        tangent: &'a ImageTangent<'a, f32>,
        view: &View,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Root<'a>> {
        if let Some(stored) = &self.g_prior {
            return Ok(stored.clone());
        }
        let root = self.g_prior_of(tangent, &self.problem.pilot_scan()?, stage, context)?;
        let (root, stored) = self.stored(root, (tangent, view), stage, context)?;
        self.g_prior = stored;
        Ok(root)
    }

    /// The g-prior of another scan, which nothing else will ask for.
    ///
    /// # Errors
    /// As [`Self::g_prior`].
    pub(super) fn fresh_g_prior<'a>(
        &self,
        tangent: &'a ImageTangent<'a, f32>,
        view: &View,
        scan: &Scan,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Root<'a>> {
        let root = self.g_prior_of(tangent, scan, stage, context)?;
        Ok(self.stored(root, (tangent, view), stage, context)?.0)
    }

    fn g_prior_of<'a>(
        &self,
        tangent: &'a ImageTangent<'a, f32>,
        scan: &Scan,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<PriorRoot<'a, f32>> {
        let draws = (self.settings.design.scale_draws, self.problem.seed);
        prior::g_prior(tangent, scan, self.problem.noise_variance, draws, stage, context)
    }

    /// Variances and lengthscales of filters by the pilot scan: a part of its own.
    ///
    /// # Errors
    /// A search that fails, interruption.
    pub(super) fn hyperparameters(&mut self, context: &mut Context<'_>) -> Result<FilterHyperparameters> {
        let view = self.view(context)?;
        let (settings, problem) = (self.settings, &self.problem);
        let stage = format!("image {}: evidence of filters", self.image);
        let depends =
            (self.image, &settings.scan, &settings.network, &settings.pilot_training, settings.filter_steps);
        context.once(&stage, &depends, |context| {
            let scan = problem.pilot_scan()?;
            prior::filters(&view, &scan, problem.noise_variance, settings.filter_steps, &stage, context)
        })
    }

    /// The prior with a variance and a lengthscale for each block of filters.
    ///
    /// # Errors
    /// As [`Self::hyperparameters`].
    pub(super) fn filters<'a>(
        &mut self,
        tangent: &'a ImageTangent<'a, f32>,
        view: &View,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Root<'a>> {
        if let Some(stored) = &self.filters {
            return Ok(stored.clone());
        }
        let root = prior::filter_root(tangent, view, &self.hyperparameters(context)?)?;
        let (root, stored) = self.stored(root, (tangent, view), stage, context)?;
        self.filters = stored;
        Ok(root)
    }

    /// A root of small images stored, any other as it is: of a view's tangent.
    fn stored<'a>(
        &self,
        root: PriorRoot<'a, f32>,
        (tangent, view): (&ImageTangent<'_, f32>, &View),
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<MaybeStored<'a>> {
        if root.shape().0 > self.settings.design.stored_pixels {
            return Ok((Rc::new(root), None));
        }
        let jacobian = view.jacobian(tangent, stage, context)?;
        let stored = Rc::new(prior::stored(jacobian.as_ref(), root.prior(), stage, context)?);
        Ok((stored.clone(), Some(stored)))
    }
}
