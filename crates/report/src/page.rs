//! The document: head, styles, header, sections, dictionary.

use crate::{
    classification, figures,
    input::{Report, Section},
    section,
    text::escape,
    words::WORDS,
};

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub(crate) fn render(report: &Report) -> String {
    let title = escape(&report.title);
    // The policy forbids the page to load anything, whatever ends up in it; pictures are inside it.
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         img-src data:\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <meta name=\"generator\" content=\"posterior report\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    );
    if !report.subtitle.is_empty() {
        html += &format!("<p>{}</p>\n", escape(&report.subtitle));
    }
    if report.sections.len() > 1 {
        html += "<nav aria-label=\"Sections\">";
        for (i, part) in report.sections.iter().enumerate() {
            html += &format!("<a href=\"#{}\">{}</a>", anchor(i), escape(name(part)));
        }
        html += "</nav>\n";
    }
    html += "</header>\n<main>\n";
    if report.sections.is_empty() {
        html += "<p>This report has no sections.</p>\n";
    }
    for (i, part) in report.sections.iter().enumerate() {
        html += &match part {
            Section::Regression(regression) => section::render(regression, &anchor(i)),
            Section::Classification(report) => classification::render(report, &anchor(i)),
            Section::Figures(report) => figures::render(report, &anchor(i)),
        };
    }
    html +=
        "</main>\n<footer>\n<details>\n<summary>What do these words mean?</summary>\n<dl class=\"words\">\n";
    for (word, meaning) in WORDS {
        html += &format!("<dt>{}</dt><dd>{}</dd>\n", escape(word), escape(meaning));
    }
    html += &format!(
        "</dl>\n</details>\n<p>Made by posterior {}. This file is complete in itself: it loads nothing and runs no \
         scripts.</p>\n</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    html
}

fn anchor(index: usize) -> String {
    format!("section-{}", index + 1)
}

fn name(section: &Section) -> &str {
    match section {
        Section::Regression(regression) => &regression.dataset,
        Section::Classification(report) => &report.dataset,
        Section::Figures(report) => &report.title,
    }
}
