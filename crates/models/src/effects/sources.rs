//! Which features belong to which column, and what its cells may be.

use posterior_data::{Cycle, Feature, Reading, Schema, Wave};
use std::ops::Range;

/// A column of the table, with the features that were made of it.
pub(crate) struct Source<'a> {
    pub(crate) column: &'a str,
    pub(crate) features: Range<usize>,
    /// What of it can be moved by itself, each along a curve or from category to category.
    pub(crate) parts: Vec<Part>,
}

/// What of a column can be moved; features by their places in the schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Numbers.
    Number { feature: usize, reading: Reading, absent: Option<usize> },
    /// A place on a circle.
    Cycle { cycle: Cycle, waves: Vec<(Wave, usize)> },
    /// One of several categories, or a missing cell: 1 in one of these features.
    Categories { features: Vec<usize> },
}

impl<'a> Source<'a> {
    /// All columns of a schema, in its order.
    pub(crate) fn all(schema: &'a Schema) -> Vec<Self> {
        let mut out: Vec<Self> = Vec::new();
        for (j, feature) in schema.features.iter().enumerate() {
            match out.last_mut().filter(|source| source.column == feature.column()) {
                Some(source) => source.features.end = j + 1,
                None => {
                    out.push(Self { column: feature.column(), features: j..j + 1, parts: Vec::new() });
                }
            }
        }
        out.iter_mut().for_each(|source| source.parts = parts(schema, source.features.clone()));
        out
    }
}

fn parts(schema: &Schema, features: Range<usize>) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::new();
    let absent = features.clone().find(|&j| matches!(schema.features[j], Feature::Absent { .. }));
    let indicators: Vec<usize> =
        features.clone().filter(|&j| !matches!(schema.features[j], Feature::Number { .. })).collect();
    for j in features {
        let Feature::Number { reading, .. } = &schema.features[j] else { continue };
        match reading {
            Reading::Cycle { cycle, wave, .. } => {
                let own = out.iter_mut().find_map(|part| match part {
                    Part::Cycle { cycle: other, waves } if other == cycle => Some(waves),
                    _ => None,
                });
                match own {
                    Some(waves) => waves.push((*wave, j)),
                    None => out.push(Part::Cycle { cycle: *cycle, waves: vec![(*wave, j)] }),
                }
            }
            _ => out.push(Part::Number { feature: j, reading: *reading, absent }),
        }
    }
    // Of a column of numbers its gaps belong to the numbers.
    if out.is_empty() {
        out.push(Part::Categories { features: indicators });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_data::TimeForm;

    #[test]
    fn features_of_one_column_belong_together() {
        let number = |column: &str, reading| Feature::Number { column: column.into(), reading, mean: 0.0 };
        let category =
            |column: &str, c: &str| Feature::Category { column: column.into(), category: c.into() };
        let form = TimeForm::Iso;
        let cycle = |wave| number("day", Reading::Cycle { form, cycle: Cycle::Year, wave });
        let schema = Schema::of(
            "y",
            vec![
                number("size", Reading::Plain),
                Feature::Absent { column: "size".into() },
                category("town", "a"),
                category("town", "b"),
                number("day", Reading::Time { form }),
                cycle(Wave::Sine),
                cycle(Wave::Cosine),
                number("new", Reading::Flag),
            ],
        );
        let found = Source::all(&schema);
        let ranges: Vec<_> = found.iter().map(|s| (s.column, s.features.clone())).collect();
        assert_eq!(ranges, [("size", 0..2), ("town", 2..4), ("day", 4..7), ("new", 7..8)]);
        let size = Part::Number { feature: 0, reading: Reading::Plain, absent: Some(1) };
        assert_eq!(found[0].parts, [size]);
        assert_eq!(found[1].parts, [Part::Categories { features: vec![2, 3] }]);
        let waves = vec![(Wave::Sine, 5), (Wave::Cosine, 6)];
        let date = Part::Number { feature: 4, reading: Reading::Time { form }, absent: None };
        assert_eq!(found[2].parts, [date, Part::Cycle { cycle: Cycle::Year, waves }]);
        let flag = Part::Number { feature: 7, reading: Reading::Flag, absent: None };
        assert_eq!(found[3].parts, [flag]);
    }
}
