//! Settings chosen by validation: of several methods, on each partition, the one that predicts the rows best that its fit set aside. Test rows choose nothing.

use super::Found;
use crate::kinds::prelude::*;

/// A table `[[choice]]`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ChoiceSettings {
    /// Its name, as that of a method.
    pub(super) name: String,
    /// Names of the methods among which it chooses: all of them set rows aside.
    pub(super) methods: Vec<String>,
}

impl ChoiceSettings {
    /// Refuses a choice among fewer than two methods.
    pub(super) fn check(&self) -> Result<()> {
        let twice = self.methods.iter().enumerate().any(|(i, name)| self.methods[..i].contains(name));
        match self.methods.len() < 2 || twice {
            true => refused(format!("[[choice]] `{}`: `methods` are at least two, each once", self.name)),
            false => Ok(()),
        }
    }

    /// What its methods found on one partition, of which the best on rows set aside is taken: with its name. None where none has a result.
    pub(super) fn choose<'a>(
        &self,
        found: impl Iterator<Item = (&'a str, Option<&'a Found>)>,
    ) -> Option<Found> {
        let own = found.filter(|(name, _)| self.methods.iter().any(|m| m == name));
        let scored = own.filter_map(|(name, found)| Some((name, found?, found?.validation?)));
        let (name, best, _) = scored.min_by(|a, b| a.2.total_cmp(&b.2))?;
        let set_aside = best.chosen.as_ref().map_or((0, 0.0), |(_, rows, rank)| (*rows, *rank));
        Some(Found { chosen: Some((name.into(), set_aside.0, set_aside.1)), ..best.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_metrics::Gaussians;

    fn found(validation: Option<f64>, seconds: f64) -> Found {
        Found {
            scores: Gaussians::new(&[0.0], &[1.0], &[0.5]).unwrap().scores(1.0).unwrap(),
            seconds,
            steps: 1,
            rows: 10,
            points: None,
            peak_bytes: None,
            chosen: Some(("a way".into(), 3, 1.0)),
            validation,
            ended: "steps".into(),
        }
    }

    #[test]
    fn the_best_on_rows_set_aside_is_taken_among_its_own_methods() {
        let choice = ChoiceSettings { name: "chosen".into(), methods: vec!["a".into(), "b".into()] };
        let (a, b, c) = (found(Some(0.3), 1.0), found(Some(0.2), 2.0), found(Some(0.1), 3.0));
        let all = [("a", Some(&a)), ("b", Some(&b)), ("c", Some(&c))];
        let best = choice.choose(all.into_iter()).unwrap();
        assert_eq!((best.seconds, best.chosen.unwrap()), (2.0, ("b".into(), 3, 1.0)));
        let without = [("a", Some(&a)), ("b", None), ("c", Some(&c))];
        assert_eq!(choice.choose(without.into_iter()).unwrap().seconds, 1.0);
        let unjudged = found(None, 4.0);
        assert!(choice.choose([("a", Some(&unjudged)), ("b", None)].into_iter()).is_none());
        assert!(ChoiceSettings { methods: vec!["a".into(), "a".into()], ..choice }.check().is_err());
    }
}
