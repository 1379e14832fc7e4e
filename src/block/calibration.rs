//! How many iterations make a block that the clock can time.

use std::time::{Duration, Instant};

/// The shortest block.
pub const MIN_BLOCK: Duration = Duration::from_micros(100);

/// A block is at least this many times as long as reading the clock takes.
const CLOCK_COSTS: u32 = 1000;

/// What reading the clock costs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Smallest cost of one reading seen.
    pub cost: Duration,
}

impl Clock {
    /// Measures the cost over some thousand readings: the smallest of several averages, so that an
    /// interruption does not count.
    pub fn measure() -> Self {
        const READINGS: u32 = 256;
        let average = || {
            let start = Instant::now();
            for _ in 0..READINGS {
                std::hint::black_box(Instant::now());
            }
            start.elapsed() / READINGS
        };
        let cost = (0..16).map(|_| average()).min().unwrap_or(Duration::ZERO);
        Clock { cost: cost.max(Duration::from_nanos(1)) }
    }

    /// The shortest block for this clock.
    pub fn shortest_block(&self) -> Duration {
        MIN_BLOCK.max(self.cost * CLOCK_COSTS)
    }
}

/// The number of iterations for which `time(iterations)` reaches `target`, found by doubling and a
/// last proportional step; at least 1.
///
/// # Errors
/// Whatever `time` returns.
pub fn iterations_for<E>(
    target: Duration,
    mut time: impl FnMut(u64) -> Result<Duration, E>,
) -> Result<u64, E> {
    let mut iterations = 1u64;
    loop {
        let mut elapsed = time(iterations)?;
        if elapsed >= target {
            // Once more: the first time may have been a cold one.
            elapsed = time(iterations)?;
        }
        if elapsed >= target {
            return Ok(iterations);
        }
        // A quarter of the target is long enough to extrapolate from, but never trusted unseen: the
        // first probes run on a cold machine and take too long. A tenth on top, because a faster
        // placement than the one calibrated at must reach the target too.
        let scaled = iterations as f64 * 1.1 * target.as_secs_f64() / elapsed.as_secs_f64();
        iterations = if elapsed * 4 >= target {
            (scaled.ceil() as u64).max(iterations + 1)
        } else {
            iterations.saturating_mul(2)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reaches_its_target() {
        for ns in [1u64, 7, 60, 99_999, 1_000_000] {
            let time = |n: u64| Ok::<_, ()>(Duration::from_nanos(n * ns));
            let iterations = iterations_for(MIN_BLOCK, time).unwrap_or(0);
            let block = Duration::from_nanos(iterations * ns);
            assert!(block >= MIN_BLOCK, "{ns} ns: {iterations}");
            assert!(block <= MIN_BLOCK * 2 || iterations == 1, "{ns} ns: {iterations}");
        }
    }

    #[test]
    fn a_cold_start_does_not_shorten_the_block() {
        let mut calls = 0;
        let time = |n: u64| {
            calls += 1;
            Ok::<_, ()>(Duration::from_nanos(n * if calls < 9 { 500 } else { 100 }))
        };
        let iterations = iterations_for(MIN_BLOCK, time).unwrap_or(0);
        assert!(iterations * 100 >= 100_000, "{iterations}");
    }

    #[test]
    fn an_error_is_passed_on() {
        assert_eq!(iterations_for(MIN_BLOCK, |_| Err::<Duration, _>("broken")), Err("broken"));
    }

    #[test]
    fn a_slow_clock_makes_longer_blocks() {
        assert_eq!(Clock { cost: Duration::from_micros(1) }.shortest_block().as_micros(), 1000);
        assert_eq!(Clock { cost: Duration::from_nanos(20) }.shortest_block(), MIN_BLOCK);
    }
}
