//! The **text form** of kernels: `"matern32(ard) * periodic(x3) + linear"`.
//!
//! ```text
//! kernel   = "auto" | sum
//! sum      = product { "+" product }
//! product  = factor { "*" factor }
//! factor   = "(" sum ")" | "warp" "(" sum ")" | name [ "(" argument { "," argument } ")" ]
//!        | name [ JSON ], a kernel that the program has registered
//! argument = "ard" | BASE | [ "activation" "=" ] ACTIVATION | [ "columns" "=" ] COLUMN | SETTING "=" ( NUMBER | "true" | "false" ) | LAYER
//! BASE     = the name of a stationary kernel, for `additive`
//! LAYER    = "shape" "=" SIZES | ( "conv" | "conv-same" | "pool" ) "=" SIZES [ "/" SIZES ] | ACTIVATION | "dense" | "flatten"
//! SIZES    = NUMBER { "x" NUMBER }
//! ```
//!
//! | name | settings (initial values; all are learned except `degree`, `depth`, `rank`, `order`, `components`, `seed`, `slope` and `readout`) |
//! |---|---|
//! | `se`, `rbf`, `squared_exponential` | `lengthscale`, `variance` |
//! | `matern12`, `matern32`, `matern52` | `lengthscale`, `variance` |
//! | `rq`, `rational_quadratic` | `lengthscale`, `alpha`, `variance` |
//! | `periodic` | `lengthscale`, `period`, `variance` |
//! | `linear`, `constant`, `white`, `tanimoto` (of counts: columns without negative numbers, not standardised) | `variance` |
//! | `polynomial` | `degree` (2; a positive number up to 16, and a whole one unless all inner products are positive), `offset`, `variance` |
//! | `categorical` | `rank` (none: one `lengthscale` ℓ, all pairs of categories have the correlation `exp(-1/ℓ)`; a whole number: low rank plus a diagonal), `lengthscale`, `variance` |
//! | `additive` | the name of a stationary kernel (`additive(matern32, order=2)`), `order` (1; up to the number of columns), `lengthscale`, `alpha` (of `rq`), `variance` (of all orders together) |
//! | `spectral_mixture` | `components` (4), `seed` (0; of the frequencies that it begins with), `variance` (of all components together) |
//! | `nngp` | `depth` (1; hidden layers, up to 64), `activation` (`relu`, `leaky-relu`, `erf` or `sine`; the word alone will do), `slope` (0.01; of `leaky-relu`), `weight`, `bias` (standard deviations; one of each is learned for every layer; `bias=0` stays 0), `readout` (`true`), without it `variance` |
//! | `nngp-conv` | `shape` (of images: channels, height, width; two numbers for one channel) and layers in their order: `conv` (a filter's size, and perhaps its stride), `conv-same` (with zeros around the image), `pool` (means over windows, and perhaps their stride; they do not overlap unless it is set), activations as of `nngp`, `dense`; then `slope`, `weight`, `bias`, `readout` and `variance` as of `nngp` |
//!
//! `nngp(depth=3, relu)` is a network of three infinitely wide layers and a read-out layer ([`crate::infinite`]); `nngp(depth=1, erf, readout=false)` ends with its
//! activation. `nngp-conv(shape=28x28, conv=3, relu, pool=2, conv=3, relu, pool=2, dense, relu)` is a convolutional network on rows of 784 pixels, with a read-out layer
//! ([`crate::infinite::convolution`]); before its first `dense`, or else at the end, it is flattened (the word `flatten` may stand there).
//!
//! `ard` gives each column its own lengthscale (for `linear`: its own variance). Column names restrict a kernel to those
//! columns; names with other characters than letters, digits, `_`, `.` and `-` stand in backquotes, as do those of columns that are called `ard` or, for `nngp` and `nngp-conv`, as an
//! activation or a layer is. Unless set, positive
//! parameters start at 1; they are learned on the logarithmic scale.
//!
//! **Categories.** `categorical(color)` looks at all features `color=...` that the categories of the column `color` were turned into ([`crate::categorical`]). These belong to it alone: kernels
//! that name no columns look at all others, so that `matern32(ard) * categorical(color)` has one lengthscale for each column of numbers.
//!
//! **`auto`** is `matern32(ard)` where no column has categories. Else it is `matern32(ard) * categorical(a) * categorical(b) + categorical(a) + categorical(b)` with all columns that have: each of them shifts the function by a
//! constant, and bends it as far as the evidence says ([`KernelExpression::of_table`]).
//!
//! **Warps.** `warp(KERNEL)` is any kernel or sum or product of kernels behind a monotone curve for each column of numbers that it looks at ([`crate::Warp`]).
//!
//! **Scaling.** Two amplitudes in a product cannot be told apart, so there is one where one can be learned:
//!
//! 1. Every term of a sum carries exactly one `variance`, called after the term; so does a kernel that stands alone.
//! 2. Factors of a product have amplitude 1. `variance=` on a factor sets where the product's variance starts.
//! 3. `linear(ard)` has one variance for each column and no other, `additive` one for each order, `spectral_mixture` one `weight` for each component; the read-out layer of `nngp` and `nngp-conv` has the amplitude in its `weight` and `bias`, so that with it there is no
//!    variance.
//! 4. A product with a sum, `linear(ard)`, `additive`, `spectral_mixture` or a network with a read-out layer among its factors takes its variances from there and has no further one.
//!    `variance=` on another factor would have nothing to set and is an error.
//!
//! **Kernels of the caller's own.** A kernel that the program has [registered](crate::register) stands in a text by its name, with its settings as a JSON object behind it where it has some: `cauchy{"degree":2}`. It
//! looks at all columns, and stands once in an expression.
//!
//! **Names.** `matern32.lengthscale`, `matern32.variance`; the second Matérn kernel of an expression is `matern32[2]`; a
//! product's variance is that of its factors joined, `matern32*periodic.variance`.

