//! Taking the figures: every cell and every twin once in each pass, each pass in an order of its
//! own, and a pass's disturbed parts once more.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::access;
use super::cell::{Cell, Cover, Form};
use super::map::{Map, MapError, Reference, WidthAbsence};
use super::plan::{At, Experiment, Plan};
use crate::block::{Clock, Guard, GuardReading};
use crate::kernels::pairs::{
    ADDITIONS, Access, Arena, Stores, WIDTHS, dependent_additions, width_absence,
};

/// Blocks between two readings of the guard: a few milliseconds.
const BATCH: usize = 16;

/// Passes at most on top of the planned ones, for what was disturbed.
const EXTRA_PASSES: u32 = 3;

/// One loop to be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Job {
    Pair(Access),
    /// The value itself goes round, through one address register.
    Reload {
        bytes: u8,
        at: usize,
    },
}

/// What came of measuring.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The map.
    pub map: Map,
    /// Whether a stop was asked for; the map is then of the passes that were finished.
    pub stopped: bool,
}

/// The widths that this machine has, and why it lacks the others.
pub fn widths() -> (Vec<u8>, Vec<WidthAbsence>) {
    let mut absent = Vec::new();
    // Every width that any architecture has is accounted for.
    let all: [u8; 7] = [1, 2, 4, 8, 16, 32, 64];
    for bytes in all {
        if let Some(absence) = width_absence(bytes) {
            absent.push(WidthAbsence { bytes, absence });
        }
    }
    let present = WIDTHS.iter().copied().filter(|&w| width_absence(w).is_none()).collect();
    (present, absent)
}

/// Measures the cells of `plan` on the calling thread. `progress` hears how many of how many blocks
/// are done and answers whether to go on.
///
/// # Errors
/// When a cell of the plan has a width that the machine lacks.
pub fn measure(
    plan: &Plan,
    seed: u64,
    mut progress: impl FnMut(u64, u64) -> bool,
) -> Result<Measured, MapError> {
    let mut bench = Bench::new();
    let layout = Layout::new(plan, &mut bench);
    let mut random = fastrand::Rng::with_seed(seed);
    let total = bench.jobs.len() as u64 * u64::from(plan.repeats);
    let mut done = 0;
    let mut stopped = false;
    for pass in 0..plan.repeats + EXTRA_PASSES {
        let mut order: Vec<usize> = (0..bench.jobs.len()).collect();
        if pass >= plan.repeats {
            order.retain(|&job| bench.figures[job].len() < plan.repeats as usize);
        }
        random.shuffle(&mut order);
        for batch in order.chunks(BATCH) {
            done += bench.batch(batch)?;
            if !progress(done.min(total), total) {
                stopped = true;
                break;
            }
        }
        if stopped {
            break;
        }
    }
    Ok(Measured { map: layout.map(plan, seed, &bench), stopped })
}

/// The jobs with their figures, and what they run on.
struct Bench {
    arena: Arena,
    guard: Guard,
    block: Duration,
    jobs: Vec<Job>,
    index: HashMap<Job, usize>,
    /// Undisturbed times of an iteration.
    figures: Vec<Vec<f64>>,
    /// Times taken in disturbed batches: used only where there is nothing else.
    disturbed: Vec<Vec<f64>>,
    cycles: Vec<f64>,
}

impl Bench {
    fn new() -> Self {
        Bench {
            arena: Arena::new(access::PAGES),
            guard: Guard::calibrate(32, None),
            block: Clock::measure().shortest_block(),
            jobs: Vec::new(),
            index: HashMap::new(),
            figures: Vec::new(),
            disturbed: Vec::new(),
            cycles: Vec::new(),
        }
    }

    /// The number of a job, new or known: twins are shared by the cells that have the same.
    fn job(&mut self, job: Job) -> usize {
        *self.index.entry(job).or_insert_with(|| {
            self.jobs.push(job);
            self.figures.push(Vec::new());
            self.disturbed.push(Vec::new());
            self.jobs.len() - 1
        })
    }

