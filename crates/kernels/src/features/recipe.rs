//! What features of a kernel are made of.

/// How to make random features of a kernel: its structure with its parameters of the moment.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureRecipe {
    /// Waves whose frequencies are sums of independent draws, one from each spectrum: one spectrum for a stationary kernel, several
    /// for a product of them.
    Waves(Vec<Spectrum>),
    /// The columns themselves, times the roots of their variances: exact.
    Linear {
        /// Columns, counted from 0.
        columns: Vec<usize>,
        /// One variance for each.
        variances: Vec<f64>,
    },
    /// One feature that is 1: exact.
    Constant,
    /// Signs of consistent weighted samples, for the Tanimoto kernel of the columns.
    Hashes {
        /// Columns, counted from 0.
        columns: Vec<usize>,
    },
    /// The features of the parts, one after another: a sum of kernels.
    Sum(Vec<FeatureRecipe>),
    /// Features times the root of a variance.
    Scaled(f64, Box<FeatureRecipe>),
}

/// The law of the frequencies of a stationary kernel of amplitude 1 (its normalised spectral density, by Bochner's theorem).
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    /// Columns, counted from 0.
    pub columns: Vec<usize>,
    /// One lengthscale for each.
    pub lengthscales: Vec<f64>,
    /// The law at lengthscale 1.
    pub law: SpectralLaw,
}

/// Laws of frequencies at lengthscale 1. All are normal vectors times one random factor for all coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpectralLaw {
    /// Standard normal: the squared exponential.
    Normal,
    /// Multivariate t with 2ν degrees of freedom: the Matérn kernel of smoothness ν. `ω = g √(2ν/u)`, `u ~ χ²_2ν`.
    StudentT {
        /// 2ν.
        degrees: u32,
    },
    /// `ω = g √τ` with τ of the gamma law of this shape and mean 1: the rational quadratic.
    GammaMixture {
        /// The kernel's alpha.
        shape: f64,
    },
}

/// What is wrong when features are asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FeatureError {
    /// No random features of this kernel are known.
    #[error(
        "there are no random features for the {kernel} kernel; they exist for se, matern12, matern32, matern52, rq and their products, linear, \
         constant and tanimoto, and for sums and multiples of these: use one of those, or a method without prior samples"
    )]
    NoFeatures {
        /// The kernel.
        kernel: String,
    },
    /// Independent noise has no function.
    #[error(
        "the white kernel is independent noise, no function that can be drawn and evaluated anywhere: remove it from the kernel and let the likelihood's noise stand for it"
    )]
    Noise,
    /// Products of waves with something else.
    #[error(
        "there are no random features for a product with the {kernel} kernel; only stationary kernels (se, matern, rq) and constants multiply"
    )]
    Product {
        /// The factor.
        kernel: String,
    },
    /// A kernel of another structure.
    #[error("these features were drawn for a kernel of another structure; draw new ones")]
    Structure,
    /// A column that the points lack.
    #[error("the kernel looks at column {column}, but points have {dimension} columns")]
    Column {
        /// The column, counted from 0.
        column: usize,
        /// How many there are.
        dimension: usize,
    },
    /// No features asked for, or more than memory could hold.
    #[error("{count} features were asked for; between 1 and {most} are possible")]
    Count {
        /// The number.
        count: usize,
        /// The most.
        most: usize,
    },
    /// Functions made of hashes are constant with jumps.
    #[error(
        "functions drawn from the Tanimoto kernel by hashing are piecewise constant and have no gradient in the inputs"
    )]
    NotDifferentiable,
}

impl FeatureRecipe {
    /// The product of recipes, where there is one: waves with waves, and constants.
    pub(crate) fn product(factors: Vec<Self>) -> Result<Self, FeatureError> {
        let (mut variance, mut spectra) = (1.0, Vec::new());
        for factor in factors {
            let mut factor = factor;
            while let Self::Scaled(v, inner) = factor {
                variance *= v;
                factor = *inner;
            }
            match factor {
                Self::Waves(mut more) => spectra.append(&mut more),
                Self::Constant => {}
                other => return Err(FeatureError::Product { kernel: other.title().into() }),
            }
        }
        let inner = if spectra.is_empty() { Self::Constant } else { Self::Waves(spectra) };
        Ok(Self::Scaled(variance, Box::new(inner)))
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Waves(_) => "stationary",
            Self::Linear { .. } => "linear",
            Self::Constant => "constant",
            Self::Hashes { .. } => "tanimoto",
            Self::Sum(_) => "sum",
            Self::Scaled(_, inner) => inner.title(),
        }
    }

    /// The terms of the sum that it is, with the roots of their variances.
    pub(super) fn terms(&self) -> Vec<(f64, &Self)> {
        match self {
            Self::Sum(parts) => parts.iter().flat_map(Self::terms).collect(),
            Self::Scaled(variance, inner) => {
                inner.terms().into_iter().map(|(root, term)| (variance.sqrt() * root, term)).collect()
            }
            other => vec![(1.0, other)],
        }
    }

    /// Columns that it looks at.
    pub(super) fn columns(&self) -> Vec<usize> {
        match self {
            Self::Waves(spectra) => spectra.iter().flat_map(|s| s.columns.iter().copied()).collect(),
            Self::Linear { columns, .. } | Self::Hashes { columns } => columns.clone(),
            Self::Constant => Vec::new(),
            Self::Sum(parts) => parts.iter().flat_map(Self::columns).collect(),
            Self::Scaled(_, inner) => inner.columns(),
        }
    }
}
