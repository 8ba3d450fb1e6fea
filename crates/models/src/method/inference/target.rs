//! What a target is: as asked, or as it looks.

use crate::options::LikelihoodName;
use crate::output::strata;
use crate::rows::robust_moments;
use crate::{ModelError, Target};
use posterior_data::{
    DataError, Missing, Selection, Table, TargetSketch, counts_of_rows, finite_targets, present,
    refuse_nearly_numbers,
};
use posterior_likelihoods::{
    Bernoulli, Categorical, Link, NegativeBinomial, OutputLikelihood, Poisson, RobustMax, StudentT,
};
use posterior_notes::fixes::{LIKELIHOOD_BERNOULLI, LIKELIHOOD_CATEGORICAL, LIKELIHOOD_GAUSSIAN};

/// So many different whole numbers at most look like classes.
const FEW: usize = 10;

/// Whole numbers that dwindle are taken for counts where there are more than so many.
const FEWEST_COUNTS: usize = 4;

/// So many rows at least for each of them.
const ROWS_OF_EACH: usize = 5;

/// Whole numbers from 0 of a smaller mean look like counts: beyond, a Gaussian comes near their distribution.
const SMALL_COUNTS: f64 = 20.0;

/// A likelihood with the reason for it.
#[derive(Clone, Debug)]
pub struct ChosenLikelihood {
    /// Its name, never [`LikelihoodName::Auto`].
    pub name: LikelihoodName,
    /// None for Gaussian noise.
    pub likelihood: Option<(OutputLikelihood, Target)>,
    /// Which, why, and how to take another.
    pub why: String,
    /// Whether the target may as well be something else, which the reason then names.
    pub ambiguous: bool,
    /// What is odd about the target.
    pub notes: Vec<String>,
}

impl ChosenLikelihood {
    /// The stratum of each row of a table, so that a split can leave out its share of each class; None where there are no classes.
    ///
    /// # Errors
    /// As [`posterior_data::ClassNames::of_rows`].
    pub fn strata(&self, table: &Table, target: &str) -> Result<Option<Vec<usize>>, DataError> {
        match &self.likelihood {
            Some((_, Target::Classes { names })) => {
                strata(names, table, target).map(Some).map_err(|error| error.in_table(table))
            }
            _ => Ok(None),
        }
    }
}

/// What the target of these rows is: as asked, or as it looks. The selection says what becomes of rows whose target is missing or infinite.
///
/// # Errors
/// When it cannot be what was asked for, naming the row; [`DataError::Infinite`], [`DataError::OneClass`], [`DataError::TooFewTargets`].
pub fn choose_likelihood(
    table: &Table,
    target: &str,
    rows: &[usize],
    asked: LikelihoodName,
    selection: &Selection,
) -> Result<ChosenLikelihood, ModelError> {
    chosen(table, target, rows, asked, selection).map_err(|error| error.in_table(table))
}

