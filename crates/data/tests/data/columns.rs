//! What columns are taken for, with numbers worked out by hand; the same whole and part by part.

use posterior_data::stream::{self, StreamOptions};
use posterior_data::{
    DataError, Extracted, Missing, MissingTarget, ReadOptions, Schema, Selection, Table, TimeForm, Unseen,
    parse_table,
};
use std::path::Path;

fn table(text: &str) -> Table {
    parse_table(text.as_bytes().to_vec(), Path::new("t.csv"), None, &ReadOptions::default()).unwrap()
}

fn selection() -> Selection {
    Selection { target: "y".into(), ..Selection::default() }
}

/// What all rows teach, and what they are: from the whole table, and from parts of a few rows, which must be the same.
fn learned(text: &str, selection: &Selection) -> Result<(Schema, Extracted), DataError> {
    let whole = table(text);
    let rows: Vec<usize> = (0..whole.rows()).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, text).unwrap();
    let options = StreamOptions { part_bytes: 300, ..StreamOptions::default() };
    let files = [file];
    let in_parts = stream::learn_schema(&files, selection, &rows, &options);
    let schema = match (Schema::learn(&whole, selection, &rows), in_parts) {
        (Ok(schema), Ok(parts)) => {
            assert_eq!(schema, parts);
            schema
        }
        (Err(error), Err(parts)) => {
            let end = |error: &DataError| {
                let text = error.to_string();
                text[text.find("t.csv").unwrap_or(0)..].to_string()
            };
            assert_eq!(end(&error), end(&parts));
            return Err(error);
        }
        other => panic!("{other:?}"),
    };
    let extracted = schema.extract(&whole, &rows, true)?;
    let parts = stream::extract(&files, &schema, &rows, &options).unwrap();
    assert_eq!(extracted, parts);
    Ok((schema, extracted))
}

fn column(extracted: &Extracted, j: usize) -> Vec<f64> {
    extracted.x.col(j).iter().copied().collect()
}

#[test]
fn true_and_false_are_one_and_zero() {
    let (schema, extracted) = learned("sold,a,y\nTrue,1,1\nFALSE,2,2\ntrue,3,3\n", &selection()).unwrap();
    assert_eq!(schema.feature_names(), ["sold", "a"]);
    assert_eq!(column(&extracted, 0), [1.0, 0.0, 1.0]);
    assert_eq!(schema.notes, ["true and false taken as 1 and 0: sold"]);
    assert_eq!(extracted.notes.columns, schema.notes);
    // Written as numbers they are the same, as anything else they are none.
    let later = |cell: &str| schema.extract(&table(&format!("sold,a\n{cell},1\n")), &[0], false);
    assert_eq!(later("1").unwrap().x[(0, 0)], 1.0);
    for (cell, shown) in [("maybe", "`maybe` is not true or false"), ("2", "`2` is not true or false")] {
        let message = later(cell).unwrap_err().to_string();
        assert!(message.contains("row 1, column `sold`") && message.contains(shown), "{message}");
    }
    // Ones and zeros of training may come as words.
    let (numbers, _) = learned("sold,y\n1,1\n0,2\n", &selection()).unwrap();
    assert_eq!(numbers.extract(&table("sold\nTrue\n"), &[0], false).unwrap().x[(0, 0)], 1.0);
}

#[test]
fn numbers_that_look_like_names_of_rows_are_kept_and_named() {
    // Sorted numbers of customers with gaps; a name that says it, in any order; words that end alike, fractions, measurements.
    let mut text = String::from("customer,order_id,grid,size,y\n");
    for i in 0..40 {
        text += &format!(
            "{},{},{},{},{i}\n",
            1000 + 3 * i + i % 2,
            (i * 17) % 41,
            (i * 7) % 5,
            f64::from(i) * 1.5
        );
    }
    let (schema, _) = learned(&text, &selection()).unwrap();
    assert_eq!(schema.feature_names(), ["customer", "order_id", "grid", "size"]);
    let [note] = &schema.notes[..] else { panic!("{:?}", schema.notes) };
    assert!(note.contains("(--exclude NAME leaves one out): customer, order_id"), "{note}");
    // Who names features knows what they are, and few rows say nothing.
    let named = Selection { features: Some(vec!["customer".into(), "size".into()]), ..selection() };
    assert!(learned(&text, &named).unwrap().0.notes.is_empty());
    let few: String = text.lines().take(20).flat_map(|line| [line, "\n"]).collect();
    assert!(learned(&few, &selection()).unwrap().0.notes.is_empty());
}

