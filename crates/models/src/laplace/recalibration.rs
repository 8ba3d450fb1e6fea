//! **What rows that the network has not seen say of its predictions**: a temperature and sets of classes; factors of the standard deviations of numbers.

use super::LaplaceRequest;
use crate::options::CalibrateName;
use crate::process::{CheckedOn, add_sets, sets};
use crate::recalibration::{JudgedClasses, LEAST_ROWS};
use crate::{ClassRecalibration, Guarantee, Intervals, ModelError, Predicted, Predictive, Recalibration};
use posterior_laplace::UnseenPredictions;
use posterior_likelihoods::{OutputLikelihood, Prediction};
use posterior_metrics::{LabelSets, SplitConformal};
use posterior_store::{StoreError, Tensors};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::sync::Arc;

/// How a network's predictions were recalibrated, by what it predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkRecalibration {
    /// Class probabilities, and sets of classes.
    Classes(ClassRecalibration),
    /// Intervals of each number of an example; none where they stay as the model has them.
    Numbers(Vec<Option<Recalibration>>),
}

/// Outputs whose recalibration is told one by one.
const MOST_SAID: usize = 4;

/// What a model keeps of the rows that told it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calibration {
    /// What sets of classes go by.
    pub(crate) sets: Option<Arc<LabelSets>>,
    /// Residuals of each number of an example, where its intervals were recalibrated.
    conformal: Vec<Option<Arc<SplitConformal>>>,
}

/// Whether a likelihood is recalibrated: that of classes, and of numbers with additive noise.
fn is_for(likelihood: &OutputLikelihood) -> bool {
    use OutputLikelihood::{Categorical, FullGaussian, Gaussian, HeteroscedasticGaussian};
    matches!(likelihood, Categorical(_) | Gaussian(_) | FullGaussian(_) | HeteroscedasticGaussian(_))
}

/// Whether such rows, of which there are so many (none where there are none), are to tell something; refuses what was asked for and cannot be had.
pub(crate) fn is_wanted(
    request: &LaplaceRequest,
    likelihood: &OutputLikelihood,
    unseen: Option<usize>,
) -> Result<bool, ModelError> {
    let refuse = |problem: String| Err(ModelError::Request(problem));
    match (request.calibrate, unseen) {
        (CalibrateName::None, _) => Ok(false),
        (CalibrateName::Conformal, _) if !is_for(likelihood) => refuse(format!(
            "--calibrate conformal is for classes and for numbers with additive noise, not for {}; leave it out",
            likelihood.name()
        )),
        (CalibrateName::Conformal, None) => refuse(
            "--calibrate conformal goes by rows that the network has not seen: give --validation-data, or train with `posterior train --validation-fraction F`, which records the rows that it sets aside".into(),
        ),
        (CalibrateName::Conformal, Some(rows)) if rows < LEAST_ROWS => refuse(format!(
            "--calibrate conformal tells what 95 % intervals and sets have to hold by {LEAST_ROWS} rows or more, and {rows} are there: give more (--validation-data)"
        )),
        (_, unseen) => Ok(unseen.is_some() && is_for(likelihood)),
    }
}

/// What predicting so many rows once more takes, in words; each keeps its moments or probabilities until all are looked at.
pub(crate) fn plan(rows: usize, likelihood: &OutputLikelihood, memory: u64) -> Result<String, ModelError> {
    let width = likelihood.outputs().max(likelihood.target_width()) as u64;
    let bytes = (rows as u64).saturating_mul(width.saturating_mul(32).saturating_add(96));
    if bytes > memory {
        return Err(ModelError::Request(format!(
            "predictions of {rows} rows that recalibrate take {:.3} GB, above the limit of {:.3} GB: allow more (--memory), give fewer such rows, or --calibrate none",
            bytes as f64 / 1e9,
            memory as f64 / 1e9
        )));
    }
    Ok(format!(
        "{rows} rows that the network has not seen are predicted once more to recalibrate by, with {:.1} MB of memory",
        bytes as f64 / 1e6
    ))
}

