//! Asking and telling with a state.

use crate::campaign::TellOutcome;
use crate::labelling::{
    Answer, Criterion, LabelSettings, LabelStage, Labelling, Pool, PoolColumns, Reason, Which,
};
use crate::{DecisionError, SharedState};
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_optim::Signal;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const ALL: u64 = 1 << 30;

/// Three clusters of the plane, in no order, with their class in a column and an identity in another.
fn table(folder: &Path, rows: usize) -> PathBuf {
    let path = folder.join("pool.csv");
    let mut text = String::from("name,a,b,kind\n");
    for i in 0..rows {
        let class = class(i);
        let wave = |k: f64| (i as f64 * k).sin();
        let (x, y) = [(0.0, 0.0), (3.0, 0.0), (0.0, 3.0)][class];
        text += &format!("row {i},{},{},{}\n", x + 0.5 * wave(1.7), y + 0.5 * wave(2.3), LABELS[class]);
    }
    std::fs::write(&path, text).unwrap();
    path
}

const LABELS: [&str; 3] = ["ant", "bee", "cat"];

fn class(i: usize) -> usize {
    (i * i + i / 3) % 3
}

fn settings(criterion: Criterion) -> LabelSettings {
    LabelSettings {
        criterion,
        kernel: "se".parse().unwrap(),
        gaussianised: Gaussianised::new(Matching::Variational, 0.1).unwrap(),
        initial: 4,
        classes: None,
        seed: 3,
    }
}

fn columns() -> PoolColumns {
    PoolColumns {
        features: Some(vec!["a".into(), "b".into()]),
        show: vec!["name".into()],
        ..PoolColumns::default()
    }
}

fn begun(path: &Path, settings: LabelSettings) -> (Labelling, Pool) {
    let (pool, source) = Pool::open(path, &columns(), &settings.kernel, ALL).unwrap();
    (Labelling::new(&pool, source, settings).unwrap().0, pool)
}

fn ask(labelling: &mut Labelling, pool: &Pool, count: usize) -> Vec<usize> {
    labelling.ask(pool, count, ALL, &mut |_, _, _| Signal::Continue).unwrap().ids
}

fn label(text: &str) -> Answer {
    Answer::Labelled { label: text.into() }
}

fn tell_truth(labelling: &mut Labelling, ids: &[usize]) {
    for &id in ids {
        let row = labelling.questions()[id - 1].row;
        labelling.tell(Which::Id(id), label(LABELS[class(row - 1)]), false).unwrap();
    }
}

#[test]
fn three_clusters_are_learned_from_few_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), 60);
    for criterion in
        [Criterion::Entropy, Criterion::MutualInformation, Criterion::Variance, Criterion::Random]
    {
        let (mut labelling, pool) = begun(&path, settings(criterion));
        assert_eq!(labelling.doubt(&pool, ALL).unwrap(), None);
        for _ in 0..5 {
            let ids = ask(&mut labelling, &pool, 3);
            assert_eq!(ids.len(), 3);
            tell_truth(&mut labelling, &ids);
        }
        let rows: HashSet<usize> = labelling.questions().iter().map(|q| q.row).collect();
        assert_eq!(rows.len(), 15, "a row was asked for twice");
        assert!(
            labelling.questions()[..4].iter().all(|q| q.reason == Reason::Spread && q.believed.is_none())
        );
        let later = &labelling.questions()[6..];
        assert!(later.iter().all(|q| q.reason == Reason::Criterion && q.believed.is_some()));
        assert_eq!(labelling.classes().len(), 3);
        let doubt = labelling.doubt(&pool, ALL).unwrap().unwrap();
        assert_eq!(doubt.rows, 45);
        assert!(doubt.removable > 0.0 && doubt.removable <= doubt.entropy && doubt.entropy < 3f64.ln());
        let scores = labelling.scores().unwrap();
        assert!(scores.labels >= 9 && scores.nll < scores.uniform_nll, "{criterion:?} {scores:?}");
        assert!(labelling.learned().is_some_and(|l| l.labels >= 6 && l.classes == 3));
    }
}

#[test]
fn a_crash_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, state) = (table(folder.path(), 40), folder.path().join("state.json"));
    let (mut straight, pool) = begun(&path, settings(Criterion::Entropy));
    for _ in 0..4 {
        let ids = ask(&mut straight, &pool, 2);
        tell_truth(&mut straight, &ids);
    }
    let (mut broken, _) = begun(&path, settings(Criterion::Entropy));
    for _ in 0..4 {
        broken.save(&state).unwrap();
        broken = Labelling::load(&state).unwrap();
        let pool = Pool::read(broken.pool(), None, ALL).unwrap();
        // Asked, but killed before anything was saved: the same is asked again.
        ask(&mut broken.clone(), &pool, 2);
        let ids = ask(&mut broken, &pool, 2);
        tell_truth(&mut broken, &ids);
    }
    assert_eq!(broken, straight);
}