#[test]
fn text_becomes_categories_and_names_of_rows_do_not() {
    let mut text = String::from("id,kind,y\n");
    for i in 0..60 {
        text += &format!("row {i},{},{i}\n", ["red", "green", "blue"][i % 3]);
    }
    let (schema, extracted) = learned(&text, &selection()).unwrap();
    assert_eq!(schema.feature_names(), ["kind=blue", "kind=green", "kind=red"]);
    assert_eq!(
        schema.notes,
        [
            "text taken as categories: kind (3)",
            "left out, as nearly every row has another text (--categories NAME keeps one): id (60 different texts)"
        ]
    );
    for i in 0..60 {
        for j in 0..3 {
            assert_eq!(extracted.x[(i, j)], f64::from(u8::from(j == 2 - i % 3)), "{i}, {j}");
        }
    }
    // Who asks for them gets them.
    let asked = Selection { categories: vec!["id".into()], ..selection() };
    assert_eq!(learned(&text, &asked).unwrap().0.features.len(), 63);
    // Neither names nor few.
    let mut text = String::from("place,a,y\n");
    for i in 0..1000 {
        text += &format!("place {},1,{i}\n", i % 101);
    }
    let message = learned(&text, &selection()).unwrap_err().to_string();
    assert!(message.contains("column `place`: 101 different texts (`place 0`, `place 1`, ...)"), "{message}");
    assert!(message.contains("--exclude place") && message.contains("--categories"), "{message}");
    let without = Selection { exclude: vec!["place".into()], ..selection() };
    assert_eq!(learned(&text, &without).unwrap().0.feature_names(), ["a"]);
    let index = Selection { index: Some("place".into()), ..selection() };
    assert_eq!(learned(&text, &index).unwrap().0.feature_names(), ["a"]);
    // Only names of rows: nothing to learn from.
    let names: String = (0..30).map(|i| format!("row {i},{i}\n")).collect();
    let message = learned(&format!("id,y\n{names}"), &selection()).unwrap_err().to_string();
    assert!(message.contains("30 different texts"), "{message}");
}

#[test]
fn dates_are_days_and_places_in_year_and_week() {
    let text = "day,a,y\n2021-01-04,1,1\n2021-07-06,2,2\n2022-01-04 12:00,3,3\n";
    let (schema, extracted) = learned(text, &selection()).unwrap();
    assert_eq!(schema.feature_names(), ["day", "a"]);
    assert_eq!(column(&extracted, 0), [18631.0, 18814.0, 18996.5]);
    assert_eq!(schema.notes, ["dates and times taken as days since 1970: day (year-month-day)"]);
    let asked = Selection { calendar: vec!["day".into()], ..selection() };
    let (schema, extracted) = learned(text, &asked).unwrap();
    let names = ["year.sine", "year.cosine", "week.sine", "week.cosine", "day.sine", "day.cosine"];
    let names: Vec<String> = names.map(|name| format!("day.{name}")).to_vec();
    assert_eq!(schema.feature_names()[1..7], names);
    for (i, (year, week, day)) in
        [(3.0 / 365.0, 0.0, 0.0), (186.0 / 365.0, 1.0 / 7.0, 0.0), (3.5 / 365.0, 1.5 / 7.0, 0.5)]
            .iter()
            .enumerate()
    {
        for (j, phase) in [year, week, day].into_iter().enumerate() {
            let angle = std::f64::consts::TAU * phase;
            assert!((extracted.x[(i, 1 + 2 * j)] - angle.sin()).abs() < 1e-9, "{i}, {j}");
            assert!((extracted.x[(i, 2 + 2 * j)] - angle.cos()).abs() < 1e-9, "{i}, {j}");
        }
    }
    // A cell tells which number is the day; where none does, the user.
    let (schema, extracted) = learned("day,y\n3/4/2021,1\n13/4/2021,2\n", &selection()).unwrap();
    assert!(schema.notes[0].contains("day.month.year"), "{:?}", schema.notes);
    assert_eq!(column(&extracted, 0), [18720.0, 18730.0]);
    for (form, expected) in [(TimeForm::DayFirst, 18720.0), (TimeForm::MonthFirst, 18690.0)] {
        let said = Selection { date_order: Some(form), ..selection() };
        let (_, extracted) = learned("day,y\n3/4/2021,1\n4/4/2021,2\n", &said).unwrap();
        assert_eq!(extracted.x[(0, 0)], expected);
    }
    let message = schema.extract(&table("day\n2021-04-03\n"), &[0], false).unwrap_err().to_string();
    assert!(message.contains("`2021-04-03` is not a date or time written day.month.year"), "{message}");
}

