//! What the one-evening check measures: the grids, with their twins and controls, in one set of
//! launches, so that everything shares the same processes and conditions.

use crate::launch::Order;
use crate::sample::Grid;
use crate::workloads::{Name, Spec, Variant};

use super::phase::{GridPlan, PhasePlan};

/// Bytes an operation everywhere in the check.
pub const LEN: usize = 64;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Rounds a launch.
    pub rounds: u32,
    /// Launches.
    pub launches: u32,
    /// Whether only what answers the question about BLAKE3 is measured.
    pub quick: bool,
}

/// The plan of the check's grids.
///
/// The page grid is part of `quick` as well: a stall by page placement shows nowhere else.
pub fn plan(extent: Extent, seed: u64, cpu: Option<usize>, on_thread: bool) -> PhasePlan {
    let spec = |name, variant| Spec::new(name, LEN).variant(variant);
    let mut grids = vec![
        (spec(Name::Blake3, Variant::Default), Grid::Line),
        (spec(Name::Blake3, Variant::Default), Grid::Page),
        (spec(Name::CopyChain, Variant::Default), Grid::Line),
        (spec(Name::CopyChain, Variant::StoreOnly), Grid::Line),
        (spec(Name::RoundTrip, Variant::Default), Grid::Line),
        (spec(Name::RoundTrip, Variant::StoreOnly), Grid::Line),
        (spec(Name::RoundTrip, Variant::Realigned), Grid::Line),
        (spec(Name::Registers, Variant::Default), Grid::Line),
    ];
    if !extent.quick {
        grids.extend([
            (spec(Name::Memcpy, Variant::Default), Grid::Line),
            (spec(Name::Memcpy, Variant::Default), Grid::Page),
            (spec(Name::Registers, Variant::Default), Grid::Page),
        ]);
    }
    PhasePlan {
        probe: "phase".to_owned(),
        grids: grids
            .into_iter()
            .map(|(spec, grid)| GridPlan::new(spec, grid, extent.rounds))
            .collect(),
        launches: extent.launches,
        extra_rounds: 3,
        order: Order::Shuffled,
        seed,
        cpu,
        on_thread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grid_can_be_and_every_exhibit_has_its_twin() {
        for quick in [true, false] {
            let plan = plan(Extent { rounds: 2, launches: 1, quick }, 1, None, false);
            assert!(plan.grids.iter().all(|grid| grid.spec.check().is_ok()));
            for exhibit in plan.grids.iter().filter(|g| g.spec.has_twin()) {
                let twin = exhibit.spec.clone().variant(Variant::StoreOnly);
                assert!(plan.grids.iter().any(|g| g.spec == twin && g.grid == exhibit.grid));
            }
            let blake3 =
                |grid| plan.grids.iter().any(|g| g.spec.name == Name::Blake3 && g.grid == grid);
            assert!(blake3(Grid::Line) && blake3(Grid::Page));
        }
    }
}