/// What these predictions say, under what else the rows had a part in. Numbers may be in any units, in which the NLL of the result is.
pub(crate) fn recalibrated(
    asked: CalibrateName,
    unseen: UnseenPredictions,
    guarantee: Guarantee,
) -> Result<(Option<NetworkRecalibration>, Calibration), ModelError> {
    let UnseenPredictions { predictions, targets } = unseen;
    let on = CheckedOn::HeldBack;
    match predictions.first() {
        Some(Prediction::Classes(first)) => {
            let classes = first.len();
            let rows =
                predictions.iter().flat_map(|p| if let Prediction::Classes(p) = p { &p[..] } else { &[] });
            let judged = JudgedClasses {
                probabilities: rows.copied().collect(),
                classes,
                labels: targets.iter().map(|y| *y as usize).collect(),
            };
            let found = ClassRecalibration::of((asked, false), on, &judged, guarantee)?;
            let (own, sets) = found.unzip();
            let calibration = Calibration { sets: sets.map(Arc::new), conformal: Vec::new() };
            Ok((own.map(NetworkRecalibration::Classes), calibration))
        }
        Some(Prediction::Moments { mean, .. }) => {
            let width = mean.len();
            let (mut all, mut conformal) = (Vec::new(), Vec::new());
            for k in 0..width {
                let (mut residuals, mut nll) = (Vec::with_capacity(predictions.len()), 0.0);
                for (prediction, y) in predictions.iter().zip(targets.chunks_exact(width)) {
                    if let Prediction::Moments { mean, variance, .. } = prediction {
                        let z = (y[k] - mean[k]) / variance[k].sqrt();
                        nll += 0.5 * ((2.0 * PI * variance[k]).ln() + z * z);
                        residuals.push(z);
                    }
                }
                let nll = nll / residuals.len().max(1) as f64;
                let narrowed = |factor: f64| match guarantee {
                    Guarantee::Holds if asked == CalibrateName::Auto && factor < 1.0 => Guarantee::Narrowed,
                    other => other,
                };
                let found = Recalibration::of_output(asked, on, (&residuals[..], nll), narrowed)?;
                let (own, residuals) = found.unzip();
                all.push(own);
                conformal.push(residuals.map(Arc::new));
            }
            let any = all.iter().any(Option::is_some);
            let calibration = Calibration { sets: None, conformal };
            Ok(if any { (Some(NetworkRecalibration::Numbers(all)), calibration) } else { Default::default() })
        }
        _ => Ok(Default::default()),
    }
}

impl NetworkRecalibration {
    /// What was done, in sentences, to outputs of these names; of many to the first and to how many more.
    pub fn sentences(&self, names: &[String]) -> Vec<String> {
        match self {
            Self::Classes(own) => own.sentence().into_iter().collect(),
            Self::Numbers(all) if all.len() == 1 => all[0].iter().map(Recalibration::sentence).collect(),
            Self::Numbers(all) => {
                let each = names.iter().zip(all).filter_map(|(name, own)| Some((name, own.as_ref()?)));
                let mut out: Vec<String> =
                    each.map(|(name, own)| format!("{name}: {}", own.sentence())).collect();
                let more = out.len().saturating_sub(MOST_SAID);
                out.truncate(MOST_SAID);
                out.extend((more > 0).then(|| format!("{more} more outputs are recalibrated likewise")));
                out
            }
        }
    }
}

