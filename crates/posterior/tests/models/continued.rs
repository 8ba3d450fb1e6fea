//! Rows that are added to a saved process, training rows predicted from the others, and how predictions depend on each other: against brute force.

use crate::large_tables::request;
use crate::options::set;
use posterior::data::{Column, InputRanges, Missing, Selection, Split, Table, Values, synthetic};
use posterior::gp::exact::ExactPosterior;
use posterior::gp::{Observations, Posterior};
use posterior::linalg::random::Streams;
use posterior::models::{ModelData, Question, VarianceMethod};
use posterior::optim::Signal;
use posterior::options::{CalibrateName, MethodName, Validation};
use posterior::{FitRequest, Model, ModelError};
use rand_distr::{Distribution, StandardNormal};
use serde_json::json;

/// Rows of two numbers (of which some are missing), a category, known noise, and a target with errors of this size.
fn rows(count: usize, stream: &str, error: f64) -> Table {
    let mut rng = Streams::new(7).stream(stream);
    let mut normal = || StandardNormal.sample(&mut rng);
    let (mut columns, mut names) = (vec![Vec::new(); 4], Vec::new());
    for i in 0..count {
        let [a, b, e]: [f64; 3] = std::array::from_fn(|_| normal());
        let noise = 0.01 + 0.01 * (i % 4) as f64;
        let y = 3.0 * (1.3 * a).sin() + b + 2.0 * f64::from(i % 3 == 1);
        let cells =
            [10.0 + 4.0 * a, if i % 9 == 5 { f64::NAN } else { b }, noise, 50.0 + 7.0 * (y + error * e)];
        columns.iter_mut().zip(cells).for_each(|(column, v): (&mut Vec<f64>, f64)| column.push(v));
        names.push(Some(["red", "green", "blue"][i % 3].to_string()));
    }
    let numbers = ["a", "b", "s", "y"].into_iter().zip(columns).map(|(n, v)| Column::numeric(n, v));
    let text = Column { name: "colour".into(), values: Values::Text(names) };
    Table::new("rows", numbers.chain([text]).collect())
}

fn asked(calibrate: CalibrateName) -> FitRequest {
    FitRequest {
        columns: Selection {
            target: "y".into(),
            noise: Some("s".into()),
            missing: Missing::Mean,
            ..Selection::default()
        },
        validation: Validation { calibrate, ..request(MethodName::Exact).validation },
        ..request(MethodName::Exact)
    }
}

fn fit(table: &Table, rows: &[usize], request: &FitRequest) -> Model {
    Model::fit(table, rows, request, &mut |_, _| Signal::Continue).unwrap()
}

fn exact(model: &Model) -> &ExactPosterior {
    model.process().unwrap().predictor().exact().unwrap()
}

/// All rows in the model's units, by another way than the model's.
fn in_its_units(model: &Model, table: &Table) -> Observations {
    let inputs = model.process().unwrap().inputs();
    let all: Vec<usize> = (0..table.rows()).collect();
    let found = inputs.schema.extract(table, &all, true).unwrap();
    let standard = &inputs.standardisation;
    let y = found.y.unwrap();
    let targets = faer::Mat::from_fn(y.len(), 1, |i, _| standard.target(y[i]));
    let noise = found.noise.unwrap().iter().map(|v| v / standard.target_scale.powi(2)).collect();
    Observations::new(standard.features(found.x.as_ref()), targets, Some(noise)).unwrap()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{a} {b}");
    }
}

