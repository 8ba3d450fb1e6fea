//! Bytes that are alive while examples are worked through, besides sums: an upper bound for every interleaving of threads.
//!
//! Threads that work through batches of their own may all be at their largest at one time, and whichever of them asks for a product of its own finds the others' threads helping it: so what one
//! batch needs is counted once for each worker, and what a product allocates for each thread once for each of both.

use crate::problem::Size;
use posterior_gp::function_space::FunctionSpacePosterior;
use posterior_linear::curvature::{layers, strip_batches, strips_at_once};
use posterior_networks::derivatives::{
    FEATURES, GRADIENTS, ProductsThrough, tangent_feature_size, widest_connected,
};
use posterior_networks::{Graph, Network, Node, Operation, Precision, Selection, WAITING_BYTES};
use posterior_tangent::{Head, batch_size, passing_batch_size, segments, through_batch_size, weight_matrix};

/// Bytes of a piece of the Jacobian ([`Network::jacobian_pieces`]).
const PIECE: u64 = 32 << 20;

/// Columns from which a Gram matrix is made in one part for all threads.
const SHARED_GRAM: u64 = 512;

/// What batches are sent through.
pub(crate) struct Workspace<'a, T> {
    pub(crate) network: &'a Network<T>,
    pub(crate) selection: &'a Selection,
    pub(crate) examples: u64,
    pub(crate) outputs: u64,
}

/// How rows that come back from the network are used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Inputs and sensitivities of layers.
    Factors,
    /// Squares of gradients.
    Squares,
    /// Rows of the Jacobian over a layer, or all weights where it is None.
    Rows { by_layer: bool },
}

impl<'a, T: Precision> Workspace<'a, T> {
    /// For all examples that a posterior is fitted to.
    pub(crate) fn of(size: &Size<'a, T>) -> Self {
        let &Size { network, selection, examples, likelihood, .. } = size;
        Self { network, selection, examples: examples as u64, outputs: likelihood.outputs() as u64 }
    }

    /// For so many inputs that are predicted.
    pub(crate) fn at(network: &'a Network<T>, selection: &'a Selection, examples: usize) -> Self {
        let outputs = network.graph().output_shape().iter().product::<usize>() as u64;
        Self { network, selection, examples: examples as u64, outputs }
    }

    fn number(&self) -> u64 {
        size_of::<T>() as u64
    }

    fn graph(&self) -> &Graph {
        self.network.graph()
    }

    fn activations(&self) -> u64 {
        self.graph().activations() as u64
    }

    /// Examples of a batch with `width` rows each.
    pub(crate) fn batch(&self, width: u64) -> u64 {
        (batch_size(self.network, width.max(1) as usize) as u64).min(self.examples)
    }

    /// Workers with batches of their own, of examples with `width` rows each, where one's sums take so many bytes: no more than there are strips. None where there is no room for private sums.
    pub(crate) fn workers(&self, sums: u64, width: u64) -> Option<u64> {
        let at_once = strips_at_once(sums.try_into().unwrap_or(usize::MAX))?;
        let batches = self.examples.div_ceil(self.batch(width).max(1));
        let strips = batches.div_ceil(strip_batches(batches as usize) as u64);
        Some(strips.min(at_once as u64).max(1))
    }

    /// Inputs as they were read and gathered, targets, and everything that a forward pass keeps.
    fn forward(&self, batch: u64) -> u64 {
        let input = self.graph().input_shape().iter().product::<usize>() as u64;
        batch * ((2 * input + self.activations()) * self.number() + 16 * self.outputs)
    }

    /// A pass forwards over all examples that nothing comes back from: inputs as they were read, gathered and taken by the network.
    pub(crate) fn pass(&self) -> u64 {
        let batch = self.batch(1);
        let input = self.graph().input_shape().iter().product::<usize>() as u64;
        self.forward(batch) + batch * input * self.number()
    }

    /// Sensitivities of every node.
    fn backward(&self, batch: u64, width: u64) -> u64 {
        batch * width * (self.activations() + 2 * self.outputs) * self.number()
    }

    /// What [`posterior_networks::add_gram`] makes of so many columns, for one caller.
    fn gram(&self, columns: u64) -> u64 {
        let parts = if columns >= SHARED_GRAM { 2 } else { rayon::current_num_threads() as u64 };
        columns.saturating_mul(columns).saturating_mul(self.number() * parts)
    }

