//! What features of a kernel are made of.

use super::categories::CategoryFeatures;
use super::law::SpectralLaw;
use crate::Warp;

/// The most products that a product of sums is multiplied out to.
const MOST_TERMS: usize = 64;

/// How to make random features of a kernel: its structure with its parameters of the moment.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureRecipe {
    /// Waves whose frequencies are sums of independent draws, one from each spectrum: one spectrum for a stationary kernel, several
    /// for a product of them.
    Waves {
        /// The spectra.
        spectra: Vec<Spectrum>,
        /// Categories whose covariances the waves are multiplied by; mostly none.
        categories: Vec<CategoryFeatures>,
    },
    /// Roots of the covariances of categories, multiplied: exact.
    Categories(Vec<CategoryFeatures>),
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
    /// Features of warped columns.
    Warped(Warp, Box<FeatureRecipe>),
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
    /// None: a frequency has all columns. Some(q): it has q of them by chance, independent of one another, for a sum of products of q kernels of one column each.
    pub support: Option<usize>,
    /// Angular frequencies that are added to what is drawn, each with a sign by chance: one for each column, or none at all.
    pub means: Vec<f64>,
}

impl Spectrum {
    /// Of all columns, around 0.
    pub fn new(columns: Vec<usize>, lengthscales: Vec<f64>, law: SpectralLaw) -> Self {
        Self { columns, lengthscales, law, support: None, means: Vec::new() }
    }
}

/// What is wrong when features are asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FeatureError {
    /// No random features of this kernel are known.
    #[error(
        "there are no random features for the {kernel} kernel; they exist for se, matern12, matern32, matern52, rq, spectral_mixture, additive, categorical, their products, \
         linear, constant, tanimoto, and sums, multiples and warps of these: use one of those, or a method without prior samples"
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
        "there are no random features for a product with the {kernel} kernel; only stationary kernels (se, matern, rq, spectral_mixture, additive), categorical ones, constants and sums of these multiply; a warp goes around the whole product"
    )]
    Product {
        /// The factor.
        kernel: String,
    },
    /// A product of sums that would be a sum of too many products.
    #[error(
        "there are no random features for a product that is a sum of {terms} products; at most {most} are possible: multiply fewer sums"
    )]
    TooManyTerms {
        /// Products.
        terms: usize,
        /// The most.
        most: usize,
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

/// A term of a sum of recipes that is no sum, multiple or warp itself.
pub(super) struct PlainTerm<'a> {
    /// What its kernel is multiplied by.
    pub(super) variance: f64,
    /// Warps of its points, the first one first.
    pub(super) warps: Vec<&'a Warp>,
    /// The term.
    pub(super) recipe: &'a FeatureRecipe,
}

impl FeatureRecipe {
    /// The product of recipes, where there is one: waves with waves and categories, constants, and sums of these term by term.
    pub(crate) fn product(factors: Vec<Self>) -> Result<Self, FeatureError> {
        let mut products = vec![(1.0, Vec::new(), Vec::new())];
        for factor in &factors {
            let terms = factor.terms();
            let count = products.len() * terms.len();
            if count > MOST_TERMS {
                return Err(FeatureError::TooManyTerms { terms: count, most: MOST_TERMS });
            }
            let mut more = Vec::with_capacity(count);
            for (variance, spectra, categories) in products {
                for PlainTerm { variance: own, warps, recipe } in &terms {
                    if !warps.is_empty() {
                        return Err(FeatureError::Product { kernel: "warp".into() });
                    }
                    let (mut spectra, mut categories): (Vec<Spectrum>, Vec<CategoryFeatures>) =
                        (spectra.clone(), categories.clone());
                    match recipe {
                        Self::Waves { spectra: waves, categories: own } => {
                            spectra.extend_from_slice(waves);
                            categories.extend_from_slice(own);
                        }
                        Self::Categories(own) => categories.extend_from_slice(own),
                        Self::Constant => {}
                        other => return Err(FeatureError::Product { kernel: other.title().into() }),
                    }
                    more.push((variance * own, spectra, categories));
                }
            }
            products = more;
        }
        let mut terms: Vec<Self> = products
            .into_iter()
            .map(|(variance, spectra, categories)| {
                let inner = match (spectra.is_empty(), categories.is_empty()) {
                    (true, true) => Self::Constant,
                    (true, false) => Self::Categories(categories),
                    _ => Self::Waves { spectra, categories },
                };
                Self::Scaled(variance, Box::new(inner))
            })
            .collect();
        Ok(if terms.len() == 1 { terms.remove(0) } else { Self::Sum(terms) })
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Waves { .. } => "stationary",
            Self::Categories(_) => "categorical",
            Self::Linear { .. } => "linear",
            Self::Constant => "constant",
            Self::Hashes { .. } => "tanimoto",
            Self::Sum(_) => "sum",
            Self::Scaled(_, inner) => inner.title(),
            Self::Warped(..) => "warp",
        }
    }

    /// The terms of the sum that it is.
    pub(super) fn terms(&self) -> Vec<PlainTerm<'_>> {
        match self {
            Self::Sum(parts) => parts.iter().flat_map(Self::terms).collect(),
            Self::Scaled(variance, inner) => {
                let mut terms = inner.terms();
                terms.iter_mut().for_each(|term| term.variance *= variance);
                terms
            }
            Self::Warped(warp, inner) => {
                let mut terms = inner.terms();
                terms.iter_mut().for_each(|term| term.warps.insert(0, warp));
                terms
            }
            recipe => vec![PlainTerm { variance: 1.0, warps: Vec::new(), recipe }],
        }
    }

    /// Columns that it looks at.
    pub(super) fn columns(&self) -> Vec<usize> {
        match self {
            Self::Waves { spectra, categories } => {
                let of_categories = categories.iter().flat_map(|c| &c.columns);
                spectra.iter().flat_map(|s| &s.columns).chain(of_categories).copied().collect()
            }
            Self::Categories(categories) => categories.iter().flat_map(|c| c.columns.clone()).collect(),
            Self::Linear { columns, .. } | Self::Hashes { columns } => columns.clone(),
            Self::Constant => Vec::new(),
            Self::Sum(parts) => parts.iter().flat_map(Self::columns).collect(),
            Self::Scaled(_, inner) => inner.columns(),
            Self::Warped(warp, inner) => [inner.columns(), warp.columns().to_vec()].concat(),
        }
    }
}