    /// Times a few jobs between two readings of the guard; returns how many stood undisturbed.
    fn batch(&mut self, batch: &[usize]) -> Result<u64, MapError> {
        let before = GuardReading::take();
        let cycle = cycle_ns();
        let mut taken = Vec::with_capacity(batch.len());
        for &job in batch {
            taken.push((job, self.time(self.jobs[job])?));
        }
        let (_, disturbed) = self.guard.judge(before, GuardReading::take());
        if !disturbed {
            self.cycles.push(cycle);
        }
        for (job, ns) in taken {
            let figures = if disturbed { &mut self.disturbed } else { &mut self.figures };
            figures[job].push(ns);
        }
        Ok(if disturbed { 0 } else { batch.len() as u64 })
    }

    /// Time of one iteration. A short lead-in of the same loop brings it to its steady state, wakes
    /// what sleeps, and tells how many iterations a block takes.
    fn time(&mut self, job: Job) -> Result<f64, MapError> {
        const FIRST: u64 = 64;
        self.run(job, FIRST)?;
        let start = Instant::now();
        self.run(job, FIRST * 8)?;
        let estimate = start.elapsed().as_secs_f64() / (FIRST * 8) as f64;
        let iterations = (self.block.as_secs_f64() / estimate.max(1e-11)).ceil() as u64;
        let start = Instant::now();
        self.run(job, iterations)?;
        Ok(start.elapsed().as_secs_f64() * 1e9 / iterations as f64)
    }

    fn run(&mut self, job: Job, iterations: u64) -> Result<(), MapError> {
        match job {
            Job::Pair(access) => self.arena.run(&access, iterations)?,
            Job::Reload { bytes, at } => self.arena.reload(bytes, at, iterations)?,
        }
        Ok(())
    }

    /// The figures of a job; disturbed ones only where there are no others.
    fn figures(&self, job: usize) -> &[f64] {
        let figures = &self.figures[job];
        if figures.is_empty() { &self.disturbed[job] } else { figures }
    }

    fn cycle(&self) -> f64 {
        let mut cycles = self.cycles.clone();
        if cycles.is_empty() {
            cycles.push(cycle_ns());
        }
        median(&mut cycles)
    }
}

