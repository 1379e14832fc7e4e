//! A set of open counters around one block at a time.

use std::io;

use perf_event::{Counter, Group};

use super::GROUP;
use super::absence;
use super::environment::{Context, Environment};
use super::event::Event;
use super::open::{self, OpenError, Whom};
use super::reading::{Counted, ReadError, Reading, Totals, group_bytes};
use super::survey::{Standing, survey_one};
use crate::kernels;
use crate::sample::Absence;

/// Open counters.
///
/// ```no_run
/// use stackphase::counters::{Context, Set};
///
/// // Pin first: on a hybrid processor the core decides which counters there are.
/// let context = Context::detect();
/// let (mut set, absent) = Set::open_for_thread(&context, &[]);
/// for (name, absence) in absent {
///     eprintln!("no {name} because {absence}");
/// }
/// set.start();
/// let sum: u64 = (0..1000u64).map(std::hint::black_box).sum();
/// set.stop();
/// println!("{sum}: {:?}", set.read().per_op(1000));
/// ```
#[derive(Debug)]
pub struct Set {
    units: Vec<Unit>,
    /// Which unit counts the next block, where they do not fit together.
    turn: Option<usize>,
    environment: Environment,
}

/// What is enabled and read as one.
#[derive(Debug)]
struct Unit {
    handle: Handle,
    /// Name and identifier of each member.
    members: Vec<(String, u64)>,
    /// Totals at the start of the block; `None` while the unit is not to be read.
    before: Option<Result<Totals, ReadError>>,
}

#[derive(Debug)]
enum Handle {
    /// The leader with the members, which count as long as they are open.
    Group(Group, Vec<Counter>),
    Single(Counter),
}

impl Unit {
    fn enable(&mut self) -> io::Result<()> {
        match &mut self.handle {
            Handle::Group(group, _) => group.enable(),
            Handle::Single(counter) => counter.enable(),
        }
    }

    fn disable(&mut self) -> io::Result<()> {
        match &mut self.handle {
            Handle::Group(group, _) => group.disable(),
            Handle::Single(counter) => counter.disable(),
        }
    }

    fn totals(&self) -> Result<Totals, ReadError> {
        match &self.handle {
            Handle::Group(group, members) => {
                // The leader is a member too. Room for one more: a longer answer is an answer.
                let mut buffer = vec![0; group_bytes(members.len() + 2).unwrap_or(24)];
                let got = crate::sys::perf::read(group, &mut buffer)?;
                Totals::group(&buffer[..got])
            }
            Handle::Single(counter) => {
                let mut buffer = [0; 24];
                let got = crate::sys::perf::read(counter, &mut buffer)?;
                Totals::single(&buffer[..got])
            }
        }
    }

    fn counted(&self, environment: &Environment) -> Vec<Counted> {
        let failed = |error: &ReadError| -> Vec<Counted> {
            let absence = absence::unreadable(error);
            self.members.iter().map(|(name, _)| Counted::absent(name, absence.clone())).collect()
        };
        let before = match &self.before {
            // Not this unit's turn: enabled for no time at all.
            None => return self.between(&Totals::default(), None, environment),
            Some(Err(error)) => return failed(error),
            Some(Ok(before)) => before,
        };
        match self.totals() {
            Ok(after) => self.between(before, Some(&after), environment),
            Err(error) => failed(&error),
        }
    }

    fn between(
        &self,
        before: &Totals,
        after: Option<&Totals>,
        environment: &Environment,
    ) -> Vec<Counted> {
        let one = |(name, id): &(String, u64)| match after {
            Some(after) => Counted::between(name, before, after, *id, environment),
            None => {
                let turn = Absence::new("its group has its turn in other blocks", "see other rows");
                Counted::absent(name, turn)
            }
        };
        self.members.iter().map(one).collect()
    }
}

impl Set {
    /// Opens the standard counters and `extra` for the calling thread, each proven by its
    /// self-test first; with those that are absent, each with its reason.
    ///
    /// The thread should be pinned. Takes some milliseconds a counter where there are any.
    pub fn open_for_thread(context: &Context, extra: &[Event]) -> (Set, Vec<(String, Absence)>) {
        let (events, mut absent) = context.events(extra);
        let mut usable = Vec::new();
        for event in events {
            match survey_one(context, &event) {
                Standing::Absent(absence) => absent.push((event.name, absence)),
                Standing::Proven | Standing::Unproven(_) => usable.push(event),
            }
        }
        let (mut set, refused) = Set::open(context, &usable);
        absent.extend(refused);
        set.settle(context, &usable);
        (set, absent)
    }

    /// Opens `events` for the calling thread without proving them.
    pub fn open(context: &Context, events: &[Event]) -> (Set, Vec<(String, Absence)>) {
        let mut set = Set::empty(context);
        let mut absent = Vec::new();
        for chunk in events.chunks(GROUP) {
            set.open_group(context, chunk, &mut absent);
        }
        (set, absent)
    }

