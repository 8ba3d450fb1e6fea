//! Grey pictures and volumes of any depth of colour: NPY, TIFF, PNG.

use super::array::{ArrayValues, NumericArray};
use super::npz::{looks_like_npy, read_array};
use super::source::Source;
use super::write_npy;
use crate::{DataError, ReadOptions, create_atomically};
use std::fs::File;
use std::io::{BufReader, Cursor, Write};
use std::path::Path;
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::encoder::{TiffEncoder, colortype};
use tiff::{ColorType, TiffError};

/// Pages of a TIFF file at most.
const MOST_PAGES: usize = 1 << 16;

/// Formats that pictures are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// NumPy: every number as it is.
    Npy,
    /// TIFF of 32-bit floats; a volume has a page for each slice.
    Tiff,
    /// PNG of 8-bit greys, 0 black and 1 white; no volumes.
    Png,
}

impl PictureFormat {
    /// By the name of a file.
    ///
    /// # Errors
    /// [`DataError::Destination`] for another ending.
    pub fn of(path: &Path) -> Result<Self, DataError> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        match ending.as_str() {
            "npy" => Ok(Self::Npy),
            "tif" | "tiff" => Ok(Self::Tiff),
            "png" => Ok(Self::Png),
            _ => Err(DataError::Destination {
                path: path.into(),
                reason:
                    "pictures are written as .npy (all digits), .tiff (32-bit floats) or .png (256 greys)"
                        .into(),
            }),
        }
    }
}

/// Reads a picture `[height, width]` or a volume `[depth, height, width]`: NPY as it is, TIFF (grey; several pages are a volume) and PNG (grey) with whole numbers divided by their largest, so that white is 1. The content decides
/// which it is.
///
/// # Errors
/// Those of [`read_array`]; [`DataError::Malformed`] for colours, pages of different sizes, damaged files; [`DataError::TooLarge`].
pub fn read_picture(path: &Path, options: &ReadOptions) -> Result<NumericArray, DataError> {
    let source = Source::open(path, options)?;
    if source.head.starts_with(b"\x89PNG") {
        return read_png(path, options);
    }
    if source.head.starts_with(b"II") || source.head.starts_with(b"MM") {
        return read_tiff(path, options);
    }
    let format = if looks_like_npy(&source) { "NPY" } else { "NPY, TIFF or PNG" };
    drop(source);
    let array = read_array(path, options)?;
    if !(2..=3).contains(&array.shape().len()) {
        let reason = format!(
            "its array has the shape {:?}, and a picture is [height, width], a volume [depth, height, width]",
            array.shape()
        );
        return Err(DataError::Malformed { path: path.into(), format, reason });
    }
    Ok(array)
}

fn malformed(path: &Path, format: &'static str, reason: impl ToString) -> DataError {
    DataError::Malformed { path: path.into(), format, reason: reason.to_string() }
}

fn open(path: &Path) -> Result<BufReader<File>, DataError> {
    let file = File::open(path).map_err(|source| DataError::Read { path: path.into(), source })?;
    Ok(BufReader::new(file))
}

/// Refuses what would take more memory than allowed before it is taken.
fn within(path: &Path, values: u64, options: &ReadOptions) -> Result<(), DataError> {
    if values.saturating_mul(8) > options.memory_limit {
        return Err(DataError::TooLarge { path: path.into(), limit: options.memory_limit });
    }
    Ok(())
}

fn read_png(path: &Path, options: &ReadOptions) -> Result<NumericArray, DataError> {
    let wrong = |e: png::DecodingError| malformed(path, "PNG", e);
    let limits = png::Limits { bytes: usize::try_from(options.memory_limit).unwrap_or(usize::MAX) };
    let mut decoder = png::Decoder::new_with_limits(open(path)?, limits);
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(wrong)?;
    let (width, height) = (reader.info().width, reader.info().height);
    within(path, u64::from(width) * u64::from(height), options)?;
    let size =
        reader.output_buffer_size().ok_or_else(|| malformed(path, "PNG", "its pixels are beyond memory"))?;
    let mut bytes = vec![0; size];
    let frame = reader.next_frame(&mut bytes).map_err(wrong)?;
    if frame.color_type != png::ColorType::Grayscale {
        let reason =
            format!("it has colours ({:?}): convert it to grey without transparency", frame.color_type);
        return Err(malformed(path, "PNG", reason));
    }
    let values = match frame.bit_depth {
        png::BitDepth::Sixteen => bytes
            .chunks_exact(2)
            .map(|b| f64::from(u16::from_be_bytes([b[0], b[1]])) / f64::from(u16::MAX))
            .collect(),
        _ => bytes.iter().map(|b| f64::from(*b) / f64::from(u8::MAX)).collect(),
    };
    NumericArray::new(vec![height as usize, width as usize], ArrayValues::F64(values))
}

