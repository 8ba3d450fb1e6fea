//! Error bars for trained networks in a few lines.

use crate::arrays::{ArraysError, Inputs, Labels};
use crate::control::Control;
use crate::error::Error;
use crate::fitted::Fitted;
use posterior_laplace::{Approximation, Stage, Weights};
use posterior_models::Model;
use posterior_models::laplace::{
    Arrays, CurvatureChoice, InMemory, LaplaceRequest, LikelihoodKind, NetworkSource,
};
use posterior_networks::{Network, NetworkError, Precision};
use posterior_optim::{CancelToken, Signal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        LaplaceBuilder { network: self.network, unseen: None, request, control: Control::default() }
    }
}

/// What a posterior is to be. The default is that of `posterior fit --network`: curvatures that suit network and data are compared, on examples that the network has not seen where some
/// are known ([`Self::unseen`], or set aside by `posterior train` from the same files), else by the evidence, and the best is kept.
#[derive(Clone, Debug)]
pub struct LaplaceBuilder {
    network: Trained,
    unseen: Option<Arrays>,
    request: LaplaceRequest,
    control: Control<OnProgress>,
}

/// Is told what a fit does, how much of it is done, and of how much.
type OnProgress = dyn Fn(Stage, usize, usize) -> Signal + Send + Sync;

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
    pub fn unseen<X: Inputs + ?Sized, Y: Labels + ?Sized>(mut self, x: &X, y: &Y) -> Result<Self, Error> {
        self.unseen = Some(arrays(x, y)?);
        Ok(self)
    }

    /// Is told what the fit does, how much of that is done, and of how much. [`Signal::Stop`] ends the fit with [`ModelError::Interrupted`](posterior_models::ModelError::Interrupted), or, where
    /// the stage under way can be cut short, with what was found by then.
    pub fn progress(
        mut self,
        observer: impl Fn(Stage, usize, usize) -> Signal + Send + Sync + 'static,
    ) -> Self {
        self.control.progress = Some(Arc::new(observer));
        self
    }

    /// Ends the fit with [`ModelError::Interrupted`](posterior_models::ModelError::Interrupted) once the token is cancelled, on any thread.
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.control.cancel = token.clone();
        self
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
    pub fn fit<X: Inputs + ?Sized, Y: Labels + ?Sized>(self, x: &X, y: &Y) -> Result<Fitted, Error> {
        let data = Some(arrays(x, y)?);
        self.fitted(data)
    }

    /// Fits to files: a table whose target is [named](posterior_models::laplace::DataSource::columns), or arrays or images with files of labels.
    ///
    /// # Errors
    /// Those of reading the files and of [`Model::fit_laplace`].
    pub fn fit_files<P: Into<PathBuf>>(
        mut self,
        data: impl IntoIterator<Item = P>,
        labels: impl IntoIterator<Item = P>,
    ) -> Result<Fitted, Error> {
        self.request.data.data = data.into_iter().map(Into::into).collect();
        self.request.data.labels = labels.into_iter().map(Into::into).collect();
        self.fitted(None)
    }

    fn fitted(self, data: Option<Arrays>) -> Result<Fitted, Error> {
        let mut request = self.request;
        let network = match self.network.0? {
            Place::Memory(network) => Some(network),
            Place::File(path) => {
                request.network = NetworkSource::file(path);
                None
            }
        };
        let memory = InMemory { network, data, unseen: self.unseen };
        let control = &self.control;
        let told = &mut |stage: Stage, done: usize, all: usize| {
            control.signal(|observer| observer(stage, done, all))
        };
        let model = control.heed(Model::fit_laplace_with(&request, &memory, &mut |_| (), told))?;
        Ok(Fitted::of(model))
    }
}

/// Examples and targets as the model takes them.
fn arrays<X: Inputs + ?Sized, Y: Labels + ?Sized>(x: &X, y: &Y) -> Result<Arrays, ArraysError> {
    Ok(Arrays { inputs: x.to_array()?, targets: y.to_numbers()? })
}
