//! What has to be computed: from the end of the network back to the image, the pairs of positions that each layer needs of the one before.
//!
//! Behind the last layer with positions only `K[p, p]` counts. A pool of windows of s needs offsets `q - p` up to `s - 1` further, a convolution none: with the 28 x 28
//! architecture of the specification that is 136 pairs of rows and 136 of columns behind the first convolution, `136² = 18,496` of the 676² pairs of positions.
//!
//! Layers are put together to *segments*, whose rows of covariances never leave the first cache: a filter, an activation, a pool.

use super::layers::{ImageLayer, ImageLayerError, Slide, check};
use super::pairs::{Pairs, Terms, diagonal, filtered, pooled};
use crate::infinite::Activation;

/// Most pairs of positions in one layer: so many of 16 doubles are 128 MiB.
const MOST_PAIRS: usize = 1 << 20;

/// Layers as they are computed, for images of one shape.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Channels, height, width.
    pub(super) shape: [usize; 3],
    /// Pairs of rows and pairs of columns of the image.
    pub(super) image: [Pairs; 2],
    pub(super) segments: Vec<Segment>,
    /// Activations of the fully connected layers.
    pub(super) dense: Vec<Activation>,
    /// Numbers of one prepared image: pixels, and variances before each activation with what its dual map makes of them.
    pub(super) columns: usize,
}

/// Filter, activation, pool; each of them may be missing.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// Sums behind the filter: which pairs of rows, and which pairs of columns, of what stands before they are made of.
    pub(super) filter: [Terms; 2],
    /// Pairs of rows and pairs of columns behind the filter.
    pub(super) pairs: [Pairs; 2],
    /// Width of the image behind the filter.
    pub(super) width: usize,
    /// The convolution's number among the layers with parameters.
    pub(super) layer: Option<usize>,
    /// What stands in front of the filter's sums: one over its size and, at the image, one over the channels.
    pub(super) share: f64,
    pub(super) activation: Option<Activated>,
    pub(super) pool: Option<Pool>,
    /// How many pairs of rows, and of columns, there are behind it.
    pub(super) outputs: [usize; 2],
}

/// An activation and where its variances stand among the numbers of a prepared image: one for each position, in rows; behind them what the dual map makes of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activated {
    pub(super) activation: Activation,
    pub(super) variances: usize,
    pub(super) scales: usize,
}

/// A pool.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// For each pair of rows before it, the pairs of rows behind it that it belongs to.
    pub(super) rows: Terms,
    /// For each pair of columns behind it, those before it.
    pub(super) columns: Terms,
    /// One over the square of the window's size.
    pub(super) share: f64,
}

/// Layers of one segment, before their pairs are known.
#[derive(Default)]
struct Draft {
    filter: Option<([Slide; 2], usize)>,
    /// Height and width behind the filter.
    image: [usize; 2],
    activation: Option<Activation>,
    pool: Option<[Slide; 2]>,
}

