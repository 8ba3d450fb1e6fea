//! The memory that is planned is the memory that is used.

use posterior::data::{Selection, synthetic};
use posterior::linalg::random::Streams;
use posterior::models::peak_memory_bytes;
use posterior::optim::Signal;
use posterior::options::{EvidenceOptions, ExactOptions, Method};
use posterior::{FitRequest, Model};

#[test]
fn a_fit_keeps_to_its_plan() {
    let Some(before) = peak_memory_bytes() else {
        posterior_testing::skip("this system does not tell the peak memory of a process");
        return;
    };
    let rows = 3_000;
    let table = synthetic::friedman(rows, Streams::new(0));
    let evidence = EvidenceOptions { steps: Some(2), ..Default::default() };
    let request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        method: Method::Exact(ExactOptions { restarts: 1, evidence }),
        ..Default::default()
    };
    let plan = Model::plan_fit(&request, rows, &(1..=10).map(|i| format!("x{i}")).collect::<Vec<_>>());
    // A matrix, half of one for the file, and 34 MB beside them.
    assert!(plan.1 < 150_000_000, "{}", plan.0);
    let all: Vec<usize> = (0..rows).collect();
    let model = Model::fit(&table, &all, &request, &mut |_, _| Signal::Continue).unwrap();
    model.process().unwrap().predict(&table, None).unwrap();
    let used = peak_memory_bytes().unwrap() - before;
    // The plan covers the fit; threads, allocator and the table itself come on top.
    assert!(used < plan.1 + 24_000_000, "planned {}, used {used}", plan.1);
    assert!(used > (8 * rows * rows) as u64 / 2, "the measurement itself must see the matrix: {used}");
}
