//! Who is first, second, ...: ranks of methods in each task, and their means over tasks.

use crate::kinds::prelude::*;
use posterior_metrics::mid_ranks;

/// The second score that methods are ranked by: of numbers, or else of classes.
const SECOND: [&str; 2] = ["crps", "brier"];

/// Sums of ranks over tasks.
#[derive(Default)]
pub(super) struct Ranks {
    /// Name, sums by NLL and by the second score, tasks; in order of appearance.
    methods: Vec<(String, [f64; 2], usize)>,
}

impl Ranks {
    /// Ranks the methods of a task, writes the ranks beside their scores (`rank_nll` and `rank_crps` or `rank_brier`), and counts them.
    pub(super) fn add(&mut self, task: &mut Map<String, Value>) {
        let by = |task: &Map<String, Value>, key: &str| {
            mid_ranks(&task.values().map(|own| own[key].as_f64().unwrap_or(f64::NAN)).collect::<Vec<_>>())
        };
        let has = |key: &&str| task.values().any(|own| own.get(*key).is_some());
        let Some(second) = SECOND.into_iter().find(has) else { return };
        let ranks = [by(task, "nll"), by(task, second)];
        for (k, (name, own)) in task.iter_mut().enumerate() {
            let both = [ranks[0][k], ranks[1][k]];
            own["rank_nll"] = both[0].into();
            own[format!("rank_{second}")] = both[1].into();
            let at = self.methods.iter().position(|m| m.0 == *name).unwrap_or_else(|| {
                self.methods.push((name.clone(), [0.0; 2], 0));
                self.methods.len() - 1
            });
            let (_, sums, tasks) = &mut self.methods[at];
            sums.iter_mut().zip(both).for_each(|(sum, rank)| *sum += rank);
            *tasks += 1;
        }
    }

    /// Mean ranks by method.
    pub(super) fn numbers(&self) -> Value {
        let of = |(name, sums, tasks): &(String, [f64; 2], usize)| {
            let [nll, second] = sums.map(|sum| sum / *tasks as f64);
            (name.clone(), json!({"nll": nll, "crps_or_brier": second, "tasks": tasks}))
        };
        Value::Object(self.methods.iter().map(of).collect())
    }

    /// The table of these, methods in the order of `names`.
    pub(super) fn table<'a>(&self, names: impl Iterator<Item = &'a str>) -> NumberTable {
        NumberTable::by_name(
            "ranks",
            "method",
            "ranks",
            names.filter(|name| self.methods.iter().any(|m| m.0 == **name)),
            &[("nll", "by NLL"), ("crps_or_brier", "by CRPS or Brier score"), ("tasks", "tasks")],
            "Mean rank among all methods of a task, over the tasks that a method is for and over seeds; 1 is best, and equals share their ranks. Ranks of tasks with different numbers of methods are not of the same worth.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_of_each_task_and_their_means_of_the_tasks_that_a_method_is_for() {
        let task = |value: Value| value.as_object().unwrap().clone();
        let mut ranks = Ranks::default();
        let mut numbers = task(
            json!({"a": {"nll": 1.0, "crps": 0.2}, "b": {"nll": 0.5, "crps": 0.2}, "c": {"nll": null, "crps": 0.1}}),
        );
        ranks.add(&mut numbers);
        assert_eq!((&numbers["a"]["rank_nll"], &numbers["a"]["rank_crps"]), (&json!(2.0), &json!(2.5)));
        assert_eq!((&numbers["c"]["rank_nll"], &numbers["c"]["rank_crps"]), (&json!(3.0), &json!(1.0)));
        let mut classes = task(json!({"a": {"nll": 1.0, "brier": 0.2}, "b": {"nll": 2.0, "brier": 0.1}}));
        ranks.add(&mut classes);
        assert_eq!(classes["b"]["rank_brier"], json!(1.0));
        let mean = ranks.numbers();
        assert_eq!(mean["a"], json!({"nll": 1.5, "crps_or_brier": 2.25, "tasks": 2}));
        assert_eq!(mean["c"], json!({"nll": 3.0, "crps_or_brier": 1.0, "tasks": 1}));
        let rows: Vec<String> =
            ranks.table(["c", "d", "a", "b"].into_iter()).rows.into_iter().map(|r| r.0).collect();
        assert_eq!(rows, ["c", "a", "b"]);
    }
}