fn chosen(
    table: &Table,
    target: &str,
    rows: &[usize],
    asked: LikelihoodName,
    selection: &Selection,
) -> Result<ChosenLikelihood, ModelError> {
    let name = &table.column(target)?.name;
    let rows = &finite_targets(table, name, rows, selection.missing == Missing::Drop)?[..];
    if asked == LikelihoodName::Auto {
        refuse_nearly_numbers(table, name, rows)?;
    }
    let sketch = TargetSketch::of(table, name, rows)?;
    let count = sketch.distinct.len();
    let (taken, mut why, other) = match asked {
        LikelihoodName::Auto if selection.exposure.is_some() && sketch.counts => {
            (LikelihoodName::NegativeBinomial, "because there are exposures (--exposure)".into(), None)
        }
        LikelihoodName::Auto => looks(&sketch),
        named => (named, "as asked".into(), None),
    };
    let ambiguous = other.is_some();
    if let Some(other) = other {
        why += &format!("; --likelihood {other} takes it otherwise");
    }
    let mut notes = Vec::new();
    why = format!("{}, {why}", taken.as_str());
    let likelihood = match taken {
        LikelihoodName::Cox => {
            return Err(ModelError::Request(
                "--likelihood cox takes a table of events with a --window, and no column of it as a target; `fit` reads such tables".into(),
            ));
        }
        LikelihoodName::Gaussian | LikelihoodName::Auto => None,
        LikelihoodName::Bernoulli | LikelihoodName::Categorical | LikelihoodName::RobustMax => {
            let names = sketch.classes(table, name)?;
            odd_labels(&sketch, &mut notes);
            refuse_identifiers(&sketch, name)?;
            let likelihood = match taken {
                LikelihoodName::Bernoulli if count != 2 => {
                    let problem = if sketch.numeric && !sketch.whole && share(&sketch) {
                        format!(
                            "the target `{name}` has {count} different numbers between 0 and 1, which look like probabilities: {LIKELIHOOD_BERNOULLI} takes outcomes, one of two labels a row; \
                             fit probabilities as numbers ({LIKELIHOOD_GAUSSIAN}, best after a logit), or give the outcomes they are shares of"
                        )
                    } else {
                        format!(
                            "the target `{name}` has {count} different labels: {LIKELIHOOD_BERNOULLI} takes two, {LIKELIHOOD_CATEGORICAL} any number"
                        )
                    };
                    return Err(ModelError::Request(problem));
                }
                LikelihoodName::Bernoulli => OutputLikelihood::Bernoulli(Bernoulli::new(1, Link::Logit)?),
                LikelihoodName::RobustMax => OutputLikelihood::RobustMax(RobustMax::new(
                    names.count(),
                    RobustMax::CUSTOMARY_ERROR_RATE,
                )?),
                _ => OutputLikelihood::Categorical(Categorical::new(names.count())?),
            };
            let shown: Vec<&str> = names.names().iter().take(8).map(String::as_str).collect();
            let more = if count > shown.len() { ", ..." } else { "" };
            why += &format!(": {count} classes, {}{more}", shown.join(", "));
            Some((likelihood, Target::Classes { names }))
        }
        LikelihoodName::Poisson | LikelihoodName::NegativeBinomial => {
            let counts = counts_of_rows(table, name, rows)?;
            present(table, name, rows, counts, selection.missing_target)?;
            let likelihood = match taken {
                LikelihoodName::Poisson => OutputLikelihood::Poisson(Poisson::new(1)?),
                _ => OutputLikelihood::NegativeBinomial(NegativeBinomial::new(first_dispersion(&sketch))?),
            };
            if sketch.moments[1] == 0.0 {
                notes.push("the target does not vary".into());
            }
            Some((likelihood, Target::Counts { rate: 1.0 }))
        }
        LikelihoodName::StudentT => {
            if !sketch.numeric {
                let row = rows.iter().position(|&r| {
                    let cell = table.column(name).map(|c| c.cell(r)).unwrap_or_default();
                    !cell.is_empty() && cell.parse::<f64>().is_err()
                });
                let row = row.map_or(0, |place| rows[place]);
                let (path, column) = (table.source.clone(), name.clone());
                let text = table.column(name)?.cell(row);
                return Err(DataError::NotANumber { path, row: row + 1, column, text }.into());
            }
            let cells = sketch.distinct.iter().filter_map(|(cell, n)| Some((cell.parse::<f64>().ok()?, *n)));
            let values: Vec<f64> = cells.flat_map(|(value, n)| std::iter::repeat_n(value, n)).collect();
            Some(with_outliers(&values, sketch.moments)?)
        }
    };
    Ok(ChosenLikelihood { name: taken, likelihood, why, ambiguous, notes })
}

