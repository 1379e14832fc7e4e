//! The worker's main job: one workload over a grid of placements, round after round.

use std::str::FromStr;

use stack_trampoline::Alignment;

use super::job::{GridJob, Order};
use super::protocol::Reply;
use super::worker::Channel;
use crate::Failure;
use crate::block::{
    Clock, Entry, Guard, GuardReading, Located, Locator, Occupancy, Place, PlaceError, Timed,
    iterations_for, run_at,
};
use crate::kernels::clear_upper_lanes;
use crate::placement::ProcessStack;
use crate::sample::{Placement, Sample};
use crate::sys::copy::CopyRoutine;

/// Guard readings before the first block: some milliseconds in which a clock that was down comes up.
const GUARD_READINGS: usize = 200;

/// What the stack's address is taken modulo where it is the placement itself.
const TWO_PAGES: u64 = 8192;

/// What a grid has to say while it runs.
#[derive(Debug)]
pub enum Told {
    /// A finished block.
    Sample(Box<Sample>),
    /// Something that a person should know; ends with its remedy.
    Warning(String),
}

/// Runs the job and sends a sample a block; returns the best guard reading.
pub(super) fn run(job: &GridJob, channel: &mut Channel) -> Result<GuardReading, Failure> {
    let timed = job.spec.build(CopyRoutine::of_c_library())?;
    run_with(job, timed, &mut |told| {
        let reply = match told {
            Told::Sample(sample) => Reply::Sample(sample),
            Told::Warning(warning) => Reply::Warning(warning),
        };
        channel.send(&reply).map_err(|error| {
            Failure::new(format!("lost the parent: {error}"), "worker", "start the command again")
        })
    })
}

/// Runs `timed` over the job's placements on the calling thread, which is pinned where the job says
/// so; `tell` hears of every block and warning, between blocks only.
///
/// # Errors
/// When a placement cannot be had, and whatever `tell` returns.
pub fn run_with(
    job: &GridJob,
    timed: Box<dyn Timed + '_>,
    tell: &mut dyn FnMut(Told) -> Result<(), Failure>,
) -> Result<GuardReading, Failure> {
    if let Some(warning) = job.cpu.and_then(crate::machine::pin) {
        tell(Told::Warning(warning))?;
    }
    if job.realtime
        && let Err(error) = crate::sys::realtime::enter()
    {
        tell(Told::Warning(format!(
            "real-time priority was refused ({error}): run as root, or raise the limit with \
             ulimit -r"
        )))?;
    }
    let mut grid = Grid::prepare(job, timed)?;
    let mut breather = Breather::default();
    for reason in grid.locate_all()? {
        tell(Told::Warning(reason))?;
    }
    let mut disturbed_in_round;
    let mut round = 0;
    loop {
        disturbed_in_round = false;
        for index in grid.order() {
            if job.finished.contains(&(round, job.placements[index])) {
                continue;
            }
            if job.realtime {
                breather.breathe();
            }
            let sample = grid.block(index, round)?;
            disturbed_in_round |= sample.disturbed == Some(true);
            tell(Told::Sample(Box::new(sample)))?;
        }
        grid.owed += u32::from(disturbed_in_round);
        round += 1;
        // Whole rounds make up for rounds with disturbed blocks: repeating single blocks would
        // visit their placements at times of their own.
        if round >= job.rounds + grid.owed.min(job.extra_rounds) {
            return Ok(grid.guard.best());
        }
    }
}

/// Sleeps of a real-time thread. The kernel stops real-time threads for 50 ms once they have run for
/// 950 ms of a second; one that sleeps a tenth of its time by itself never gets there, and its
/// sleeps fall between blocks.
struct Breather {
    since: std::time::Instant,
}

impl Default for Breather {
    fn default() -> Self {
        Breather { since: std::time::Instant::now() }
    }
}

impl Breather {
    const RUN: std::time::Duration = std::time::Duration::from_millis(45);
    const SLEEP: std::time::Duration = std::time::Duration::from_millis(5);

    fn breathe(&mut self) {
        if self.since.elapsed() >= Self::RUN {
            std::thread::sleep(Self::SLEEP);
            self.since = std::time::Instant::now();
        }
    }
}

struct Grid<'a> {
    job: &'a GridJob,
    timed: Box<dyn Timed + 'a>,
    places: Vec<Place>,
    located: Vec<Option<Located>>,
    iterations: u64,
    guard: Guard,
    random: fastrand::Rng,
    stack: Option<ProcessStack>,
    visited: u64,
    owed: u32,
}

