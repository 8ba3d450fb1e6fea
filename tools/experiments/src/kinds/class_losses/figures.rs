//! Scores by epoch, and decision maps.

use super::MethodSettings;
use super::data::Grid;
use super::scored::{Epoch, Found};
use crate::kinds::prelude::*;
use posterior_report::{Plane, PlanePanel};

/// Error and NLL on the test rows by epoch: one pair of pictures for the best of each family, and one for each family of several.
pub(super) fn by_epoch(
    scored: &[(&MethodSettings, Found)],
    best: &[(&'static str, [usize; 2])],
) -> Vec<Item> {
    let mut groups = Vec::new();
    if best.len() > 1 {
        let caption = "Of each loss the pseudo-count with the least NLL of the training labels.";
        let own: Vec<usize> = best.iter().map(|(_, [by_nll, _])| *by_nll).collect();
        groups.push(("best of each loss".to_string(), own, caption));
    }
    for (family, _) in best {
        let own: Vec<usize> = (0..scored.len()).filter(|i| scored[*i].0.family() == *family).collect();
        if own.len() > 1 {
            groups.push(((*family).to_string(), own, ""));
        }
    }
    let mut items = Vec::new();
    for (title, own, caption) in groups {
        let lines = |value: fn(&Epoch) -> f64| -> Vec<Line> {
            let line = |i: &usize| {
                let epochs = &scored[*i].1.epochs;
                let x = (1..=epochs.len()).map(|e| e as f64).collect();
                Line::new(scored[*i].0.name.clone(), x, epochs.iter().map(value).collect())
            };
            own.iter().map(line).collect()
        };
        for (what, unit, lines) in [
            ("test error", "error, %", lines(|e| 100.0 * e.error)),
            ("test NLL", "NLL, nats", lines(|e| e.nll)),
        ] {
            let curves = Curves::new(format!("{title}: {what}"), "epoch", unit, lines);
            items.push(curves.logarithmic(false, true).captioned(caption).into());
        }
    }
    items
}

/// One map for each method.
pub(super) fn maps(scored: &[(&MethodSettings, Found)], grid: Grid) -> Option<Item> {
    let panel = |(method, found): &(&MethodSettings, Found)| {
        let map = found.map.as_ref()?;
        Some(PlanePanel::decisions(method.name.clone(), map, map.len() / grid.side.len().pow(2)))
    };
    let panels: Vec<PlanePanel> = scored.iter().filter_map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let along = |offset: usize| grid.points.iter().skip(offset).step_by(2).copied().collect();
    Some(Item::Plane(Plane {
        title: "Decision maps".into(),
        x: "x1".into(),
        y: "x2".into(),
        panels,
        points_x: along(0),
        points_y: along(1),
        points_class: grid.labels.iter().map(|l| *l as usize).collect(),
        grid_x: grid.side.clone(),
        grid_y: grid.side,
        caption: "The softmax of each network's outputs.".into(),
    }))
}
