//! Pictures of pixels as PNG inside the page: addresses that begin with `data:` and are complete in themselves.

use crate::input::{Image, ImageLayout};
use base64::{Engine, engine::general_purpose::STANDARD};

/// A picture as a data URI; `None` if its size is 0 or too large, or its bytes are not as many as its pixels.
pub(crate) fn data_uri(image: &Image) -> Option<String> {
    let (height, width) = (image.height, image.width);
    let pixels = area(width, height)?;
    let bytes = &image.pixels;
    match image.layout {
        ImageLayout::Grey => encode(width, height, png::ColorType::Grayscale, bytes),
        ImageLayout::ColourPixels => encode(width, height, png::ColorType::Rgb, bytes),
        ImageLayout::ColourPlanes => {
            if bytes.len() != 3 * pixels {
                return None;
            }
            let mixed: Vec<u8> = (0..3 * pixels).map(|i| bytes[i % 3 * pixels + i / 3]).collect();
            encode(width, height, png::ColorType::Rgb, &mixed)
        }
    }
}

/// Red, green, blue and opacity of each pixel as a data URI, under the same conditions.
pub(crate) fn transparent_data_uri(width: usize, height: usize, pixels: &[[u8; 4]]) -> Option<String> {
    area(width, height)?;
    encode(width, height, png::ColorType::Rgba, pixels.as_flattened())
}

/// The number of pixels, if the sides are in range.
fn area(width: usize, height: usize) -> Option<usize> {
    let fits = |side: usize| (1..=Image::LONGEST_SIDE).contains(&side);
    (fits(width) && fits(height)).then(|| width * height)
}

fn encode(width: usize, height: usize, colour: png::ColorType, bytes: &[u8]) -> Option<String> {
    if bytes.len() != width * height * colour.samples() {
        return None;
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(bytes).ok()?;
    writer.finish().ok()?;
    Some(format!("data:image/png;base64,{}", STANDARD.encode(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a picture back.
    fn decode(uri: &str) -> (u32, u32, png::ColorType, Vec<u8>) {
        let file = STANDARD.decode(uri.strip_prefix("data:image/png;base64,").unwrap()).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        (info.width, info.height, info.color_type, bytes)
    }

    fn image(layout: ImageLayout, height: usize, width: usize, pixels: Vec<u8>) -> Image {
        Image { layout, height, width, pixels }
    }

    #[test]
    fn pixels_survive_the_way_there_and_back() {
        let grey: Vec<u8> = (0..6).map(|i| 40 * i).collect();
        let read = decode(&data_uri(&image(ImageLayout::Grey, 2, 3, grey.clone())).unwrap());
        assert_eq!(read, (3, 2, png::ColorType::Grayscale, grey));
        let planes: Vec<u8> = (0..12).collect();
        let read = decode(&data_uri(&image(ImageLayout::ColourPlanes, 2, 2, planes)).unwrap());
        assert_eq!(read.3, [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
        let pixels: Vec<u8> = (0..12).map(|i| 255 - i).collect();
        let read = decode(&data_uri(&image(ImageLayout::ColourPixels, 2, 2, pixels.clone())).unwrap());
        assert_eq!(read, (2, 2, png::ColorType::Rgb, pixels));
        let read = decode(&transparent_data_uri(1, 2, &[[1, 2, 3, 4], [5, 6, 7, 8]]).unwrap());
        assert_eq!(read, (1, 2, png::ColorType::Rgba, (1..9).collect()));
    }

    #[test]
    fn impossible_pictures_are_refused() {
        for (height, width, bytes) in [(0, 3, 0), (2, 2, 3), (2, 2, 12), (usize::MAX, 1, 1), (513, 1, 513)] {
            assert_eq!(data_uri(&image(ImageLayout::Grey, height, width, vec![0; bytes])), None);
        }
        assert_eq!(data_uri(&image(ImageLayout::ColourPlanes, 2, 2, vec![0; 4])), None);
        assert_eq!(transparent_data_uri(2, 2, &[[0; 4]]), None);
    }
}
