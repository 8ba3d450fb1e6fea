//! Sums of a curvature, and the weights that they are of, as named tensors and back: what model files and checkpoints hold of both.

use crate::accumulate::{BlockSum, FitSums, SumMatrix, least_numbers};
use crate::checkpointer::SavedState;
use crate::{Accumulator, FisherEstimate, Form, LaplaceError};
use posterior_networks::{Graph, Network, Precision, Selection};
use posterior_store::{StoreError, Tensors};
use serde::{Deserialize, Serialize};

/// A parameter with a posterior.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectedRecord {
    /// Its name.
    pub name: String,
    /// How many of its entries, where not all: their positions are in the tensor `selected`, in order.
    pub entries: Option<usize>,
}

/// Names and numbers of entries of a selection, and all positions of single entries in order.
pub fn selected(selection: &Selection) -> (Vec<SelectedRecord>, Vec<f64>) {
    let mut positions = Vec::new();
    let records = selection.parts().iter().map(|part| {
        let entries = part.indices.as_ref().map(|list| {
            positions.extend(list.iter().map(|&i| i as f64));
            list.len()
        });
        SelectedRecord { name: part.name.clone(), entries }
    });
    (records.collect(), positions)
}

/// The selection of these records.
fn selection(graph: &Graph, records: &[SelectedRecord], positions: &[f64]) -> Result<Selection, String> {
    let all = Selection::all(graph);
    let mut mask = vec![false; all.len()];
    let mut rest = positions;
    for record in records {
        let part = all.parts().iter().find(|p| p.name == record.name);
        let part =
            part.ok_or_else(|| format!("`{}` is no trainable parameter of its network", record.name))?;
        let own = &mut mask[part.offset..part.offset + part.length];
        let Some(count) = record.entries else {
            own.fill(true);
            continue;
        };
        if count > rest.len() {
            return Err("positions of selected weights are missing".into());
        }
        let (now, later) = rest.split_at(count);
        rest = later;
        for &p in now {
            let place = (p >= 0.0 && p.fract() == 0.0).then(|| own.get_mut(p as usize)).flatten();
            *place.ok_or_else(|| format!("`{}` has no entry {p}", record.name))? = true;
        }
    }
    if !rest.is_empty() || !mask.contains(&true) {
        return Err("its selected weights do not agree with their positions".into());
    }
    Ok(all.masked(graph, &mask))
}

/// The sums of a curvature; only lower triangles are kept.
pub fn add_sums(sums: &Accumulator, tensors: &mut Tensors) {
    for (i, block) in sums.blocks().iter().enumerate() {
        let name = |part: &str| format!("sums.{i}.{part}");
        match &block.matrix {
            SumMatrix::Dense(m) => tensors.insert_triangle(name("matrix"), m.as_ref()),
            SumMatrix::Diagonal(v) => tensors.insert_vector(name("diagonal"), v),
            SumMatrix::Kronecker { outputs, inputs, .. } => {
                tensors.insert_triangle(name("outputs"), outputs.as_ref());
                tensors.insert_triangle(name("inputs"), inputs.as_ref());
            }
        }
    }
}

/// Saved sums for the weights of a network.
#[inline(never)]
pub fn sums<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    form: Form,
    estimate: FisherEstimate,
    tensors: &mut Tensors,
) -> Result<Vec<BlockSum>, StoreError> {
    // The layout follows from network and selection; its sizes are checked against the file before they are allocated.
    let needed = least_numbers(network.graph(), selection, form);
    let present: u64 = tensors.iter().map(|(_, t)| t.values.numbers().len() as u64).sum();
    if needed > present {
        return Err(tensors.corrupt(format!("its curvature needs {needed} numbers, but it holds {present}")));
    }
    let empty = Accumulator::new(network, selection, form, estimate).map_err(|e| tensors.corrupt(e))?;
    let mut blocks = empty.blocks().to_vec();
    for (i, block) in blocks.iter_mut().enumerate() {
        let name = |part: &str| format!("sums.{i}.{part}");
        match &mut block.matrix {
            SumMatrix::Dense(m) => *m = tensors.triangle(&name("matrix"), m.nrows())?,
            SumMatrix::Diagonal(v) => *v = tensors.vector(&name("diagonal"), v.len())?,
            SumMatrix::Kronecker { outputs, inputs, .. } => {
                *outputs = tensors.triangle(&name("outputs"), outputs.nrows())?;
                *inputs = tensors.triangle(&name("inputs"), inputs.nrows())?;
            }
        }
    }
    Ok(blocks)
}

/// The weights that are uncertain: positions of single entries; the rest is the header's.
pub fn add_selection(chosen: &Selection, tensors: &mut Tensors) -> Vec<SelectedRecord> {
    let (records, positions) = selected(chosen);
    if !positions.is_empty() {
        tensors.insert_vector("selected", &positions);
    }
    records
}

/// The selection again.
pub fn read_selection(
    graph: &Graph,
    records: &[SelectedRecord],
    tensors: &mut Tensors,
) -> Result<Selection, StoreError> {
    let count: usize = records.iter().filter_map(|r| r.entries).fold(0, usize::saturating_add);
    let positions = if count > 0 { tensors.vector("selected", count)? } else { Vec::new() };
    selection(graph, records, &positions).map_err(|reason| tensors.corrupt(reason))
}

/// Of which method the state of sums is.
const METHOD: &str = "sums of a curvature";

/// Where sums stand; their matrices are tensors.
#[derive(Serialize, Deserialize)]
struct Facts {
    /// Which entries are summed.
    form: Form,
    /// How the Fisher matrix is estimated.
    estimate: FisherEstimate,
    /// The uncertain weights.
    selected: Vec<SelectedRecord>,
    /// What was summed so far.
    fit: FitSums,
}

/// Sums under way as plain data.
pub(crate) fn kept(sums: &Accumulator) -> SavedState {
    let mut tensors = Tensors::default();
    add_sums(sums, &mut tensors);
    let selected = add_selection(sums.selection(), &mut tensors);
    let facts = Facts { form: sums.form(), estimate: sums.estimate(), selected, fit: *sums.fit() };
    SavedState::new(METHOD, &facts, tensors).after(format!("after example {}", sums.fit().examples))
}

/// The sums again, which must be of these weights in this form.
pub(crate) fn resumed<T: Precision>(
    state: SavedState,
    network: &Network<T>,
    chosen: &Selection,
    (form, estimate): (Form, FisherEstimate),
) -> Result<Accumulator, LaplaceError> {
    let (facts, mut tensors) = state.open::<Facts>(METHOD)?;
    let same = facts.form == form
        && facts.estimate == estimate
        && read_selection(network.graph(), &facts.selected, &mut tensors)? == *chosen;
    if !same {
        let problem =
            "the interrupted fit was for other weights or another curvature: start again without it";
        return Err(LaplaceError::Request(problem.into()));
    }
    let blocks = sums(network, chosen, form, estimate, &mut tensors)?;
    let mut out = Accumulator::new(network, chosen, form, estimate)?;
    out.restore(blocks, facts.fit)?;
    Ok(out)
}
