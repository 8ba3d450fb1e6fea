//! Class probabilities and sets of classes that are made to hold what they say, on rows that nothing has seen.

use super::labelled::{fit, question};
use crate::options::set;
use posterior::data::{Column, Selection, Split, Table, Values};
use posterior::linalg::random::Streams;
use posterior::metrics::{Classes, LabelSets, Temperature};
use posterior::models::{Guarantee, ModelData, Predicted, Question, Scores, StreamModel};
use posterior::options::{CalibrateName, InferenceName, MethodName, PseudoCount, Validation};
use posterior::{FitRequest, Model, ModelError, Saved};
use rand::RngExt as _;
use serde_json::{Value, json};

/// Three classes along two columns, whose probabilities are a softmax of smooth functions; `flips` of the labels are drawn anew, whatever the columns say.
fn table(rows: usize, flips: f64, seed: u64) -> Table {
    let mut random = Streams::new(seed).stream("test");
    let (mut a, mut b, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let [x, y]: [f64; 2] = [random.random(), random.random()];
        let own = [4.0 * (6.0 * x).sin(), 4.0 * (5.0 * y).cos(), 0.0].map(f64::exp);
        let mut left = random.random::<f64>() * own.iter().sum::<f64>();
        let mut class = own.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        if random.random::<f64>() < flips {
            class = Some(random.random_range(0..3));
        }
        a.push(x);
        b.push(y);
        labels.push(Some(["left|right", "middle", "over"][class.unwrap_or(2)].to_string()));
    }
    let label = Column { name: "label".into(), values: Values::Text(labels) };
    Table::new("softmax", vec![Column::numeric("a", a), Column::numeric("b", b), label])
}

/// A fit of pseudo-targets (with a pseudo-count) or by Laplace's approximation.
fn request(
    method: MethodName,
    calibrate: CalibrateName,
    pseudo_count: Option<f64>,
    options: Value,
) -> FitRequest {
    let mut request = FitRequest {
        columns: Selection { target: "label".into(), ..Default::default() },
        method: method.into(),
        validation: Validation { calibrate, ..Validation::default() },
        ..Default::default()
    };
    request.output.inference = match pseudo_count {
        Some(_) => InferenceName::Gaussianised,
        None => InferenceName::Laplace,
    };
    request.output.pseudo_count = pseudo_count.map(PseudoCount::Given);
    set(&mut request, options);
    request
}

fn fitted(table: &Table, request: &FitRequest) -> Result<Model, ModelError> {
    fit(table, &Split::all(table.rows()).train, request)
}

fn data(table: &Table) -> ModelData {
    ModelData::of_table(table.clone()).unwrap()
}

/// Probabilities, and what came true.
fn predicted(model: &Model, table: &Table, sets: &[f64]) -> (Vec<f64>, posterior::models::Predictive) {
    let asked = Question { sets: sets.to_vec(), ..question(true) };
    let found = model.predictive(&data(table), &asked).unwrap();
    let Predicted::Classes(p) = &found.predicted else { panic!("classes") };
    (p.clone(), found)
}

