//! Numbers and dates as people write them, from the fit to predictions of files in which nothing decides.

use super::running::{error, json, run};
use posterior_testing::shared;
use std::path::Path;

/// What is said on standard error by a command that succeeds.
fn said(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{line}\n{said}");
    said
}

/// Numbers of a column of a file of predictions.
fn column(path: &Path, name: &str) -> Vec<f64> {
    let table = posterior::data::read_table(path, &posterior::data::ReadOptions::default()).unwrap();
    match &table.column(name).unwrap().values {
        posterior::data::Values::Numeric(values) => values.clone(),
        posterior::data::Values::Text(texts) => panic!("{texts:?}"),
    }
}

/// A number with a mark between thousands, a decimal mark and so many decimals.
fn grouped(value: f64, [group, point]: [&str; 2], decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let split = whole.len().saturating_sub(3);
    let whole =
        if split > 0 { format!("{}{group}{}", &whole[..split], &whole[split..]) } else { whole.into() };
    if fraction.is_empty() { whole } else { format!("{whole}{point}{fraction}") }
}

#[test]
fn every_way_of_writing_is_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let people = |i: usize| (120 + i * 7919 % 4000) as f64;
    let price = |i: usize| 500.0 + 2.0 * people(i) + (i as f64 * 12.9898).sin() * 20.0;
    let mut expected: Option<Vec<f64>> = None;
    for (delimiter, marks, prefix, suffix) in [
        (",", ["", "."], "", ""),
        (";", [".", ","], "", ""),
        (";", [".", ","], "", " €"),
        (";", ["\u{202f}", ","], "", ""),
        (";", ["\u{a0}", ","], "", " EUR"),
        (";", ["'", "."], "CHF ", ""),
        (";", [",", "."], "$", ""),
        ("\t", [" ", ","], "", " kr"),
    ] {
        let line = |i: usize, target: bool| {
            let x = grouped(people(i), marks, 0);
            let y = format!("{prefix}{}{suffix}", grouped(price(i), marks, 1));
            if target { [x, y].join(delimiter) } else { [x, "a".into()].join(delimiter) }
        };
        let file = |name: &str, header: [&str; 2], rows: std::ops::Range<usize>, target| {
            let lines = rows.map(|i| line(i, target) + "\n");
            std::fs::write(at.join(name), header.join(delimiter) + "\n" + &lines.collect::<String>())
                .unwrap();
        };
        file("t.csv", ["people", "price"], 0..60, true);
        // One row, whose only number may be 4.039 or 4,039.
        file("u.csv", ["people", "note"], 60..61, false);
        said(at, "fit t.csv --target price -o m.posterior --force --set optimizer=adam --set steps=40");
        said(at, "predict m.posterior u.csv -o p.csv --force");
        let found = column(&at.join("p.csv"), "price_mean");
        let expected = expected.get_or_insert(found.clone());
        assert!(
            (found[0] - expected[0]).abs() < 1e-6 * expected[0].abs(),
            "{marks:?}: {found:?}, {expected:?}"
        );
        assert!((found[0] - price(60)).abs() < 500.0, "{found:?}");
    }
    // A mark between thousands or a decimal mark: nobody knows, and the fit begins with saying so.
    std::fs::write(at.join("t.csv"), "day;kg;y\n03/04/21;1.892;5\n04/05/21;3.640;6\n05/06/21;2.125;9\n")
        .unwrap();
    let told = said(at, "fit t.csv --target y -o m.posterior --force --set optimizer=adam --set steps=5");
    let before = told.split("plan:").next().unwrap();
    for note in [
        "`1.892` in column `kg` could be read in two ways",
        "--set text.decimal=,",
        "`03/04/21` in column `day` as month/day/year",
        "--date-order day-first",
    ] {
        assert!(before.contains(note), "{told}");
    }
    // A column that is left out is named before the fit, not behind it.
    let names = (0..30).map(|i| format!("name {i},{i},{}\n", i * i));
    std::fs::write(at.join("t.csv"), String::from("name,x,y\n") + &names.collect::<String>()).unwrap();
    let told = said(at, "fit t.csv --target y -o m.posterior --force --set optimizer=adam --set steps=5");
    assert!(told.split("plan:").next().unwrap().contains("name (30 different texts)"), "{told}");
}

#[test]
fn cases_of_people_are_read() {
    let Some(cases) = shared("cases/tables") else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let inspected = |name: &str, column: &str| {
        let found = json(at, &format!("inspect {}", cases.join(name).display()));
        let columns = found["columns"].as_array().unwrap().clone();
        columns.into_iter().find(|own| own["name"] == column).unwrap()
    };
    for (name, column, kind, [from, to]) in [
        ("07_d_12h.csv", "when", "time", ["00:00:00", "23:53:00"]),
        ("07_d_mon.csv", "when", "date", ["2023-01-01", "2023-12-24"]),
        ("07_d_monname.csv", "when", "date", ["2023-01-01", "2023-12-24"]),
        ("07_d_rfc.csv", "when", "date-time", ["2023-01-01T00:00:00", "2023-12-24T23:53:00"]),
        ("07_d_us2.csv", "when", "date", ["2023-01-01", "2023-12-24"]),
        ("07_d_us_time.csv", "when", "date-time", ["2023-01-01T00:00:00", "2023-12-24T23:53:00"]),
        ("08_monthly.csv", "month", "date", ["2017-01-01", "2022-12-01"]),
        ("more_03_quarters_of_text.csv", "quarter", "date", ["2005-01-01", "2022-10-01"]),
    ] {
        let found = inspected(name, column);
        assert_eq!(
            (&found["kind"], &found["minimum"], &found["maximum"]),
            (&kind.into(), &from.into(), &to.into())
        );
    }
    for (name, column, [from, to]) in [
        ("04_german_thousands.csv", "Umsatz", [1128.0, 56_050.0]),
        ("05_comma_and_dot.csv", "price", [9239.0, 333_862.0]),
        ("06_money_repeated.csv", "price", [2000.0, 39_000.0]),
        ("07_percent.csv", "occupied", [7.5, 52.5]),
        ("07_thousands_feature.csv", "population", [136.0, 5980.0]),
        ("07_units.csv", "area", [32.9, 199.8]),
        ("more_03_control_three_decimals.csv", "grams", [1.405, 6.11]),
        ("more_03_control_three_decimals_semicolon.csv", "grams", [1.405, 6.11]),
        ("15_miss_dash.csv", "age", [0.0, 87.0]),
    ] {
        let found = inspected(name, column);
        let range = [&found["minimum"], &found["maximum"]].map(|end| end.as_f64());
        assert_eq!((&found["kind"], range), (&"number".into(), [Some(from), Some(to)]), "{name}");
    }
    for (name, most) in [("08_monthly", 10.0), ("more_03_quarters_of_text", 4.0)] {
        let [old, new] = ["", "_new"].map(|end| cases.join(format!("{name}{end}.csv")));
        said(at, &format!("fit {} --target sales -o m.posterior --force", old.display()));
        said(at, &format!("predict m.posterior {} -o p.csv --force", new.display()));
        let [mean, truth] = ["sales_mean", "sales"].map(|name| column(&at.join("p.csv"), name));
        let squares: f64 = mean.iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum();
        let rmse = (squares / truth.len() as f64).sqrt();
        assert!(rmse < most, "{name}: {rmse}");
    }
    let money = cases.join("more_03_one_bad_cell.csv");
    let message = error(at, &format!("fit {} --target price -o m.posterior --force", money.display()));
    assert!(message.contains("row 71, column `price`: `ask`"), "{message}");
}
