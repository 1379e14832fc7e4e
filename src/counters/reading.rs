//! What is read from a counter's descriptor, and what it is worth.
//!
//! The kernel hands out totals since the counter was opened; a reading is the difference of two.
//! A group reads as `nr, time enabled, time running, (value, id) × nr`, a single counter as
//! `value, time enabled, time running`, all 64-bit in the machine's byte order
//! (`perf_event_open(2)`, "Reading results").

use super::absence;
use super::environment::Environment;
use crate::sample::Absence;

/// A descriptor that did not give what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The read or the control call failed.
    #[error("the counter cannot be read ({0})")]
    Os(String),
    /// Fewer bytes than the format has.
    #[error("the kernel gave {got} bytes of the counter where {expected} were due")]
    Short {
        /// Bytes that came.
        got: usize,
        /// Bytes that the format has.
        expected: usize,
    },
    /// End of file: the kernel put the event into its error state.
    #[error("the kernel has stopped the counter: it could not be put on the processor")]
    Stopped,
    /// A member is not in the group's reading.
    #[error("the group's reading does not contain the counter")]
    Missing,
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        ReadError::Os(match error.raw_os_error() {
            Some(errno) => absence::errno_name(errno),
            None => error.to_string(),
        })
    }
}

/// Totals of one descriptor since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub enabled: u64,
    pub running: u64,
    /// Identifier and value; the identifier of a single counter is 0.
    pub values: Vec<(u64, u64)>,
}

impl Totals {
    /// Parses a group's reading.
    pub fn group(bytes: &[u8]) -> Result<Totals, ReadError> {
        let word = |i: usize| word(bytes, i);
        let header = ReadError::Short { got: bytes.len(), expected: 24 };
        let (Some(count), Some(enabled), Some(running)) = (word(0), word(1), word(2)) else {
            return Err(if bytes.is_empty() { ReadError::Stopped } else { header });
        };
        let expected = usize::try_from(count).ok().and_then(group_bytes);
        if expected.is_none_or(|expected| bytes.len() < expected) {
            let expected = expected.unwrap_or(usize::MAX);
            return Err(ReadError::Short { got: bytes.len(), expected });
        }
        let pairs = bytes[24..].chunks_exact(16).take(count as usize);
        let values = pairs
            .map(|pair| (word_of(pair, 1).unwrap_or(0), word_of(pair, 0).unwrap_or(0)))
            .collect();
        Ok(Totals { enabled, running, values })
    }

    /// Parses a single counter's reading.
    pub fn single(bytes: &[u8]) -> Result<Totals, ReadError> {
        match (word(bytes, 0), word(bytes, 1), word(bytes, 2)) {
            (Some(value), Some(enabled), Some(running)) => {
                Ok(Totals { enabled, running, values: vec![(0, value)] })
            }
            _ if bytes.is_empty() => Err(ReadError::Stopped),
            _ => Err(ReadError::Short { got: bytes.len(), expected: 24 }),
        }
    }

    pub fn value(&self, id: u64) -> Option<u64> {
        self.values.iter().find(|(member, _)| *member == id).map(|(_, value)| *value)
    }
}

/// Bytes of the reading of a group with `members` members (the leader included).
pub(super) fn group_bytes(members: usize) -> Option<usize> {
    members.checked_mul(16)?.checked_add(24)
}

fn word(bytes: &[u8], index: usize) -> Option<u64> {
    word_of(bytes, index)
}

fn word_of(bytes: &[u8], index: usize) -> Option<u64> {
    let chunk = bytes.get(index * 8..index * 8 + 8)?;
    chunk.try_into().ok().map(u64::from_ne_bytes)
}

/// One counter over one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The counter's name.
    pub name: String,
    /// Events counted while the counter ran, or why there is no figure.
    pub count: Result<u64, Absence>,
    /// Nanoseconds for which the counter was asked to count.
    pub enabled_ns: u64,
    /// Nanoseconds for which it did.
    pub running_ns: u64,
}

impl Counted {
    /// A counter without a figure.
    pub(super) fn absent(name: &str, absence: Absence) -> Counted {
        Counted { name: name.to_owned(), count: Err(absence), enabled_ns: 0, running_ns: 0 }
    }

