//! Any pictures and tables under one heading.

use crate::{
    input::{FiguresReport, Item},
    plots,
    section::block,
    tables,
    text::escape,
};

/// The section as HTML; `id` is its anchor.
pub(crate) fn render(report: &FiguresReport, id: &str) -> String {
    let mut html = format!("<section id=\"{id}\">\n<h2>{}</h2>\n", escape(&report.title));
    if !report.text.is_empty() {
        html += &format!("<p class=\"lead\">{}</p>\n", escape(&report.text));
    }
    html += "<div class=\"figures dense\">\n";
    for part in &report.items {
        html += &item(part);
    }
    html += "</div>\n<div class=\"tables\">\n";
    html += &block("Facts", !report.summary.is_empty(), &tables::facts(&report.summary));
    html += &block("What happened on the way", !report.notes.is_empty(), &tables::notes(&report.notes));
    html + "</div>\n</section>\n"
}

/// One picture, table or paragraph.
pub(crate) fn item(item: &Item) -> String {
    let figure = match item {
        Item::Text(text) => return format!("<p class=\"text\">{}</p>\n", escape(text)),
        Item::Table(table) => return block(&escape(&table.title), true, &tables::plain(table)),
        Item::Curves(curves) => Some(plots::curves(curves)),
        Item::Distributions(distributions) => Some(plots::distributions(distributions)),
        Item::Reliability(reliability) => Some(plots::reliability(reliability)),
        Item::Confusion(confusion) => plots::confusion(confusion),
        Item::Images(gallery) => plots::gallery(gallery),
        Item::Picture(picture) => plots::picture(picture),
        Item::Plane(plane) => plots::plane(plane),
        Item::Named(values) => plots::named(values),
        Item::Layers(graph) => plots::layers(graph),
        Item::Posteriors(panels) => plots::posterior_panels(panels),
    };
    figure.map_or(String::new(), |f| f.html())
}
