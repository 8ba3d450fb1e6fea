//! What the C library does with memory that was freed.

/// Bytes of a block from which on memory comes from the system directly. Twice as much that is free at the end of the heap goes back to it.
const BLOCK: usize = 4 << 20;

/// Lets the C library keep a few megabytes that are freed, for a program to call once when it starts.
///
/// The GNU C library gives memory back to the system whenever 128 KiB at the end of the heap are free, and gets it again, page by page, for the next step: steps of a fit that work on some matrices of
/// 100 x 100 spend as long on that as on their numbers. Its threshold follows the largest block that was mapped and freed, so one such block, which is never touched, raises it to 8 MiB. Nothing happens with other C libraries.
pub fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK)));
}
