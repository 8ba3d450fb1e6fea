//! A plain picture of pixels.

use crate::{
    figure::{Figure, SIZE},
    input::{Image, Picture},
    png,
    svg::Surface,
};

/// No picture is drawn higher than so many times its width.
const HIGHEST: f64 = 2.0;

/// The figure; `None` without pixels.
pub(crate) fn picture(input: &Picture) -> Option<Figure> {
    let image = &input.image;
    if image.pixels.is_empty() {
        return None;
    }
    let mut caption = input.caption.clone();
    let svg = match png::data_uri(image) {
        Some(address) => {
            let height = SIZE.0 * (image.height as f64 / image.width as f64).min(HIGHEST);
            let mut s = Surface::new(SIZE.0, height, input.title.clone());
            s.image("pixels", (0.0, 0.0), (SIZE.0, height), false, &address);
            s.finish("plot")
        }
        None => {
            caption += &format!(
                " Not drawn: its sides are not between 1 and {} pixels, or its bytes are not as many as its pixels.",
                Image::LONGEST_SIDE
            );
            String::new()
        }
    };
    Some(Figure {
        title: input.title.clone(),
        svg,
        caption: caption.trim().to_owned(),
        legend: Vec::new(),
        wide: false,
    })
}
