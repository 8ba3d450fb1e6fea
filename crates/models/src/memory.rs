//! What the process has held at most.

/// The largest resident memory of this process so far, in bytes; `None` where the system does not tell (it is read from
/// `/proc/self/status` on Linux).
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Lets [`peak_memory_bytes`] count from now on, where the system can (Linux), so that one process can measure several fits. Memory that is kept from before still counts.
pub fn reset_peak_memory() {
    // 5 resets the mark (man 5 proc); where it is refused, the mark stays, which overstates.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