mod additive;
mod automatic;
mod build;
mod categories;
mod images;
mod network;
mod object;
mod parse;

pub(crate) use object::check_name;
pub use parse::KernelTextError;

use crate::{Kernel, KernelObject};
use posterior_linalg::{PerPrecision, Real, compiled_here};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A parsed kernel: what it is made of, not yet tied to a table. Two are equal when they mean the same, however they are
/// spaced and whichever of a kernel's names they use.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KernelExpression {
    node: Node,
    source: String,
}

#[derive(Clone, Debug)]
enum Node {
    Sum(Vec<Node>),
    Product(Vec<Node>),
    /// A kernel of warped columns, and where it stands in the source.
    Warp(Box<Node>, usize),
    /// A kernel of the caller's own.
    Object(object::Object),
    Leaf(Leaf),
}

#[derive(Clone, Debug)]
struct Leaf {
    kind: Kind,
    /// The byte at which it stands in the source.
    position: usize,
    ard: bool,
    /// The kernel of one column that `additive` is made of.
    base: Option<Kind>,
    /// What stands between the layers of `nngp`; its name.
    activation: Option<&'static str>,
    /// What `nngp-conv` is made of.
    images: images::Images,
    /// Names with the byte at which each stands in the source.
    columns: Vec<(String, usize)>,
    settings: Vec<Setting>,
}

#[derive(Clone, Debug)]
struct Setting {
    name: &'static str,
    /// 1 and 0 stand for `true` and `false`.
    value: f64,
    /// The byte at which it stands in the source.
    position: usize,
}

impl Node {
    /// Whether a table's columns are to say what it is: a sum of nothing.
    fn is_automatic(&self) -> bool {
        matches!(self, Self::Sum(parts) if parts.is_empty())
    }

    /// All kernels that are named in it, as they stand in the text.
    fn leaves(&self) -> Vec<&Leaf> {
        match self {
            Self::Sum(parts) | Self::Product(parts) => parts.iter().flat_map(Self::leaves).collect(),
            Self::Warp(inner, _) => inner.leaves(),
            Self::Object(_) => Vec::new(),
            Self::Leaf(leaf) => vec![leaf],
        }
    }

