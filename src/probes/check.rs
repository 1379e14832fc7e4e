//! What the one-evening check measures: the grids, with their twins and controls, in one set of
//! launches, so that everything shares the same processes and conditions; and the padding sweep,
//! which places the stack the way the operating system does.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::launch::Order;
use crate::sample::{Grid, SampleKey};
use crate::workloads::{Name, Spec, Variant};

use super::LaunchPlan;
use super::pad::PadPlan;
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

/// The whole check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckPlan {
    /// The trampoline grids.
    pub phase: PhasePlan,
    /// The padding sweep; `None` on a thread, whose stack padding does not move.
    pub pad: Option<PadPlan>,
}

impl CheckPlan {
    /// Every launch, without what `finished` already holds.
    pub fn launches(&self, finished: &HashSet<SampleKey>) -> Vec<LaunchPlan> {
        let mut launches = self.phase.launches(finished);
        launches.extend(self.pad.iter().flat_map(|pad| pad.own_launches(finished)));
        launches
    }
}

/// The plan of the check.
///
/// The page grid is part of `quick` as well: a stall by page placement shows nowhere else.
pub fn plan(extent: Extent, seed: u64, cpu: Option<usize>, on_thread: bool) -> CheckPlan {
    let phase = grids(extent, seed, cpu, on_thread);
    let spec = |name| Spec::new(name, LEN);
    let pad = (!on_thread).then(|| {
        if extent.quick {
            PadPlan::own(vec![spec(Name::Blake3)], seed, cpu).quick()
        } else {
            let swept = [Name::Blake3, Name::CopyChain, Name::RoundTrip].map(spec);
            PadPlan::own(swept.into(), seed, cpu)
        }
    });
    CheckPlan { phase, pad }
}

fn grids(extent: Extent, seed: u64, cpu: Option<usize>, on_thread: bool) -> PhasePlan {
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
            let sweep = plan.pad.as_ref().map(|pad| pad.paddings.len());
            assert_eq!(sweep, Some(36));
            let plan = plan.phase;
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

    #[test]
    fn padding_is_left_out_where_it_moves_nothing() {
        let plan = plan(Extent { rounds: 2, launches: 1, quick: true }, 1, None, true);
        assert_eq!(plan.pad, None);
    }
}