#[test]
fn held_back_rows_make_probabilities_and_sets_hold_what_they_say() {
    let (train, fresh) = (table(500, 0.0, 1), table(1500, 0.0, 2));
    // Of so small a pseudo-count the numbers fit badly.
    let options = json!({"held-back": 200, "inducing": 40, "iterations": 4});
    let of = |calibrate| {
        fitted(&train, &request(MethodName::Sgpr, calibrate, Some(0.001), options.clone())).unwrap()
    };
    let (plain, asked) = (of(CalibrateName::None), of(CalibrateName::Conformal));
    assert!(
        plain.process().unwrap().record().fit.likelihood().unwrap().recalibration.is_none()
            && Model::sets(&plain).is_none()
    );
    let own = asked.process().unwrap().record().fit.likelihood().unwrap().recalibration.clone().unwrap();
    // Every class has its share, so that there may be one more or less.
    let judged = asked.process().unwrap().record().fit.likelihood().unwrap().check.as_ref().unwrap().rows;
    assert!(own.guarantee == Guarantee::Holds && own.rows == judged && judged.abs_diff(200) <= 2, "{own:?}");
    assert!(own.tempering.applied && own.sentence().is_some());
    // Probabilities are those of the plain model under the temperature; everything latent stays.
    let (before, as_it_was) = predicted(&plain, &fresh, &[]);
    let levels = [0.5, 0.8, 0.95, 0.999];
    let (after, found) = predicted(&asked, &fresh, &levels);
    assert_eq!(found.latent_mean, as_it_was.latent_mean);
    let temperature = Temperature::new(own.tempering.temperature).unwrap();
    for (i, (row, plain)) in after.chunks(3).zip(before.chunks(3)).enumerate() {
        let mut direct = plain.to_vec();
        let sum = temperature.apply(&mut direct);
        assert_eq!(direct, row);
        let densities = [&found, &as_it_was].map(|p| p.log_density.as_ref().unwrap()[i]);
        assert!((densities[0] - (densities[1] / temperature.value() - sum)).abs() < 1e-12);
    }
    // A temperature that other rows of the same kind would choose: twice the standard error that the rows state, and that of the fresh ones.
    let posterior::models::Truth::Classes(labels) = found.truth.clone().unwrap() else { panic!("classes") };
    let nll =
        |p: &[f64]| -Classes::new(p, 3, &labels).unwrap().log_likelihoods().iter().sum::<f64>() / 1500.0;
    let gain = own.tempering.nll_after - own.tempering.nll_before;
    let error = own.tempering.difference_error.unwrap() * (1.0f64 + 200.0 / 1500.0).sqrt();
    assert!((nll(&after) - nll(&before) - gain).abs() < 4.0 * error, "{own:?}");
    // Sets are of what the model says, and hold the class as often: within 3.3 standard errors of both sets of rows, of which the most probable class may only make more.
    let known = Model::sets(&asked).unwrap();
    for sets in &found.sets {
        for (set, row) in sets.each().zip(before.chunks(3)) {
            assert_eq!(set, known.members(row, sets.level));
        }
        let coverage = sets.scored(&labels).coverage;
        let spread = known.spread(sets.level).unwrap_or(0.0);
        let error = (spread * spread + sets.level * (1.0 - sets.level) / 1500.0).sqrt();
        assert!(coverage > sets.level - 3.3 * error, "{}: {coverage}", sets.level);
    }
    assert!(found.sets[3].each().all(|set| set.len() == 3));
    // What an evaluation says is the same, at the usual levels.
    let evaluation = asked.evaluate(&data(&fresh), &question(true)).unwrap();
    let (_, usual) = predicted(&asked, &fresh, &posterior::models::SET_LEVELS);
    assert_eq!(evaluation.sets, usual.sets.iter().map(|sets| sets.scored(&labels)).collect::<Vec<_>>());
    let Scores::Classes(scores) = evaluation.scores else { panic!("classes") };
    assert!((scores.nll - nll(&after)).abs() < 1e-12);
    // Said, kept, and forgotten by a stream.
    let said = |what: &str| Model::notes(&asked).iter().filter(|note| note.text().contains(what)).count();
    assert_eq!(said("recalibrated"), 1);
    assert!(asked.facts().rows().iter().any(|row| row.label.contains("--sets")));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    plain.save(&path).unwrap();
    // As files of releases before it, one without has no word of it.
    assert!(!String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains("recalibration"));
    assert_eq!(predicted(&Model::load(&path).unwrap(), &fresh, &[]).1, as_it_was);
    asked.save(&path).unwrap();
    let loaded = Model::load(&path).unwrap();
    assert_eq!(loaded.process().unwrap().header(), asked.process().unwrap().header());
    assert_eq!(predicted(&loaded, &fresh, &levels).1, found);
    assert_eq!(Model::sets(&loaded).map(LabelSets::scores), Model::sets(&asked).map(LabelSets::scores));
}

#[test]
fn rows_that_are_predicted_from_the_others_give_no_exact_guarantee() {
    let (train, fresh) = (table(160, 0.1, 3), table(1000, 0.1, 4));
    for pseudo_count in [Some(0.1), None] {
        let options = json!({"restarts": 1, "steps": 6});
        let asked = request(MethodName::Exact, CalibrateName::Auto, pseudo_count, options);
        let model = fitted(&train, &asked).unwrap();
        let own = model.process().unwrap().record().fit.likelihood().unwrap().recalibration.clone().unwrap();
        assert_eq!((own.guarantee, own.rows), (Guarantee::LeftOut, 160), "{pseudo_count:?}");
        assert!(own.of_sets().to_string().contains("no guarantee is exact"), "{}", own.of_sets());
        let (_, found) = predicted(&model, &fresh, &[0.8, 0.9]);
        let posterior::models::Truth::Classes(labels) = found.truth.clone().unwrap() else {
            panic!("classes")
        };
        for sets in &found.sets {
            // All rows have a say in the function that predicts new ones: no worse than the rows left out, and five standard errors of both.
            let error = (2.0 * sets.level * (1.0 - sets.level) / 160.0).sqrt();
            let own = sets.scored(&labels);
            assert!(
                own.coverage > sets.level - 5.0 * error && own.mean_size < 3.0,
                "{pseudo_count:?}: {own:?}"
            );
        }
    }
}

