//! Prints a report with made-up numbers, for work on its looks:
//! `cargo run -p posterior-report --example demo_report > report.html`.

#[path = "../tests/report/common/mod.rs"]
mod common;

fn main() {
    let mut report = common::demo();
    report.sections.extend(common::networks().sections);
    print!("{}", report.to_html());
}
