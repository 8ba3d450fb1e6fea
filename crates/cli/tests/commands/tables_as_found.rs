//! Tables as people have them, none prepared: a fit, scores and predictions of each, and what is said.

use super::running::{json, run};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn text(folder: &Path, line: &str) -> [String; 2] {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap())
}

/// What is said as the program fails, which is to be read.
fn error(folder: &Path, line: &str) -> String {
    let message = super::running::error(folder, line);
    assert!(message.lines().last().is_some_and(|line| line.len() < 300), "{message}");
    message
}

/// Rows of a table of flats: number, size, district, lift, day, price.
fn flats(rows: std::ops::Range<usize>) -> Vec<[String; 6]> {
    let row = |i: usize| {
        let at = |k: f64| (i as f64 * k) % 1.0;
        let (size, district, lift) = (20.0 + 90.0 * at(0.618_034), i % 3, at(0.414_214) < 0.5);
        let day = (at(0.754_878) * 28.0) as usize + 1;
        let noise = (i as f64 * 12.9898).sin();
        let price = 3.0 * size + 40.0 * district as f64 + if lift { 25.0 } else { 0.0 } + day as f64 + noise;
        let named = ["Süd", "Nord", "Hafen"][district];
        [
            i.to_string(),
            format!("{size:.2}"),
            named.into(),
            if lift { "True" } else { "False" }.into(),
            format!("2021-03-{day:02}"),
            format!("{price:.2}"),
        ]
    };
    rows.map(row).collect()
}

const HEADER: [&str; 6] = ["", "size", "district", "lift", "day", "price"];

fn written(header: [&str; 6], rows: &[[String; 6]], between: &str) -> String {
    let lines = rows.iter().map(|row| row.join(between));
    std::iter::once(header.join(between)).chain(lines).map(|line| line + "\n").collect()
}

const FIT: &str = "fit --target price --set optimizer=adam --set steps=60";

#[test]
fn what_pandas_writes_is_read_and_what_was_taken_for_what_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("t.csv"), written(HEADER, &flats(0..90), ",")).unwrap();
    std::fs::write(at.join("u.csv"), written(HEADER, &flats(90..130), ",")).unwrap();
    let [printed, said] = text(at, &format!("{FIT} t.csv -o m.posterior"));
    assert!(said.contains("first column has no name and is taken for an index"), "{said}");
    for note in [
        "text taken as categories: district (3)",
        "true and false taken as 1 and 0: lift",
        "dates and times taken as days since 1970: day (year-month-day)",
    ] {
        assert!(printed.contains(note), "{printed}");
    }
    let fit = json(at, &format!("{FIT} t.csv -o m.posterior"));
    let features = ["size", "district=Hafen", "district=Nord", "district=Süd", "lift", "day"];
    assert_eq!(fit["features"], serde_json::json!(features));
    let scores = json(at, "evaluate m.posterior u.csv");
    assert!(scores["r2"].as_f64().unwrap() > 0.99, "{scores}");
    let [_, said] = text(at, "predict m.posterior u.csv -o p.csv");
    assert!(said.contains("40 predictions written"), "{said}");
    // To standard output they have the table's columns as well.
    let [printed, _] = text(at, "predict m.posterior u.csv");
    assert!(printed.starts_with("index,size,district,lift,day,price,price_mean,"), "{printed}");
    assert_eq!(printed, std::fs::read_to_string(at.join("p.csv")).unwrap());
    assert_eq!(text(at, "predict m.posterior u.csv -o -")[0], printed);
}

