//! Chosen images beside each other: a row for each class, in the order in which they were chosen.

use super::chosen::Chosen;
use super::classes::ClassImages;
use posterior_report::{Image, ImageLayout, Item, Picture};

/// Grey between images, and where none was chosen.
const BETWEEN: u8 = 96;
/// How many images of a side fit beside each other, with a pixel between them.
fn fitting(side: usize) -> usize {
    (Image::LONGEST_SIDE - 1) / (side + 1)
}

/// The picture, of the first images and classes where not all fit.
pub(crate) fn mosaic(title: &str, images: &ClassImages, chosen: &[Chosen], points: usize) -> Item {
    let [height, width] = images.sides;
    let (rows, columns) = (chosen.len().min(fitting(height)), points.min(fitting(width)));
    let (high, wide) = (rows * (height + 1) + 1, columns * (width + 1) + 1);
    let mut pixels = vec![BETWEEN; high * wide];
    for (class, choice) in chosen.iter().enumerate().take(rows) {
        for (place, &row) in choice.rows.iter().enumerate().take(columns) {
            let corner = (class * (height + 1) + 1) * wide + place * (width + 1) + 1;
            for (line, source) in images.image(class, row).chunks_exact(width).enumerate() {
                pixels[corner + line * wide..][..width].copy_from_slice(source);
            }
        }
    }
    let mut caption = String::from("Each row is a class, its images in the order in which they were chosen.");
    if rows < chosen.len() || columns < points {
        caption += &format!(
            " Shown: the first {columns} of {points} images of the first {rows} of {} classes.",
            chosen.len()
        );
    }
    let image = Image { layout: ImageLayout::Grey, height: high, width: wide, pixels };
    Item::Picture(Picture { title: title.into(), image, caption })
}
