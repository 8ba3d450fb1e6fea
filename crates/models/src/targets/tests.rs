//! What models of several targets say of themselves; fits and commands have tests of their own.

use super::shared::SharedRows;
use crate::options::{PriorSettings, Start};
use crate::{FitRequest, Model, ModelData, ModelError, Question, Saved};
use posterior_data::{Column, Table};
use posterior_gp::exact::{ExactGp, log_evidence};
use posterior_gp::{MeanForm, Observations};
use posterior_likelihoods::Gaussian;
use posterior_optim::{Parameters, Signal};
use posterior_store::Container;
use serde_json::Value;

const NAMES: [&str; 2] = ["a", "b"];

/// 40 rows of two columns and two targets, of which the second has gaps where it is told to.
fn table(gaps: &[usize]) -> Table {
    let x = |i: usize, d: usize| ((i * (7 + 4 * d)) % 40) as f64 / 20.0 - 1.0;
    let column = |value: &dyn Fn(usize) -> f64| (0..40).map(value).collect::<Vec<f64>>();
    let noise = |i: usize| 0.1 * (12.9898 * i as f64).sin();
    let mut b = column(&|i| 5.0 - 20.0 * (x(i, 0) * x(i, 1)) + noise(3 * i));
    gaps.iter().for_each(|&i| b[i] = f64::NAN);
    Table::new(
        "t",
        vec![
            Column::numeric("x", column(&|i| x(i, 0))),
            Column::numeric("z", column(&|i| x(i, 1))),
            Column::numeric("a", column(&|i| (3.0 * x(i, 0)).sin() + x(i, 1) + noise(i))),
            Column::numeric("b", b),
        ],
    )
}

fn requests(form: MeanForm) -> Vec<FitRequest> {
    let names = NAMES.map(String::from);
    let request = FitRequest {
        prior: PriorSettings { mean: form, ..PriorSettings::default() },
        ..FitRequest::default()
    };
    names.iter().map(|name| super::names::request_of(&request, &names, name).unwrap()).collect()
}

fn rows() -> Vec<usize> {
    (0..40).collect()
}

fn apart(table: &Table) -> Saved {
    let fit = |own: &FitRequest| Model::fit(table, &rows(), own, &mut |_, _| Signal::Continue).unwrap();
    Saved::of(requests(MeanForm::Constant).iter().map(fit).collect(), None).unwrap()
}

fn question() -> Question {
    Question { memory: 1 << 30, ..Question::default() }
}

#[test]
fn a_shared_kernel_maximises_the_sum_of_the_evidences_of_its_targets() {
    for form in [MeanForm::Constant, MeanForm::Linear] {
        let (table, mut requests) = (table(&[]), requests(form));
        for own in &mut requests {
            own.prior.lengthscale_prior = crate::options::LengthscalePrior::None;
        }
        let joint = SharedRows::from_table(&table, &rows(), &requests).unwrap();
        let shared = joint.search(&requests[0], &mut |_, _| Signal::Continue).unwrap();
        assert!(shared.is_of_all_rows() && shared.rows == 40 && shared.rows_left_out == 0);
        // Conditioned under these hyperparameters, the evidences of the targets add up to it.
        let mut sum = 0.0;
        for (place, (prepared, own)) in joint.clone().into_own().into_iter().zip(&mut requests).enumerate() {
            own.start = Start::given(shared.of_target(place));
            let model = Model::fit_prepared(prepared, own, &mut |_, _| Signal::Continue).unwrap();
            assert_eq!(model.process().unwrap().record().hyperparameters, shared.of_target(place));
            sum += model.process().unwrap().record().fit.gaussian().unwrap().log_evidence.unwrap();
        }
        assert!((sum - shared.log_evidence).abs() < 1e-9 * sum.abs(), "{sum} {}", shared.log_evidence);
        // By brute force: a process of each target, the sum of whose evidences no step along a parameter makes larger.
        let data: Vec<Observations> = joint.into_own().into_iter().map(|own| own.data).collect();
        let value = |moved: &[crate::Hyperparameter]| -> f64 {
            let moved = super::shared::SharedKernel { hyperparameters: moved.to_vec(), ..shared.clone() };
            let each = data.iter().enumerate().map(|(place, data)| {
                let kernel = requests[0].prior.kernel.build(&["x".into(), "z".into()]).unwrap();
                let mut model = ExactGp::new(kernel, form, Gaussian::new(0.1, 1e-4), 2, 1);
                let values: Vec<f64> = moved.of_target(place).into_iter().flat_map(|h| h.values).collect();
                model.set_values(&values);
                log_evidence(&model, data, None).unwrap().value
            });
            each.sum()
        };
        let best = value(&shared.hyperparameters);
        assert!((best - sum).abs() < 1e-9 * sum.abs());
        for (k, own) in shared.hyperparameters.iter().enumerate() {
            for i in 0..own.values.len() {
                for factor in [-0.05, 0.05] {
                    let mut moved = shared.hyperparameters.clone();
                    // Lengthscales, scales and noise are positive, coefficients of the mean are not.
                    let step = if own.name.starts_with("mean.") { 0.05 } else { own.values[i] };
                    moved[k].values[i] += factor * step;
                    let found = value(&moved);
                    assert!(found < best + 1e-6, "{} {i}: {found} {best}", own.name);
                }
            }
        }
    }
}