#[test]
fn what_is_told_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), 12);
    let (mut labelling, pool) = begun(&path, settings(Criterion::Entropy));
    let refused = |labelling: &mut Labelling, which, answer, expected: &str| {
        let before = labelling.clone();
        let error = labelling.tell(which, answer, false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(*labelling, before);
    };
    refused(&mut labelling, Which::Id(1), label("ant"), "nothing was asked for yet");
    let ids = ask(&mut labelling, &pool, 3);
    refused(&mut labelling, Which::Id(4), label("ant"), "no question 4; they are numbered from 1 to 3");
    refused(&mut labelling, Which::Row(13), label("ant"), "rows 1 to 12");
    refused(&mut labelling, Which::Id(1), label("  "), "the label is empty");
    assert_eq!(labelling.tell(Which::Id(1), label("ant"), false).unwrap(), (TellOutcome::Recorded, None));
    assert_eq!(labelling.tell(Which::Id(1), label("ant"), false).unwrap(), (TellOutcome::Repeated, None));
    refused(&mut labelling, Which::Id(1), label("bee"), "has an answer already (`ant`)");
    // Not merged, but said.
    let (_, noted) = labelling.tell(Which::Id(2), label("Ant "), false).unwrap();
    assert!(noted.unwrap().contains("differs from `ant` in case or spaces only"));
    assert_eq!(
        (labelling.classes(), labelling.counts()),
        (&["ant".to_string(), "Ant ".into()][..], vec![1, 1])
    );
    labelling.tell(Which::Id(2), label("bee"), true).unwrap();
    // The class that nobody means any more is at the end, but no: `bee` came behind it.
    assert_eq!(labelling.counts(), [1, 0, 1]);
    labelling.tell(Which::Id(3), Answer::Skipped { reason: "smudged".into() }, false).unwrap();
    refused(&mut labelling, Which::Id(3), label("ant"), "skipped: smudged");
    // A row that nobody asked for, and one that somebody did.
    let free = (1..=12).find(|row| labelling.questions().iter().all(|q| q.row != *row)).unwrap();
    labelling.tell(Which::Row(free), label("cat"), false).unwrap();
    assert_eq!((labelling.questions()[3].row, labelling.questions()[3].reason), (free, Reason::Given));
    let asked = labelling.questions()[ids[0] - 1].row;
    assert_eq!(labelling.tell(Which::Row(asked), label("ant"), false).unwrap().0, TellOutcome::Repeated);
    // The rest of the pool, and then no more.
    let rest = labelling.ask(&pool, 100, ALL, &mut |_, _, _| Signal::Continue).unwrap();
    assert_eq!(rest.ids.len(), 8);
    assert!(
        rest.notes.iter().any(|note| note.contains("8 rows are left, fewer than the 100")),
        "{:?}",
        rest.notes
    );
    let error = labelling.ask(&pool, 1, ALL, &mut |_, _, _| Signal::Continue).unwrap_err().to_string();
    assert!(
        error.contains("nothing is left: all 12 rows") && error.contains("8 of them are still pending"),
        "{error}"
    );
}