fn read_tiff(path: &Path, options: &ReadOptions) -> Result<NumericArray, DataError> {
    let wrong = |e: TiffError| malformed(path, "TIFF", e);
    let mut limits = Limits::default();
    limits.decoding_buffer_size = usize::try_from(options.memory_limit).unwrap_or(usize::MAX);
    limits.intermediate_buffer_size = limits.decoding_buffer_size;
    let mut decoder = Decoder::new(open(path)?).map_err(wrong)?.with_limits(limits);
    let (mut values, mut shape, mut pages) = (Vec::new(), None, 0usize);
    loop {
        let (width, height) = decoder.dimensions().map_err(wrong)?;
        let kind = decoder.colortype().map_err(wrong)?;
        if !matches!(kind, ColorType::Gray(_)) {
            return Err(malformed(
                path,
                "TIFF",
                format!("page {pages} has colours ({kind:?}): convert it to grey"),
            ));
        }
        if *shape.get_or_insert((height, width)) != (height, width) {
            let (h, w) = shape.unwrap_or_default();
            let reason = format!(
                "page {pages} has {height} x {width} pixels, the first {h} x {w}: slices of a volume are alike"
            );
            return Err(malformed(path, "TIFF", reason));
        }
        pages += 1;
        within(path, pages as u64 * u64::from(width) * u64::from(height), options)?;
        let whole = |v: f64, largest: f64| v / largest;
        match decoder.read_image().map_err(wrong)? {
            DecodingResult::U8(own) => values.extend(own.iter().map(|v| whole(f64::from(*v), 255.0))),
            DecodingResult::U16(own) => values.extend(own.iter().map(|v| whole(f64::from(*v), 65535.0))),
            DecodingResult::F32(own) => values.extend(own.iter().map(|v| f64::from(*v))),
            DecodingResult::F64(own) => values.extend(own),
            _ => {
                let reason =
                    "its numbers are of a kind that is not read: save it as 8 or 16 bits, or as floats";
                return Err(malformed(path, "TIFF", reason));
            }
        }
        if !decoder.more_images() {
            break;
        }
        if pages == MOST_PAGES {
            return Err(malformed(path, "TIFF", format!("it has more than {MOST_PAGES} pages")));
        }
        decoder.next_image().map_err(wrong)?;
    }
    let (height, width) = shape.unwrap_or_default();
    let mut shape = vec![height as usize, width as usize];
    if pages > 1 {
        shape.insert(0, pages);
    }
    NumericArray::new(shape, ArrayValues::F64(values))
}