    /// One worker's bytes for an output layer, whose features are all that is needed.
    pub(crate) fn head(&self, head: &Head, dense: bool) -> u64 {
        let batch = self.batch(1);
        let columns = head.features as u64 + u64::from(head.bias);
        let own = if dense {
            // Features with ones, the same weighted, output curvatures, one product.
            batch * (2 * columns * self.number() + self.outputs * self.outputs * 8)
                + columns * columns * self.number()
        } else {
            batch * self.outputs * 8
                + self.gram(head.features as u64)
                + self.outputs * self.outputs * 16 * rayon::current_num_threads() as u64
        };
        self.forward(batch) + own
    }

    /// Bytes of the passes by which the rows of a kernel come, so many examples at a time.
    pub(crate) fn rows(&self, at_once: u64) -> u64 {
        self.forward(at_once) + self.backward(at_once, self.outputs)
    }

    /// One worker's bytes for rows that are sent back through the network.
    pub(crate) fn batch_bytes(&self, width: u64, used: Use) -> u64 {
        let batch = self.batch(width);
        let both = self.forward(batch) + self.backward(batch, width);
        let own = match used {
            Use::Factors => self.factors(batch, width),
            Use::Squares => {
                let largest = self.largest_parameter();
                let within = self.network.examples_at_once() as u64 / width.max(1);
                let piece = batch.min(within).min(GRADIENTS as u64 / (largest * width).max(1)).max(1);
                // The pass is made again, and the roots of all examples are kept beside it.
                let again = self.forward(piece) + self.backward(piece, width);
                again
                    + batch * width * self.outputs * self.number() * 2
                    + self.squares(piece, width)
                    + 8 * self.selection.len() as u64
            }
            Use::Rows { by_layer } => {
                let weights = if by_layer { self.largest_layer() } else { self.selection.len() as u64 };
                let row = weights.saturating_mul(width * self.number());
                let piece = (PIECE / row.max(1)).clamp(1, batch.max(1));
                // Buffers of other layers wait, and those of the whole batch beside those of a piece.
                let layers = if by_layer { self.selection.len() as u64 } else { weights };
                let rows = piece * row * layers.div_ceil(weights.max(1));
                2 * (self.forward(piece) + self.backward(piece, width)) + rows + self.gram(weights)
            }
        };
        // What waits of the pass before, in buffers of other sizes.
        both + own + self.forward(batch)
    }

    /// Bytes of predictions by an output layer alone: the forward pass, features with ones, turned features and their squares, each thread's covariance, and that of a dense block of weights.
    pub(crate) fn predicted_head(&self, head: &Head, dense: u64) -> u64 {
        let batch = self.batch(1);
        let columns = head.features as u64 + u64::from(head.bias);
        let threads = rayon::current_num_threads() as u64;
        self.forward(batch)
            + batch * (columns * (2 * self.number() + 8) + 2 * self.outputs * self.number())
            + threads * self.outputs * (self.outputs + columns) * 24
            + self.selection.len() as u64 * 8
            + dense.saturating_mul(dense).saturating_mul(16)
    }

    /// Bytes of predictions by passes back: what every tapped layer keeps, the turned copies of the largest, and rows over blocks of `rows` weights, in both precisions, with what is made of them.
    pub(crate) fn predicted_backwards(&self, rows: u64) -> u64 {
        let (batch, width) = (self.batch(self.outputs), self.outputs);
        let both = self.forward(batch) + self.backward(batch, width);
        let taps = both + 2 * self.factors(batch, width) + batch * width * width * self.number();
        // By parameter and together; in doubles, what low rank takes from them, whitened.
        let row = rows.saturating_mul(width * (2 * self.number() + 32));
        let piece = (PIECE / rows.saturating_mul(width * self.number()).max(1)).clamp(1, batch.max(1));
        let dense =
            if rows > 0 { self.forward(piece) + self.backward(piece, width) + piece * row } else { 0 };
        both + taps.max(dense)
    }

    /// Bytes of predictions from `rows` observed numbers: the wide network, kernels of some inputs with all points, as they are and whitened.
    pub(crate) fn predicted_dually(&self, rows: u64) -> u64 {
        let each = FunctionSpacePosterior::points_at_once(rows as usize, self.outputs as usize) as u64;
        let each = each.min(self.examples);
        let points = rows.div_ceil(self.outputs.max(1)).max(each);
        self.kernel(points, self.outputs)
            .saturating_add(rows * each * self.outputs * 24)
            .saturating_add(self.forward(each))
    }