#[test]
fn dialects_and_encodings_give_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let header = ["id", "size", "district", "lift", "day", "price"];
    let plain = written(header, &flats(0..60), ",");
    let comma = |row: &[String; 6]| row.clone().map(|cell| cell.replace('.', ","));
    let german: Vec<_> = flats(0..60).iter().map(comma).collect();
    let latin = |text: &str| text.chars().map(|c| c as u8).collect::<Vec<u8>>();
    let wide =
        |text: &str| [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let object = |row: &[String; 6]| {
        let [id, size, district, lift, day, price] = row;
        let lift = lift.to_lowercase();
        format!(
            "{{\"id\":{id},\"size\":{size},\"district\":\"{district}\",\"lift\":{lift},\"day\":\"{day}\",\"price\":{price}}}\n"
        )
    };
    let files: [(&str, Vec<u8>, &str); 5] = [
        ("plain.csv", plain.clone().into_bytes(), ""),
        ("german.csv", written(header, &german, ";").into_bytes(), "cells are separated by `;`"),
        ("latin.csv", latin(&plain), "Windows-1252"),
        ("wide.csv", wide(&plain), "UTF-16"),
        ("lines.jsonl", flats(0..60).iter().map(object).collect::<String>().into_bytes(), ""),
    ];
    let mut expected = None;
    for (name, bytes, note) in files {
        std::fs::write(at.join(name), bytes).unwrap();
        let fit = format!("{FIT} {name} --exclude id --seed 3 -o m.posterior");
        assert!(text(at, &fit)[1].contains(note), "{name}");
        let found = json(at, &fit);
        let own = (found["features"].clone(), found["log_evidence"].clone());
        assert_eq!(*expected.get_or_insert(own.clone()), own, "{name}");
    }
    // Said instead of guessed, and from a pipe.
    let said = "--set text.delimiter=; --set text.decimal=, --set text.encoding=utf-8";
    json(at, &format!("{FIT} german.csv --exclude id {said} -o m.posterior"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_posterior"));
    command.current_dir(at).args(["predict", "m.posterior", "-", "--output", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(plain.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 61);
    let message = error(
        at,
        &format!("{FIT} german.csv --exclude id --set text.decimal=. --likelihood gaussian -o m.posterior"),
    );
    assert!(message.contains("--set text.decimal=,"), "{message}");
}

#[test]
fn gaps_in_targets_and_categories_that_nobody_saw_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut rows = flats(0..80);
    rows.iter_mut().step_by(10).for_each(|row| row[5].clear());
    rows.iter_mut().skip(3).step_by(9).for_each(|row| row[1].clear());
    std::fs::write(at.join("t.csv"), written(HEADER, &rows, ",")).unwrap();
    let message = error(at, &format!("{FIT} t.csv -o m.posterior"));
    assert!(
        message.contains("column `size`: the cell is missing") && message.contains("--missing indicator")
    );
    let fit = json(at, &format!("{FIT} t.csv --missing indicator -o m.posterior"));
    assert_eq!(fit["n"], 72);
    assert_eq!(fit["data"]["rows_without_target"], 8);
    assert_eq!(fit["features"][1], "size=(missing)");
    let [printed, _] = text(at, "inspect m.posterior");
    assert!(printed.contains("8 rows without a target left out"), "{printed}");
    let message = error(at, &format!("{FIT} t.csv --missing-target error -o m.posterior"));
    assert!(message.contains("row 1: the target `price` is missing"), "{message}");
    // Rows without a target are predicted, and not scored.
    let mut later = flats(100..130);
    later[0][5].clear();
    later[1][2] = "Wald".into();
    std::fs::write(at.join("u.csv"), written(HEADER, &later, ",")).unwrap();
    let message = error(at, "evaluate m.posterior u.csv --unseen error");
    assert!(message.contains("row 2, column `district`: the category `Wald`"), "{message}");
    let scores = json(at, "evaluate m.posterior u.csv");
    let counts =
        ["n", "rows_left_out", "rows_without_target", "unseen_categories"].map(|key| scores[key].as_u64());
    assert_eq!(counts, [29, 1, 1, 1].map(Some));
    let told = scores["notes"].to_string();
    assert!(
        told.contains("1 row without a target left out") && told.contains("1 cell of categories"),
        "{told}"
    );
    let found = json(at, "predict m.posterior u.csv -o p.csv");
    assert_eq!((found["n"].as_u64(), found["unseen_categories"].as_u64()), (Some(30), Some(1)));
    // At the fit it is said once and for all.
    json(at, &format!("{FIT} t.csv --missing mean --unseen error -o m.posterior"));
    assert!(error(at, "evaluate m.posterior u.csv").contains("`Wald`"));
    assert_eq!(json(at, "evaluate m.posterior u.csv --unseen other")["unseen_categories"], 1);
}

#[test]
fn what_is_odd_says_what_it_is_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let many: String = (0..2000).map(|i| format!("street {},{i}\n", i % 500)).collect();
    let long = "x".repeat(5 << 20);
    for (table, flags, expected) in [
        (format!("street,price\n{many}"), "", "500 different texts (`street 0`, `street 1`, ...)"),
        (format!("a,price\n1,1\n2,2\n{long},3\n"), "", "xxx...` is not a number"),
        ("a,price\n1,1e308\n2,-1e308\n3,inf\n".into(), "--likelihood gaussian", "inf is not a finite number"),
        ("a,,price\n1,2,3\n".into(), "", "column 2 has no name in the header"),
    ] {
        std::fs::write(at.join("t.csv"), table).unwrap();
        let message = error(at, &format!("{FIT} t.csv {flags} -o m.posterior"));
        assert!(message.contains(expected), "{message}");
    }
    std::fs::write(at.join("t.xyz"), "a,price\n1,2\n").unwrap();
    assert!(error(at, &format!("{FIT} t.xyz -o m.posterior")).contains(".jsonl"));
    assert!(!at.join("m.posterior").exists());
}
