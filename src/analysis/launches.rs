//! What the launches themselves show: their spread, and those outside the band of their class.

use super::bands::Bands;
use super::cells::{Cells, Unit};
use super::periods::{Classes, LINE};
use super::robust::{median, spread};
use super::verdict::{LaunchException, Launches};

/// Sums up the launches; `None` from one launch.
pub(crate) fn launches(
    cells: &Cells,
    classes: &Classes,
    levels: &[f64],
    bands: Option<&Bands>,
    sign: f64,
) -> Option<Launches> {
    if cells.launches < 2 {
        return None;
    }
    let by_launch = cells.unit == Unit::LaunchAtPlacement;
    let bands = bands.filter(|bands| by_launch && bands.len() > 1);
    let exceptions =
        bands.map_or_else(Vec::new, |bands| exceptions(cells, classes, levels, bands, sign));
    let held = bands.map(|_| (cells.cells.len() - exceptions.len()) as u64);
    Some(Launches {
        count: cells.launches as u64,
        spread_within_percent: within(cells),
        spread_between_percent: between(cells, classes, levels),
        held,
        exceptions,
    })
}

fn percent(ln: f64) -> f64 {
    100.0 * ln.exp_m1()
}

/// The median spread of a cell's rows.
fn within(cells: &Cells) -> Option<f64> {
    let mut spreads: Vec<f64> =
        cells.cells.iter().map(|cell| cell.within).filter(|spread| !spread.is_nan()).collect();
    (!spreads.is_empty()).then(|| percent(median(&mut spreads)))
}

/// How far launches lie apart that the classes say should be alike.
fn between(cells: &Cells, classes: &Classes, levels: &[f64]) -> Option<f64> {
    let mut values = match cells.unit {
        Unit::Round => return None,
        // What was removed as the block's effect is what launches differ by.
        Unit::Launch => {
            let mut effects = vec![f64::NAN; cells.blocks];
            for (cell, level) in cells.cells.iter().zip(levels) {
                effects[cell.block as usize] = cell.level - level;
            }
            effects.retain(|effect| !effect.is_nan());
            effects
        }
        Unit::LaunchAtPlacement => {
            let mut of_class = vec![Vec::new(); classes.partition.len()];
            for (&class, &level) in classes.partition.of.iter().zip(levels) {
                of_class[class as usize].push(level);
            }
            let residuals =
                of_class.iter_mut().filter(|levels| levels.len() > 1).flat_map(|levels| {
                    let centre = median(levels);
                    levels.iter().map(move |level| level - centre)
                });
            residuals.collect()
        }
    };
    let centre = median(&mut values);
    (values.len() > 2).then(|| percent(spread(&mut values, centre)))
}

/// Launches that are nearer to another band than to the one that their class predicts.
fn exceptions(
    cells: &Cells,
    classes: &Classes,
    levels: &[f64],
    bands: &Bands,
    sign: f64,
) -> Vec<LaunchException> {
    let modulus = classes.modulus.unwrap_or(LINE);
    let rows = cells.cells.iter().zip(&classes.partition.of).zip(levels);
    let mut exceptions: Vec<LaunchException> = rows
        .filter(|((_, class), level)| bands.nearest(**level) != bands.of_class[**class as usize])
        .map(|((cell, &class), &level)| {
            let column = cells.columns[cell.column as usize];
            let residue = match modulus {
                LINE => u64::from(column.residue),
                modulus => cell.position % modulus,
            };
            let expected = bands.location[bands.of_class[class as usize]];
            LaunchException {
                launch: cell.launch,
                placement: column.placement,
                residue,
                ns_per_op: (sign * cell.level).exp(),
                predicted_ns_per_op: (sign * (cell.level - level + expected)).exp(),
            }
        })
        .collect();
    exceptions.sort_by_key(|exception| (exception.launch, exception.placement));
    exceptions
}
