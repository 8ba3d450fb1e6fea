//! The header of an NPY file: the type, order and shape of its array as a Python dictionary.
//!
//! Source: NumPy's `numpy.lib.format` documentation.

/// The mark that NPY files begin with.
pub(crate) const MARK: &[u8] = b"\x93NUMPY";

/// Longest header text that is parsed.
pub(crate) const LONGEST_HEADER: usize = 1 << 16;

/// Where the header's text begins and how many bytes it has, from the first 12 bytes of a file (10 of version 1).
pub(crate) fn header_extent(prelude: &[u8]) -> Result<(usize, usize), String> {
    if !prelude.starts_with(MARK) {
        return Err("it does not begin with the NPY mark".into());
    }
    let version = *prelude.get(6).ok_or_else(truncated)?;
    let length = prelude.get(8..).unwrap_or_default();
    match (version, prelude.get(7)) {
        (1..=3, Some(&minor)) if minor > 0 => Err(format!("format version {version}.{minor} is not known")),
        (1, _) => Ok((10, u16::from_le_bytes(*length.first_chunk().ok_or_else(truncated)?) as usize)),
        (2 | 3, _) => Ok((12, u32::from_le_bytes(*length.first_chunk().ok_or_else(truncated)?) as usize)),
        (other, _) => Err(format!("format version {other} is not known")),
    }
}

/// What is said of a file that ends before its header does.
pub(crate) fn truncated() -> String {
    "it is cut off within its header".into()
}

/// The array that a header describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    /// The type of its elements, as it is written: `<f8`.
    descr: String,
    /// Whether the first index runs fastest.
    pub(crate) fortran_order: bool,
    /// The length of each dimension.
    pub(crate) shape: Vec<usize>,
}