#[test]
fn rows_that_are_added_are_as_if_they_had_been_there() {
    let table = rows(110, "table", 0.3);
    let (first, rest): (Vec<usize>, Vec<usize>) = ((0..70).collect(), (70..110).collect());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    fit(&table, &first, &asked(CalibrateName::Conformal)).save(&path).unwrap();
    let before = Model::load(&path).unwrap();
    let whole = exact(&before).model().clone().condition(in_its_units(&before, &table)).unwrap();

    let new = before.process().unwrap().new_rows(&table, &rest).unwrap();
    assert_eq!((new.len(), new.notes().filled_cells), (40, 4));
    let plan = before.process().unwrap().continuation_plan(&new, u64::MAX).unwrap();
    assert_eq!((plan.rows_before, plan.rows_added), (70, 40));
    let refused =
        before.process().unwrap().continuation_plan(&new, plan.peak_bytes - 1).unwrap_err().to_string();
    assert!(
        refused.contains("--memory") && refused.contains("--method sdd") && refused.len() < 300,
        "{refused}"
    );
    let kept = before.process().unwrap().header();
    let after = before.clone().continued(new, CalibrateName::Conformal).unwrap();
    // The model that it was made from is as it was.
    assert_eq!((&before.process().unwrap().header(), exact(&before).data().rows()), (&kept, 70));
    after.save(&path).unwrap();
    let after = Model::load(&path).unwrap();
    let (inputs, record) = (after.process().unwrap().inputs(), after.process().unwrap().record());
    let (told, earlier) = (record.fit.gaussian().unwrap(), kept.record.fit.gaussian().unwrap());
    assert_eq!((record.rows, &record.hyperparameters), (110, &kept.record.hyperparameters));
    let of_before = (&kept.inputs.schema, &kept.inputs.standardisation);
    assert_eq!((&inputs.schema, &inputs.standardisation), of_before);

    // Predictions are those of all rows conditioned on at once.
    let x = after.process().unwrap().standard_inputs(&rows(50, "fresh", 0.3)).unwrap();
    let (ours, theirs) = (exact(&after).predict(x.as_ref()).unwrap(), whole.predict(x.as_ref()).unwrap());
    assert!((&ours.mean - &theirs.mean).norm_max() < 1e-9);
    close(&ours.latent_variance, &theirs.latent_variance, 1e-9);
    assert!((told.log_evidence.unwrap() - whole.log_evidence()).abs() < 1e-8);

    // So is the check, and what recalibrates.
    let (left_out, data) = (whole.leave_one_out(), whole.data());
    let z: Vec<f64> = (0..110)
        .map(|i| (data.targets()[(i, 0)] - left_out.mean[(i, 0)]) / left_out.variance[i].sqrt())
        .collect();
    let check = told.check.as_ref().unwrap();
    let inside = z.iter().filter(|z| z.abs() <= 1.959_963_984_540_054).count() as f64 / 110.0;
    assert!(check.rows == 110 && (check.scores.coverage_95 - inside).abs() < 1e-12);
    assert!((check.scores.nll + left_out.log_score / 110.0).abs() < 1e-9);
    let own = told.recalibration.as_ref().unwrap();
    assert_eq!(own.rows, 110);
    let mut sizes: Vec<f64> = z.iter().map(|z| z.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    // The ⌈0.95 · 111⌉-th smallest.
    assert!((own.factor - sizes[105] / 1.959_963_984_540_054).abs() < 1e-8, "{own:?}");

    // It knows all rows, and where they lie.
    let data = ModelData::of_table(table.clone()).unwrap();
    let known = after.trained_on(&data).unwrap().unwrap();
    assert_eq!(
        format!("{known:?}"),
        format!(
            "{:?}",
            fit(&table, &Split::all(110).train, &asked(CalibrateName::None))
                .trained_on(&data)
                .unwrap()
                .unwrap()
        )
    );
    let all = inputs.schema.extract(&table, &Split::all(110).train, true).unwrap();
    let expected = InputRanges::learn(&inputs.schema, all.x.as_ref());
    for (found, expected) in inputs.input_ranges.0.iter().zip(&expected.0) {
        assert_eq!((found.minimum, found.maximum), (expected.minimum, expected.maximum));
        close(&[found.mean, found.deviation], &[expected.mean, expected.deviation], 1e-12);
    }
    let notes = &told.data;
    assert_eq!(
        (notes.filled_cells, notes.duplicate_rows),
        (all.notes.filled_cells, all.notes.duplicate_rows)
    );

    // What was added is told: the rows' own evidence, given those before.
    let told = &record.continued[0];
    assert_eq!((told.rows_before, told.rows_added, told.repeated), (70, 40, 0));
    let gained = whole.log_evidence() - earlier.log_evidence.unwrap();
    assert!((told.log_density - gained / 40.0).abs() < 1e-9, "{told:?}");
    let earlier = exact(&before).leave_one_out().log_score / 70.0;
    assert!((told.log_density_before - earlier).abs() < 1e-9, "{told:?} {earlier}");
}

#[test]
fn rows_that_do_not_fit_and_rows_that_repeat_are_told() {
    let table = rows(80, "table", 0.3);
    let model = fit(&table, &(0..60).collect::<Vec<_>>(), &asked(CalibrateName::Auto));
    // Errors ten times as large.
    let other = rows(40, "other", 3.0);
    let new = model.process().unwrap().new_rows(&other, &(0..40).collect::<Vec<_>>()).unwrap();
    let wrong = model.clone().continued(new, CalibrateName::Auto).unwrap();
    let told = &wrong.process().unwrap().record().continued[0];
    let warning = told.warning().unwrap();
    assert!(!told.fit() && warning.contains("do not fit") && warning.len() < 300, "{warning}");
    assert!(wrong.notes().iter().any(|note| note.text() == warning));
    assert!(told.squared_error > 5.0 && told.log_density < told.log_density_before - 1.0, "{told:?}");
    // Twenty rows that are there, and twenty that are not.
    let new = model.process().unwrap().new_rows(&table, &(40..80).collect::<Vec<_>>()).unwrap();
    let twice = model.clone().continued(new, CalibrateName::Auto).unwrap();
    let told = &twice.process().unwrap().record().continued[0];
    assert_eq!((told.repeated, twice.process().unwrap().record().rows), (20, 100));
    assert!(told.sentence().contains("20 of which equal rows"), "{}", told.sentence());
    assert!(twice.facts().rows().iter().any(|row| row.value == told.sentence()));
    // Two continuations are one.
    let added = |model: Model, rows: std::ops::Range<usize>| {
        let new = model.process().unwrap().new_rows(&table, &rows.collect::<Vec<_>>()).unwrap();
        model.continued(new, CalibrateName::None).unwrap()
    };
    let (once, parts) = (added(model.clone(), 60..80), added(added(model.clone(), 60..66), 66..80));
    assert_eq!(parts.process().unwrap().record().continued.len(), 2);
    let fresh = rows(20, "fresh", 0.3);
    let [a, b] = [&once, &parts].map(|m| m.process().unwrap().predict(&fresh, None).unwrap());
    close(&a.mean, &b.mean, 1e-10);
    close(&a.deviation, &b.deviation, 1e-10);
    // Too few rows for what is asked, before any work.
    let few = fit(&table, &(0..10).collect::<Vec<_>>(), &asked(CalibrateName::Auto));
    let new = few.process().unwrap().new_rows(&table, &[11, 12]).unwrap();
    assert!(
        few.continued(new, CalibrateName::Conformal).unwrap_err().to_string().contains("19 rows or more")
    );
    // A category that was not there.
    let mut strange = table.clone();
    strange.columns[4].values = Values::Text(vec![Some("pink".into()); 80]);
    assert!(model.process().unwrap().new_rows(&strange, &[0]).unwrap_err().to_string().contains("pink"));
}

#[test]
fn rows_like_those_that_were_there_are_not_warned_of() {
    let (mut warned, draws) = (0, 12);
    for seed in 0..draws {
        let table = synthetic::friedman(160, Streams::new(seed));
        let request =
            FitRequest { columns: asked(CalibrateName::Auto).columns, ..request(MethodName::Exact) };
        let selection = Selection { noise: None, ..request.columns.clone() };
        let model = fit(&table, &(0..100).collect::<Vec<_>>(), &FitRequest { columns: selection, ..request });
        let new = model.process().unwrap().new_rows(&table, &(100..160).collect::<Vec<_>>()).unwrap();
        let told = model.continued(new, CalibrateName::Auto).unwrap().process().unwrap().record().continued
            [0]
        .clone();
        assert_eq!(told.fit(), told.warning().is_none());
        println!("{seed}: {:.2} of {:.2}", told.squared_error, told.squared_error_explained);
        warned += usize::from(!told.fit());
    }
    // Hyperparameters have seen the earlier rows and not these: a false alarm is rarer than one in four.
    assert!(warned <= 2, "{warned} of {draws}");
}

#[test]
fn only_exact_processes_take_rows_and_predict_each_from_the_others() {
    let table = rows(60, "table", 0.3);
    let mut asked = asked(CalibrateName::None);
    asked.columns.noise = None;
    asked.columns.exclude = vec!["s".into()];
    asked.method = MethodName::Sgpr.into();
    let model = fit(&table, &Split::all(60).train, &asked);
    let refused = model.process().unwrap().check_continued().unwrap_err();
    assert!(refused.is_usage() && refused.to_string().contains("posterior stream --model"), "{refused}");
    let refused = model.process().unwrap().leave_one_out(&table, &[0], false).unwrap_err();
    assert!(refused.is_usage() && refused.to_string().contains("--folds"), "{refused}");
    let question = Question { leave_one_out: true, ..Question::default() };
    assert!(model.check(&question).unwrap_err().is_usage());
}

#[test]
fn training_rows_are_predicted_as_by_fits_without_them() {
    let mut table = rows(40, "table", 0.3);
    // Row 39 is row 3 again.
    for column in &mut table.columns {
        match &mut column.values {
            Values::Numeric(v) => v[39] = v[3],
            Values::Text(v) => v[39] = v[3].clone(),
        }
    }
    for calibrate in [CalibrateName::None, CalibrateName::Conformal] {
        let model = fit(&table, &(0..40).collect::<Vec<_>>(), &asked(calibrate));
        let factor = model
            .process()
            .unwrap()
            .record()
            .fit
            .gaussian()
            .unwrap()
            .recalibration
            .as_ref()
            .map_or(1.0, |own| own.factor);
        assert_eq!(calibrate == CalibrateName::None, factor == 1.0);
        // Some rows, in another order.
        let rows = [17, 3, 39, 0];
        let found = model.process().unwrap().leave_one_out(&table, &rows, true).unwrap();
        assert_eq!(found.rows, rows);
        let (data, standard) =
            (in_its_units(&model, &table), &model.process().unwrap().inputs().standardisation);
        for (place, &row) in rows.iter().enumerate() {
            let others: Vec<usize> = (0..40).filter(|i| *i != row).collect();
            let without = exact(&model).model().clone().condition(data.select(&others).unwrap()).unwrap();
            let one = without.predict(data.inputs().subrows(row, 1)).unwrap();
            let latent = one.latent_variance[0];
            let observed = latent + one.noise_variance + data.noise_variances().unwrap()[row];
            let back = |variance: f64| standard.target_scale * variance.sqrt();
            let expected = [standard.target_back(one.mean[(0, 0)]), factor * back(observed), back(latent)];
            close(
                &[found.mean[place], found.deviation[place], found.latent_deviation[place]],
                &expected,
                1e-8,
            );
        }
        // Asked as any model is, with columns and quantiles.
        let data = ModelData::of_table(table.clone()).unwrap();
        let question = Question {
            leave_one_out: true,
            quantiles: vec![0.5, 0.9],
            memory: 1 << 30,
            ..Question::default()
        };
        let answer = Model::predict(&model, &data, &question).unwrap();
        assert_eq!((answer.count, answer.columns.len()), (40, 5));
        assert!(answer.notes[0].contains("from all other training rows"));
        let all =
            model.process().unwrap().leave_one_out(&table, &(0..40).collect::<Vec<_>>(), false).unwrap();
        let Values::Numeric(upper) = &answer.columns[4].values else { panic!("no numbers") };
        close(upper, &all.quantile(0.9), 1e-12);
        let plan = model.plan(&data, &question, 0).unwrap();
        assert_eq!(plan.flops, 64_000.0 / 3.0);
        // Another number anywhere is another row.
        for (column, name) in table.columns.iter().enumerate().take(4) {
            let mut other = table.clone();
            let Values::Numeric(values) = &mut other.columns[column].values else { panic!("{name:?}") };
            values[6] += 1e-9;
            let refused = model.process().unwrap().leave_one_out(&other, &[0, 6], false).unwrap_err();
            assert!(
                refused.to_string().contains("row 7: the model was not trained on this row"),
                "{refused}"
            );
        }
        for together in
            [Question { samples: 3, ..question.clone() }, Question { joint: true, ..question.clone() }]
        {
            assert!(model.check(&together).unwrap_err().is_usage());
        }
        assert!(!model.answers_parts(&question) && model.cut(&[], &question).is_err());
    }
}

#[test]
fn covariances_are_those_of_the_function() {
    let table = rows(60, "table", 0.3);
    let mut asked = asked(CalibrateName::None);
    let fresh = rows(12, "fresh", 0.3);
    let data = ModelData::of_table(fresh.clone()).unwrap();
    let question = Question { joint: true, memory: 1 << 30, ..Question::default() };
    let model = fit(&table, &Split::all(60).train, &asked);
    let posterior = exact(&model);
    let x = model.process().unwrap().standard_inputs(&fresh).unwrap();
    // k(x, x) - k(x, X) K⁻¹ k(X, x) from the matrices themselves.
    let (kernel, known) = (posterior.model().kernel(), posterior.data());
    let mut matrix = posterior::kernels::gram(kernel, known.inputs());
    let noise = posterior.model().noise().noise_variance();
    (0..60).for_each(|i| matrix[(i, i)] += noise + known.noise_variances().unwrap()[i]);
    let cross = posterior::kernels::cross(kernel, x.as_ref(), known.inputs());
    let solved = faer::prelude::Solve::solve(&matrix.partial_piv_lu(), cross.transpose());
    let expected = posterior::kernels::gram(kernel, x.as_ref()) - &cross * solved;
    let square = model.process().unwrap().inputs().standardisation.target_scale.powi(2);
    let found = model.covariance(&data, &question).unwrap();
    assert_eq!(found.shape(), [12, 12]);
    let found = found.to_f64();
    for i in 0..12 {
        for j in 0..12 {
            assert!((found[12 * i + j] - square * expected[(i, j)]).abs() < 1e-8 * square);
            assert_eq!(found[12 * i + j], found[12 * j + i]);
        }
    }
    // Draws scatter as it says: covariances of n draws have the variance (C_ii C_jj + C_ij²) / n.
    let draws = model.process().unwrap().sample(&fresh, &Split::all(12).train, 4000, 3, u64::MAX).unwrap();
    let mean: Vec<f64> = (0..12).map(|i| draws.iter().map(|d| d[i]).sum::<f64>() / 4000.0).collect();
    for i in 0..12 {
        for j in 0..=i {
            let own = draws.iter().map(|d| (d[i] - mean[i]) * (d[j] - mean[j])).sum::<f64>() / 3999.0;
            let c = |a: usize, b: usize| found[12 * a + b];
            let error = ((c(i, i) * c(j, j) + c(i, j).powi(2)) / 4000.0).sqrt();
            // 78 of them: 4.5 standard errors are crossed once in two thousand such tests.
            assert!((own - c(i, j)).abs() < 4.5 * error, "{i} {j}: {own} {}", c(i, j));
        }
    }
    let refused = model.covariance(&data, &Question { memory: 1000, ..question.clone() }).unwrap_err();
    assert!(refused.to_string().contains("--limit") && refused.to_string().contains("--memory"), "{refused}");
    let [plain, joint] = [false, true]
        .map(|joint| model.plan(&data, &Question { joint, ..question.clone() }, 0).unwrap().peak_bytes);
    // Three blocks of features and four matrices.
    assert_eq!(joint - plain, 8 * (3 * 12 * 60 + 4 * 12 * 12));
    assert!(!model.answers_parts(&question) && model.cut(&[], &question).is_err());
    // Of every method the diagonal is what predictions have.
    asked.columns.noise = None;
    asked.columns.exclude = vec!["s".into()];
    for method in [
        MethodName::Cg,
        MethodName::InducingSgd,
        MethodName::Sgpr,
        MethodName::Svgp,
        MethodName::Dbk,
        MethodName::Dkl,
        MethodName::Gvi,
    ] {
        asked.method = method.into();
        let short = json!({"restarts": 1, "samples": 16, "random-features": 100, "inducing": 20, "iterations": 20, "batch": 20, "held-back": 0, "blocks": 1, "block-size": 40, "steps": 5, "rank": 8});
        set(&mut asked, short);
        if method == MethodName::Gvi {
            set(&mut asked, json!({"objective": "pgvi"}));
        }
        let model = fit(&table, &Split::all(60).train, &asked);
        let found = model.covariance(&data, &question).unwrap_or_else(|e| panic!("{method:?}: {e}")).to_f64();
        let deviations = model.process().unwrap().predict(&fresh, None).unwrap().latent_deviation;
        for i in 0..12 {
            let variance = deviations[i].powi(2);
            assert!(
                (found[13 * i] - variance).abs() < 1e-6 * square,
                "{method:?}: {} {variance}",
                found[13 * i]
            );
        }
        let solved = Question {
            variances: Some(VarianceMethod::Solves { tolerance: 1e-4, iterations: 9, memory_limit: 1 << 30 }),
            ..question.clone()
        };
        let kept = model.process().unwrap().predictor().stored_samples().is_some();
        assert_eq!(matches!(model.check(&solved), Err(ModelError::Usage(_))), kept, "{method:?}");
    }
}
