//! Choosing parameters and entries, and the flat vector.

use crate::operation::{BatchNorm, Operation};
use crate::{Array, Graph, GraphBuilder, NetworkError, Selection, Value};

/// Weights `a` [2, 3] and [2], batch norm of 2, weights `b` [1, 2] and [1]: 6 + 2 + 2 + 2 + 2 + 1 trainable values.
fn graph() -> Graph {
    let mut b = GraphBuilder::new(&[3]).unwrap();
    let x = b.linear("a", 2, Value::INPUT).unwrap();
    let x = b.add("norm", Operation::BatchNorm(BatchNorm::default()), &[x]).unwrap();
    let x = b.linear("b", 1, x).unwrap();
    b.finish(x).unwrap()
}

fn names(selection: &Selection) -> Vec<&str> {
    selection.parts().iter().map(|p| p.name.as_str()).collect()
}

/// Parameter `p` holds `100 p, 100 p + 1, ...`.
fn numbered(graph: &Graph) -> Vec<Array<f64>> {
    let one = |(p, slot): (usize, &crate::graph::ParameterSlot)| {
        Array::new(slot.shape.clone(), (0..slot.len()).map(|i| (100 * p + i) as f64).collect())
    };
    graph.parameters().iter().enumerate().map(one).collect()
}

#[test]
fn all_that_is_trained() {
    let graph = graph();
    let all = Selection::all(&graph);
    assert_eq!(names(&all), ["a.weight", "a.bias", "norm.weight", "norm.bias", "b.weight", "b.bias"]);
    assert_eq!((all.len(), graph.trainable(), all.is_empty()), (15, 15, false));
    let places: Vec<(usize, usize)> = all.parts().iter().map(|p| (p.offset, p.length)).collect();
    assert_eq!(places, [(0, 6), (6, 2), (8, 2), (10, 2), (12, 2), (14, 1)]);
    assert_eq!(all.part(6).map(|p| p.offset), Some(12));
    assert_eq!(all.part(4), None, "a running mean");
}

#[test]
fn by_pattern() {
    let graph = graph();
    let matching = |patterns: &[&str]| Selection::matching(&graph, patterns);
    assert_eq!(names(&matching(&["b.bias", "a.*"]).unwrap()), ["a.weight", "a.bias", "b.bias"]);
    assert_eq!(names(&matching(&["?.weight"]).unwrap()), ["a.weight", "b.weight"]);
    assert_eq!(names(&matching(&["[b-z].weight", "b.weight"]).unwrap()), ["b.weight"]);
    assert_eq!(names(&matching(&["*"]).unwrap()).len(), 6);
    for wrong in ["c.*", "norm.running_mean", "[", ""] {
        let Err(NetworkError::NoSuchParameter { pattern, available }) = matching(&["a.*", wrong]) else {
            panic!("`{wrong}` selected something");
        };
        assert_eq!(pattern, wrong);
        assert!(available.contains("norm.weight, norm.bias, b.weight") && !available.contains("running"));
    }
}

#[test]
fn the_last_layer() {
    let graph = graph();
    assert_eq!(names(&Selection::last_layer(&graph).unwrap()), ["b.weight", "b.bias"]);
    let empty = GraphBuilder::new(&[3]).unwrap().finish(Value::INPUT).unwrap();
    assert!(matches!(Selection::last_layer(&empty), Err(NetworkError::NoSuchParameter { .. })));
    assert!(Selection::all(&empty).is_empty());
    let mut b = GraphBuilder::new(&[3]).unwrap();
    let x = b.linear("a", 3, Value::INPUT).unwrap();
    let x = b.linear("frozen", 3, x).unwrap();
    b.describe("frozen.weight", false, None).unwrap();
    b.describe("frozen.bias", false, None).unwrap();
    let graph = b.finish(x).unwrap();
    assert_eq!(names(&Selection::last_layer(&graph).unwrap()), ["a.weight", "a.bias"]);
}

#[test]
fn masks_and_masks_of_masks() {
    let graph = graph();
    let all = Selection::all(&graph);
    let parameters = numbered(&graph);
    // Of a.weight entries 1, 4, 5; all of a.bias; none of norm; b.weight's second; not b.bias.
    let mut mask = vec![false; 15];
    for i in [1, 4, 5, 6, 7, 13] {
        mask[i] = true;
    }
    let some = all.masked(&graph, &mask);
    assert_eq!(names(&some), ["a.weight", "a.bias", "b.weight"]);
    assert_eq!(some.parts()[0].indices, Some(vec![1, 4, 5]));
    assert_eq!(some.parts()[1].indices, None, "all of it");
    assert_eq!(some.flatten(&parameters), [1.0, 4.0, 5.0, 100.0, 101.0, 601.0]);
    let fewer = some.masked(&graph, &[false, true, true, true, false, false]);
    assert_eq!(fewer.flatten(&parameters), [4.0, 5.0, 100.0]);
    let mut changed = parameters.clone();
    fewer.assign(&[-1.0, -2.0, -3.0], &mut changed);
    assert_eq!(changed[0].values(), [0.0, 1.0, 2.0, 3.0, -1.0, -2.0]);
    assert_eq!(changed[1].values(), [-3.0, 101.0]);
    assert_eq!(changed[2..], parameters[2..]);
    assert_eq!(all.masked(&graph, &[true; 15]), all);
    assert!(all.masked(&graph, &[false; 15]).is_empty());
    assert!(std::panic::catch_unwind(|| all.masked(&graph, &[true])).is_err());
}

#[test]
fn flat_vectors_there_and_back() {
    let graph = graph();
    let parameters = numbered(&graph);
    for selection in [Selection::all(&graph), Selection::matching(&graph, &["*.bias"]).unwrap()] {
        let flat = selection.flatten(&parameters);
        assert_eq!(flat.len(), selection.len());
        let mut cleared = parameters.clone();
        selection.assign(&vec![0.0; flat.len()], &mut cleared);
        assert!(selection.flatten(&cleared).iter().all(|&v| v == 0.0));
        assert_eq!(cleared[4..6], parameters[4..6], "statistics stay");
        selection.assign(&flat, &mut cleared);
        assert_eq!(cleared, parameters);
    }
    let all = Selection::all(&graph);
    let mut p = parameters.clone();
    assert!(std::panic::catch_unwind(move || all.assign(&[1.0], &mut p)).is_err());
}