/// Writes a picture `[height, width]` or a volume in the format of the file's name, in one atomic step. Returns how many pixels left the range 0 to 1 and were cut to it, which only PNG does.
///
/// # Errors
/// [`DataError::Destination`] for other endings and for volumes as PNG; those of writing.
pub fn write_picture(path: &Path, shape: &[usize], values: &[f64]) -> Result<usize, DataError> {
    let format = PictureFormat::of(path)?;
    if format == PictureFormat::Npy {
        write_npy(path, &NumericArray::new(shape.to_vec(), ArrayValues::F64(values.to_vec()))?)?;
        return Ok(0);
    }
    let side = |axis: usize| u32::try_from(shape[shape.len() - axis]).unwrap_or(u32::MAX);
    let (height, width) = (side(2), side(1));
    let pixels = (height as usize).saturating_mul(width as usize).max(1);
    if format == PictureFormat::Png && shape.len() != 2 {
        let reason = "PNG has no volumes: write .npy or .tiff".into();
        return Err(DataError::Destination { path: path.into(), reason });
    }
    let mut clipped = 0;
    let mut file = Cursor::new(Vec::new());
    let failed =
        |e: &dyn std::fmt::Display| DataError::Destination { path: path.into(), reason: e.to_string() };
    if format == PictureFormat::Png {
        let bytes: Vec<u8> = values
            .iter()
            .map(|v| {
                clipped += usize::from(!(0.0..=1.0).contains(v));
                (v.clamp(0.0, 1.0) * 255.0).round() as u8
            })
            .collect();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(|e| failed(&e))?;
        writer.write_image_data(&bytes).map_err(|e| failed(&e))?;
        writer.finish().map_err(|e| failed(&e))?;
    } else {
        let mut encoder = TiffEncoder::new(&mut file).map_err(|e| failed(&e))?;
        for page in values.chunks_exact(pixels) {
            let own: Vec<f32> = page.iter().map(|v| *v as f32).collect();
            encoder.write_image::<colortype::Gray32Float>(width, height, &own).map_err(|e| failed(&e))?;
        }
    }
    let bytes = file.into_inner();
    create_atomically(path, |out| out.write_all(&bytes))?;
    Ok(clipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize) -> Vec<f64> {
        (0..n).map(|i| 0.5 + 0.6 * (i as f64 * 0.7).sin()).collect()
    }

    #[test]
    fn pictures_come_back_as_well_as_their_format_can() {
        let folder = tempfile::tempdir().unwrap();
        let options = ReadOptions::default();
        let values = wave(12);
        for (name, tolerance) in
            [("a.npy", 0.0), ("a.tiff", 1e-7), ("a.TIF", 1e-7), ("a.png", 0.5 / 255.0 + 1e-12)]
        {
            let path = folder.path().join(name);
            let clipped = write_picture(&path, &[3, 4], &values).unwrap();
            let back = read_picture(&path, &options).unwrap();
            assert_eq!(back.shape(), [3, 4]);
            let png = name.ends_with("png");
            assert_eq!(
                clipped,
                if png { values.iter().filter(|v| !(0.0..=1.0).contains(*v)).count() } else { 0 }
            );
            for (a, b) in values.iter().zip(back.to_f64()) {
                let a = if png { a.clamp(0.0, 1.0) } else { *a };
                assert!((a - b).abs() <= tolerance, "{name}: {a} {b}");
            }
        }
        let volume = folder.path().join("v.tiff");
        write_picture(&volume, &[2, 3, 4], &wave(24)).unwrap();
        assert_eq!(read_picture(&volume, &options).unwrap().shape(), [2, 3, 4]);
        let refused = write_picture(&folder.path().join("v.png"), &[2, 3, 4], &wave(24)).unwrap_err();
        assert!(refused.to_string().contains(".tiff"));
        assert!(write_picture(&folder.path().join("v.jpg"), &[3, 4], &values).is_err());
    }

    #[test]
    fn damaged_and_foreign_files_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let options = ReadOptions::default();
        let path = folder.path().join("p.png");
        write_picture(&path, &[30, 40], &wave(1200)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for cut in [4, 20, bytes.len() / 2] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let text = read_picture(&path, &options).unwrap_err().to_string();
            assert!(text.contains("p.png"), "{text}");
        }
        let tiff = folder.path().join("t.tiff");
        write_picture(&tiff, &[30, 40], &wave(1200)).unwrap();
        let bytes = std::fs::read(&tiff).unwrap();
        for cut in [3, 9, bytes.len() / 3] {
            std::fs::write(&tiff, &bytes[..cut]).unwrap();
            assert!(read_picture(&tiff, &options).is_err());
        }
        // Colours.
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 1, 1);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(&[1, 2, 3]).unwrap();
        std::fs::write(&path, file).unwrap();
        assert!(read_picture(&path, &options).unwrap_err().to_string().contains("convert it to grey"));
        let line = folder.path().join("line.npy");
        crate::write_npy(&line, &NumericArray::new(vec![4], ArrayValues::F64(wave(4))).unwrap()).unwrap();
        assert!(read_picture(&line, &options).unwrap_err().to_string().contains("[height, width]"));
        // A declared size beyond memory.
        let small = ReadOptions::limited(1000);
        write_picture(&tiff, &[30, 40], &wave(1200)).unwrap();
        assert!(matches!(
            read_picture(&tiff, &small),
            Err(DataError::TooLarge { .. } | DataError::Malformed { .. })
        ));
    }
}