    /// Opens the standard counters and `extra` on a process that has not executed its program
    /// yet, one by one (inherited counters cannot be in a group): they start with its `exec` and
    /// count all its children. Without self-tests: those belong to the calling thread.
    pub fn open_on_child(
        context: &Context,
        process: i32,
        extra: &[Event],
    ) -> (Set, Vec<(String, Absence)>) {
        let (events, mut absent) = context.events(extra);
        let mut set = Set::empty(context);
        for event in events {
            match open::event(&event, context, Whom::Child(process)) {
                Ok(counter) => set.units.push(Unit {
                    handle: Handle::Single(counter),
                    members: vec![(event.name, 0)],
                    // Nothing has been counted before the program starts.
                    before: Some(Ok(Totals { values: vec![(0, 0)], ..Totals::default() })),
                }),
                Err(error) => absent.push((event.name, error.absence(context))),
            }
        }
        (set, absent)
    }

    fn empty(context: &Context) -> Set {
        Set { units: Vec::new(), turn: None, environment: context.environment.clone() }
    }

    fn open_group(
        &mut self,
        context: &Context,
        events: &[Event],
        absent: &mut Vec<(String, Absence)>,
    ) {
        let mut group = match open::leader() {
            Ok(group) => group,
            Err(error) => {
                let absence = error.absence(context);
                absent.extend(events.iter().map(|event| (event.name.clone(), absence.clone())));
                return;
            }
        };
        let mut counters = Vec::new();
        let mut members = Vec::new();
        for event in events {
            match open::event(event, context, Whom::ThreadIn(&mut group)) {
                Ok(counter) => {
                    members.push((event.name.clone(), counter.id()));
                    counters.push(counter);
                }
                // The kernel refuses a member that its group leaves no register for.
                Err(OpenError::Refused { errno: libc::EINVAL }) if !members.is_empty() => {
                    self.open_group(context, std::slice::from_ref(event), absent);
                }
                Err(error) => absent.push((event.name.clone(), error.absence(context))),
            }
        }
        if !members.is_empty() {
            let handle = Handle::Group(group, counters);
            self.units.push(Unit { handle, members, before: None });
        }
    }

    /// Finds out whether the groups run at the same time. A group that cannot run although its
    /// members can is taken apart; groups that cannot run together take turns.
    fn settle(&mut self, context: &Context, events: &[Event]) {
        let stuck = |unit: &Unit, reading: &Reading| {
            let ran = |name: &str| {
                let counted = reading.counters.iter().find(|counted| counted.name == name);
                counted.is_some_and(|counted| counted.running_ns > 0)
            };
            unit.members.len() > 1 && !unit.members.iter().any(|(name, _)| ran(name))
        };
        for index in (0..self.units.len()).rev() {
            self.turn = Some(index);
            let reading = self.trial();
            if !stuck(&self.units[index], &reading) {
                continue;
            }
            let unit = self.units.remove(index);
            for (name, _) in unit.members {
                let event = events.iter().find(|event| event.name == name);
                // What was refused here was counted as open a moment ago; its cell stays empty.
                let mut refused = Vec::new();
                if let Some(event) = event {
                    self.open_group(context, std::slice::from_ref(event), &mut refused);
                }
            }
        }
        self.turn = None;
        let together = self.trial().counters.iter().all(|counted| {
            counted.enabled_ns > 0 && counted.running_ns as f64 > 0.99 * counted.enabled_ns as f64
        });
        self.turn = (!together && self.units.len() > 1).then_some(0);
    }

    fn trial(&mut self) -> Reading {
        self.start();
        // Several milliseconds: longer than the period in which the kernel rotates groups.
        kernels::dependent_chain(200_000);
        self.stop();
        self.read()
    }

    /// Names of the open counters, in the order of a reading.
    pub fn names(&self) -> Vec<&str> {
        let members = self.units.iter().flat_map(|unit| &unit.members);
        members.map(|(name, _)| name.as_str()).collect()
    }

    /// Whether no counter is open.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Begins a block. What fails here stands as the reason in the reading.
    ///
    /// Where groups do not fit together, each call is the turn of another one; the columns of the
    /// others stay empty in that block.
    pub fn start(&mut self) {
        let turn = self.turn;
        for (index, unit) in self.units.iter_mut().enumerate() {
            unit.before = turn.is_none_or(|turn| turn == index).then(|| unit.totals());
        }
        // All are read before any is enabled: a read must not be counted.
        for unit in &mut self.units {
            if matches!(unit.before, Some(Ok(_)))
                && let Err(error) = unit.enable()
            {
                unit.before = Some(Err(error.into()));
            }
        }
    }

    /// Ends a block.
    pub fn stop(&mut self) {
        for unit in &mut self.units {
            if matches!(unit.before, Some(Ok(_)))
                && let Err(error) = unit.disable()
            {
                unit.before = Some(Err(error.into()));
            }
        }
        let units = self.units.len();
        self.turn = self.turn.map(|turn| (turn + 1) % units.max(1));
    }

    /// What was counted between the last [`start`](Set::start) and [`stop`](Set::stop), or, on a
    /// child, since it started its program. To be called outside the timed region.
    pub fn read(&mut self) -> Reading {
        let environment = &self.environment;
        let counters = self.units.iter().flat_map(|unit| unit.counted(environment)).collect();
        Reading { counters }
    }
}
