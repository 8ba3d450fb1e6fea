use super::*;
use crate::{DecisionError, SharedState, Space};
use posterior_optim::Signal;

fn space() -> Space {
    "x:-5..10,y:0..15".parse().unwrap()
}

/// Branin's function: three minima of 0.397887 (L. C. W. Dixon, G. P. Szegő, 1978).
fn branin(p: &[f64]) -> f64 {
    let (x, y) = (p[0], p[1]);
    let pi = std::f64::consts::PI;
    (y - 5.1 / (4.0 * pi * pi) * x * x + 5.0 / pi * x - 6.0).powi(2)
        + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * x.cos()
        + 10.0
}

fn settings(strategy: Strategy, seed: u64) -> Settings {
    let mut settings = Settings::new(2);
    settings.strategy = strategy;
    settings.seed = seed;
    settings.multistart.candidates = 400;
    settings.multistart.rounds = 5;
    settings.features = 500;
    settings
}

fn run(campaign: &mut Campaign, rounds: usize, batch: usize) -> f64 {
    for _ in 0..rounds {
        let ids = campaign.ask(batch, &mut |_, _, _| Signal::Continue).unwrap().ids;
        for id in ids {
            let value = branin(&campaign.trials()[id - 1].point);
            assert_eq!(campaign.tell(id, Outcome::Done { value }, false).unwrap(), TellOutcome::Recorded);
        }
    }
    campaign.best().unwrap().value
}

#[test]
fn a_minimum_is_found_far_sooner_than_at_random() {
    let mut thompson = Campaign::new(space(), settings(Strategy::Thompson, 1)).unwrap();
    let found = run(&mut thompson, 14, 2);
    assert!(found < 0.397887 + 0.02, "{found}");
    // Random search of 28 points comes that near with a probability below one in a hundred: the region has 0.02 % of the area.
    let mut random = Campaign::new(space(), settings(Strategy::Random, 1)).unwrap();
    assert!(run(&mut random, 14, 2) > found);
    assert!(thompson.trials().iter().skip(6).all(|t| t.origin == Origin::Thompson));
    assert!(random.trials().iter().skip(6).all(|t| t.origin == Origin::Random));
}

#[test]
fn a_crash_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let mut straight = Campaign::new(space(), settings(Strategy::Thompson, 2)).unwrap();
    run(&mut straight, 5, 2);
    let mut broken = Campaign::new(space(), settings(Strategy::Thompson, 2)).unwrap();
    for _ in 0..5 {
        broken.save(&path).unwrap();
        broken = Campaign::load(&path).unwrap();
        // Asked, but killed before anything was saved: the same is asked again.
        broken.clone().ask(2, &mut |_, _, _| Signal::Continue).unwrap();
        run(&mut broken, 1, 2);
    }
    assert_eq!(broken, straight);
}

