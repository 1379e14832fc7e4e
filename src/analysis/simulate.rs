//! Sweeps with a known truth, to measure how often analysis errs.
//!
//! Noise is made of what real machines do: blocks scatter, some blocks are hit by an interruption,
//! rounds and launches have factors of their own, the clock drifts, the machine is busy for a
//! stretch. Figures come in the order of a run, so that noise in time meets placements the way it
//! would there.

use super::{Observation, Series, SeriesKey};
use crate::sample::{Grid, Params, Placement, Role};

/// Which placements are visited, by how many launches and rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Sixteen shifts of 16 bytes, 12 rounds in each of `launches` launches.
    LineGrid {
        /// Processes that each visit all shifts.
        launches: u32,
    },
    /// 512 shifts of 16 bytes, 12 rounds in each of three launches.
    PageGrid,
    /// One random placement a launch, 12 rounds.
    Aslr {
        /// Processes.
        launches: u32,
    },
    /// Paddings from 0 up to `to` in steps of 16, each with three launches of six rounds.
    Padding {
        /// The largest padding, in bytes.
        to: i64,
    },
}

/// What makes figures scatter. All shares are fractions (0.01 is 1 %); 0 switches a part off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Standard deviation of each block, normal.
    pub block: f64,
    /// Share of blocks that an interruption makes 20 to 100 % slower.
    pub interrupted: f64,
    /// How much slower the run is at its end than at its start.
    pub drift: f64,
    /// Standard deviation of a factor that each round has.
    pub round: f64,
    /// Standard deviation of a factor that each launch has.
    pub launch: f64,
    /// How much slower a launch is that is in its slow mode, which half of them are.
    pub mode: f64,
    /// Whether there are stretches of 30 blocks, one in ten of all, 1.4 to 2 times slower.
    pub stretches: bool,
    /// How many times noisier blocks at residue 16 are; 0 and 1 are as the others.
    pub noisier_class: f64,
    /// Figures are rounded to multiples of this many ns.
    pub rounded_to: f64,
    /// Whether each block is some 30 % slower at random, and a third of them up to 80 % more.
    pub busy: bool,
}

/// What the placement does to the figure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effect {
    /// How much slower residues 0, 16, 32 and 48 are, as fractions.
    pub residues: [f64; 4],
    /// How much slower page offsets 4048 and 4080 are.
    pub page: f64,
}

/// A family of sweeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// Placements, launches, rounds.
    pub shape: Shape,
    /// What scatters.
    pub noise: Noise,
    /// What is to be found.
    pub effect: Effect,
    /// Share of rows that are missing.
    pub missing: f64,
    /// Whether one launch at a fast residue runs as slowly as the slowest.
    pub one_launch_astray: bool,
    /// Whether placements are visited in ascending order, not shuffled.
    pub ascending: bool,
}

/// ns an operation at the fastest placement.
const FAST: f64 = 59.0;
/// Where the frame is without shift or padding; 4096-aligned.
const ANCHOR: u64 = 0x7fff_ffff_a000;

/// One block to come: launch, round, placement, buffer.
type Visit = (u32, u32, i64, u64);

impl Family {
    /// A family without noise or effect.
    pub fn new(shape: Shape) -> Self {
        Family {
            shape,
            noise: Noise::default(),
            effect: Effect::default(),
            missing: 0.0,
            one_launch_astray: false,
            ascending: false,
        }
    }

    /// The same family with this noise.
    pub fn noise(self, noise: Noise) -> Self {
        Family { noise, ..self }
    }

    /// The same family with this effect.
    pub fn effect(self, effect: Effect) -> Self {
        Family { effect, ..self }
    }

    /// The true factor at a buffer's address.
    pub fn factor(&self, buf: u64) -> f64 {
        let residue = self.effect.residues[(buf % 64 / 16) as usize];
        let page = if matches!(buf % 4096, 4048 | 4080) { self.effect.page } else { 0.0 };
        (1.0 + residue) * (1.0 + page)
    }

    /// One sweep of the family.
    pub fn sweep(&self, rng: &mut fastrand::Rng) -> Series {
        let visits = self.visits(rng);
        let astray = self.one_launch_astray.then(|| self.astray(&visits)).flatten();
        let mut state = State::new(&self.noise, visits.len());
        let mut rows = Vec::with_capacity(visits.len());
        let mut order = 0;
        let mut last = None;
        for &(launch, round, placement, buf) in &visits {
            if last.replace(launch) != Some(launch) {
                order = 0;
            }
            let factor = match astray {
                Some(other) if other == launch => self.slowest(),
                _ => self.factor(buf),
            };
            let ns = self.recorded(FAST * factor * state.next(launch, round, buf, rng));
            if rng.f64() >= self.missing {
                let row = Observation {
                    order: Some(order),
                    buf: Some(buf),
                    ..observation(launch, round, placement, ns)
                };
                rows.push(Observation { residue: Some((buf % 64) as u8), ..row });
            }
            order += 1;
        }
        let mut series = series_of(rows);
        (series.key.placement, series.key.grid) = match self.shape {
            Shape::LineGrid { .. } => (Placement::Shift, Some(Grid::Line)),
            Shape::PageGrid => (Placement::Shift, Some(Grid::Page)),
            Shape::Aslr { .. } => (Placement::Aslr, None),
            Shape::Padding { .. } => (Placement::Pad, None),
        };
        series
    }

    /// The figure with as many digits as are recorded.
    fn recorded(&self, ns: f64) -> f64 {
        let step = self.noise.rounded_to;
        if step > 0.0 { (ns / step).round() * step } else { ns }
    }

