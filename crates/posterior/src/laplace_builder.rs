//! Error bars for trained networks in a few lines.

use crate::arrays::{ArraysError, Inputs, Labels};
use posterior_data::ReadOptions;
use posterior_laplace::{Approximation, Weights};
use posterior_models::Model;
use posterior_models::laplace::{
    Arrays, CurvatureChoice, InMemory, LaplaceRequest, LikelihoodKind, ModelData, NetworkSource, Networks,
};
use posterior_models::{ModelError, Predictive};
use posterior_networks::{Network, NetworkError, Precision};
use posterior_optim::Signal;
use std::path::{Path, PathBuf};

/// Linearised Laplace for a trained network: [`Laplace::of`].
#[derive(Clone, Copy, Debug)]
pub struct Laplace;

/// A trained network: the path of a file (ONNX, or safetensors with its architecture), or one in memory.
#[derive(Clone, Debug)]
pub struct Trained(Result<Place, NetworkError>);

#[derive(Clone, Debug)]
enum Place {
    File(PathBuf),
    Memory(Network<f64>),
}

impl From<&str> for Trained {
    fn from(path: &str) -> Self {
        Self(Ok(Place::File(path.into())))
    }
}

impl From<&Path> for Trained {
    fn from(path: &Path) -> Self {
        Self(Ok(Place::File(path.into())))
    }
}

impl From<PathBuf> for Trained {
    fn from(path: PathBuf) -> Self {
        Self(Ok(Place::File(path)))
    }
}

impl<T: Precision> From<&Network<T>> for Trained {
    fn from(network: &Network<T>) -> Self {
        Self(network.cast().map(Place::Memory))
    }
}