#[test]
fn sets_become_columns_with_the_names_of_classes() {
    let train = table(120, 0.0, 5);
    let options = json!({"restarts": 1, "steps": 3});
    let model =
        fitted(&train, &request(MethodName::Exact, CalibrateName::Auto, Some(0.1), options.clone())).unwrap();
    let few = data(&table(4, 0.0, 6));
    let asked = |sets: &[f64], into| Question { sets: sets.to_vec(), into, ..question(false) };
    let text = |answer: &posterior::models::Answer, name: &str| -> Vec<Option<String>> {
        let column = answer.columns.iter().find(|c| c.name == name).unwrap_or_else(|| panic!("{name}"));
        match &column.values {
            Values::Text(values) => values.clone(),
            Values::Numeric(_) => panic!("text"),
        }
    };
    let all = Model::predict(&model, &few, &asked(&[0.999], posterior::models::PredictedInto::Json)).unwrap();
    for row in text(&all, "set") {
        let row = row.unwrap();
        // All classes; the bar of a name has a backslash before it.
        assert!(row.contains("left\\|right") && row.len() == "left\\|right|middle|over".len(), "{row}");
    }
    assert!(all.notes.len() == 1 && all.notes[0].contains("of all classes"), "{:?}", all.notes);
    let (name, each) = &all.sets[0];
    assert!(name == "set" && each.iter().flatten().all(|set| set.len() == 3));
    assert!(each[0].as_ref().unwrap().contains(&"left|right".to_string()));
    let several =
        Model::predict(&model, &few, &asked(&[0.5, 0.9], posterior::models::PredictedInto::Columns)).unwrap();
    assert!(
        several.sets.is_empty()
            && text(&several, "set_0.5").len() == 4
            && text(&several, "set_0.9").len() == 4
    );
    // What has no answer is refused with a way out.
    let refused = |model: &Model, question: &Question| model.check(question).unwrap_err().to_string();
    let array = asked(&[0.9], posterior::models::PredictedInto::Array);
    assert!(refused(&model, &array).contains("named columns"));
    let mut other = asked(&[0.9], posterior::models::PredictedInto::Columns);
    let none = fitted(&train, &request(MethodName::Exact, CalibrateName::None, Some(0.1), options)).unwrap();
    assert!(refused(&none, &other).contains("--calibrate"), "{}", refused(&none, &other));
    other.integration = Some(posterior::likelihoods::Integration::PlugIn);
    assert!(refused(&model, &other).contains("leave --predictive out"));
    // Taken in another way, nothing is changed, and there are no sets.
    let plain = Question { integration: other.integration, ..question(true) };
    assert!(model.evaluate(&data(&train), &plain).unwrap().sets.is_empty());
}

#[test]
fn what_cannot_be_told_is_refused_before_the_fit() {
    let train = table(60, 0.0, 7);
    let conformal =
        |options| fitted(&train, &request(MethodName::Sgpr, CalibrateName::Conformal, Some(0.1), options));
    let error = conformal(json!({"held-back": 10, "inducing": 10})).unwrap_err().to_string();
    assert!(error.contains("judged on 10") && error.contains("--held-back"), "{error}");
}

#[test]
fn a_stream_forgets_what_was_told_before_its_rows() {
    let train = table(200, 0.0, 8);
    let options = json!({"held-back": 60, "inducing": 20, "iterations": 2});
    let model =
        fitted(&train, &request(MethodName::Sgpr, CalibrateName::Conformal, Some(0.1), options)).unwrap();
    assert!(Model::sets(&model).is_some());
    let mut stream = StreamModel::start(Saved::from(model), 30).unwrap();
    let recalibration = |stream: &StreamModel| {
        let report = stream.model().report().unwrap();
        report["header"]["fit"].get("recalibration").cloned()
    };
    assert!(stream.model().sets().is_some() && recalibration(&stream).is_some());
    stream.learn(&table(30, 0.0, 9), &(0..30).collect::<Vec<_>>()).unwrap();
    assert!(stream.model().sets().is_none() && recalibration(&stream).is_none());
}