#[test]
fn gaps_become_what_was_asked_for() {
    let text = "a,kind,sold,y\n1,red,true,1\n,,,2\n3,blue,false,3\n4,red,true,4\n";
    let message = learned(text, &selection()).unwrap_err().to_string();
    assert!(message.contains("row 2, column `a`: the cell is missing"), "{message}");
    let by = |missing| learned(text, &Selection { missing, ..selection() });
    assert_eq!(by(Missing::Drop).unwrap().1.rows, [0, 2, 3]);
    let (schema, filled) = by(Missing::Mean).unwrap();
    assert_eq!(schema.feature_names(), ["a", "kind=blue", "kind=red", "sold"]);
    let second: Vec<f64> = filled.x.row(1).iter().copied().collect();
    assert!((second[0] - 8.0 / 3.0).abs() < 1e-15 && (second[3] - 2.0 / 3.0).abs() < 1e-15);
    assert_eq!((second[1], second[2], filled.notes.filled_cells), (0.0, 0.0, 3));
    let (schema, told) = by(Missing::Indicator).unwrap();
    let names = ["a", "a=(missing)", "kind=blue", "kind=red", "kind=(missing)", "sold", "sold=(missing)"];
    assert_eq!(schema.feature_names(), names);
    assert_eq!(
        [told.x[(1, 1)], told.x[(1, 2)], told.x[(1, 3)], told.x[(1, 4)], told.x[(1, 6)]],
        [1.0, 0.0, 0.0, 1.0, 1.0]
    );
    assert_eq!([told.x[(0, 1)], told.x[(0, 4)], told.x[(0, 6)]], [0.0; 3]);
    let message = by(Missing::Category).unwrap_err().to_string();
    assert!(message.contains("column `a`"), "{message}");
    let only = Selection { missing: Missing::Category, features: Some(vec!["kind".into()]), ..selection() };
    assert_eq!(learned(text, &only).unwrap().0.feature_names(), ["kind=blue", "kind=red", "kind=(missing)"]);
}

#[test]
fn rows_without_a_target_teach_nothing_and_can_be_predicted() {
    let text = "a,kind,y\n1,red,1\n9,green,\n3,blue,3\n,purple,\n";
    let (schema, extracted) = learned(text, &selection()).unwrap();
    // Neither their categories nor their gaps count.
    assert_eq!(schema.feature_names(), ["a", "kind=blue", "kind=red"]);
    assert_eq!((extracted.rows.clone(), extracted.notes.rows_without_target), (vec![0, 2], 2));
    assert!(extracted.notes.sentences().contains(&"2 rows without a target left out".to_string()));
    let predicted = schema.extract(&table("a,kind\n9,red\n"), &[0], false).unwrap();
    assert_eq!(predicted.x[(0, 0)], 9.0);
    let strict = Selection { missing_target: MissingTarget::Error, ..selection() };
    assert!(learned("a,y\n1,1\n2,\n", &strict).unwrap_err().to_string().contains("row 2: the target `y`"));
    assert!(matches!(learned("a,y\n1,\n2,\n", &selection()), Err(DataError::NothingLeft { .. })));
}

#[test]
fn unseen_categories_are_an_error_or_none_of_the_others() {
    let (mut schema, _) = learned("kind,a,y\nred,1,1\nblue,2,2\n", &selection()).unwrap();
    let later = table("kind,a\ngreen,1\nred,2\n");
    let extracted = schema.extract(&later, &[0, 1], false).unwrap();
    assert_eq!([extracted.x[(0, 0)], extracted.x[(0, 1)], extracted.x[(1, 1)]], [0.0, 0.0, 1.0]);
    assert_eq!(extracted.notes.unseen_categories, 1);
    schema.unseen = Unseen::Error;
    assert!(matches!(schema.extract(&later, &[0, 1], false), Err(DataError::UnknownCategory { row: 1, .. })));
    // Ten thousand categories are not all told.
    let many: String = (0..10_000).map(|i| format!("c{i},{i}\n")).collect();
    let unseen = Unseen::Error;
    let asked = Selection { categories: vec!["kind".into()], unseen, ..selection() };
    let whole = table(&format!("kind,y\n{many}"));
    let rows: Vec<usize> = (0..10_000).collect();
    let schema = Schema::learn(&whole, &asked, &rows).unwrap();
    let message = schema.extract(&table("kind\nnone\n"), &[0], false).unwrap_err().to_string();
    assert!(message.len() < 300, "{message}");
}

