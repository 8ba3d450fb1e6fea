//! **Loops over all threads** of the current Rayon pool, compiled once.
//!
//! Every chain of Rayon's iterators is compiled for its own closure: some dozens of functions that share out the work. Here one function that
//! is not generic does that, [`runs`], and what is compiled for a closure is the loop over it.
//!
//! `together` is how many indices make up a task at least. With 1, each index is a task, which is right where one takes microseconds and more.
//! Otherwise, and where tasks have scratch, there are about as many as threads ask for. A result must not depend on where tasks are cut.

use faer::prelude::ReborrowMut;
use faer::{ColMut, MatMut};
use std::ops::Range;

/// Calls `work` with runs of indices that together are `0..count`, each index once.
///
/// # Panics
/// When `work` does, after the runs that have begun are at their end. This holds for all functions here.
pub fn runs(count: usize, together: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let threads = rayon::current_num_threads();
    divide(0..count, (together, threads), threads, false, work);
}

/// The same, each index alone where `together` is 1.
fn tasks(count: usize, together: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let threads = rayon::current_num_threads();
    let parts = if together <= 1 { threads.max(count) } else { threads };
    divide(0..count, (together, threads), parts, false, work);
}

/// Halves the run as Rayon's iterators do: until there are about `parts`, and further where another thread took it over.
fn divide(
    run: Range<usize>,
    limits: (usize, usize),
    parts: usize,
    migrated: bool,
    work: &(dyn Fn(Range<usize>) + Sync),
) {
    let (together, threads) = limits;
    if run.len() < 2 || run.len() / 2 < together || (parts == 0 && !migrated) {
        if !run.is_empty() {
            work(run);
        }
        return;
    }
    let parts = if migrated { threads.max(parts / 2) } else { parts / 2 };
    let (start, middle, end) = (run.start, run.start + run.len() / 2, run.end);
    rayon::join_context(
        |context| divide(start..middle, limits, parts, context.migrated(), work),
        |context| divide(middle..end, limits, parts, context.migrated(), work),
    );
}

/// Calls `work` with every index below `count`.
#[inline]
pub fn for_each(count: usize, together: usize, work: impl Fn(usize) + Sync) {
    tasks(count, together, &|run| run.for_each(&work));
}

/// `work` of every index below `count`, in order.
#[inline]
pub fn map<R: Send>(count: usize, together: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    map_with(count, together, || (), |(), index| work(index))
}

/// As [`map`], with scratch that is made once for each run of indices.
#[inline]
pub fn map_with<R: Send, S>(
    count: usize,
    together: usize,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> R + Sync,
) -> Vec<R> {
    let mut out = Vec::with_capacity(count);
    chunks_with(&mut out.spare_capacity_mut()[..count], 1, together, scratch, |scratch, index, place| {
        place[0].write(work(scratch, index));
    });
    // SAFETY: every place has been written; had `work` panicked, this would not be reached.
    #[allow(unsafe_code)]
    unsafe {
        out.set_len(count);
    }
    out
}

/// Calls `work(index, chunk)` with the chunks of `values` that are `each` long; the last may be shorter.
///
/// # Panics
/// When `each` is 0.
#[inline]
pub fn chunks<T: Send>(
    values: &mut [T],
    each: usize,
    together: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    chunks_with(values, each, together, || (), |(), index, chunk| work(index, chunk));
}

/// As [`chunks`], with scratch that is made once for each run of chunks.
///
/// # Panics
/// When `each` is 0.
#[inline]
pub fn chunks_with<T: Send, S>(
    values: &mut [T],
    each: usize,
    together: usize,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize, &mut [T]) + Sync,
) {
    let shared = Shared { start: values.as_mut_ptr(), length: values.len() };
    // Scratch is made for every task, which one index would seldom be worth.
    let share = if size_of::<S>() == 0 { tasks } else { runs };
    share(shared.length.div_ceil(each), together, &|run| {
        let mut scratch = scratch();
        // SAFETY: runs have no index in common, so no other thread has these chunks, and `values` is borrowed until all are done.
        #[allow(unsafe_code)]
        let own = unsafe { shared.part(run.start * each..run.end.saturating_mul(each)) };
        for (index, chunk) in run.zip(own.chunks_mut(each)) {
            work(&mut scratch, index, chunk);
        }
    });
}

