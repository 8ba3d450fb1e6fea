//! A picture with its heading and one sentence on how to read it.

use crate::text::escape;

/// Width and height of an ordinary picture, in drawing units.
pub(crate) const SIZE: (f64, f64) = (470.0, 330.0);
/// Width and height of a picture across the page.
pub(crate) const WIDE_SIZE: (f64, f64) = (960.0, 430.0);

/// A finished figure.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Heading; escaped when written.
    pub(crate) title: String,
    /// One or two drawings of the same thing (for wide and narrow screens), as SVG.
    pub(crate) svg: String,
    /// How to read it; escaped when written.
    pub(crate) caption: String,
    /// Meaning of the marks: class of the sample and words.
    pub(crate) legend: Vec<(&'static str, String)>,
    /// Takes the whole width of the page.
    pub(crate) wide: bool,
}

impl Figure {
    /// The figure as HTML.
    pub(crate) fn html(&self) -> String {
        let mut legend = String::new();
        if !self.legend.is_empty() {
            legend.push_str("<ul class=\"legend\">");
            for (class, words) in &self.legend {
                legend.push_str(&format!("<li><i class=\"key {class}\"></i>{}</li>", escape(words)));
            }
            legend.push_str("</ul>");
        }
        format!(
            "<figure{}><h3>{}</h3>{legend}{}<figcaption>{}</figcaption></figure>\n",
            if self.wide { " class=\"wide\"" } else { "" },
            escape(&self.title),
            self.svg,
            escape(&self.caption)
        )
    }
}