#[test]
fn numbers_with_text_in_a_later_part_are_read_again_as_text() {
    // Codes of which the first thousand are numbers: categories all the same, as most are none.
    let mut text = String::from("code,y\n");
    for i in 0..3000 {
        let code = if i < 1000 { format!("0{}", i % 5) } else { format!("A{}", i % 7) };
        text += &format!("{code},{i}\n");
    }
    let (schema, extracted) = learned(&text, &selection()).unwrap();
    assert_eq!(schema.features.len(), 12);
    assert!(schema.feature_names().contains(&"code=03".to_string()), "{:?}", schema.feature_names());
    assert_eq!(extracted.x.row(3).iter().sum::<f64>(), 1.0);
}

#[test]
fn what_stands_in_rows_that_do_not_train_is_nobodys_concern() {
    let whole = table("a,kind,y\n1,red,1\n2,blue,2\noops,green,3\n4,red,\n");
    let schema = Schema::learn(&whole, &selection(), &[0, 1]).unwrap();
    assert_eq!(schema.feature_names(), ["a", "kind=blue", "kind=red"]);
    assert_eq!(schema.extract(&whole, &[0, 1, 3], true).unwrap().rows, [0, 1]);
    let message = schema.extract(&whole, &[0, 2], true).unwrap_err().to_string();
    assert!(message.contains("row 3, column `a`: `oops` is not a number"), "{message}");
    // Rows that are dropped teach no categories.
    let drop = Selection { missing: Missing::Drop, ..selection() };
    let (schema, _) = learned("a,kind,y\n1,red,1\n2,blue,2\n,rare,3\n", &drop).unwrap();
    assert_eq!(schema.feature_names(), ["a", "kind=blue", "kind=red"]);
}

#[test]
fn categories_that_are_numbers_are_those_of_any_way_to_write_them() {
    let asked = Selection { categories: vec!["k".into()], unseen: Unseen::Other, ..selection() };
    let (schema, _) = learned("k,y\n1.0,1\n2.0,2\n1.0,3\n", &asked).unwrap();
    assert_eq!(schema.feature_names(), ["k=1", "k=2"]);
    // A text further down makes text of the whole column, and of no other part of it.
    let mut text = String::from("k,y\n");
    (0..500).for_each(|i| text += &format!("{}.0,{i}\n", 1 + i % 2));
    text += "x,500\n";
    let whole = table(&text);
    let rows: Vec<usize> = (0..501).collect();
    let at_once = schema.extract(&whole, &rows, true).unwrap();
    assert_eq!(at_once.notes.unseen_categories, 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, &text).unwrap();
    let options = StreamOptions { part_bytes: 2000, ..StreamOptions::default() };
    let parts = stream::extract(&[file], &schema, &rows, &options).unwrap();
    assert_eq!((parts.x, parts.notes.unseen_categories), (at_once.x, 1));
}

#[test]
fn gaps_and_infinities_of_targets_keep_to_what_was_asked() {
    let strict = Selection { missing: Missing::Drop, missing_target: MissingTarget::Error, ..selection() };
    assert!(matches!(learned("a,y\n1,1\n2,\n", &strict), Err(DataError::MissingTarget { row: 2, .. })));
    let drop = Selection { missing: Missing::Drop, ..selection() };
    assert_eq!(learned("a,y\n1,1\n2,inf\n3,3\n", &drop).unwrap().1.rows, [0, 2]);
    assert!(matches!(learned("a,y\n1,1\n2,inf\n", &selection()), Err(DataError::Infinite { row: 2, .. })));
    // A cell that stands for seven features is one that was filled.
    let asked = Selection { missing: Missing::Mean, calendar: vec!["d".into()], ..selection() };
    let (schema, filled) = learned("d,y\n2021-03-04 01:00,1\n,2\n2021-03-06,3\n", &asked).unwrap();
    assert_eq!((schema.features.len(), filled.notes.filled_cells), (7, 1));
}

#[test]
fn dates_of_several_forms_and_names_of_two_features_are_refused() {
    let mut text = String::from("d,y\n");
    (1..=20).for_each(|i| text += &format!("2021-03-{i:02},{i}\n{i}.4.2021,{i}\n"));
    assert!(matches!(learned(&text, &selection()), Err(DataError::SeveralForms { .. })));
    let gaps = Selection { missing: Missing::Category, ..selection() };
    let message = learned("c,y\n(missing),1\np,2\n,3\n", &gaps).unwrap_err().to_string();
    assert!(message.contains("`c=(missing)` is the name of two features"), "{message}");
    // What has no year is no date.
    let (schema, _) = learned("version,y\n1.2.3,1\n1.2.4,2\n", &selection()).unwrap();
    assert_eq!(schema.feature_names(), ["version=1.2.3", "version=1.2.4"]);
}