#[test]
fn outcomes_in_any_order_failures_and_corrections() {
    let mut campaign = Campaign::new(space(), settings(Strategy::Thompson, 3)).unwrap();
    let ask = |c: &mut Campaign, n| c.ask(n, &mut |_, _, _| Signal::Continue);
    let ids = ask(&mut campaign, 8).unwrap().ids;
    assert_eq!(ids, (1..=8).collect::<Vec<_>>());
    // An even design: each axis has a point in every cell.
    for axis in 0..2 {
        let mut cells: Vec<usize> = campaign.trials()[..6]
            .iter()
            .map(|t| (campaign.space().axes[axis].to_unit(t.point[axis]) * 6.0) as usize)
            .collect();
        cells.sort_unstable();
        assert_eq!(cells, [0, 1, 2, 3, 4, 5]);
    }
    for id in [5, 1, 8, 3] {
        let value = branin(&campaign.trials()[id - 1].point);
        campaign.tell(id, Outcome::Done { value }, false).unwrap();
    }
    campaign.tell(2, Outcome::Failed { reason: "exploded".into() }, false).unwrap();
    let own = campaign.tell_point(&[1.0, 2.0], Outcome::Done { value: branin(&[1.0, 2.0]) }).unwrap();
    assert_eq!((own, campaign.trials()[8].origin), (9, Origin::Given));
    let proposal = ask(&mut campaign, 3).unwrap();
    assert_eq!(proposal.ids, [10, 11, 12]);
    assert!(proposal.notes.iter().any(|n| n.contains("1 failed")), "{:?}", proposal.notes);
    assert!(proposal.hyperparameters.iter().any(|(name, v)| name.ends_with("lengthscale") && v.len() == 2));
    assert_eq!(campaign.pending().count(), 6);
    // Telling again.
    let value = campaign.trials()[4].value().unwrap();
    assert_eq!(campaign.tell(5, Outcome::Done { value }, false).unwrap(), TellOutcome::Repeated);
    let error = campaign.tell(5, Outcome::Done { value: 1.0 }, false).unwrap_err().to_string();
    assert!(error.contains("has an outcome already"), "{error}");
    campaign.tell(5, Outcome::Done { value: -1.0 }, true).unwrap();
    assert_eq!(campaign.best().unwrap().id, 5);
    for (id, value, expected) in
        [(99, 1.0, "no trial 99"), (0, 1.0, "no trial 0"), (4, f64::NAN, "not a finite")]
    {
        let error = campaign.tell(id, Outcome::Done { value }, false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = campaign.tell_point(&[100.0, 1.0], Outcome::Done { value: 1.0 }).unwrap_err().to_string();
    assert!(error.contains("x = 100 is not on its axis"), "{error}");
    assert!(campaign.tell_point(&[1.0], Outcome::Done { value: 1.0 }).is_err());
    let stopped = campaign.ask(1, &mut |_, _, _| Signal::Stop);
    assert!(matches!(stopped, Err(DecisionError::Interrupted)), "{stopped:?}");
    assert_eq!(campaign.trials().len(), 12);
}

#[test]
fn numbers_without_bound_are_refused() {
    let mut many = settings(Strategy::Thompson, 0);
    many.initial = 1_000_000_000;
    let error = Campaign::new(space(), many.clone()).unwrap_err().to_string();
    assert!(error.contains("1000000000 initial points are too many: at most 10000"), "{error}");
    many.initial = MOST_INITIAL;
    let mut campaign = Campaign::new(space(), many).unwrap();
    for count in [0, MOST_ASKED + 1, 1_000_000] {
        let error = campaign.ask(count, &mut |_, _, _| Signal::Continue).unwrap_err().to_string();
        assert!(error.contains("ask for 1 to 2000 at a time"), "{error}");
    }
    // The largest round of the largest design is spread in one go, and evenly: no two in one of its cells.
    campaign.ask(MOST_ASKED, &mut |_, _, _| Signal::Continue).unwrap();
    let axis = &campaign.space().axes[0];
    let cell = |t: &Trial| (axis.to_unit(t.point[0]) * MOST_INITIAL as f64) as usize;
    let cells: std::collections::HashSet<usize> = campaign.trials().iter().map(cell).collect();
    assert!(cells.len() > MOST_ASKED - 5, "{}", cells.len());
}

#[test]
fn tables_of_candidates_are_searched_without_repetition() {
    let rows: Vec<Vec<f64>> =
        (0..400).map(|i| vec![-5.0 + 15.0 * (i % 20) as f64 / 19.0, 15.0 * (i / 20) as f64 / 19.0]).collect();
    let mut heights: Vec<f64> = rows.iter().map(|r| branin(r)).collect();
    heights.sort_by(f64::total_cmp);
    let candidates = Candidates { source: "grid.csv".into(), rows: rows.clone() };
    let mut campaign =
        Campaign::new(space(), settings(Strategy::Thompson, 4)).unwrap().among(candidates).unwrap();
    let found = run(&mut campaign, 12, 3);
    // One of the three best of 400 rows; 36 rows at random hold one with a probability of a quarter.
    assert!(found <= heights[2], "{found} {:?}", &heights[..4]);
    let mut taken: Vec<usize> = campaign.trials().iter().map(|t| t.row.unwrap()).collect();
    assert!(campaign.trials().iter().all(|t| t.point == rows[t.row.unwrap() - 1]));
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 36);
    let error = campaign.ask(365, &mut |_, _, _| Signal::Continue).unwrap_err().to_string();
    assert!(error.contains("only 364 of 400 in grid.csv are left"), "{error}");
    let outside = Candidates { source: "bad.csv".into(), rows: vec![vec![0.0, 99.0]] };
    let error = Campaign::new(space(), settings(Strategy::Random, 0)).unwrap().among(outside).unwrap_err();
    assert!(error.to_string().contains("bad.csv, row 1: 99 is not on the axis `y`"), "{error}");
}

#[test]
fn states_that_are_damaged_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let mut campaign = Campaign::new(space(), settings(Strategy::Random, 5)).unwrap();
    run(&mut campaign, 2, 2);
    campaign.save(&path).unwrap();
    assert_eq!(Campaign::load(&path).unwrap(), campaign);
    let text = std::fs::read_to_string(&path).unwrap();
    let damaged = [
        text[..text.len() / 2].to_string(),
        text.replace("\"format\":1", "\"format\":9"),
        text.replace("\"id\":2", "\"id\":7"),
        text.replace("\"upper\":10.0", "\"upper\":-10.0"),
        "[]".into(),
        String::new(),
    ];
    for content in damaged {
        assert_ne!(content, text);
        std::fs::write(&path, &content).unwrap();
        let error = Campaign::load(&path).unwrap_err();
        assert!(matches!(error, DecisionError::State { .. }), "{error}");
    }
    assert!(matches!(Campaign::load(&folder.path().join("absent")), Err(DecisionError::File { .. })));
    let mut wrong = settings(Strategy::Thompson, 0);
    wrong.kernel = "matern52(nothing)".parse().unwrap_or(wrong.kernel);
    wrong.features = 0;
    assert!(Campaign::new(space(), wrong).is_err());
}