/// One cycle, from a chain of dependent additions.
fn cycle_ns() -> f64 {
    const TIMES: u64 = 128;
    let start = Instant::now();
    dependent_additions(TIMES);
    start.elapsed().as_secs_f64() * 1e9 / (TIMES * ADDITIONS) as f64
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Median and distance of the quartiles; `None` without figures.
fn summary(figures: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = |quarter: usize| sorted[(last * quarter + 2) / 4];
    Some((at(2), at(3) - at(1)))
}

/// The two ends of the scale for one load width and form, each with its twin.
struct ReferenceJobs {
    load_bytes: u8,
    form: Form,
    own: (usize, usize),
    wider: (usize, usize),
    /// Store and load width of the second.
    wider_from: (u8, u8),
}

/// Which job belongs to which cell.
struct Layout {
    cells: Vec<(Experiment, usize, Option<usize>)>,
    references: Vec<ReferenceJobs>,
    /// Loads from the cache, chained: what a renamed load must beat.
    plain_load: Option<usize>,
}

impl Layout {
    fn new(plan: &Plan, bench: &mut Bench) -> Self {
        let cells: Vec<_> = plan
            .experiments
            .iter()
            .map(|experiment| {
                let pair = access::cell(experiment);
                let touches = experiment.cover() != Cover::Nothing;
                let twin = touches.then(|| bench.job(Job::Pair(access::twin(&pair))));
                let job = reload(experiment, &pair).unwrap_or(Job::Pair(pair));
                (*experiment, bench.job(job), twin)
            })
            .collect();
        let mut forms: Vec<(u8, Form)> =
            plan.experiments.iter().map(|e| (e.load_bytes, e.form)).collect();
        forms.sort_unstable();
        forms.dedup();
        let references =
            forms.into_iter().map(|(load, form)| references(load, form, bench)).collect();
        let plain = access::twin(&access::cell(&Experiment::new(Stores::single(8), 8, 0, 0)));
        Layout { cells, references, plain_load: Some(bench.job(Job::Pair(plain))) }
    }

    fn map(&self, plan: &Plan, seed: u64, bench: &Bench) -> Map {
        let cycle_ns = bench.cycle();
        let net = |(job, twin): (usize, usize)| -> Option<f64> {
            let (cell, _) = summary(bench.figures(job))?;
            let (twin, _) = summary(bench.figures(twin))?;
            Some((cell - twin) / cycle_ns)
        };
        let reference = |jobs: &ReferenceJobs| {
            Some(Reference {
                load_bytes: jobs.load_bytes,
                form: jobs.form,
                own_width_cycles: net(jobs.own)?,
                wider_load_cycles: net(jobs.wider)?,
                wider_load: format!(
                    "{}-byte load, {}-byte store",
                    jobs.wider_from.1, jobs.wider_from.0
                ),
            })
        };
        let references = self.references.iter().filter_map(reference).collect();
        let cells = self.cells.iter().filter_map(|entry| cell(entry, bench, cycle_ns)).collect();
        // The chained plain load's loop is the load and one masking operation of one cycle.
        let load_to_use = self
            .plain_load
            .and_then(|job| summary(bench.figures(job)))
            .map(|(ns, _)| ns / cycle_ns - 1.0);
        let (_, absent) = widths();
        let undisturbed = bench.figures.iter().filter(|figures| !figures.is_empty()).count();
        let mut map = Map::new(cycle_ns, references, cells);
        map.load_to_use_cycles = load_to_use;
        map.widths_absent = absent;
        map.repeats = Some(plan.repeats);
        map.seed = Some(seed);
        map.grid = plan.grid.map(|grid| grid.to_string());
        let lost = bench.jobs.len() - undisturbed;
        if lost > 0 {
            map.notes.push(format!(
                "{lost} of {} loops were never timed without a disturbance: repeat on a quiet \
                 machine",
                bench.jobs.len()
            ));
        }
        map.classify();
        map
    }
}

/// A general register that is stored and reloaded as a whole, as programs do with a spilled value.
fn reload(experiment: &Experiment, pair: &Access) -> Option<Job> {
    let bytes = experiment.load_bytes;
    let whole = experiment.stores == Stores::single(bytes) && experiment.offset == 0;
    let plain = experiment.form == Form::Chained && experiment.gap == Default::default();
    (whole && plain && bytes <= 8).then_some(Job::Reload { bytes, at: pair.store_at })
}

/// Jobs of both references of one load width and form.
fn references(load_bytes: u8, form: Form, bench: &mut Bench) -> ReferenceJobs {
    let mut jobs = |store: u8, load: u8| {
        let cell = Experiment { form, ..Experiment::new(Stores::single(store), load, 0, 0) };
        let pair = access::cell(&cell);
        (bench.job(Job::Pair(pair)), bench.job(Job::Pair(access::twin(&pair))))
    };
    let narrower = WIDTHS.iter().copied().rev().find(|&width| width < load_bytes);
    // Nothing is narrower than a byte: there the next width marks the end of the scale, since both
    // use the same registers.
    let wider = narrower.map_or((1, 2), |store| (store, load_bytes));
    ReferenceJobs {
        load_bytes,
        form,
        own: jobs(load_bytes, load_bytes),
        wider: jobs(wider.0, wider.1),
        wider_from: wider,
    }
}

fn cell(
    (experiment, job, twin): &(Experiment, usize, Option<usize>),
    bench: &Bench,
    cycle_ns: f64,
) -> Option<Cell> {
    let (ns, spread) = summary(bench.figures(*job))?;
    let pair = access::cell(experiment);
    let twin_ns = twin.and_then(|twin| summary(bench.figures(twin))).map(|(ns, _)| ns);
    let parts = experiment.parts();
    // Six decimals of a nanosecond say nothing and make a map twice as long.
    let rounded = |figure: f64| (figure * 1e3).round() / 1e3;
    Some(Cell {
        // A span is at most 128 bytes.
        store_bytes: experiment.stores.span() as u16,
        stores: if parts.len() > 1 { parts } else { Vec::new() },
        load_bytes: experiment.load_bytes,
        offset: experiment.offset,
        residue: (pair.store_at % 64) as u8,
        page_offset: match experiment.at {
            At::Residue(_) => None,
            At::PageOffset(offset) => Some(offset),
        },
        crosses: access::crosses(&pair),
        form: experiment.form,
        gap: experiment.gap,
        ns: rounded(ns),
        spread_percent: rounded(spread / ns * 100.0),
        twin_ns: twin_ns.map(rounded),
        net_cycles: twin_ns.map(|twin| rounded((ns - twin) / cycle_ns)),
        class: None,
    })
}
