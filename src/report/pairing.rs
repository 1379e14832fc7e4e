//! Which blocks of the pairs probe belong together: the two sides of one pairing in one pass.
//!
//! Each series of the probe is one pairing (its `params` name it); its placements are the two
//! offsets, its launches the passes.

use super::run::RunData;
use super::svg::PairDifference;

/// The differences of all pairings, first offset against second, a figure each pass.
pub fn differences(run: &RunData) -> Vec<PairDifference> {
    let mut differences = Vec::new();
    for series in run.series.iter().filter(|s| s.key.probe == "pairs") {
        let places: Vec<_> = series.blocks.places.iter().collect();
        let [(first, one), (second, two)] = places[..] else { continue };
        for pass in 0..series.blocks.launches {
            let mean = |bucket: &super::thin::Bucket| {
                let times: Vec<f64> = bucket
                    .kept()
                    .iter()
                    .filter(|dot| dot.launch == pass)
                    .map(|d| d.value)
                    .collect();
                (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
            };
            if let (Some(a), Some(b)) = (mean(&one.bucket), mean(&two.bucket)) {
                differences.push(PairDifference {
                    label: format!("{first} / {second}"),
                    percent: (a / b - 1.0) * 100.0,
                });
            }
        }
    }
    differences
}