    fn slowest(&self) -> f64 {
        1.0 + self.effect.residues.iter().copied().fold(0.0, f64::max)
    }

    fn astray(&self, visits: &[Visit]) -> Option<u32> {
        visits.iter().find(|visit| self.factor(visit.3) == 1.0).map(|visit| visit.0)
    }

    fn visits(&self, rng: &mut fastrand::Rng) -> Vec<Visit> {
        match self.shape {
            Shape::LineGrid { launches } => self.grid(launches, 12, 16, rng),
            Shape::PageGrid => self.grid(3, 12, 512, rng),
            Shape::Aslr { launches } => {
                let place = |launch| (launch, ANCHOR - 16 * rng.u64(0..65536));
                let placed: Vec<(u32, u64)> = (0..launches).map(place).collect();
                let visits = placed.into_iter().flat_map(|(launch, buf)| {
                    (0..12).map(move |round| (launch, round, (buf % 8192) as i64, buf))
                });
                visits.collect()
            }
            Shape::Padding { to } => {
                let mut paddings: Vec<i64> = (0..=to / 16).flat_map(|n| [16 * n; 3]).collect();
                if !self.ascending {
                    rng.shuffle(&mut paddings);
                }
                let visits = (0..).zip(paddings).flat_map(|(launch, padding)| {
                    (0..6).map(move |round| (launch, round, padding, ANCHOR - padding as u64))
                });
                visits.collect()
            }
        }
    }

    fn grid(&self, launches: u32, rounds: u32, shifts: u64, rng: &mut fastrand::Rng) -> Vec<Visit> {
        let mut visits = Vec::new();
        for (launch, round) in (0..launches).flat_map(|l| (0..rounds).map(move |r| (l, r))) {
            let mut order: Vec<u64> = (0..shifts).collect();
            if !self.ascending {
                rng.shuffle(&mut order);
            }
            let visit = |n| (launch, round, 16 * n as i64, ANCHOR - 16 * n);
            visits.extend(order.into_iter().map(visit));
        }
        visits
    }
}

/// What noise remembers from block to block.
struct State<'a> {
    noise: &'a Noise,
    blocks: usize,
    done: usize,
    launch: Option<(u32, f64)>,
    round: Option<(u32, u32, f64)>,
    stretch: Option<(usize, f64)>,
}

impl<'a> State<'a> {
    fn new(noise: &'a Noise, blocks: usize) -> Self {
        State { noise, blocks, done: 0, launch: None, round: None, stretch: None }
    }

    /// The factor of the next block.
    fn next(&mut self, launch: u32, round: u32, buf: u64, rng: &mut fastrand::Rng) -> f64 {
        let noise = self.noise;
        let of_launch = match self.launch {
            Some((same, factor)) if same == launch => factor,
            _ => {
                let mode = if noise.mode > 0.0 && rng.bool() { 1.0 + noise.mode } else { 1.0 };
                (noise.launch * normal(rng)).exp() * mode
            }
        };
        self.launch = Some((launch, of_launch));
        let of_round = match self.round {
            Some((l, r, factor)) if (l, r) == (launch, round) => factor,
            _ => (noise.round * normal(rng)).exp(),
        };
        self.round = Some((launch, round, of_round));
        let drift = 1.0 + noise.drift * self.done as f64 / self.blocks as f64;
        self.done += 1;
        of_launch * of_round * drift * self.stretched(rng) * self.of_block(buf, rng)
    }

    fn stretched(&mut self, rng: &mut fastrand::Rng) -> f64 {
        const LENGTH: usize = 30;
        if !self.noise.stretches {
            return 1.0;
        }
        self.stretch = match self.stretch {
            Some((left, factor)) if left > 1 => Some((left - 1, factor)),
            // One block in ten lies in a stretch.
            _ if rng.f64() < 1.0 / (9 * LENGTH) as f64 => Some((LENGTH, 1.4 + 0.6 * rng.f64())),
            _ => None,
        };
        self.stretch.map_or(1.0, |(_, factor)| factor)
    }

    fn of_block(&self, buf: u64, rng: &mut fastrand::Rng) -> f64 {
        let noise = self.noise;
        let noisier =
            if buf % 64 == 16 && noise.noisier_class > 1.0 { noise.noisier_class } else { 1.0 };
        let mut factor = (noise.block * noisier * normal(rng)).exp();
        if rng.f64() < noise.interrupted {
            factor *= 1.2 + 0.8 * rng.f64();
        }
        if noise.busy {
            factor *= 1.0 + 0.6 * rng.f64();
            if rng.f64() < 1.0 / 3.0 {
                factor *= 1.0 + 0.8 * rng.f64();
            }
        }
        factor
    }
}

/// A standard normal value (Box and Muller).
fn normal(rng: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

/// A figure of which only its place in the experiment is known.
pub fn observation(launch: u32, round: u32, placement: i64, ns: f64) -> Observation {
    Observation {
        launch,
        round,
        order: None,
        placement,
        residue: None,
        buf: None,
        sp: None,
        ns,
        disturbed: false,
    }
}

/// A series of a made-up subject.
pub fn series_of(observations: Vec<Observation>) -> Series {
    let key = SeriesKey {
        probe: "phase".to_owned(),
        workload: "made-up".to_owned(),
        len: Some(64),
        arm: "default".to_owned(),
        routine: None,
        placement: Placement::Shift,
        grid: None,
        params: Params::new(),
        unit: None,
    };
    Series { key, role: Role::Subject, higher_is_better: false, observations }
}