    /// The difference of two totals, judged.
    pub(super) fn between(
        name: &str,
        before: &Totals,
        after: &Totals,
        id: u64,
        environment: &Environment,
    ) -> Counted {
        let enabled_ns = after.enabled.saturating_sub(before.enabled);
        let running_ns = after.running.saturating_sub(before.running);
        let count = match (before.value(id), after.value(id)) {
            (Some(before), Some(after)) => {
                judge(before, after, enabled_ns, running_ns, environment)
            }
            _ => Err(absence::unreadable(&ReadError::Missing)),
        };
        Counted { name: name.to_owned(), count, enabled_ns, running_ns }
    }

    /// Time running over time enabled, in (0, 1]; below 1 the count is extrapolated. `None` where
    /// there is no count.
    pub fn running_ratio(&self) -> Option<f64> {
        self.count.as_ref().ok()?;
        (self.enabled_ns > 0).then(|| self.running_ns as f64 / self.enabled_ns as f64)
    }

    /// Events over the whole time enabled: the count, extrapolated where it was multiplexed.
    pub fn total(&self) -> Option<f64> {
        let ratio = self.running_ratio()?;
        let count = *self.count.as_ref().ok()? as f64;
        (ratio > 0.0).then(|| count / ratio)
    }
}

/// No core completes more of anything in a nanosecond than this, by an order of magnitude.
const EVENTS_PER_NS: u64 = 100;
/// Slack for clocks that tick coarsely (a guest without a stable time-stamp counter).
const SLACK: u64 = 10_000_000;

fn judge(
    before: u64,
    after: u64,
    enabled_ns: u64,
    running_ns: u64,
    environment: &Environment,
) -> Result<u64, Absence> {
    if enabled_ns == 0 {
        return Err(Absence::new("its group was not counting in this block", "see other rows"));
    }
    if running_ns == 0 {
        return Err(absence::never_ran(environment));
    }
    if running_ns > enabled_ns {
        return Err(Absence::new(
            format!("it claims to have run for {running_ns} ns of {enabled_ns} ns enabled"),
            "none: the kernel's or hypervisor's accounting of the counter is wrong",
        ));
    }
    let count = difference(before, after).ok_or_else(|| {
        Absence::new(
            format!("it ran backwards, from {before} to {after}"),
            "run again; if it stays, the counter driver is at fault",
        )
    })?;
    if count > running_ns.saturating_mul(EVENTS_PER_NS).saturating_add(SLACK) {
        return Err(Absence::new(
            format!("it claims {count} events in {running_ns} ns"),
            "run again; if it stays, the counter driver is at fault",
        ));
    }
    Ok(count)
}

/// The registers are 48 bits wide. The kernel extends them to 64, but a driver that does not
/// (or a hypervisor underneath) lets a wrap through: it is undone where it can be nothing else,
/// from the upper half of the range to the lower.
fn difference(before: u64, after: u64) -> Option<u64> {
    const WIDTH: u64 = 1 << 48;
    if after >= before {
        return Some(after - before);
    }
    let wrapped = before < WIDTH && before - after > WIDTH / 2;
    wrapped.then(|| after + WIDTH - before)
}

/// All counters of a set over one block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// In the order in which they were asked for.
    pub counters: Vec<Counted>,
}

impl Reading {
    /// Events an operation, in the order of columns: the form of
    /// [`Sample::events`](crate::sample::Sample). `None` where there is no figure.
    pub fn per_op(&self, iterations: u64) -> Vec<(String, Option<f64>)> {
        let per_op = |counted: &Counted| {
            counted.total().filter(|_| iterations > 0).map(|total| total / iterations as f64)
        };
        self.counters.iter().map(|counted| (counted.name.clone(), per_op(counted))).collect()
    }

    /// The smallest time running over time enabled among the counters that have a figure: the
    /// form of [`Sample::running_ratio`](crate::sample::Sample). `None` where none has.
    pub fn running_ratio(&self) -> Option<f64> {
        self.counters.iter().filter_map(Counted::running_ratio).min_by(f64::total_cmp)
    }