    /// Operations of a pass with `columns` vectors at once, forwards and backwards, over all examples.
    pub(crate) fn tangent_flops(&self, columns: u64) -> f64 {
        let both = ProductsThrough::plan(self.graph(), self.selection, columns as usize).flops;
        self.examples as f64 * (self.graph().flops() as f64 + both)
    }

    /// Bytes of a pass with `columns` vectors at once, forwards and backwards: by tangents of what is alive at one time, or by features of a few examples ([`Network::products_through`]).
    pub(crate) fn tangents(&self, columns: u64) -> u64 {
        self.along(columns, true)
    }

    /// Bytes of a pass with `columns` vectors at once in one direction.
    pub(crate) fn one_way(&self, columns: u64) -> u64 {
        self.along(columns, false)
    }

    fn along(&self, columns: u64, both: bool) -> u64 {
        let graph = self.graph();
        let batch = (passing_batch_size(self.network, columns.max(1) as usize) as u64).min(self.examples);
        let tangents = batch;
        let threads = rayon::current_num_threads() as u64;
        let live = graph.live_values() as u64;
        let patches = self.own_nodes().map(|node| self.patches(node, 0)).max().unwrap_or(0);
        // Weights spread by parameter; what threads hold of one layer.
        let largest_node = graph.nodes().iter().map(node_size).max().unwrap_or(0);
        let layer = self.largest_parameter() * columns + batch * largest_node;
        // On the way forwards what a node's own weights contribute, on the way back what another reader of a value sends, is beside what is alive.
        let alive = live + largest_node + 2 * self.outputs;
        let mut readers = vec![0; graph.nodes().len() + 1];
        graph
            .nodes()
            .iter()
            .flat_map(|n| &n.inputs)
            .for_each(|v| readers[v.node().map_or(0, |n| n + 1)] += 1);
        let shared =
            graph.nodes().iter().zip(&readers[1..]).filter(|(_, r)| **r > 1).map(|(n, _)| node_size(n));
        let back = live + shared.max().unwrap_or(0) + 2 * self.outputs;
        let (way, piece) = self.network.products_through_at_once(self.selection, columns as usize);
        let through = through_batch_size(self.network, self.selection, columns as usize) as u64;
        let batch = if both { batch.max(through.min(self.examples)) } else { batch };
        let features = if both && way.by_features {
            let size = self.outputs * tangent_feature_size(graph, self.selection).max(1) as u64;
            let piece = (piece as u64).min(batch);
            let again = if piece < batch { self.forward(piece) } else { 0 };
            // Fully connected layers make their outputs for all vectors.
            let made = columns * widest_connected(graph) as u64;
            let blocks = 5 * columns * self.outputs;
            piece * (size + (self.outputs * back).max(made + blocks)) * self.number() + again
        } else {
            0
        };
        // Vectors and sums by group and joined, as they come and as they go.
        let vectors = 6 * columns * self.selection.len() as u64;
        let held = layer * threads.min(columns).max(1) + patches * threads + vectors;
        self.forward(batch) + features.max(tangents * columns * alive * self.number()) + held * self.number()
    }

    /// Bytes of the kernel between points: features of two pieces, one turned, and the passes that make them, in double precision.
    pub(crate) fn kernel(&self, points: u64, width: u64) -> u64 {
        let size = tangent_feature_size(self.graph(), self.selection).max(1) as u64 * width.max(1);
        let within = self.network.examples_at_once() as u64 / width.max(1);
        let piece = (FEATURES as u64 / size).min(within).max(1).min(points);
        let input = self.graph().input_shape().iter().product::<usize>() as u64;
        let pass = piece * (self.activations() * (1 + width) + input * 2) * 8;
        let weights = self.graph().parameters().iter().map(|p| p.len() as u64).sum::<u64>();
        // The wide network, the points in both precisions.
        3 * piece * size * 8 + 2 * pass + weights * 8 + points * (input * 16 + width * self.outputs * 16)
    }

    fn largest_parameter(&self) -> u64 {
        let parts = self.selection.parts().iter();
        parts.map(|p| p.shape.iter().product::<usize>() as u64).max().unwrap_or(1)
    }

    fn largest_layer(&self) -> u64 {
        let segments = segments(self.graph(), self.selection);
        let sizes = layers(&segments)
            .into_iter()
            .map(|(_, range)| segments[range].iter().map(|s| s.range.len() as u64).sum::<u64>());
        sizes.max().unwrap_or(0)
    }