/// Student-t noise around numbers, whose median and median absolute deviation are their units: one outlier decides a mean and a standard deviation, and with them where searches begin and what priors mean. Where more
/// than half are equal, units are those `moments` (mean and variance).
pub(crate) fn with_outliers(
    values: &[f64],
    moments: [f64; 2],
) -> Result<(OutputLikelihood, Target), ModelError> {
    let [median, robust] = robust_moments(values.iter().copied());
    let deviation = moments[1].sqrt();
    let (mean, scale) = match (robust > 0.0, deviation > 0.0 && deviation.is_finite()) {
        (true, _) => (median, robust),
        (false, true) => (moments[0], deviation),
        (false, false) => (moments[0], 1.0),
    };
    Ok((OutputLikelihood::StudentT(StudentT::new(0.3, 4.0)?), Target::Numbers { mean, scale }))
}

/// What a target looks like, why, and what else it may be.
fn looks(sketch: &TargetSketch) -> (LikelihoodName, String, Option<&'static str>) {
    use LikelihoodName::{Bernoulli, Categorical, Gaussian, NegativeBinomial};
    let count = sketch.distinct.len();
    if !sketch.numeric {
        let name = if count == 2 { Bernoulli } else { Categorical };
        return (name, "because the target is text".into(), None);
    }
    if sketch.measured || !sketch.whole && equal_but_for_rounding(sketch) {
        return (Gaussian, "because the target is numbers".into(), None);
    }
    if count == 2 {
        return (Bernoulli, "because the target has two different values".into(), Some("gaussian"));
    }
    if sketch.whole && count > 1 && count <= FEW && sketch.cells >= ROWS_OF_EACH * count && !dwindles(sketch)
    {
        let others = if sketch.counts { "gaussian or poisson" } else { "gaussian" };
        let why = format!("because the target has {count} different whole numbers only");
        return (Categorical, why, Some(others));
    }
    if sketch.counts && count > 1 && sketch.moments[0] < SMALL_COUNTS {
        let why =
            "because the target is small whole numbers from 0, which scatter around their mean as counts do";
        return (NegativeBinomial, why.into(), Some("poisson, gaussian or categorical"));
    }
    if sketch.counts {
        let why = "because the target is numbers, whole ones from 0, which may be counts";
        return (Gaussian, why.into(), Some("negative-binomial or poisson"));
    }
    (Gaussian, "because the target is numbers".into(), None)
}

/// Whether whole numbers from 0 become rarer beyond the most frequent one, down to a tenth of it or less, as counts do and labels of classes hardly do.
fn dwindles(sketch: &TargetSketch) -> bool {
    let mut frequencies: Vec<(f64, f64)> =
        sketch.distinct.iter().filter_map(|(cell, n)| Some((cell.parse().ok()?, *n as f64))).collect();
    frequencies.sort_by(|a, b| a.0.total_cmp(&b.0));
    let most = frequencies.iter().map(|f| f.1).fold(0.0, f64::max);
    let mode = frequencies.iter().position(|f| f.1 == most).unwrap_or(0);
    let tail = &frequencies[mode..];
    sketch.counts
        && frequencies.first().is_some_and(|f| f.0 == 0.0)
        && frequencies.len() > FEWEST_COUNTS
        && tail.last().is_some_and(|f| 10.0 * f.1 <= most)
        // Up to chance, three deviations of a frequency.
        && tail.windows(2).all(|pair| pair[1].1 <= pair[0].1 + 3.0 * pair[0].1.sqrt())
}

/// Whether numbers differ by no more than writing them may have done: what does is no class.
fn equal_but_for_rounding(sketch: &TargetSketch) -> bool {
    let [mean, variance] = sketch.moments;
    variance.sqrt() <= 1e-9 * mean.abs()
}

/// Whether all cells are numbers from 0 to 1.
fn share(sketch: &TargetSketch) -> bool {
    sketch.distinct.keys().all(|cell| cell.parse::<f64>().is_ok_and(|v| (0.0..=1.0).contains(&v)))
}

