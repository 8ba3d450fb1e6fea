//! Pictures that priors expect before anything is measured: total variation by Hamiltonian Monte Carlo, independent pixels, and the linearised network where the searches of the traces ended.

use super::figures::mosaic;
use super::roughness::LazyModel;
use super::traces::Trace;
use crate::kinds::prelude::*;
use posterior_linalg::operator::LinearOperator;
use posterior_report::Picture;
use posterior_tomography::linearised::{
    ConvolutionWeights, FilterPrior, ImageTangent, PriorRoot, WeightPrior,
};
use posterior_tomography::total_variation::{ChainOptions, TotalVariation, VariationPrior};
use rand_distr::{Distribution, StandardNormal};

/// The table `[roughness.draws]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct DrawSettings {
    /// Draws of each prior.
    samples: usize,
    /// Of which so many are shown.
    shown: usize,
    /// Weight of total variation, and the precision of its pixels by themselves.
    weight: f64,
    precision: f64,
    /// How its chain is run; as many draws as `samples`.
    #[serde(default)]
    chain: ChainOptions,
}

/// Draws of one prior.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Drawn {
    name: String,
    /// Those that are shown, in units of the root mean square of all.
    pictures: Vec<Vec<f64>>,
    /// Mean total variation per pixel, in the same units.
    variation: f64,
    /// Share of accepted trajectories of a chain.
    accepted: Option<f64>,
}

/// Names of what is beside the searches.
const OTHERS: [&str; 2] = ["total variation", "independent pixels"];

impl DrawSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=self.samples).contains(&self.shown) {
            return refused("[roughness.draws]: `shown` is from 1 to `samples`");
        }
        if !positive(self.weight) || !positive(self.precision) {
            return refused("[roughness.draws]: `weight` and `precision` are positive");
        }
        Ok(())
    }

    fn judged(&self, name: &str, all: &Mat<f64>, variation: &TotalVariation, accepted: Option<f64>) -> Drawn {
        let size = (all.squared_norm_l2() / all.nrows().max(1) as f64 / all.ncols().max(1) as f64).sqrt();
        let size = size.max(f64::MIN_POSITIVE);
        let draws: Vec<Vec<f64>> = all.col_iter().map(|c| c.iter().map(|v| v / size).collect()).collect();
        let rough = mean(draws.iter().map(|x| variation.value(x))) / all.nrows().max(1) as f64;
        let pictures = draws.into_iter().take(self.shown).collect();
        Drawn { name: name.into(), pictures, variation: rough, accepted }
    }
}

/// Draws of all priors; the linearised network's with the hyperparameters at which these searches ended.
///
/// # Errors
/// What fails or is interrupted.
pub(crate) fn run(
    settings: &DrawSettings,
    searches: &[Trace],
    stored: &LazyModel<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Drawn>> {
    let (learner, subject) = (stored.learner, stored.subject);
    let shape = learner.problem.shape();
    let variation = TotalVariation::sum(&shape)?;
    let streams = Streams::new(context.seed).child("experiment/tomography priors", 0);
    let depends = (learner.depends(), &subject.name, format!("{settings:?} {searches:?}"));
    context.once(&format!("{}: draws of priors", subject.name), &depends, |context| {
        let prior = VariationPrior::new(variation.clone(), settings.weight, settings.precision)?;
        let chain = ChainOptions { draws: settings.samples, seed: streams.seed(), ..settings.chain.clone() };
        let chain =
            prior.draw(&chain, &mut |done, all| context.tell("chain of total variation", done, all))?;
        let mut rng = streams.stream("draws");
        let mut white = |rows: usize| -> Mat<f64> {
            Mat::from_fn(rows, settings.samples, |_, _| StandardNormal.sample(&mut rng))
        };
        let pixels = variation.pixels();
        let mut out = vec![
            settings.judged(OTHERS[0], &chain.pictures, &variation, Some(chain.accepted)),
            settings.judged(OTHERS[1], &white(pixels), &variation, None),
        ];
        let network = stored.network();
        let weights = ConvolutionWeights::of(network.graph())?;
        let tangent = ImageTangent::new(network, learner.input(subject)?, weights.selection())?;
        for search in searches {
            let filters = FilterPrior::new(&weights, search.end().filters.clone())?;
            let root = PriorRoot::new(&tangent, WeightPrior::Filters(filters))?;
            let draws = root.multiply(white(root.shape().1).as_ref());
            out.push(settings.judged(&search.name, &draws, &variation, None));
        }
        Ok(out)
    })
}

/// Rows of draws.
pub(crate) fn figure(image: &str, shape: [usize; 2], all: &[Drawn]) -> Item {
    /// Root mean squares that are black and white.
    const RANGE: f64 = 2.5;
    let level = |v: &f64| 0.5 + 0.5 * v / RANGE;
    let rows: Vec<Vec<Vec<f64>>> =
        all.iter().map(|own| own.pictures.iter().map(|x| x.iter().map(level).collect()).collect()).collect();
    let names = all.iter().map(|own| own.name.as_str()).collect::<Vec<_>>().join(", ");
    let title = format!("{image}: pictures that priors expect");
    let caption = format!(
        "Rows from the top: {names}. Black and white are {RANGE} root mean squares below and above zero."
    );
    Item::Picture(Picture { title, image: mosaic(shape, &rows), caption })
}

/// How rough they are.
pub(crate) fn numbers(all: &[Drawn]) -> Value {
    let own = |d: &Drawn| json!({"variation": d.variation, "accepted": d.accepted.unwrap_or(1.0)});
    Value::Object(all.iter().map(|d| (d.name.clone(), own(d))).collect::<Map<String, Value>>())
}

/// The same as a table.
pub(crate) fn table(all: &[Drawn]) -> NumberTable {
    NumberTable::by_name(
        "Pictures that priors expect",
        "prior",
        "roughness.draws",
        all.iter().map(|d| d.name.as_str()),
        &[("variation", "total variation per pixel"), ("accepted", "share of accepted trajectories")],
        "Pictures in units of their root mean square. Draws that are no chain are all accepted.",
    )
}