    /// Whether it has variances of its own even as a factor (rules 3 and 4 above).
    fn has_amplitude(&self) -> bool {
        match self {
            Self::Sum(_) => true,
            Self::Product(parts) => parts.iter().any(Self::has_amplitude),
            Self::Warp(inner, _) => inner.has_amplitude(),
            Self::Object(object) => object.has_amplitude(),
            Self::Leaf(leaf) => leaf.has_own_variances(),
        }
    }

    /// The caller's own kernels in it, as they stand in the text.
    fn objects(&self) -> Vec<&object::Object> {
        match self {
            Self::Sum(parts) | Self::Product(parts) => parts.iter().flat_map(Self::objects).collect(),
            Self::Warp(inner, _) => inner.objects(),
            Self::Object(object) => vec![object],
            Self::Leaf(_) => Vec::new(),
        }
    }

    /// The `variance` settings of a product's factors that have no variances of their own.
    fn factor_variances(&self) -> Vec<&Setting> {
        match self {
            Self::Sum(_) | Self::Object(_) => Vec::new(),
            Self::Product(parts) => parts.iter().flat_map(Self::factor_variances).collect(),
            Self::Warp(inner, _) => inner.factor_variances(),
            Self::Leaf(leaf) if leaf.has_own_variances() => Vec::new(),
            Self::Leaf(leaf) => leaf.setting("variance").into_iter().collect(),
        }
    }
}

impl Leaf {
    /// What stands between its parentheses, in one order: settings that are set stay in theirs, only the depth comes first.
    fn arguments(&self) -> Vec<String> {
        let (first, settings): (Vec<&Setting>, Vec<&Setting>) =
            self.settings.iter().partition(|s| s.name == "depth");
        let mut out: Vec<String> = self.base.map(|base| base.names()[0].to_string()).into_iter().collect();
        out.extend(self.ard.then(|| "ard".to_string()));
        out.extend(first.into_iter().map(Setting::text));
        out.extend(self.activation.map(str::to_string));
        out.extend(images::arguments(self));
        out.extend(self.columns.iter().map(|(name, _)| parse::quoted(self.kind, name)));
        out.extend(settings.into_iter().map(Setting::text));
        out
    }

    fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|s| s.name == name)
    }

    fn has_own_variances(&self) -> bool {
        match self.kind {
            Kind::Linear => self.ard,
            Kind::Additive | Kind::SpectralMixture => true,
            Kind::Nngp | Kind::NngpConv => network::has_readout(self),
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    SquaredExponential,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    Periodic,
    Linear,
    Polynomial,
    Constant,
    White,
    Tanimoto,
    Categorical,
    Additive,
    SpectralMixture,
    Nngp,
    NngpConv,
}

impl Kind {
    const ALL: [Self; 16] = [
        Self::SquaredExponential,
        Self::Matern12,
        Self::Matern32,
        Self::Matern52,
        Self::RationalQuadratic,
        Self::Periodic,
        Self::Linear,
        Self::Polynomial,
        Self::Constant,
        Self::White,
        Self::Tanimoto,
        Self::Categorical,
        Self::Additive,
        Self::SpectralMixture,
        Self::Nngp,
        Self::NngpConv,
    ];

    /// Its names, the one that parameters are called by first.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::SquaredExponential => &["se", "rbf", "squared_exponential"],
            Self::Matern12 => &["matern12"],
            Self::Matern32 => &["matern32"],
            Self::Matern52 => &["matern52"],
            Self::RationalQuadratic => &["rq", "rational_quadratic"],
            Self::Periodic => &["periodic"],
            Self::Linear => &["linear"],
            Self::Polynomial => &["polynomial"],
            Self::Constant => &["constant"],
            Self::White => &["white"],
            Self::Tanimoto => &["tanimoto"],
            Self::Categorical => &["categorical"],
            Self::Additive => &["additive"],
            Self::SpectralMixture => &["spectral_mixture"],
            Self::Nngp => &["nngp"],
            Self::NngpConv => &["nngp-conv"],
        }
    }

    /// The kernel of this name, in letters of any size.
    fn named(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        Self::ALL.into_iter().find(|kind| kind.names().contains(&lower.as_str()))
    }

    /// Settings that it takes.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::RationalQuadratic => &["lengthscale", "alpha", "variance"],
            Self::Periodic => &["lengthscale", "period", "variance"],
            Self::Linear | Self::Constant | Self::White | Self::Tanimoto => &["variance"],
            Self::Polynomial => &["degree", "offset", "variance"],
            Self::Categorical => &["rank", "lengthscale", "variance"],
            Self::Additive => &["order", "lengthscale", "alpha", "variance"],
            Self::SpectralMixture => &["components", "seed", "variance"],
            Self::Nngp => &["depth", "activation", "slope", "weight", "bias", "readout", "variance"],
            Self::NngpConv => {
                &["shape", "conv", "conv-same", "pool", "slope", "weight", "bias", "readout", "variance"]
            }
            _ => &["lengthscale", "variance"],
        }
    }

    /// Whether `ard` makes sense.
    fn takes_ard(self) -> bool {
        !matches!(
            self,
            Self::Polynomial
                | Self::Constant
                | Self::White
                | Self::Tanimoto
                | Self::Categorical
                | Self::SpectralMixture
                | Self::Nngp
                | Self::NngpConv
        )
    }

    /// Whether a warp changes what it sees: numbers, neither categories nor counts.
    fn is_warped(self) -> bool {
        self.takes_columns() && !matches!(self, Self::Categorical | Self::Tanimoto)
    }

    /// Whether it looks at the inputs at all.
    fn takes_columns(self) -> bool {
        !matches!(self, Self::Constant | Self::White)
    }
}

