//! Which parameters an inference method treats as uncertain.

use super::error::NetworkError;
use super::structure::Graph;

/// One parameter of a [`Selection`], and its place in the flat vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedParameter {
    /// Position in [`Graph::parameters`].
    pub parameter: usize,
    /// Name.
    pub name: String,
    /// Shape of the whole parameter.
    pub shape: Vec<usize>,
    /// Where its entries begin in the flat vector.
    pub offset: usize,
    /// Entries in the flat vector.
    pub length: usize,
    /// The entries that are selected, ascending; None for all.
    pub indices: Option<Vec<usize>>,
}

/// Parameters (or entries of them) as one flat vector with named segments, in the order of [`Graph::parameters`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    parts: Vec<SelectedParameter>,
    total: usize,
}

impl Selection {
    fn collect(graph: &Graph, mut take: impl FnMut(usize) -> Option<Option<Vec<usize>>>) -> Self {
        let mut total = 0;
        let mut parts = Vec::new();
        for (position, slot) in graph.parameters.iter().enumerate().filter(|(_, slot)| slot.trainable) {
            if let Some(indices) = take(position) {
                let length = indices.as_ref().map_or(slot.len(), Vec::len);
                if length > 0 {
                    parts.push(SelectedParameter {
                        parameter: position,
                        name: slot.name.clone(),
                        shape: slot.shape.clone(),
                        offset: total,
                        length,
                        indices,
                    });
                    total += length;
                }
            }
        }
        Self { parts, total }
    }

    /// Every trainable parameter.
    pub fn all(graph: &Graph) -> Self {
        Self::collect(graph, |_| Some(None))
    }

    /// Trainable parameters whose name matches one of the patterns (`*` any characters, `?` one, `[ab]` one of).
    ///
    /// # Errors
    /// When a pattern is malformed or matches nothing.
    pub fn matching(graph: &Graph, patterns: &[&str]) -> Result<Self, NetworkError> {
        let missing = |pattern: &str| NetworkError::NoSuchParameter {
            pattern: pattern.into(),
            available: graph
                .parameters
                .iter()
                .filter(|p| p.trainable)
                .map(|p| p.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        };
        let mut compiled = Vec::new();
        for &pattern in patterns {
            let glob = glob::Pattern::new(pattern).map_err(|_| missing(pattern))?;
            if !graph.parameters.iter().any(|slot| slot.trainable && glob.matches(&slot.name)) {
                return Err(missing(pattern));
            }
            compiled.push(glob);
        }
        let chosen =
            |position: usize| compiled.iter().any(|glob| glob.matches(&graph.parameters[position].name));
        Ok(Self::collect(graph, |position| chosen(position).then_some(None)))
    }

    /// The parameters of the last node that has trainable ones.
    ///
    /// # Errors
    /// When the network has no trainable parameter.
    pub fn last_layer(graph: &Graph) -> Result<Self, NetworkError> {
        let trainable = |p: &usize| graph.parameters[*p].trainable;
        let last = graph.nodes.iter().rev().find(|node| node.parameters.iter().any(trainable));
        let last = last.ok_or_else(|| NetworkError::NoSuchParameter {
            pattern: "the last layer".into(),
            available: "none".into(),
        })?;
        Ok(Self::collect(graph, |position| last.parameters.contains(&position).then_some(None)))
    }

    /// The entries of this selection where `mask` is true (a sub-network).
    ///
    /// # Panics
    /// When the mask's length is not [`Self::len`].
    pub fn masked(&self, graph: &Graph, mask: &[bool]) -> Self {
        assert_eq!(mask.len(), self.total, "one entry of the mask for each selected parameter entry");
        Self::collect(graph, |position| {
            let part = self.parts.iter().find(|part| part.parameter == position)?;
            let mask = &mask[part.offset..part.offset + part.length];
            let entry = |i: usize| part.indices.as_ref().map_or(i, |list| list[i]);
            let indices: Vec<usize> = (0..part.length).filter(|&i| mask[i]).map(entry).collect();
            Some((indices.len() < part.shape.iter().product()).then_some(indices))
        })
    }

    /// Length of the flat vector.
    pub fn len(&self) -> usize {
        self.total
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The segments, in order.
    pub fn parts(&self) -> &[SelectedParameter] {
        &self.parts
    }

    /// The segment of a parameter, by its position in the graph.
    pub(crate) fn part(&self, parameter: usize) -> Option<&SelectedParameter> {
        self.parts.binary_search_by_key(&parameter, |part| part.parameter).ok().map(|i| &self.parts[i])
    }

    /// The selected values of `parameters` as one vector.
    #[inline(never)]
    pub fn flatten<T: crate::Precision>(&self, parameters: &[crate::Array<T>]) -> Vec<T> {
        let mut out = Vec::with_capacity(self.total);
        for part in &self.parts {
            let values = parameters[part.parameter].values();
            match &part.indices {
                None => out.extend_from_slice(values),
                Some(indices) => out.extend(indices.iter().map(|&i| values[i])),
            }
        }
        out
    }

    /// Writes a flat vector into `parameters`.
    ///
    /// # Panics
    /// When the vector's length is not [`Self::len`].
    #[inline(never)]
    pub fn assign<T: crate::Precision>(&self, flat: &[T], parameters: &mut [crate::Array<T>]) {
        assert_eq!(flat.len(), self.total, "one value for each selected entry");
        for part in &self.parts {
            let values = parameters[part.parameter].values_mut();
            let from = &flat[part.offset..part.offset + part.length];
            match &part.indices {
                None => values.copy_from_slice(from),
                Some(indices) => indices.iter().zip(from).for_each(|(&i, &v)| values[i] = v),
            }
        }
    }
}