impl<'a> Grid<'a> {
    fn prepare(job: &'a GridJob, mut timed: Box<dyn Timed + 'a>) -> Result<Self, Failure> {
        let places = places(job)?;
        let mut random = fastrand::Rng::with_seed(job.seed);
        timed.renew(&mut random);
        // First of all: these loops also bring a sleeping clock up before anything is calibrated.
        let guard = Guard::calibrate(GUARD_READINGS, job.guard_best);
        let clock = Clock::measure();
        let target = clock.shortest_block();
        let time = |n| run_at(places[0], timed.as_mut(), n, None).map(|(_, time)| time);
        // First-use work (lazy binding, page faults, feature detection) comes before calibration.
        let mut time = time;
        time(1)?;
        let iterations = iterations_for(target, time)?;
        Ok(Grid {
            job,
            located: vec![None; places.len()],
            places,
            iterations,
            guard,
            random,
            stack: ProcessStack::of_self().ok(),
            timed,
            visited: 0,
            owed: 0,
        })
    }

    /// Finds the buffer at every placement; returns the distinct reasons where it was not found.
    fn locate_all(&mut self) -> Result<Vec<String>, PlaceError> {
        let mut locator = Locator::default();
        let mut reasons = Vec::new();
        for (index, &place) in self.places.iter().enumerate() {
            let located = locator.locate(
                place,
                self.timed.as_mut(),
                &mut self.random,
                &mut crate::block::first_written,
            )?;
            // Where there is nothing to locate, nothing is missing.
            if let Located::Absent(absence) = &located
                && self.timed.message_len().is_some()
            {
                let reason = format!("{}: buffer not located: {absence}", self.job.workload());
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
            self.located[index] = Some(located);
        }
        Ok(reasons)
    }

    fn order(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        match self.job.order {
            Order::Shuffled => self.random.shuffle(&mut order),
            Order::Ascending => order.sort_by_key(|&index| self.job.placements[index]),
        }
        order
    }

    fn block(&mut self, index: usize, round: u32) -> Result<Sample, PlaceError> {
        let place = self.places[index];
        let occupancy = Occupancy::now();
        let before = GuardReading::take();
        clear_upper_lanes();
        // Half a block of the same call: waking upper vector lanes takes 10 to 20 µs.
        run_at(place, self.timed.as_mut(), self.iterations.div_ceil(2), None)?;
        let (entry, time) = run_at(place, self.timed.as_mut(), self.iterations, None)?;
        let after = GuardReading::take();
        let switched_out = occupancy.switched_out(&Occupancy::now());
        let (guard_ns, disturbed) = self.guard.judge(before, after);

        let mut sample = self.describe(index, round, entry);
        sample.ns_per_op = Some(time.as_secs_f64() * 1e9 / self.iterations as f64);
        sample.guard_ns = Some(guard_ns);
        sample.disturbed = Some(disturbed || switched_out);
        self.visited += 1;
        Ok(sample)
    }

    fn describe(&self, index: usize, round: u32, entry: Entry) -> Sample {
        let job = self.job;
        let name = job.workload();
        let value = match job.placement {
            Placement::Aslr => {
                let start = self.stack.map_or(entry.sp as u64, |stack| stack.start);
                (start % TWO_PAGES) as i64
            }
            _ => job.placements[index],
        };
        let mut sample = Sample::new(&job.probe, name, job.placement, value, job.launch, round);
        let input = self.timed.input_address();
        sample.len = job.sample_len();
        sample.arm.clone_from(&job.arm);
        sample.order = Some(job.order_from + self.visited);
        sample.sp = Some(entry.sp as u64);
        let located = || self.located[index].as_ref()?.address_at(entry.sp);
        sample.buf = entry.buf.map(|buf| buf as u64).or_else(located);
        sample.src = input.map(|address| address as u64);
        sample.heap_mod64 = input.map(|address| (address % 64) as u8);
        sample.text_mod64 = Some((self.timed.text_address() % 64) as u8);
        sample.env_bytes = self.stack.map(|stack| stack.env_bytes);
        sample.argv_bytes = self.stack.map(|stack| stack.argv_bytes);
        sample.cpu = crate::machine::current_cpu();
        sample.iterations = Some(self.iterations);
        sample.params = job.params.clone();
        sample
    }
}

/// The place of every placement. Where the stack comes as it is, there is one a launch.
fn places(job: &GridJob) -> Result<Vec<Place>, Failure> {
    let faulty = |what: String| Failure::usage(what, "worker protocol", "report this as a fault");
    if job.placements.is_empty() {
        return Err(faulty("a grid without placements".to_owned()));
    }
    let Some(alignment) = &job.alignment else {
        return Ok(vec![Place::AsItComes; job.placements.len()]);
    };
    let alignment = Alignment::from_str(alignment).map_err(|error| faulty(error.to_string()))?;
    job.placements
        .iter()
        .map(|&shift| {
            usize::try_from(shift)
                .map(|shift| Place::Shifted(alignment, shift))
                .map_err(|_| faulty(format!("a shift of {shift}")))
        })
        .collect()
}