#[test]
fn given_classes_admit_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), 12);
    let given = |names: &[&str]| LabelSettings {
        classes: Some(names.iter().map(ToString::to_string).collect()),
        ..settings(Criterion::Entropy)
    };
    let (mut labelling, pool) = begun(&path, given(&["ant", "bee", "cat"]));
    ask(&mut labelling, &pool, 1);
    let error = labelling.tell(Which::Id(1), label("Bee"), false).unwrap_err().to_string();
    assert!(error.contains("none of the classes") && error.contains("did you mean `bee`?"), "{error}");
    let known = PoolColumns { labels: Some("kind".into()), ..columns() };
    let with_labels = |settings: LabelSettings| {
        let (pool, source) = Pool::open(&path, &known, &settings.kernel, ALL).unwrap();
        Labelling::new(&pool, source, settings)
    };
    // Labels that the pool holds are told from the start; those that are no class are named.
    let (all, notes) = with_labels(settings(Criterion::Entropy)).unwrap();
    assert_eq!((all.questions().len(), all.classes().len(), notes.len()), (12, 3, 0));
    let error = with_labels(given(&["ant", "bee"])).unwrap_err().to_string();
    assert!(error.contains("pool.csv, row") && error.contains("`cat`"), "{error}");
    for (names, expected) in
        [(&["one"][..], "two classes"), (&["a", "a"], "named twice"), (&["a", ""], "without a name")]
    {
        let (pool, source) =
            Pool::open(&path, &columns(), &settings(Criterion::Entropy).kernel, ALL).unwrap();
        let error = Labelling::new(&pool, source, given(names)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn pools_are_checked_and_known_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), 12);
    let (labelling, _) = begun(&path, settings(Criterion::Entropy));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("0.", "0.1", 1)).unwrap();
    let error = Pool::read(labelling.pool(), None, ALL).unwrap_err().to_string();
    assert!(error.contains("has changed since the start"), "{error}");
    let moved = folder.path().join("moved.csv");
    std::fs::write(&moved, &text).unwrap();
    assert_eq!(Pool::read(labelling.pool(), Some(&moved), ALL).unwrap().rows.len(), 12);
    std::fs::remove_file(&path).unwrap();
    assert!(Pool::read(labelling.pool(), None, ALL).unwrap_err().to_string().contains("--pool"));

    let open = |text: &str, columns: &PoolColumns| {
        std::fs::write(&path, text).unwrap();
        Pool::open(&path, columns, &"se".parse().unwrap(), ALL).map(|(pool, _)| pool)
    };
    let plain = PoolColumns::default();
    for (text, expected) in [
        ("a,b\n1,2\n", "one row"),
        ("a,b\n1,2\n3,\n", "row 2, column `b`"),
        ("a,b\n1,2\n3,inf\n", "row 2, column `b`"),
        ("a,b\n1,2\n3,x\n", "row 2, column `b`"),
        ("", "no rows"),
    ] {
        let error = open(text, &plain).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    // Rows that are dropped keep their number in the file.
    let drop = PoolColumns { missing: posterior_data::Missing::Drop, ..PoolColumns::default() };
    let pool = open("a,b\n1,2\n,4\n5,6\n", &drop).unwrap();
    assert_eq!(
        (pool.rows.clone(), pool.place(1), pool.place(2), pool.place(3)),
        (vec![0, 2], Some(0), None, Some(1))
    );
    assert_eq!((pool.place(0), pool.place(4)), (None, None));
}

#[test]
fn plans_refuse_what_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), 40);
    let many = (0..10_000).map(|k| format!("class {k}")).collect();
    let (labelling, pool) =
        begun(&path, LabelSettings { classes: Some(many), ..settings(Criterion::Entropy) });
    let error = labelling.plan(&pool, 1).check(200_000_000).unwrap_err();
    let DecisionError::LabelMemory { plan, limit } = &error else { panic!("{error}") };
    assert!(plan.peak_bytes > *limit && plan.functions == 10_000);
    assert!(
        error.to_string().contains("10000 latent functions") && error.to_string().contains("--memory"),
        "{error}"
    );
    let mut small = begun(&path, settings(Criterion::Entropy)).0;
    assert!(small.plan(&pool, 1).check(10_000_000).is_ok());
    assert!(matches!(
        small.ask(&pool, 1, 1000, &mut |_, _, _| Signal::Continue),
        Err(DecisionError::LabelMemory { .. })
    ));
    assert!(small.ask(&pool, 0, ALL, &mut |_, _, _| Signal::Continue).is_err());
}

#[test]
fn hyperparameters_are_learned_when_there_are_half_as_many_labels_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), 40);
    let (mut labelling, pool) = begun(&path, settings(Criterion::Variance));
    let mut learned_at = Vec::new();
    for _ in 0..16 {
        let mut searched = false;
        let asked = labelling
            .ask(&pool, 1, ALL, &mut |stage, _, _| {
                searched |= stage == LabelStage::Evidence;
                Signal::Continue
            })
            .unwrap();
        assert_eq!(searched, asked.learned_now);
        if asked.learned_now {
            learned_at.push(labelling.learned().unwrap().labels);
        }
        tell_truth(&mut labelling, &asked.ids);
    }
    // At the fourth label, later by half each, or when a class comes.
    let last = learned_at.last().unwrap();
    assert!(
        learned_at[0] >= 4 && *last <= 15 && learned_at.windows(2).all(|w| w[0] < w[1]),
        "{learned_at:?}"
    );
    assert!(learned_at.len() <= 6, "{learned_at:?}");
    let state = folder.path().join("s.json");
    labelling.save(&state).unwrap();
    let text = std::fs::read_to_string(&state).unwrap();
    for (from, to, expected) in [
        ("\"format\":1", "\"format\":9", "layout 9"),
        ("\"id\":2", "\"id\":7", "question 7"),
        ("\"rows\":40", "\"rows\":3", "does not fit"),
    ] {
        std::fs::write(&state, text.replacen(from, to, 1)).unwrap();
        let error = Labelling::load(&state).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("not a usable state"), "{error}");
    }
    std::fs::write(&state, &text[..text.len() / 2]).unwrap();
    assert!(Labelling::load(&state).is_err());
}