impl KernelExpression {
    /// A kernel of the caller's own, whatever the columns are called.
    ///
    /// # Errors
    /// [`KernelTextError`] for a name that another kernel has, and for settings that no text can hold: others than a JSON object, or too long.
    pub fn object(object: Arc<dyn KernelObject>) -> Result<Self, KernelTextError> {
        let node = Node::Object(object::Object::of(object)?);
        let source = node.to_string();
        parse::check_length(&source)?;
        Ok(Self { node, source })
    }

    /// The first of its kernels that model files cannot hold, since no reader is [registered](crate::register) under its name.
    pub fn unregistered(&self) -> Option<&str> {
        self.node.objects().into_iter().map(object::Object::name).find(|name| !crate::is_registered(name))
    }

    /// What `auto` means for a table with these feature columns; another expression as it is. The text of so many columns of categories that it is too long for a kernel's is `matern32(ard)`.
    pub fn of_table(&self, features: &[String]) -> Cow<'_, Self> {
        if !self.node.is_automatic() {
            return Cow::Borrowed(self);
        }
        let found = automatic::of_table(features).parse();
        Cow::Owned(found.or_else(|_| automatic::NUMBERS.parse()).unwrap_or_else(|_| self.clone()))
    }

    /// The kernel for a table with the given feature columns, in precision `T`.
    ///
    /// # Errors
    /// [`KernelTextError`] pointing at a column that the table lacks.
    pub fn build<T: Real>(&self, features: &[String]) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
        // Here, and nowhere else, is the code of all kernels compiled.
        fn root<T: Real>(
            mut builder: build::Builder<'_>,
            node: &Node,
        ) -> Result<Box<dyn Kernel<T>>, KernelTextError> {
            builder.root(node)
        }
        let own = self.of_table(features);
        let builder = build::Builder::new(features, &own.node, &own.source);
        compiled_here!(
            T: Real, PerPrecision; ['a, 'b] root, (builder: build::Builder<'a> = builder, node: &'b Node = &own.node)
                -> Result<Box<dyn Kernel<T>>, KernelTextError>
        )
    }

    /// What each kernel of [`Self::build`] is called and which feature columns it looks at, as they stand in the text.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn looks_at(&self, features: &[String]) -> Result<Vec<(String, Vec<usize>)>, KernelTextError> {
        let own = self.of_table(features);
        let mut builder = build::Builder::new(features, &own.node, &own.source);
        builder.root::<f64>(&own.node)?;
        Ok(builder.into_columns())
    }

    /// Indices of the feature columns that a kernel of counts (`tanimoto`) looks at, ascending; names that are no feature are left out,
    /// [`Self::build`] points at them.
    pub fn count_columns(&self, features: &[String]) -> Vec<usize> {
        build::counted(&self.of_table(features).node, features)
    }

    /// Indices of the feature columns that mean nothing in standard units, ascending: counts and categories.
    pub fn unscaled_columns(&self, features: &[String]) -> Vec<usize> {
        let mut out = self.count_columns(features);
        out.extend(self.category_columns(features));
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Indices of the feature columns that are categories of a `categorical` kernel, ascending: 0 and 1, which must stay so.
    pub fn category_columns(&self, features: &[String]) -> Vec<usize> {
        build::claimed(&self.of_table(features).node, features)
    }
}