impl Plan {
    /// The plan of some layers.
    ///
    /// # Errors
    /// [`ImageLayerError`].
    pub(super) fn new(shape: [usize; 3], layers: &[ImageLayer]) -> Result<Self, ImageLayerError> {
        check(shape, layers)?;
        let (drafts, end, dense) = drafted(shape, layers);
        let mut wanted = end.map(diagonal);
        let mut segments = Vec::new();
        for draft in drafts.into_iter().rev() {
            let outputs = [wanted[0].len(), wanted[1].len()];
            let mut pool = None;
            if let Some(slides) = draft.pool {
                let (rows, down) = pooled(&slides[0], &wanted[0])?;
                let (columns, across) = pooled(&slides[1], &wanted[1])?;
                let size = (slides[0].size * slides[1].size) as f64;
                pool = Some(Pool {
                    rows: down.transposed(rows.len()),
                    columns: across,
                    share: 1.0 / (size * size),
                });
                wanted = [rows, columns];
            }
            let pairs = wanted;
            let (filter, layer, share);
            if let Some((slides, number)) = draft.filter {
                let (rows, down) = filtered(&slides[0], &pairs[0])?;
                let (columns, across) = filtered(&slides[1], &pairs[1])?;
                (wanted, filter) = ([rows, columns], [down, across]);
                (layer, share) = (Some(number), 1.0 / (slides[0].size * slides[1].size) as f64);
            } else {
                filter = [Terms::identity(pairs[0].len()), Terms::identity(pairs[1].len())];
                (wanted, layer, share) = (pairs.clone(), None, 1.0);
            }
            let count = [&pairs, &wanted].map(|pairs| pairs[0].len().saturating_mul(pairs[1].len()));
            let most = count[0].max(count[1]);
            if most > MOST_PAIRS {
                return Err(ImageLayerError::Pairs { pairs: most, most: MOST_PAIRS });
            }
            // Columns are numbered when all segments are there.
            let activation =
                draft.activation.map(|activation| Activated { activation, variances: 0, scales: 0 });
            let width = draft.image[1];
            segments.push((
                Segment { filter, pairs, width, layer, share, activation, pool, outputs },
                draft.image,
            ));
        }
        segments.reverse();
        let mut columns = shape.iter().product();
        for (segment, image) in &mut segments {
            if let Some(activated) = &mut segment.activation {
                let positions = image[0] * image[1];
                (activated.variances, activated.scales) = (columns, columns + positions);
                columns += 2 * positions;
            }
        }
        let mut segments: Vec<Segment> = segments.into_iter().map(|(segment, _)| segment).collect();
        segments[0].share /= shape[0] as f64;
        Ok(Self { shape, image: wanted, segments, dense, columns })
    }

    /// Pairs of positions behind the last segment, whose mean goes on.
    pub(super) fn positions(&self) -> usize {
        self.segments.last().map_or(0, |segment| segment.outputs[0] * segment.outputs[1])
    }

    /// Convolutions: layers with parameters in front of the fully connected ones.
    pub(super) fn convolutions(&self) -> usize {
        self.segments.iter().filter(|segment| segment.layer.is_some()).count()
    }

    /// What stands in front of the covariances of a layer with parameters.
    pub(super) fn share(&self, layer: usize) -> f64 {
        let own = self.segments.iter().find(|segment| segment.layer == Some(layer));
        own.map_or(1.0, |segment| segment.share)
    }

    /// Pairs of columns and numbers of covariances before a segment's filter.
    pub(super) fn before(&self, segment: usize) -> usize {
        segment.checked_sub(1).map_or(self.image[1].len(), |before| self.segments[before].outputs[1])
    }
}

/// Segments, the size of the image behind them, and the activations of fully connected layers.
fn drafted(shape: [usize; 3], layers: &[ImageLayer]) -> (Vec<Draft>, [usize; 2], Vec<Activation>) {
    let mut image = [shape[1], shape[2]];
    let (mut drafts, mut dense, mut convolutions): (Vec<Draft>, _, _) = (Vec::new(), Vec::new(), 0);
    let mut flat = false;
    for &layer in layers {
        let slides = || [0, 1].map(|axis| layer.slide(image[axis], axis).expect("layers were checked"));
        match layer {
            ImageLayer::Dense => flat = true,
            ImageLayer::Activation(activation) if flat => dense.push(activation),
            ImageLayer::Activation(activation) => match drafts.last_mut() {
                Some(last) if last.pool.is_none() => last.activation = Some(activation),
                _ => drafts.push(Draft { image, activation: Some(activation), ..Draft::default() }),
            },
            ImageLayer::Convolution { .. } => {
                let slides = slides();
                image = slides.map(|slide| slide.outputs);
                drafts.push(Draft { filter: Some((slides, convolutions)), image, ..Draft::default() });
                convolutions += 1;
            }
            ImageLayer::AveragePool { .. } => {
                let slides = slides();
                match drafts.last_mut() {
                    Some(last) if last.pool.is_none() => last.pool = Some(slides),
                    _ => drafts.push(Draft { image, pool: Some(slides), ..Draft::default() }),
                }
                image = slides.map(|slide| slide.outputs);
            }
        }
    }
    if drafts.is_empty() {
        drafts.push(Draft { image, ..Draft::default() });
    }
    (drafts, image, dense)
}