/// Says what is odd about labels.
fn odd_labels(sketch: &TargetSketch, notes: &mut Vec<String>) {
    for [first, second] in sketch.look_alikes() {
        notes.push(format!(
            "the labels `{first}` and `{second}` differ in case or spaces only, and are different classes: make them one in the table if they are the same"
        ));
    }
    let single: Vec<&str> =
        sketch.distinct.iter().filter(|(_, n)| **n == 1).map(|(l, _)| l.as_str()).collect();
    if !single.is_empty() {
        let shown = single.iter().take(5).map(|l| format!("`{l}`")).collect::<Vec<_>>().join(", ");
        let more = if single.len() > 5 { format!(" and {} more", single.len() - 5) } else { String::new() };
        notes.push(format!(
            "{shown}{more} occur in one row only: little can be learned of such a class, and no score of it can be trusted"
        ));
    }
}

/// Refuses labels that name rows.
fn refuse_identifiers(sketch: &TargetSketch, name: &str) -> Result<(), ModelError> {
    let count = sketch.distinct.len();
    if count > 50 && 2 * count > sketch.cells {
        return Err(ModelError::Request(format!(
            "the target `{name}` has {count} different labels in {} rows: that names rows, it does not class them; is it the right column? Numbers are taken as such with {LIKELIHOOD_GAUSSIAN}",
            sketch.cells
        )));
    }
    Ok(())
}