impl NpyHeader {
    /// Reads the text of a header. NumPy writes it in ASCII, or in UTF-8 for the names of fields, which are not read.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        if text.len() > LONGEST_HEADER || text.iter().filter(|b| b"([{".contains(b)).count() > 16 {
            return Err("its header is longer or more deeply nested than that of an array of numbers".into());
        }
        let mut text = Text(text);
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        if !text.takes(b"{") {
            return Err("its header is no dictionary".into());
        }
        let mut more = true;
        while !text.takes(b"}") {
            let key = text.quoted().filter(|_| more).ok_or("its header is no dictionary of quoted names")?;
            if !text.takes(b":") {
                return Err(format!("its header has no value for `{}`", shown(&key)));
            }
            match key.as_str() {
                "descr" if text.takes(b"[") => {
                    return Err("structured arrays are not read; save each field by itself".into());
                }
                "descr" => descr = Some(text.quoted().ok_or("the `descr` of its header is no quoted type")?),
                "fortran_order" if text.takes(b"True") => fortran_order = Some(true),
                "fortran_order" if text.takes(b"False") => fortran_order = Some(false),
                "fortran_order" => return Err("`fortran_order` is neither True nor False".into()),
                "shape" => shape = Some(text.shape()?),
                other => return Err(format!("its header has an entry `{}` that is not known", shown(other))),
            }
            more = text.takes(b",");
        }
        if !text.0.trim_ascii().is_empty() {
            return Err("its header goes on behind the dictionary".into());
        }
        let missing = |name: &str| format!("its header has no `{name}`");
        Ok(Self {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    /// Kind and size of the elements, without their byte order: `f8`. The order may be missing, and only bytes may have none; what is not valid is
    /// returned as it is, which is no element's code.
    pub(crate) fn code(&self) -> &str {
        match self.descr.as_bytes() {
            [b'<' | b'>', ..] | [b'|', _, b'1'] => self.descr.get(1..).unwrap_or_default(),
            _ => &self.descr,
        }
    }

    pub(crate) fn is_big_endian(&self) -> bool {
        self.descr.starts_with('>')
    }

    /// The type of the elements, for messages.
    pub(crate) fn element(&self) -> String {
        shown(&self.descr)
    }
}

/// A text of a file, fit for a message.
fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

/// What is left of a header. Spaces before what is taken do not count.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    /// Whether this comes next; it is taken then.
    fn takes(&mut self, token: &[u8]) -> bool {
        self.0 = self.0.trim_ascii_start();
        let rest = self.0.strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// A text in quotes of either style, without escapes.
    fn quoted(&mut self) -> Option<String> {
        let quote = [b'\'', b'"'].into_iter().find(|&quote| self.takes(&[quote]))?;
        let end = self.0.iter().position(|&b| b == quote)?;
        let (text, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        (!text.contains(&b'\\')).then(|| String::from_utf8_lossy(text).into_owned())
    }

    /// A tuple of lengths. Python 2 writes `10L` for long ones, and a tuple of one has a comma.
    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let wrong = || "the `shape` of its header is no tuple of lengths".to_string();
        let (mut out, mut comma) = (vec![], true);
        if !self.takes(b"(") {
            return Err(wrong());
        }
        while !self.takes(b")") {
            let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 || !comma {
                return Err(wrong());
            }
            let (number, rest) = self.0.split_at(digits);
            self.0 = rest;
            let length = std::str::from_utf8(number).ok().and_then(|n| n.parse().ok());
            out.push(length.ok_or("a dimension is beyond what can be counted")?);
            self.takes(b"L");
            comma = self.takes(b",");
        }
        if out.len() == 1 && !comma { Err(wrong()) } else { Ok(out) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<NpyHeader, String> {
        NpyHeader::parse(text.as_bytes())
    }

    #[test]
    fn headers_as_programs_write_them() {
        let found = parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }          \n").unwrap();
        assert_eq!((found.code(), found.fortran_order, &found.shape[..]), ("f8", false, &[3, 4][..]));
        // Python 2, other quotes and orders, no spaces, a tuple of one, a number alone.
        let found = parse("{\"shape\":(10L,),\"fortran_order\":True,\"descr\":\">i4\"}").unwrap();
        assert!(found.is_big_endian());
        assert_eq!((found.code(), found.fortran_order, &found.shape[..]), ("i4", true, &[10][..]));
        let found = parse(" { 'descr' : '|b1' ,\t'fortran_order' : False , 'shape' : ( ) } ").unwrap();
        assert_eq!((found.code(), found.shape.len()), ("b1", 0));
        assert_eq!(
            parse("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 0,)}").unwrap().shape,
            [2, 0]
        );
        // Only bytes have no order.
        let code = |descr: &str| {
            let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,)}}");
            parse(&text).unwrap().code().to_string()
        };
        assert_eq!(
            ["<f2", "<u1", "|f8", "f8", "|i1", "<M8[ns]", "|", "<"].map(code),
            ["f2", "u1", "|f8", "f8", "i1", "M8[ns]", "|", ""]
        );
    }

    #[test]
    fn other_headers_are_refused() {
        let of = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
        };
        let good = of("'<f8'", "False", "(1,)");
        for (text, problem) in [
            (String::new(), "is no dictionary"),
            ("{".into(), "no dictionary of quoted names"),
            ("{'descr'}".into(), "has no value for `descr`"),
            ("{'descr': '<f8' 'shape': (1,)}".into(), "no dictionary of quoted names"),
            ("{}".into(), "has no `descr`"),
            ("{'descr': '<f8', 'shape': (1,)}".into(), "has no `fortran_order`"),
            ("{'descr': '<f8', 'fortran_order': True}".into(), "has no `shape`"),
            ("{'a\u{1b}': 1}".into(), "an entry `a\\u{1b}` that is not known"),
            (good.clone() + "x", "goes on behind the dictionary"),
            (of("'<f8", "False", "(1,)"), "no dictionary of quoted names"),
            (of("<f8", "False", "(1,)"), "is no quoted type"),
            (of("'<f\\x38'", "False", "(1,)"), "is no quoted type"),
            (of("('<f8', (2,))", "False", "(1,)"), "is no quoted type"),
            (of("[('\u{e9}', '<f8')]", "False", "(1,)"), "structured arrays are not read"),
            (of("'<f8'", "0", "(1,)"), "neither True nor False"),
            (of("'<f8'", "False", "1"), "no tuple of lengths"),
            (of("'<f8'", "False", "(1)"), "no tuple of lengths"),
            (of("'<f8'", "False", "(1 2)"), "no tuple of lengths"),
            (of("'<f8'", "False", "(-1,)"), "no tuple of lengths"),
            (of("'<f8'", "False", "(1,,)"), "no tuple of lengths"),
            (of("'<f8'", "False", "(1.0,)"), "no tuple of lengths"),
            (of("'<f8'", "False", "(18446744073709551616,)"), "beyond what can be counted"),
            (format!("{good}{}", " ".repeat(LONGEST_HEADER)), "longer or more deeply nested"),
        ] {
            let found = parse(&text).unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
        assert!(parse(&good).is_ok());
        // Every shorter text, and every text with another byte, is refused or read.
        for at in 0..good.len() {
            assert!(parse(&good[..at]).is_err(), "{at}");
            for byte in [0, b'\'', b'(', b'}', 0xff] {
                let mut other = good.clone().into_bytes();
                other[at] = byte;
                let _ = NpyHeader::parse(&other);
            }
        }
        assert_eq!(header_extent(b"\x93NUMPY\x01\x00\x76\x00"), Ok((10, 0x76)));
        assert_eq!(header_extent(b"\x93NUMPY\x03\x00\x76\x00\x01\x00"), Ok((12, 0x1_0076)));
        assert!(header_extent(b"\x93NUMPY\x02\x01\x76\x00\x01\x00").unwrap_err().contains("version 2.1"));
    }
}
