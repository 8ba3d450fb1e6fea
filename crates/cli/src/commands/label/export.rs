//! `posterior label export`

use crate::args::{Cli, LabelExportArgs};
use crate::commands::remarks;
use crate::output::{Failure, check_outputs, print_json, set_threads};
use clap::ValueEnum;
use posterior::data::json;
use posterior::data::{Column, Missing, OutputKind, Table, Values, write_table_as};
use posterior::decisions::SharedState;
use posterior::decisions::labelling::{Labelling, Pool};

pub(super) fn export(cli: &Cli, arguments: &LabelExportArgs) -> Result<(), Failure> {
    let parquet = arguments.out.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"));
    cli.refuse(&["csv-safe"], parquet, "is for a table in CSV")?;
    set_threads(arguments.pool.threads.count)?;
    let own = &arguments.pool;
    let labelling = Labelling::load(&own.state)?;
    let pool_at = own.pool.clone().unwrap_or_else(|| labelling.pool().path.clone());
    let outputs = [(Some(arguments.out.as_path()), OutputKind::Table)];
    check_outputs(&outputs, [&own.state, &pool_at], arguments.force)?;
    let pool = Pool::read(labelling.pool(), own.pool.as_deref(), own.memory)?;
    let (labels, rows): (Vec<Option<String>>, Vec<usize>) =
        labelling.questions().iter().filter_map(|q| Some((Some(q.label()?.to_string()), q.row - 1))).unzip();
    if rows.is_empty() {
        return Err(Failure::new("no label was told yet: there is nothing to write".into()));
    }
    let features = labelling.pool().feature_columns();
    let target = target(&labelling, &features);
    let picked = pool.table.select(&rows);
    let mut columns =
        features.iter().map(|name| picked.column(name).cloned()).collect::<Result<Vec<Column>, _>>()?;
    columns.push(Column { name: target.clone(), values: Values::Text(labels) });
    write_table_as(&Table::new(pool.table.source.clone(), columns), &arguments.out, arguments.csv)?;
    let next = next_command(&labelling, arguments, &target);
    if cli.json {
        return print_json(&json!({
            "out": arguments.out, "rows": rows.len(), "features": features, "target": target, "next": next,
        }));
    }
    remarks(cli).say(format!(
        "{} labelled rows written to {}; a model of them:\n  {next}",
        rows.len(),
        arguments.out.display()
    ));
    Ok(())
}

/// The name of the column of labels: the pool's, or `label`.
fn target(labelling: &Labelling, features: &[String]) -> String {
    let mut name = labelling.pool().labels.clone().unwrap_or_else(|| "label".into());
    while features.contains(&name) {
        name.push('_');
    }
    name
}

/// What makes a model of the table.
fn next_command(labelling: &Labelling, arguments: &LabelExportArgs, target: &str) -> String {
    let schema = &labelling.pool().schema;
    let mut categories: Vec<&str> = Vec::new();
    for feature in &schema.features {
        if let posterior::data::Feature::Category { column, .. } = feature
            && !categories.contains(&column.as_str())
        {
            categories.push(column);
        }
    }
    // The table has the names as they are written.
    let column = |name: &str| quoted(&arguments.csv.written(name.into()));
    let categories: String =
        categories.iter().map(|name| format!(" --categories {}", column(name))).collect();
    let missing = match schema.missing {
        Missing::Error => None,
        asked => asked.to_possible_value().map(|value| format!(" --missing {}", value.get_name())),
    };
    let missing = missing.unwrap_or_default();
    let data = quoted(&arguments.out.display().to_string());
    format!(
        "posterior fit {data} --target {}{categories}{missing} --kernel {} -o labelled.posterior",
        column(target),
        quoted(&labelling.settings().kernel.to_string()),
    )
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