    /// The counters without a figure, with the reasons.
    pub fn absences(&self) -> Vec<(String, Absence)> {
        let absence = |counted: &Counted| {
            counted.count.as_ref().err().map(|absence| (counted.name.clone(), absence.clone()))
        };
        self.counters.iter().filter_map(absence).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn counted(before: [u64; 3], after: [u64; 3]) -> Counted {
        let totals = |[value, enabled, running]: [u64; 3]| Totals {
            enabled,
            running,
            values: vec![(7, value)],
        };
        let environment = Environment::default();
        Counted::between("c", &totals(before), &totals(after), 7, &environment)
    }

    #[test]
    fn a_group_reads_as_documented() {
        let raw = bytes(&[2, 1000, 400, 5, 11, 6, 12]);
        let totals = Totals::group(&raw).expect("is whole");
        assert_eq!((totals.enabled, totals.running), (1000, 400));
        assert_eq!(
            (totals.value(11), totals.value(12), totals.value(13)),
            (Some(5), Some(6), None)
        );
    }

    #[test]
    fn every_short_reading_is_an_error_and_none_panics() {
        let raw = bytes(&[2, 1000, 400, 5, 11, 6, 12]);
        assert_eq!(Totals::group(&[]), Err(ReadError::Stopped));
        assert_eq!(Totals::single(&[]), Err(ReadError::Stopped));
        for len in 1..raw.len() {
            let expected = if len < 24 { 24 } else { 56 };
            assert_eq!(Totals::group(&raw[..len]), Err(ReadError::Short { got: len, expected }));
        }
        let huge = bytes(&[u64::MAX, 1, 1]);
        assert!(matches!(Totals::group(&huge), Err(ReadError::Short { got: 24, .. })));
        for len in 1..24 {
            assert!(matches!(Totals::single(&raw[..len]), Err(ReadError::Short { .. })));
        }
    }

    #[test]
    fn multiplexed_figures_are_scaled_and_marked() {
        let counted = counted([0, 0, 0], [400, 1000, 400]);
        assert_eq!(counted.running_ratio(), Some(0.4));
        assert_eq!(counted.total(), Some(1000.0));
        let reading = Reading { counters: vec![counted] };
        assert_eq!(reading.per_op(100), [("c".to_owned(), Some(10.0))]);
        assert_eq!(reading.running_ratio(), Some(0.4));
        assert_eq!(reading.per_op(0), [("c".to_owned(), None)]);
    }

    #[test]
    fn what_never_ran_is_absent_not_zero() {
        let counted = counted([5, 100, 50], [5, 1100, 50]);
        assert_eq!(counted.total(), None);
        let why = &counted.count.as_ref().expect_err("never ran").why;
        assert!(why.contains("never runs"), "{why}");
        let reading = Reading { counters: vec![counted] };
        assert_eq!(reading.per_op(10), [("c".to_owned(), None)]);
        assert_eq!(reading.running_ratio(), None);
        assert_eq!(reading.absences().len(), 1);
    }

    #[test]
    fn running_longer_than_enabled_is_nonsense() {
        let counted = counted([0, 0, 0], [5, 100, 101]);
        let why = &counted.count.expect_err("is nonsense").why;
        assert_eq!(why, "it claims to have run for 101 ns of 100 ns enabled");
    }

    #[test]
    fn a_true_zero_stays_a_zero() {
        assert_eq!(counted([9, 0, 0], [9, 100, 100]).total(), Some(0.0));
    }

    #[test]
    fn a_wrap_at_48_bits_is_undone_and_a_step_back_is_not() {
        let top = 1u64 << 48;
        let near = |after| counted([top - 10, 0, 0], [after, 100, 100]).count;
        assert_eq!(near(top - 1), Ok(9));
        assert_eq!(near(top + 5), Ok(15), "the kernel extended it");
        assert_eq!(near(5), Ok(15), "the register wrapped");
        assert_eq!(near(0), Ok(10));
        let why = counted([1000, 0, 0], [5, 100, 100]).count.expect_err("is a step back").why;
        assert_eq!(why, "it ran backwards, from 1000 to 5");
        let why = counted([0, 0, 0], [top - 1, 100, 100]).count.expect_err("is too many").why;
        assert_eq!(why, "it claims 281474976710655 events in 100 ns");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(raw in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = Totals::group(&raw);
            let _ = Totals::single(&raw);
        }

        #[test]
        fn arbitrary_totals_never_panic_nor_give_infinities(
            before in any::<[u64; 3]>(), after in any::<[u64; 3]>(), iterations in any::<u64>(),
        ) {
            let reading = Reading { counters: vec![counted(before, after)] };
            for (_, figure) in reading.per_op(iterations) {
                prop_assert!(figure.is_none_or(|figure| figure.is_finite() && figure >= 0.0));
            }
            let ratio = reading.running_ratio();
            prop_assert!(ratio.is_none_or(|ratio| ratio > 0.0 && ratio <= 1.0));
        }
    }
}
