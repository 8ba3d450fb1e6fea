//! **Buffers that come back.** A pass over a network makes and drops arrays of a few megabytes by the dozen; asking the system for each means that
//! it clears every page anew, which takes longer than most operations on them (measured: a third of a residual network's time). Dropped
//! buffers wait here instead, up to a limit, and are handed out again.

use posterior_linalg::parallel;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Shorter buffers are left to the allocator, which keeps them itself.
const SHORTEST: usize = 1 << 13;

/// Bytes of dropped buffers that may wait for others, for each precision ([`release_buffers`](crate::release_buffers) frees them).
pub const WAITING_BYTES: usize = 512 << 20;

/// Values that one thread copies.
const PIECE: usize = 1 << 18;

/// Buffers of one precision, by capacity.
#[derive(Debug)]
pub struct Pool<T> {
    shelves: Mutex<Shelves<T>>,
}

#[derive(Debug)]
struct Shelves<T> {
    /// With when they came: the last first out.
    by_capacity: BTreeMap<usize, Vec<(u64, Vec<T>)>>,
    bytes: usize,
    given: u64,
}

impl<T> Shelves<T> {
    const fn new() -> Self {
        Self { by_capacity: BTreeMap::new(), bytes: 0, given: 0 }
    }

    /// Takes the buffer out that came first.
    fn longest_waiting(&mut self) -> Option<Vec<T>> {
        let first = |(&capacity, shelf): (&usize, &Vec<(u64, Vec<T>)>)| Some((shelf.first()?.0, capacity));
        let (_, capacity) = self.by_capacity.iter().filter_map(first).min()?;
        let shelf = self.by_capacity.get_mut(&capacity)?;
        let (_, buffer) = shelf.remove(0);
        if shelf.is_empty() {
            self.by_capacity.remove(&capacity);
        }
        self.bytes -= capacity * size_of::<T>();
        Some(buffer)
    }
}

impl<T: Copy + Send + Sync> Pool<T> {
    pub(super) const fn new() -> Self {
        Self { shelves: Mutex::new(Shelves::new()) }
    }

    /// An empty or used buffer that can hold `length` values.
    #[inline(never)]
    fn take(&self, length: usize) -> Vec<T> {
        if length >= SHORTEST
            && let Ok(mut shelves) = self.shelves.lock()
        {
            let found = shelves
                .by_capacity
                .range(length..=length.saturating_mul(2))
                .next()
                .map(|(&capacity, _)| capacity);
            if let Some(capacity) = found
                && let Some(shelf) = shelves.by_capacity.get_mut(&capacity)
            {
                let buffer = shelf.pop();
                if shelf.is_empty() {
                    shelves.by_capacity.remove(&capacity);
                }
                if let Some((_, buffer)) = buffer {
                    shelves.bytes -= capacity * size_of::<T>();
                    return buffer;
                }
            }
        }
        Vec::with_capacity(length)
    }

    /// `length` values, whatever they are.
    #[inline(never)]
    pub(super) fn any(&self, length: usize, fill: T) -> Vec<T> {
        let mut buffer = self.take(length);
        buffer.resize(length, fill);
        buffer
    }

    /// A copy.
    #[inline(never)]
    pub(super) fn copy(&self, values: &[T]) -> Vec<T> {
        let mut buffer = self.take(values.len());
        let known = buffer.len().min(values.len());
        buffer.truncate(known);
        parallel::chunks(&mut buffer, PIECE, 1, |piece, own| {
            own.copy_from_slice(&values[piece * PIECE..][..own.len()]);
        });
        buffer.extend_from_slice(&values[known..]);
        buffer
    }
}

impl<T> Pool<T> {
    /// Frees all that waits.
    pub(super) fn clear(&self) {
        if let Ok(mut shelves) = self.shelves.lock() {
            *shelves = Shelves::new();
        }
    }

    /// Takes a buffer back.
    #[inline(never)]
    pub(super) fn give(&self, buffer: Vec<T>) {
        let capacity = buffer.capacity();
        if capacity < SHORTEST {
            return;
        }
        let bytes = capacity * size_of::<T>();
        if bytes > WAITING_BYTES {
            return;
        }
        let mut freed = Vec::new();
        if let Ok(mut shelves) = self.shelves.lock() {
            // Those that have waited longest make room: nobody asks for their sizes any more.
            while shelves.bytes + bytes > WAITING_BYTES {
                freed.extend(shelves.longest_waiting());
            }
            shelves.bytes += bytes;
            shelves.given += 1;
            let now = shelves.given;
            shelves.by_capacity.entry(capacity).or_default().push((now, buffer));
        }
    }
}

/// Values that return to their pool when dropped. The pool is named by two functions, so that `T` needs no bound where arrays are stored.
pub(super) struct Buffer<T> {
    values: Vec<T>,
    give: fn(Vec<T>),
    copy: fn(&[T]) -> Vec<T>,
}

impl<T> Buffer<T> {
    pub(super) fn new(values: Vec<T>, give: fn(Vec<T>), copy: fn(&[T]) -> Vec<T>) -> Self {
        Self { values, give, copy }
    }

    pub(super) fn into_values(mut self) -> Vec<T> {
        std::mem::take(&mut self.values)
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        (self.give)(std::mem::take(&mut self.values));
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self { values: (self.copy)(&self.values), ..*self }
    }
}

impl<T> std::ops::Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> std::ops::DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_old_numbers_never_show() {
        static POOL: Pool<f64> = Pool::new();
        let buffer = Buffer::new(vec![1.0; SHORTEST + 5], |b| POOL.give(b), |v| POOL.copy(v));
        let place = buffer.as_ptr();
        drop(buffer);
        let twos = vec![2.0; SHORTEST];
        let again = POOL.copy(&twos);
        assert_eq!(again.as_ptr(), place);
        assert!(again.len() == SHORTEST && again.iter().all(|&v| v == 2.0));
        POOL.give(again);
        // Too short to be worth keeping, or more than twice what is needed.
        let short = POOL.any(SHORTEST / 4, 0.0);
        assert_ne!(short.as_ptr(), place);
        let grown = POOL.any(SHORTEST + 2, 7.0);
        assert_eq!((grown.as_ptr(), grown.len(), grown[SHORTEST + 1]), (place, SHORTEST + 2, 7.0));
    }

    /// A pool that is full of sizes that nobody wants takes those that somebody does.
    #[test]
    fn what_has_waited_longest_makes_room() {
        static POOL: Pool<u8> = Pool::new();
        let half = WAITING_BYTES / 2;
        POOL.give(Vec::with_capacity(half + 1));
        POOL.give(Vec::with_capacity(SHORTEST));
        let wanted = Vec::with_capacity(half);
        let place = wanted.as_ptr();
        POOL.give(wanted);
        let taken = POOL.take(half);
        assert_eq!(taken.as_ptr(), place);
        let shelves = POOL.shelves.lock().unwrap();
        assert_eq!((shelves.bytes, shelves.by_capacity.len()), (SHORTEST, 1));
        drop(shelves);
        // More than everything that may wait does not wait.
        POOL.give(Vec::with_capacity(WAITING_BYTES + 1));
        assert_eq!(POOL.shelves.lock().unwrap().bytes, SHORTEST);
    }
}