/// Calls `work(j, column)` with the columns of a matrix.
#[inline]
pub fn columns<T: Send>(matrix: MatMut<'_, T>, together: usize, work: impl Fn(usize, ColMut<'_, T>) + Sync) {
    let mut columns: Vec<ColMut<'_, T>> = matrix.col_iter_mut().collect();
    chunks(&mut columns, 1, together, |j, column| work(j, column[0].rb_mut()));
}

/// Calls `work(index, chunk)` with chunks of `each` columns of a matrix, the last perhaps of fewer; each is a task.
///
/// # Panics
/// When `each` is 0.
#[inline]
pub fn column_chunks<T: Send>(
    matrix: MatMut<'_, T>,
    each: usize,
    work: impl Fn(usize, MatMut<'_, T>) + Sync,
) {
    let (mut pieces, mut rest) = (Vec::new(), matrix);
    for _ in 0..rest.ncols().div_ceil(each) {
        let own = each.min(rest.ncols());
        let (piece, others) = rest.split_at_col_mut(own);
        pieces.push(piece);
        rest = others;
    }
    chunks(&mut pieces, 1, 1, |index, piece| work(index, piece[0].rb_mut()));
}

/// Calls `work` with every item, each a task.
#[inline]
pub fn consume<I: Send>(items: Vec<I>, work: impl Fn(I) + Sync) {
    consume_with(items, || (), |(), item| work(item));
}

/// As [`consume`], with scratch that is made once for each run of items.
#[inline]
pub fn consume_with<I: Send, S>(
    items: Vec<I>,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I) + Sync,
) {
    let mut items: Vec<Option<I>> = items.into_iter().map(Some).collect();
    chunks_with(&mut items, 1, 1, scratch, |scratch, _, item| {
        if let Some(item) = item[0].take() {
            work(scratch, item);
        }
    });
}

/// A slice whose parts go to different threads.
struct Shared<T> {
    start: *mut T,
    length: usize,
}