impl Calibration {
    /// What deviations of each number are multiplied with; empty where none are.
    pub(crate) fn factors(known: Option<&NetworkRecalibration>) -> Vec<f64> {
        match known {
            Some(NetworkRecalibration::Numbers(all)) => {
                all.iter().map(|own| own.as_ref().map_or(1.0, |own| own.factor)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Sets of classes, and what the rows say of probabilities and deviations. Log densities of numbers are changed where targets are known: they are at targets that [`shrunk`] has moved.
    pub(crate) fn apply(
        &self,
        known: Option<&NetworkRecalibration>,
        levels: &[f64],
        predictive: &mut Predictive,
    ) {
        match (known, &self.sets) {
            (Some(NetworkRecalibration::Classes(own)), Some(sets)) => own.apply(sets, levels, predictive),
            (Some(NetworkRecalibration::Numbers(_)), _) => {
                let factors = Self::factors(known);
                if let Predicted::Moments { variance, .. } = &mut predictive.predicted {
                    variance.iter_mut().zip(factors.iter().cycle()).for_each(|(v, f)| *v *= f * f);
                }
                let logarithms: f64 = factors.iter().map(|f| f.ln()).sum();
                predictive.log_density.iter_mut().flatten().for_each(|density| *density -= logarithms);
                let pairs = factors.iter().zip(&self.conformal);
                let own = pairs.map(|(f, own)| own.as_ref().map(|own| Intervals::new(*f, own.clone())));
                predictive.intervals = own.collect();
            }
            _ => {}
        }
    }

    /// The arrays of a file.
    pub(crate) fn tensors(&self, tensors: &mut Tensors) {
        add_sets(self.sets.as_deref(), tensors);
        for (k, own) in self.conformal.iter().enumerate() {
            if let Some(own) = own {
                tensors.insert_vector(name(k), own.magnitudes());
            }
        }
    }

    /// From a file, of a model that predicts so many numbers for each example.
    pub(crate) fn read(
        (known, width): (Option<&NetworkRecalibration>, usize),
        tensors: &mut Tensors,
    ) -> Result<Self, StoreError> {
        match known {
            None => Ok(Self::default()),
            Some(NetworkRecalibration::Classes(own)) => {
                Ok(Self { sets: sets(Some(own), tensors)?, conformal: Vec::new() })
            }
            Some(NetworkRecalibration::Numbers(all)) => {
                if all.len() != width {
                    return Err(tensors.corrupt("its factors of intervals are not those of its numbers"));
                }
                let mut conformal = Vec::new();
                for (k, own) in all.iter().enumerate() {
                    let Some(own) = own else {
                        conformal.push(None);
                        continue;
                    };
                    let magnitudes = tensors.take::<f64>(&name(k), &[own.rows])?;
                    let found = SplitConformal::new(&magnitudes).map_err(|e| tensors.corrupt(e))?;
                    if !(own.factor > 0.0 && own.factor.is_finite()) {
                        return Err(tensors.corrupt("its factor of intervals is no positive number"));
                    }
                    conformal.push(Some(Arc::new(found)));
                }
                Ok(Self { sets: None, conformal })
            }
        }
    }
}

/// The tensor of residuals of number k.
fn name(k: usize) -> String {
    format!("conformal_magnitudes_{k}")
}

/// A target as near to the mean as deviations that are multiplied make it: the density of `m + f (y - m)` at y is that of y at `m + (y - m) / f`, less the logarithms of the factors. Whatever is correlated stays so.
pub(super) fn shrunk(prediction: &Prediction, target: &mut [f64], factors: &[f64]) {
    if let Prediction::Moments { mean, .. } = prediction {
        shrink(mean, target, factors);
    }
}

/// The same of several examples, one after the other.
pub(crate) fn shrink(mean: &[f64], target: &mut [f64], factors: &[f64]) {
    target.iter_mut().zip(mean).zip(factors.iter().cycle()).for_each(|((y, m), f)| *y = m + (*y - m) / f);
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_likelihoods::{Bernoulli, Gaussian, Link};

    /// Pseudo-random numbers in (0, 1).
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Two numbers an example, with the deviations 1 and 3 that are said and those of `told` times as much.
    fn unseen(rows: usize, told: [f64; 2]) -> UnseenPredictions {
        let mut state = 4u64;
        let (mut predictions, mut targets) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let mean = vec![uniform(&mut state), -uniform(&mut state)];
            for k in 0..2 {
                let z = crate::predictive::standard_quantile(uniform(&mut state));
                targets.push(mean[k] + told[k] * [1.0, 3.0][k] * z);
            }
            predictions.push(Prediction::Moments {
                mean,
                variance: vec![1.0, 9.0],
                latent_variance: vec![0.1; 2],
            });
        }
        UnseenPredictions { predictions, targets }
    }

    #[test]
    fn each_number_has_a_factor_of_its_own() {
        let (own, _) = recalibrated(CalibrateName::Auto, unseen(400, [1.0, 2.0]), Guarantee::Holds).unwrap();
        let Some(NetworkRecalibration::Numbers(all)) = own else { panic!("{own:?}") };
        assert!(all[0].is_none() && (all[1].as_ref().unwrap().factor / 2.0).ln().abs() < 0.2, "{all:?}");
        assert_eq!(all[1].as_ref().unwrap().guarantee, Guarantee::Holds);
        let own = NetworkRecalibration::Numbers(all);
        let said = own.sentences(&["y_1".into(), "y_2".into()]);
        assert!(said.len() == 1 && said[0].starts_with("y_2: intervals are recalibrated"), "{said:?}");
        // Narrower by itself: the rows decided that.
        let (own, _) = recalibrated(CalibrateName::Auto, unseen(400, [0.3, 1.0]), Guarantee::Holds).unwrap();
        let Some(NetworkRecalibration::Numbers(all)) = own else { panic!("{own:?}") };
        assert_eq!(all[0].as_ref().unwrap().guarantee, Guarantee::Narrowed);
        // Asked for, both have one; what holds is left alone.
        let asked = recalibrated(CalibrateName::Conformal, unseen(400, [1.0; 2]), Guarantee::Chosen).unwrap();
        let Some(NetworkRecalibration::Numbers(all)) = asked.0 else { panic!() };
        assert!(all.iter().all(|own| own.as_ref().unwrap().guarantee == Guarantee::Chosen));
        let (own, _) = recalibrated(CalibrateName::Auto, unseen(400, [1.0; 2]), Guarantee::Holds).unwrap();
        assert_eq!(own, None);
    }

    #[test]
    fn densities_of_moved_targets_are_those_of_wider_ones() {
        let prediction = Prediction::Moments {
            mean: vec![1.0, -2.0],
            variance: vec![0.5, 2.0],
            latent_variance: vec![0.0; 2],
        };
        let (factors, mut y) = ([1.5, 0.7], [1.8, -1.0]);
        let direct: f64 = [(1.8, 1.0, 0.5, 1.5f64), (-1.0, -2.0, 2.0, 0.7)]
            .iter()
            .map(|(y, m, v, f): &(f64, f64, f64, f64)| {
                let wide = v * f * f;
                -0.5 * ((2.0 * PI * wide).ln() + (y - m).powi(2) / wide)
            })
            .sum();
        shrunk(&prediction, &mut y, &factors);
        let moved = [(1.0, 0.5), (-2.0, 2.0)]
            .iter()
            .zip(y)
            .map(|((m, v), y): (&(f64, f64), f64)| -0.5 * ((2.0 * PI * v).ln() + (y - m).powi(2) / v));
        let own = moved.sum::<f64>() - factors.iter().map(|f: &f64| f.ln()).sum::<f64>();
        assert!((own - direct).abs() < 1e-13, "{own} {direct}");
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let gaussian = OutputLikelihood::Gaussian(Gaussian::independent(vec![1.0]).unwrap());
        let events = OutputLikelihood::Bernoulli(Bernoulli::new(1, Link::Logit).unwrap());
        let request = |calibrate| LaplaceRequest {
            calibrate,
            ..LaplaceRequest::new("net", ["data"], [""; 0], super::super::LikelihoodKind::Gaussian)
        };
        let asked = request(CalibrateName::Conformal);
        for (likelihood, rows, what) in [
            (&events, Some(100), "not for"),
            (&gaussian, None, "--validation-data"),
            (&gaussian, Some(18), "19 rows"),
        ] {
            let error = is_wanted(&asked, likelihood, rows).unwrap_err().to_string();
            assert!(error.contains(what) && error.len() < 300, "{error}");
        }
        assert!(is_wanted(&asked, &gaussian, Some(19)).unwrap());
        assert!(!is_wanted(&request(CalibrateName::Auto), &gaussian, None).unwrap());
        assert!(!is_wanted(&request(CalibrateName::Auto), &events, Some(100)).unwrap());
        assert!(!is_wanted(&request(CalibrateName::None), &gaussian, Some(100)).unwrap());
        let told = plan(1000, &gaussian, 128_000).unwrap();
        assert!(told.contains("1000 rows") && told.contains("0.1 MB"), "{told}");
        assert!(plan(1000, &gaussian, 127_999).unwrap_err().to_string().contains("--calibrate none"));
    }
}