#[test]
fn rows_without_a_target_have_no_part_in_the_search_and_teach_the_others() {
    let (table, requests) = (table(&[3, 17, 30]), requests(MeanForm::Constant));
    let joint = SharedRows::from_table(&table, &rows(), &requests).unwrap();
    assert_eq!(joint.rows(), 37);
    let shared = joint.search(&requests[0], &mut |_, _| Signal::Continue).unwrap();
    assert!(
        shared.rows_left_out == 3 && shared.describe().contains("3 rows without"),
        "{}",
        shared.describe()
    );
    let own = joint.into_own();
    assert_eq!([own[0].data.rows(), own[1].data.rows()], [40, 37]);
    // Both in the units of the rows that the search saw.
    let features = |k: usize| (&own[k].standardisation.feature_means, &own[k].standardisation.feature_scales);
    assert_eq!(features(0), features(1));
    let seen: f64 =
        (0..40).filter(|i| ![3, 17, 30].contains(i)).map(|i| ((i * 7) % 40) as f64 / 20.0 - 1.0).sum();
    assert!((features(0).0[0] - seen / 37.0).abs() < 1e-12);
    let stopped = SharedRows::from_table(&table, &rows(), &requests).unwrap();
    let error = stopped.search(&requests[0], &mut |_, _| Signal::Stop).unwrap_err();
    assert!(matches!(error, ModelError::Interrupted));
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let refused = |requests: &[FitRequest], table: &Table, part: &str| {
        let error = SharedRows::from_table(table, &rows(), requests).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let (own, whole) = (requests(MeanForm::Constant), table(&[]));
    refused(&own[..1], &whole, "two numeric targets");
    let mut given = own.clone();
    given[0].start = Start::given(Vec::new());
    refused(&given, &whole, "--hyperparameters");
    let mut learned = own.clone();
    learned[0].method = crate::options::MethodName::Dkl.into();
    refused(&learned, &whole, "learns features");
    let all: Vec<usize> = (0..40).collect();
    refused(&own, &table(&all), "0 rows have all targets");
}

#[test]
fn predictions_are_side_by_side_and_those_of_each_model() {
    let table = table(&[3]);
    let model = apart(&table);
    let data = ModelData::of_table(table).unwrap();
    let asked = Question { quantiles: vec![0.1], samples: 2, seed: 5, ..question() };
    let all = model.predict(&data, &asked).unwrap();
    assert_eq!(all.count, 40);
    let mut place = 0;
    for (k, one) in model.models.iter().enumerate() {
        let plain = Question { samples: 0, ..asked.clone() };
        let own = one.predict(&data, &plain).unwrap();
        for (column, found) in own.columns.iter().zip(&all.columns[place..]) {
            assert_eq!(column, found, "{}", NAMES[k]);
        }
        place += own.columns.len() + 2;
    }
    assert_eq!(place, all.columns.len());
    let names: Vec<&str> = all.columns.iter().map(|c| c.name.as_str()).collect();
    assert!(names.contains(&"a_q0.1") && names.contains(&"b_sample_2"), "{names:?}");
    // Of what needs one distribution the model of the target is asked.
    assert!(model.only().is_none());
    let array = Question { into: crate::PredictedInto::Array, ..question() };
    assert!(model.check(&array).unwrap_err().to_string().contains("an array holds"));
    let apart = Question { samples: 2, draws_apart: true, ..question() };
    assert!(model.check(&apart).unwrap_err().to_string().contains("--samples-out"));
    // Together they take what each takes, with the data once.
    let (plan, own) =
        (model.plan(&data, &question(), 0).unwrap(), model.models[0].plan(&data, &question(), 0).unwrap());
    assert!(
        plan.peak_bytes > own.peak_bytes
            && plan.peak_bytes < 2 * own.peak_bytes
            && plan.flops > 1.9 * own.flops
    );
    let small = Question { memory: own.peak_bytes, ..question() };
    assert!(matches!(model.plan(&data, &small, 0), Err(ModelError::PredictionMemory { .. })));
}

#[test]
fn departures_are_those_of_all_targets_and_of_all_parts() {
    let table = table(&[]);
    let model = apart(&table);
    let of = |factor: f64| {
        let mut far = table.clone();
        let moved = |v: &f64| v * factor;
        if let posterior_data::Values::Numeric(values) = &mut far.columns[0].values {
            *values = values.iter().map(moved).collect();
        }
        model.predict(&ModelData::of_table(far).unwrap(), &question()).unwrap().inputs
    };
    let mut inputs = of(1.0);
    assert!(model.departures(&inputs).unwrap().is_empty());
    inputs.merge(of(50.0));
    let found = model.departures(&inputs).unwrap();
    assert!(found.len() == 1 && found[0].column == "x" && found[0].rows == 80, "{found:?}");
    assert_eq!(inputs.side_by_side().count(), 2);
}

#[test]
fn a_file_holds_all_models_and_damaged_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    let table = table(&[7]);
    let model = apart(&table);
    model.save(&path).unwrap();
    let back = Saved::load(&path).unwrap();
    let data = ModelData::of_table(table).unwrap();
    let columns = |model: &Saved| model.predict(&data, &question()).unwrap().columns;
    assert_eq!(columns(&back), columns(&model));
    assert_eq!((back.names(), back.described()), (model.names(), model.described()));
    assert_eq!(back.report().unwrap()["targets"][1]["target"], "b");
    assert!(back.of_target("b").is_some_and(|own| own.target() == "b") && back.of_target("z").is_none());

    let error = Model::load(&path).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("it holds several"), "{error}");
    let refused = |change: &dyn Fn(&mut Value, &mut posterior_store::Tensors), part: &str| {
        let mut container = Container::<Value>::read(&path).unwrap();
        change(&mut container.header, &mut container.tensors);
        let broken = folder.path().join("broken.posterior");
        container.write(&broken).unwrap();
        let error = Saved::load(&broken).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(&|_, tensors| drop(tensors.take_under("model.1.")), "missing");
    refused(&|_, tensors| tensors.insert_vector("model.2.factor", &[1.0]), "belongs to nothing");
    refused(&|header, _| drop(header["models"].as_array_mut().unwrap().pop()), "belongs to nothing");
    refused(&|header, _| header["models"] = Value::Array(Vec::new()), "belongs to nothing");
    refused(&|header, _| header["models"][0] = header.clone(), "missing field `predictor`");
    refused(&|header, _| header["models"][1]["source"]["table"]["schema"]["target"] = "a".into(), "`a_mean`");
    let unknown = "its method `network` is not known";
    refused(&|header, _| header["models"][0]["predictor"]["kind"] = "network".into(), unknown);
    refused(&|header, _| header["models"][0]["predictor"]["settings"] = Value::Null, "invalid type: null");
    refused(&|header, _| header["models"][0] = Value::Null, "");
    refused(&|header, _| header["shared"] = serde_json::json!({"targets": ["z"]}), "");
    // Whatever a byte becomes, a file is read or refused.
    let whole = std::fs::read(&path).unwrap();
    let broken = folder.path().join("broken.posterior");
    for k in 0..400 {
        let mut bytes = whole.clone();
        let place = (k * 7919 + k * k * 31) % bytes.len().min(20_000);
        bytes[place] = bytes[place].wrapping_add(1 + (k % 255) as u8);
        bytes.truncate(if k % 10 == 0 { place } else { bytes.len() });
        std::fs::write(&broken, &bytes).unwrap();
        if let Ok(found) = Saved::load(&broken) {
            let _ = found.described();
        }
    }
}

#[test]
fn models_that_would_share_a_column_are_refused() {
    let own = table(&[]);
    let models = |names: [&str; 2]| {
        let mut own = own.clone();
        (own.columns[2].name, own.columns[3].name) = (names[0].into(), names[1].into());
        let names = names.map(String::from);
        let fit = |name: &String| {
            let mut request = FitRequest::default();
            request.columns.target = name.clone();
            request.columns.exclude = names.iter().filter(|other| *other != name).cloned().collect();
            Model::fit(&own, &rows(), &request, &mut |_, _| Signal::Continue).unwrap()
        };
        names.iter().map(fit).collect::<Vec<_>>()
    };
    let error = Saved::of(models(["y", "y_latent"]), None).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("`y_latent_std`"), "{error}");
    assert!(Saved::of(Vec::new(), None).map(|_| ()).unwrap_err().to_string().contains("at least one"));
}