impl FromStr for KernelExpression {
    type Err = KernelTextError;

    fn from_str(source: &str) -> Result<Self, KernelTextError> {
        Ok(Self { node: parse::parse(source)?, source: source.into() })
    }
}

impl PartialEq for KernelExpression {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for KernelExpression {}

impl TryFrom<String> for KernelExpression {
    type Error = KernelTextError;

    fn try_from(source: String) -> Result<Self, KernelTextError> {
        source.parse()
    }
}

impl From<KernelExpression> for String {
    fn from(expression: KernelExpression) -> Self {
        expression.to_string()
    }
}

impl fmt::Display for KernelExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Node], sign: &str| {
            for (i, part) in parts.iter().enumerate() {
                if i > 0 {
                    f.write_str(sign)?;
                }
                match part {
                    Node::Leaf(_) | Node::Object(_) | Node::Warp(..) => part.fmt(f)?,
                    Node::Product(_) if sign == " + " => part.fmt(f)?,
                    _ => write!(f, "({part})")?,
                }
            }
            Ok(())
        };
        match self {
            Self::Sum(parts) if parts.is_empty() => f.write_str(automatic::NAME),
            Self::Sum(parts) => joined(f, parts, " + "),
            Self::Product(parts) => joined(f, parts, " * "),
            Self::Warp(inner, _) => write!(f, "warp({inner})"),
            Self::Object(object) => object.fmt(f),
            Self::Leaf(leaf) => {
                f.write_str(leaf.kind.names()[0])?;
                let arguments = leaf.arguments();
                if arguments.is_empty() { Ok(()) } else { write!(f, "({})", arguments.join(", ")) }
            }
        }
    }
}

impl Setting {
    fn text(&self) -> String {
        match self.name {
            "readout" => format!("readout={}", self.value != 0.0),
            name => format!("{name}={}", shortest(self.value)),
        }
    }
}

/// The name of a kernel by what its parameters are called: `matern32` of `matern32[2]`.
pub fn kernel_name(label: &str) -> &str {
    label.split_once('[').map_or(label, |(name, _)| name)
}

/// Whether a kernel's parameter, by its name, is a distance between rows in standard units. A periodic kernel's lengthscale measures angles, and that of
/// categories their correlation.
pub fn is_distance(parameter: &str) -> bool {
    let others = ["periodic", "categorical"];
    parameter.ends_with(".lengthscale") && !others.iter().any(|name| parameter.starts_with(name))
}

/// Whether a kernel's parameter, by its name, is the variance of a stationary function: of one such kernel, or of a product of them. Linear functions and polynomials have no bound, and
/// constants are no scale of a function.
pub fn is_stationary_variance(parameter: &str) -> bool {
    let stationary = ["se", "matern12", "matern32", "matern52", "rq", "periodic", "categorical"];
    // A kernel of the caller's own is taken for stationary; what stands in parentheses is a warp.
    let own = |factor: &str| Kind::named(kernel_name(factor)).is_none() && !factor.contains('(');
    let bounded = |factor: &str| stationary.contains(&kernel_name(factor)) || own(factor);
    parameter.strip_suffix(".variance").is_some_and(|label| label != "sum" && label.split('*').all(bounded))
}

/// The shorter of the two ways to write a number exactly.
fn shortest(value: f64) -> String {
    let (plain, scientific) = (value.to_string(), format!("{value:e}"));
    if scientific.len() < plain.len() { scientific } else { plain }
}

#[cfg(test)]
mod tests;