/// A dispersion to begin with: that of the counts themselves, of which the function may explain a part.
fn first_dispersion(sketch: &TargetSketch) -> f64 {
    let [mean, variance] = sketch.moments;
    (mean * mean / (variance - mean).max(1e-3 * mean.max(1e-3))).clamp(0.1, 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_data::{Column, Values};

    fn chosen(cells: Values, asked: LikelihoodName) -> Result<ChosenLikelihood, ModelError> {
        let table = Table::new("t", vec![Column { name: "y".into(), values: cells }]);
        let rows: Vec<usize> = (0..table.rows()).collect();
        choose_likelihood(&table, "y", &rows, asked, &Selection::default())
    }

    fn numbers(values: impl IntoIterator<Item = f64>) -> Values {
        Values::Numeric(values.into_iter().collect())
    }

    fn text(values: &[&str]) -> Values {
        Values::Text(values.iter().map(|v| Some(v.to_string())).collect())
    }

    #[test]
    fn targets_are_what_they_look_like_and_the_reason_names_the_way_out() {
        let auto = |cells| chosen(cells, LikelihoodName::Auto).unwrap();
        let name = |c: &ChosenLikelihood| c.likelihood.as_ref().map_or("gaussian", |(l, _)| l.name());
        let events = auto(text(&["a", "b", "a"]));
        assert!(name(&events) == "bernoulli" && events.why.contains("text"), "{events:?}");
        assert_eq!(name(&auto(text(&["a", "b", "c"]))), "categorical");
        let two = auto(numbers((0..20).map(|i| f64::from(i % 2))));
        assert!(name(&two) == "bernoulli" && two.why.contains("--likelihood gaussian"));
        let few = auto(numbers((0..40).map(|i| f64::from(i % 4))));
        assert!(name(&few) == "categorical" && few.why.contains("gaussian or poisson"), "{}", few.why);
        // As rare beyond the most frequent one as counts are, and as ratings are not.
        let dwindling =
            auto(numbers([30, 40, 26, 12, 5, 1].iter().enumerate().flat_map(|(y, n)| vec![y as f64; *n])));
        assert!(
            name(&dwindling).starts_with("negative") && dwindling.why.contains("categorical"),
            "{}",
            dwindling.why
        );
        let ratings =
            auto(numbers([5, 20, 40, 30, 4].iter().enumerate().flat_map(|(y, n)| vec![y as f64 + 1.0; *n])));
        assert_eq!(name(&ratings), "categorical");
        // Too few rows of each to be classes.
        let counts = auto(numbers((0..40).map(|i| f64::from(i % 13))));
        assert!(name(&counts).starts_with("negative") && counts.why.contains("poisson"), "{counts:?}");
        let large = auto(numbers((0..40).map(|i| f64::from(1000 + i * i))));
        assert!(name(&large) == "gaussian" && large.why.contains("negative-binomial"), "{}", large.why);
        assert_eq!(name(&auto(numbers((0..40).map(|i| 0.1 * f64::from(i))))), "gaussian");
        assert_eq!(name(&auto(numbers((0..40).map(|i| f64::from(i) - 20.0)))), "gaussian");
        // Two numbers that rounding made of one.
        assert_eq!(name(&auto(numbers([1.0, 1.000_000_000_1, 1.0]))), "gaussian");
    }

    #[test]
    fn infinite_targets_are_refused_or_dropped_and_are_no_classes() {
        let target = |cells: Values, missing| {
            let table = Table::new("t", vec![Column { name: "y".into(), values: cells }]);
            let rows: Vec<usize> = (0..table.rows()).collect();
            let selection = Selection { missing, ..Selection::default() };
            let chosen = choose_likelihood(&table, "y", &rows, LikelihoodName::Auto, &selection)?;
            let strata = chosen.strata(&table, "y").unwrap();
            Ok::<_, ModelError>((chosen.name, strata))
        };
        let constant = || numbers((0..21).map(|i| if i == 20 { f64::INFINITY } else { 2.0 }));
        let error = target(constant(), Missing::Error).unwrap_err().to_string();
        assert!(error.contains("row 21, column `y`: inf is not a finite number"), "{error}");
        assert_eq!(target(constant(), Missing::Drop).unwrap(), (LikelihoodName::Gaussian, None));
        let flags = || numbers([0.0, 1.0, f64::NEG_INFINITY, 1.0]);
        let error = target(flags(), Missing::Error).unwrap_err().to_string();
        assert!(error.contains("row 3, column `y`: -inf"), "{error}");
        let strata = Some(vec![0, 1, 2, 1]);
        assert_eq!(target(flags(), Missing::Drop).unwrap(), (LikelihoodName::Bernoulli, strata));
    }

    #[test]
    fn targets_that_cannot_be_what_was_asked_are_refused_with_the_reason() {
        let message = |cells, asked| chosen(cells, asked).unwrap_err().to_string();
        let probabilities = message(numbers([0.1, 0.5, 0.9]), LikelihoodName::Bernoulli);
        assert!(probabilities.contains("look like probabilities"), "{probabilities}");
        assert!(message(text(&["a", "b", "c"]), LikelihoodName::Bernoulli).contains("3 different labels"));
        assert!(message(text(&["a", "a", "a"]), LikelihoodName::Categorical).contains("only one class"));
        assert!(message(numbers([1.0, -2.0]), LikelihoodName::Poisson).contains("row 2: -2"));
        assert!(message(numbers([1.0, 2.5]), LikelihoodName::NegativeBinomial).contains("no count"));
        assert!(message(text(&["1", "x"]), LikelihoodName::StudentT).contains("`x` is not a number"));
        let ids: Vec<String> = (0..60).map(|i| format!("id{i}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        assert!(message(text(&ids), LikelihoodName::Auto).contains("names rows"));
    }

    #[test]
    fn odd_labels_are_said_and_not_merged() {
        let odd = chosen(text(&["yes", "Yes ", "no", "no", "yes"]), LikelihoodName::Auto).unwrap();
        assert_eq!(odd.notes.len(), 2, "{:?}", odd.notes);
        assert!(
            odd.notes[0].contains("`Yes ` and `yes`") && odd.notes[1].contains("`Yes ` occur in one row")
        );
        let Some((_, Target::Classes { names })) = odd.likelihood else { unreachable!() };
        assert_eq!(names.count(), 3);
    }
}
