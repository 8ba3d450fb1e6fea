//! `posterior demo`: four made-up problems, from data to report: two for Gaussian processes, two for networks (`demo_networks`).

use super::demo_networks;
use super::evaluate::scoring::Findings;
use super::evaluate::{json as scores, report as page, text};
use super::{print_report, remarks};
use crate::args::{Cli, DemoArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, print, set_threads};
use posterior::data::json;
use posterior::data::{Selection, Split, Table, synthetic, write_table};
use posterior::linalg::random::Streams;
use posterior::models::{ModelData, Question};
use posterior::options::PriorSettings;
use posterior::report::{Report, Section};
use posterior::{FitRequest, Model};
use std::time::Instant;

/// A problem with its model and its scores.
struct Solved {
    model: Model,
    findings: Findings,
}

pub(crate) fn run(cli: &Cli, arguments: &DemoArgs) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(None)?;
    let (remarks, interrupt) = (remarks(cli), Interrupt::listen());
    let folder = &arguments.out;
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::new(format!("cannot create the folder {}: {e}", folder.display())))?;
    let streams = Streams::new(arguments.seed);
    let problems = [
        (
            ("curve", synthetic::curve_with_gap(160, streams), "matern52"),
            "A curve with a gap",
            "Nothing was observed between -0.8 and 1.2. The intervals widen there, as they should: the model knows what it does not know.",
        ),
        (
            ("table", synthetic::friedman(600, streams), "se(ard)"),
            "A table with ten columns",
            "Friedman's first problem: only x1 to x5 matter, and x1 and x2 only together. The model finds that out.",
        ),
    ];
    let (mut solved, mut sections, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for ((name, table, kernel), title, text) in problems {
        remarks.say(format!("{name}: {} rows, kernel {kernel} ...", table.rows()));
        let one = solve(&table, kernel, arguments.seed, &interrupt)?;
        let (data, model) = (folder.join(format!("{name}.csv")), folder.join(format!("{name}.posterior")));
        write_table(&table, &data)?;
        one.model.save(&model)?;
        files.extend([data, model]);
        for mut section in page::sections(&one.model, one.model.model_report()?, &one.findings)? {
            if let Section::Regression(report) = &mut section {
                (report.dataset, report.description) = (title.into(), text.into());
                if let Some(panel) = &mut report.posterior {
                    panel.true_function = panel.grid.iter().map(|x| synthetic::curve(*x)).collect();
                }
            }
            sections.push(section);
        }
        solved.push(one);
    }
    remarks.say("networks: two moons and the curve again ...");
    let networks = demo_networks::solve(arguments.seed, folder, &interrupt)?;
    files.extend(networks.files.iter().cloned());
    let report = folder.join("report.html");
    page::write(
        &report,
        &Report::new(
            "Predictions that say how sure they are",
            "Four made-up problems, each learned from some of its rows and judged on the others",
            sections.into_iter().chain(networks.sections).collect(),
        ),
    )?;
    let [curve, table] = &solved[..] else { return Err(Failure::new("the demo solves two problems".into())) };
    if cli.json {
        let flat = |findings: &Findings| scores::flat(&findings.evaluation().scores);
        let report = json!({
            "curve": flat(&curve.findings)?,
            "table": flat(&table.findings)?,
            // A network's two classes, and its NLL with error bars minus that of the plain network.
            "moons": flat(&networks.moons)?,
            "moons_nll_difference": networks.moons.evaluation().nll_difference,
            // The curve again, by a network.
            "network": flat(&networks.curve)?,
            "report": report.display().to_string(),
            "files": files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        });
        return print_report(&report, started);
    }
    let learned = table.model.process().map_or(0.0, |own| {
        own.record().hyperparameter("noise_variance").map_or(0.0, |v| v[0].sqrt())
            * own.inputs().standardisation.target_scale
    });
    for (heading, findings) in [
        ("A curve with a gap in its data (scores on rows that were held out):", &curve.findings),
        ("A table with ten columns, five of which do not matter:", &table.findings),
        (
            "Two moons from sixty noisy points, by a network that was trained before it got its error bars:",
            &networks.moons,
        ),
        ("The curve again, by a network:", &networks.curve),
    ] {
        print(format!("\n{heading}\n"))?;
        print(text::scores(&findings.scored))?;
    }
    let seconds = started.elapsed().as_secs_f64();
    print(format!(
        "\nThe table's noise has standard deviation 1; the model learned {learned:.3}. No prediction can have a smaller RMSE.\n\nLook at the report: {}\nTry it yourself:    posterior inspect {}\nDone in {seconds:.1} s.",
        report.display(),
        folder.join("moons.posterior").display()
    ))
}

fn solve(table: &Table, kernel: &str, seed: u64, interrupt: &Interrupt) -> Result<Solved, Failure> {
    let request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        seed,
        prior: PriorSettings { kernel: kernel.parse()?, ..PriorSettings::default() },
        ..Default::default()
    };
    let split = Split::random(table.rows(), 0.3, Streams::new(seed));
    let model = Model::fit(table, &split.train, &request, &mut |_, _| interrupt.signal())?;
    if model.was_interrupted() {
        return Err(Failure::new("interrupted".into()));
    }
    let data = ModelData::of_table(table.select(&split.test))?;
    let evaluation = model.evaluate(&data, &Question::default())?;
    let findings = Findings::held_out(data, "Gaussian process", evaluation, None);
    Ok(Solved { model, findings })
}
