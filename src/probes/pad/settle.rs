//! Judging the guards of a whole sweep by the best of all of it.
//!
//! A worker compares its guard with the best of the launches before it, so that the first launches
//! of a run are judged by little. In a grid that hardly matters, since each launch visits every
//! placement; in a sweep a launch is one placement, and one at a lower clock would stand for it.

use std::collections::HashMap;

use crate::block::DISTURBED_ABOVE;
use crate::sample::Sample;

/// Marks every block as disturbed whose guard is as far above the best of its arm as a worker would
/// not have let pass had it known. Blocks that are marked already stay so.
pub fn settle(samples: &mut [Sample]) {
    let mut best: HashMap<String, f64> = HashMap::new();
    for sample in samples.iter() {
        if let Some(guard) = sample.guard_ns {
            let best = best.entry(sample.arm.clone()).or_insert(guard);
            *best = best.min(guard);
        }
    }
    for sample in samples {
        let (Some(guard), Some(best)) = (sample.guard_ns, best.get(&sample.arm)) else { continue };
        if guard > DISTURBED_ABOVE * best {
            sample.disturbed = Some(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Placement;

    fn sample(arm: &str, guard_ns: Option<f64>, disturbed: bool) -> Sample {
        let mut sample = Sample::new("pad", "blake3", Placement::Pad, 0, 0, 0);
        sample.arm = arm.to_owned();
        sample.guard_ns = guard_ns;
        sample.disturbed = guard_ns.map(|_| disturbed);
        sample
    }

    #[test]
    fn the_first_launches_are_judged_by_the_best_of_all() {
        let mut samples = vec![
            sample("a", Some(18.9), false),
            sample("a", Some(16.1), false),
            sample("a", Some(16.0), true),
            sample("b", Some(18.9), false),
            sample("a", None, false),
        ];
        settle(&mut samples);
        let marks: Vec<_> = samples.iter().map(|sample| sample.disturbed).collect();
        assert_eq!(marks, [Some(true), Some(false), Some(true), Some(false), None]);
    }
}