// SAFETY: it stands for a `&mut [T]` whose parts are handed to threads, each to one: what `T: Send` allows.
#[allow(unsafe_code)]
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The values at `range`, which may end behind the last.
    ///
    /// # Safety
    /// The slice must be borrowed for as long as the part is, and no other part that is alive may overlap it.
    #[allow(unsafe_code)]
    #[allow(clippy::mut_from_ref)]
    unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        let end = range.end.min(self.length);
        assert!(range.start <= end, "a part begins inside of the slice");
        // SAFETY: the range lies inside of the slice; the rest is what the caller promises.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), end - range.start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
    }

    #[test]
    fn every_index_is_visited_once_on_any_number_of_threads() {
        for (threads, count, together) in [
            (1, 0, 1),
            (3, 0, 5),
            (1, 1, 1),
            (1, 100, 1),
            (1, 100, 7),
            (3, 100, 1),
            (3, 101, 7),
            (2, 5, 9),
            (4, 3, 0),
        ] {
            on_threads(threads, || {
                let expected: Vec<usize> = (0..count).map(|i| i * i).collect();
                assert_eq!(map(count, together, |i| i * i), expected, "{threads}, {count}, {together}");
                let visits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                for_each(count, together, |i| _ = visits[i].fetch_add(1, Ordering::Relaxed));
                runs(count, together, &|run| {
                    assert!(run.len() >= together.min(count), "{run:?} is shorter than {together}");
                    run.for_each(|i| _ = visits[i].fetch_add(1, Ordering::Relaxed));
                });
                assert!(visits.iter().all(|v| v.load(Ordering::Relaxed) == 2));
            });
        }
    }

    #[test]
    fn chunks_are_those_of_the_standard_library() {
        for (length, each, together) in
            [(0, 3, 1), (1, 3, 1), (9, 3, 1), (10, 3, 2), (1000, 1, 64), (7, usize::MAX, 1)]
        {
            let (mut found, mut expected) = (vec![0; length], vec![0; length]);
            on_threads(3, || {
                chunks(&mut found, each, together, |index, chunk| {
                    chunk
                        .iter_mut()
                        .enumerate()
                        .for_each(|(i, v)| *v += 10_000 * index + 100 * chunk_len(each, length, index) + i);
                });
            });
            for (index, chunk) in expected.chunks_mut(each).enumerate() {
                let own = chunk.len();
                chunk.iter_mut().enumerate().for_each(|(i, v)| *v += 10_000 * index + 100 * own + i);
            }
            assert_eq!(found, expected);
        }
        assert!(catch_unwind(|| chunks(&mut [1], 0, 1, |_, _| {})).is_err());
    }

    fn chunk_len(each: usize, length: usize, index: usize) -> usize {
        each.min(length - index * each)
    }

    #[test]
    fn columns_and_their_chunks_are_those_of_the_matrix() {
        let mut matrix = Mat::<f64>::zeros(4, 7);
        on_threads(2, || {
            columns(matrix.as_mut(), 1, |j, mut column| column[1] += j as f64);
            column_chunks(matrix.as_mut(), 3, |index, mut chunk| {
                assert_eq!(chunk.ncols(), [3, 3, 1][index]);
                chunk[(2, 0)] += 1.0 + index as f64;
            });
            columns(Mat::<f64>::zeros(3, 0).as_mut(), 1, |_, _| panic!("there is no column"));
        });
        let expected = |i: usize, j: usize| match i {
            1 => j as f64,
            2 if j.is_multiple_of(3) => 1.0 + (j / 3) as f64,
            _ => 0.0,
        };
        assert_eq!(matrix, Mat::from_fn(4, 7, expected));
    }

    #[test]
    fn scratch_is_made_for_tasks_and_items_are_used_up() {
        let (made, used) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let room = || {
            made.fetch_add(1, Ordering::Relaxed);
            vec![0]
        };
        let items: Vec<String> = (0..50).map(|i| i.to_string()).collect();
        on_threads(1, || {
            consume_with(items, room, |scratch, item: String| {
                scratch[0] += 1;
                used.fetch_add(item.parse().unwrap(), Ordering::Relaxed);
            });
            assert_eq!(map_with(3, 1, || 7, |own, i| *own + i), [7, 8, 9]);
        });
        assert_eq!(used.into_inner(), 49 * 25);
        assert!((1..=4).contains(&made.into_inner()), "scratch is not made for every item");
    }

    #[test]
    fn calls_may_be_nested_and_panics_come_back() {
        on_threads(2, || {
            let sums = map(20, 1, |i| map(i, 1, |j| i * j).into_iter().sum::<usize>());
            assert!(sums.iter().enumerate().all(|(i, &sum)| sum == i * (i * i.saturating_sub(1) / 2)));
            // What was made before a panic is dropped or leaked, never dropped twice.
            let failed = catch_unwind(AssertUnwindSafe(|| {
                map(64, 1, |i| if i == 40 { panic!("forty") } else { vec![i; 10] })
            }));
            assert_eq!(failed.unwrap_err().downcast_ref::<&str>(), Some(&"forty"));
            let items: Vec<Vec<usize>> = (0..64).map(|i| vec![i; 10]).collect();
            let failed = catch_unwind(AssertUnwindSafe(|| consume(items, |item| assert_ne!(item[0], 3))));
            assert!(failed.is_err());
            assert_eq!(map(3, 1, |i| i), [0, 1, 2], "the pool goes on");
        });
    }

    #[test]
    fn coarse_work_is_cut_into_single_indices() {
        for (threads, count) in [(1, 3), (2, 7), (3, 100), (4, 2)] {
            let made = AtomicUsize::new(0);
            on_threads(threads, || tasks(count, 1, &|_| _ = made.fetch_add(1, Ordering::Relaxed)));
            assert_eq!(made.into_inner(), count, "{count} on {threads} threads");
        }
    }

    /// Each of two indices waits until the other has begun, which only different threads can do.
    #[test]
    fn coarse_work_is_shared_among_threads() {
        let begun = AtomicUsize::new(0);
        on_threads(2, || {
            for_each(2, 1, |_| {
                begun.fetch_add(1, Ordering::SeqCst);
                let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
                while begun.load(Ordering::SeqCst) < 2 {
                    assert!(std::time::Instant::now() < deadline, "the second index waits for the first");
                    std::thread::yield_now();
                }
            });
        });
    }
}