/// Why a network could not be given error bars, or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorBarsError {
    /// Inputs or targets.
    #[error(transparent)]
    Arrays(#[from] ArraysError),
    /// The fit, or the model.
    #[error(transparent)]
    Model(Box<ModelError>),
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl From<ModelError> for ErrorBarsError {
    fn from(error: ModelError) -> Self {
        Self::Model(Box::new(error))
    }
}

impl Laplace {
    /// Error bars for a trained network; what its outputs mean is said next.
    pub fn of(network: impl Into<Trained>) -> Likelihoods {
        Likelihoods { network: network.into() }
    }
}

/// A network whose outputs have no meaning yet.
#[derive(Clone, Debug)]
pub struct Likelihoods {
    network: Trained,
}

impl Likelihoods {
    /// Outputs are logits of classes (a softmax at the end is taken off).
    pub fn categorical(self) -> LaplaceBuilder {
        self.with(LikelihoodKind::Categorical)
    }

    /// Outputs are means under additive noise, whose variance is learned.
    pub fn gaussian(self) -> LaplaceBuilder {
        self.with(LikelihoodKind::Gaussian)
    }

    /// Outputs are logits of events, each on its own (a sigmoid at the end is taken off).
    pub fn bernoulli(self) -> LaplaceBuilder {
        self.with(LikelihoodKind::Bernoulli)
    }

    /// Outputs are logarithms of rates of counts.
    pub fn poisson(self) -> LaplaceBuilder {
        self.with(LikelihoodKind::Poisson)
    }

    /// Outputs are means, then logarithms of noise variances.
    pub fn heteroscedastic(self) -> LaplaceBuilder {
        self.with(LikelihoodKind::Heteroscedastic)
    }

    fn with(self, likelihood: LikelihoodKind) -> LaplaceBuilder {
        let none: [PathBuf; 0] = [];
        let mut request = LaplaceRequest::new("", none.clone(), none, likelihood);
        request.curvature = CurvatureChoice::Auto;
        LaplaceBuilder { network: self.network, unseen: None, request }
    }
}

/// What a posterior is to be. The default is that of `posterior fit laplace`: curvatures that suit network and data are compared, on examples that the network has not seen where some
/// are known ([`Self::unseen`], or set aside by `posterior train` from the same files), else by the evidence, and the best is kept.
#[derive(Clone, Debug)]
pub struct LaplaceBuilder {
    network: Trained,
    unseen: Option<Arrays>,
    request: LaplaceRequest,
}

impl LaplaceBuilder {
    /// One curvature instead of a comparison, of [all weights](Self::weights) unless told otherwise.
    pub fn curvature(mut self, curvature: Approximation) -> Self {
        self.request.curvature = CurvatureChoice::Options;
        self.request.options.approximation = curvature;
        self
    }

    /// The uncertain weights, with one curvature (Kronecker-factored unless told otherwise) instead of a comparison.
    pub fn weights(mut self, weights: Weights) -> Self {
        self.request.curvature = CurvatureChoice::Options;
        self.request.options.weights = weights;
        self
    }

    /// Examples that the network has **not** been trained on, by whose score curvatures are compared; most of them standing among the examples of the fit is an error of the fit.
    ///
    /// # Errors
    /// Rows of different lengths.
    pub fn unseen<X: Inputs + ?Sized, Y: Labels + ?Sized>(
        mut self,
        x: &X,
        y: &Y,
    ) -> Result<Self, ErrorBarsError> {
        self.unseen = Some(arrays(x, y)?);
        Ok(self)
    }

    /// Everything else that a fit can be told. Network and data are those given here.
    pub fn request_mut(&mut self) -> &mut LaplaceRequest {
        &mut self.request
    }

    /// Fits to the examples that the network was trained on: n inputs of its input's size, and n classes (from 0), numbers or rows of numbers. Memory and cost: as
    /// [`Model::fit_laplace`].
    ///
    /// # Errors
    /// Inputs and targets that do not fit network and likelihood, numbers that are not finite, and those of [`Model::fit_laplace`].
    pub fn fit<X: Inputs + ?Sized, Y: Labels + ?Sized>(
        self,
        x: &X,
        y: &Y,
    ) -> Result<FittedLaplace, ErrorBarsError> {
        let data = Some(arrays(x, y)?);
        self.fitted(data)
    }

    /// Fits to files: a table whose target is [named](posterior_models::laplace::DataSource::selection), or arrays or images with files of labels.
    ///
    /// # Errors
    /// Those of reading the files and of [`Model::fit_laplace`].
    pub fn fit_files<P: Into<PathBuf>>(
        mut self,
        data: impl IntoIterator<Item = P>,
        labels: impl IntoIterator<Item = P>,
    ) -> Result<FittedLaplace, ErrorBarsError> {
        self.request.data.data = data.into_iter().map(Into::into).collect();
        self.request.data.labels = labels.into_iter().map(Into::into).collect();
        self.fitted(None)
    }

    fn fitted(self, data: Option<Arrays>) -> Result<FittedLaplace, ErrorBarsError> {
        let mut request = self.request;
        let network = match self.network.0? {
            Place::Memory(network) => Some(network),
            Place::File(path) => {
                request.network = NetworkSource::file(path);
                None
            }
        };
        let memory = InMemory { network, data, unseen: self.unseen };
        let go_on = &mut |_, _, _| Signal::Continue;
        Ok(FittedLaplace { model: Model::fit_laplace_with(&request, &memory, &mut |_| (), go_on)? })
    }
}

/// Examples and targets as the model takes them.
fn arrays<X: Inputs + ?Sized, Y: Labels + ?Sized>(x: &X, y: &Y) -> Result<Arrays, ArraysError> {
    Ok(Arrays { inputs: x.to_array()?, targets: y.to_numbers()? })
}

/// A trained network with error bars.
pub struct FittedLaplace {
    model: Model,
}

impl FittedLaplace {
    /// Opens a saved model.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ErrorBarsError> {
        let own = Self { model: Model::load(path.as_ref()).map_err(ModelError::from)? };
        own.networks().map(|_| ())?;
        Ok(own)
    }

    /// The model: what was found and chosen, its file, scores.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Predictions of m inputs: probabilities of classes or events, or means and variances of numbers; and the network's outputs with their deviations.
    ///
    /// # Errors
    /// Inputs of another size or of another kind of numbers than those of the fit, numbers that are not finite.
    pub fn predict<X: Inputs + ?Sized>(&self, x: &X) -> Result<Predictive, ErrorBarsError> {
        let inputs = x.to_array().map_err(ErrorBarsError::from)?;
        self.answer(&ModelData::new("the inputs", inputs, None))
    }

    /// The same for files of the kind that the model was fitted to.
    ///
    /// # Errors
    /// Those of reading the files, and of [`Self::predict`].
    pub fn predict_files<P: Into<PathBuf>>(
        &self,
        data: impl IntoIterator<Item = P>,
    ) -> Result<Predictive, ErrorBarsError> {
        let files: Vec<PathBuf> = data.into_iter().map(Into::into).collect();
        self.answer(&self.networks()?.read(&files, &[], false, &ReadOptions::for_arrays())?)
    }

    fn networks(&self) -> Result<Networks<'_>, ErrorBarsError> {
        let problem = || ModelError::Request("the model is no network".into());
        Ok(self.model.networks().ok_or_else(problem)?)
    }

    /// Refuses numbers of another kind, as `posterior predict` does; [`Self::model`] predicts them all the same.
    fn answer(&self, data: &ModelData) -> Result<Predictive, ErrorBarsError> {
        self.model.check_inputs(data, false)?;
        Ok(self.networks()?.predict(data, None)?)
    }
}