    fn is_selected(&self, parameter: usize) -> bool {
        self.selection.parts().iter().any(|part| part.parameter == parameter)
    }

    /// Nodes with selected parameters.
    fn own_nodes(&self) -> impl Iterator<Item = &Node> {
        let selected = |n: &&Node| n.parameters.iter().any(|p| self.is_selected(*p));
        self.network.graph().nodes().iter().filter(selected)
    }

    /// Patches of one example at a convolution (or none), and values of its sensitivities by position.
    fn patches(&self, node: &Node, width: u64) -> u64 {
        let Operation::Convolution(convolution) = &node.operation else { return 0 };
        let shape = &self.graph().parameters()[node.parameters[0]].shape;
        let columns = shape[1..].iter().product::<usize>() as u64;
        let input = self.graph().shape(node.inputs[0]);
        let positions = |shape: &[usize]| shape[1..].iter().product::<usize>() as u64;
        if convolution.transposed {
            width * positions(input) * columns + input.iter().product::<usize>() as u64
        } else {
            positions(&node.shape) * columns + width * node_size(node)
        }
    }

    /// Bytes of weights that several nodes share, whose inputs and sensitivities are kept of all uses and then put side by side.
    fn joined(&self, batch: u64, width: u64) -> u64 {
        let graph = self.graph();
        let mut uses = vec![0u64; graph.parameters().len()];
        graph.nodes().iter().flat_map(|n| &n.parameters).for_each(|p| uses[*p] += 1);
        let several = |n: &&Node| n.parameters.first().is_some_and(|p| uses[*p] > 1);
        let each = self.own_nodes().filter(several).map(|node| {
            let input: u64 =
                node.inputs.iter().map(|v| graph.shape(*v).iter().product::<usize>() as u64).sum();
            input + self.patches(node, width) + width * node_size(node)
        });
        2 * batch * each.sum::<u64>() * self.number()
    }

    /// Factors of the largest layer, gradients of all parameters that are no weight matrices, and products of factors.
    fn factors(&self, batch: u64, width: u64) -> u64 {
        let (mut largest, mut gram, mut vectors) = (0u64, 0u64, 0u64);
        for node in self.own_nodes() {
            let scaled = if matches!(node.operation, Operation::Convolution(_)) { 1 } else { 0 };
            let own = self.patches(node, width) + scaled * width * node_size(node);
            largest = largest.max(batch * own * self.number());
            for &parameter in node.parameters.iter().filter(|p| self.is_selected(**p)) {
                let length = self.graph().parameters()[parameter].len() as u64;
                match weight_matrix(self.graph(), parameter) {
                    Some(m) => {
                        gram = gram.max(self.gram(m.outputs as u64)).max(self.gram(m.inputs as u64));
                    }
                    None => {
                        vectors += batch * width * length * self.number();
                        gram = gram.max(self.gram(length.min(1024)));
                    }
                }
            }
        }
        largest + gram + vectors + self.joined(batch, width)
    }

    /// Squares of the largest layer: factors where there are some, else gradients by example.
    fn squares(&self, batch: u64, width: u64) -> u64 {
        let one = |node: &Node| {
            let parameters = node.parameters.iter().map(|p| self.graph().parameters()[*p].len() as u64);
            let input: u64 =
                node.inputs.iter().map(|v| self.graph().shape(*v).iter().product::<usize>() as u64).sum();
            let outer = matches!(node.operation, Operation::Linear(_)) && node.shape.len() == 1;
            let gradients = if outer { node_size(node) } else { parameters.max().unwrap_or(0) };
            batch * (width * (gradients + 2 * node_size(node)) + 2 * input + self.patches(node, width))
        };
        self.own_nodes().map(one).max().unwrap_or(0) * self.number() + self.joined(batch, width)
    }
}

/// Bytes of a stage after one that took so many: buffers of the stage before wait, in other sizes.
pub(crate) fn after(before: u64, own: u64) -> u64 {
    own.saturating_add(before.min(WAITING_BYTES as u64))
}

fn node_size(node: &Node) -> u64 {
    node.shape.iter().product::<usize>() as u64
}

/// Bytes of products forward with so many vectors for each of so many inputs, and of their outputs in doubles.
pub(crate) fn moved_bytes<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: usize,
    vectors: usize,
) -> u64 {
    let space = Workspace::at(network, selection, examples);
    space.tangents(vectors as u64).saturating_add(examples as u64 * space.outputs * vectors as u64 * 8)
}
