//! Judging the guards of a whole sweep by what is usual in all of it.
//!
//! A worker compares its guard with what was usual in the launches before it, so that the first launches
//! of a run are judged by little. In a grid that hardly matters, since each launch visits every
//! placement; in a sweep a launch is one placement, and one at a lower clock would stand for it.

use std::collections::HashMap;

use crate::block::Levels;
use crate::sample::Sample;

/// Marks every block as disturbed whose guard lies outside the range that is usual in its arm, as a
/// worker would not have let pass had it known. Blocks that are marked already stay so.
pub fn settle(samples: &mut [Sample]) {
    let mut usual: HashMap<String, Levels> = HashMap::new();
    for sample in samples.iter() {
        if let Some(guard) = sample.guard_ns {
            usual.entry(sample.arm.clone()).or_default().add(guard, 1);
        }
    }
    // The range is found once an arm, not once a block.
    let usual: HashMap<String, _> =
        usual.into_iter().map(|(arm, levels)| (arm, levels.standard())).collect();
    for sample in samples {
        let (Some(guard), Some(Some(usual))) = (sample.guard_ns, usual.get(&sample.arm)) else {
            continue;
        };
        if !usual.contains(&Levels::bin(guard)) {
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
            sample("a", Some(16.05), false),
            sample("b", Some(18.9), false),
            sample("a", None, false),
        ];
        settle(&mut samples);
        let marks: Vec<_> = samples.iter().map(|sample| sample.disturbed).collect();
        assert_eq!(marks, [Some(true), Some(false), Some(true), Some(false), Some(false), None]);
    }
}
