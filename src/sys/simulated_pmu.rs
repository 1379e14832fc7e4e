//! A PMU for tests: the crate's system calls replaced on this thread, descriptors that are pipes.
//!
//! What a counter counts in a block is a function of its code and of how many blocks it has
//! counted; everything else (packing, groups, totals, short reads, refusals) is done as the kernel
//! does it. Only outside crates are used, so that integration tests can include this file.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_ulong};
use std::os::fd::RawFd;
use std::rc::Rc;

use perf_event::hooks::sys::bindings::{PERF_TYPE_SOFTWARE, perf_event_attr};
use perf_event::hooks::{Hooks, clear_thread_hooks, set_thread_hooks};

/// What was asked of the kernel, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Type of the event.
    pub kind: u32,
    /// Its code.
    pub config: u64,
    /// Which of kernel, hypervisor, guest and idle time are excluded.
    pub excluded: [bool; 4],
    /// Whether children inherit it.
    pub inherit: bool,
    /// Whether it starts at `exec`.
    pub on_exec: bool,
    /// The process; 0 is the calling thread.
    pub process: i32,
    /// The group's leader, or -1.
    pub leader: RawFd,
}

/// How one block goes.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Events counted.
    pub count: u64,
    /// Nanoseconds enabled.
    pub enabled: u64,
    /// Nanoseconds running.
    pub running: u64,
}

/// A block in which the counter ran throughout, for a second.
pub fn full(count: u64) -> Block {
    Block { count, enabled: 1_000_000_000, running: 1_000_000_000 }
}

/// Answers an opening with an error number, or lets it pass.
pub type Refuse = Box<dyn FnMut(&Asked) -> Option<i32>>;
/// What a code counts in its nth block.
pub type Model = Box<dyn FnMut(u64, usize) -> Block>;

/// What can be set and seen while the simulation is in force.
pub struct State {
    /// Refusals.
    pub refuse: Refuse,
    /// Counts.
    pub model: Model,
    /// Readings are cut to this many bytes.
    pub truncate: Option<usize>,
    /// Value that counters restart from: a driver that cannot reset its registers to 0.
    pub base: u64,
    /// Readings keep only this many low bits.
    pub width: u32,
    /// Every opening so far.
    pub asked: Vec<Asked>,
    open: HashMap<RawFd, Opened>,
    ids: u64,
}

struct Opened {
    asked: Asked,
    id: u64,
    write_end: RawFd,
    value: u64,
    enabled: u64,
    running: u64,
    blocks: usize,
    members: Vec<RawFd>,
}

/// Puts the simulation in force on this thread until it is dropped.
pub struct Simulation {
    /// To be set before, and looked at after.
    pub state: Rc<RefCell<State>>,
}

impl Simulation {
    /// A PMU that opens everything and counts by `model`.
    pub fn new(model: Model) -> Simulation {
        let state = Rc::new(RefCell::new(State {
            refuse: Box::new(|_| None),
            model,
            truncate: None,
            base: 0,
            width: 64,
            asked: Vec::new(),
            open: HashMap::new(),
            ids: 0,
        }));
        // SAFETY: the hooks answer for every call of this thread until the simulation is dropped,
        // and tests drop what they opened before that.
        unsafe { set_thread_hooks(Box::new(Kernel(Rc::clone(&state)))) };
        Simulation { state }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // SAFETY: descriptors opened under the simulation are closed like any others.
        unsafe { clear_thread_hooks() };
        for opened in self.state.borrow_mut().open.values() {
            // SAFETY: the write ends belong to the simulation.
            unsafe { libc::close(opened.write_end) };
        }
    }
}

struct Kernel(Rc<RefCell<State>>);

fn fail(errno: i32) -> c_int {
    // SAFETY: the C library's own variable of this thread.
    unsafe { *libc::__errno_location() = errno };
    -1
}

fn word(words: &mut Vec<u8>, value: u64) {
    words.extend_from_slice(&value.to_ne_bytes());
}

impl State {
    fn advance(&mut self, fd: RawFd) {
        let members = match self.open.get(&fd) {
            Some(opened) => opened.members.clone(),
            None => return,
        };
        let all = if members.is_empty() { vec![fd] } else { members };
        let mut longest = (0, 0);
        for member in all {
            let Some(opened) = self.open.get_mut(&member) else { continue };
            let block = (self.model)(opened.asked.config, opened.blocks);
            opened.blocks += 1;
            opened.value += block.count;
            opened.enabled += block.enabled;
            opened.running += block.running;
            longest = (opened.enabled, opened.running);
        }
        if let Some(leader) = self.open.get_mut(&fd) {
            (leader.enabled, leader.running) = longest;
        }
        self.publish(fd);
    }

    /// Leaves one reading in the pipe, in place of an unread one.
    fn publish(&mut self, fd: RawFd) {
        let Some(opened) = self.open.get(&fd) else { return };
        let mask = if self.width >= 64 { u64::MAX } else { (1 << self.width) - 1 };
        let mut bytes = Vec::new();
        if opened.asked.kind == PERF_TYPE_SOFTWARE && !opened.members.is_empty() {
            let members: Vec<&Opened> =
                opened.members.iter().filter_map(|fd| self.open.get(fd)).collect();
            word(&mut bytes, members.len() as u64 + 1);
            word(&mut bytes, opened.enabled);
            word(&mut bytes, opened.running);
            word(&mut bytes, 0);
            word(&mut bytes, opened.id);
            for member in members {
                word(&mut bytes, member.value & mask);
                word(&mut bytes, member.id);
            }
        } else {
            word(&mut bytes, opened.value & mask);
            word(&mut bytes, opened.enabled);
            word(&mut bytes, opened.running);
        }
        bytes.truncate(self.truncate.unwrap_or(bytes.len()));
        let mut stale = [0u8; 4096];
        // SAFETY: both ends of the pipe are open; the buffers are as long as said.
        unsafe {
            libc::read(fd, stale.as_mut_ptr().cast(), stale.len());
            libc::write(opened.write_end, bytes.as_ptr().cast(), bytes.len());
        }
    }
}

impl Hooks for Kernel {
    unsafe fn perf_event_open(
        &mut self,
        attrs: *mut perf_event_attr,
        process: libc::pid_t,
        _cpu: c_int,
        leader: c_int,
        _flags: c_ulong,
    ) -> c_int {
        // SAFETY: the crate passes attributes that live through the call.
        let attrs = unsafe { &*attrs };
        let asked = Asked {
            kind: attrs.type_,
            config: attrs.config,
            excluded: [
                attrs.exclude_kernel() == 1,
                attrs.exclude_hv() == 1,
                attrs.exclude_guest() == 1,
                attrs.exclude_idle() == 1,
            ],
            inherit: attrs.inherit() == 1,
            on_exec: attrs.enable_on_exec() == 1,
            process,
            leader,
        };
        let mut state = self.0.borrow_mut();
        state.asked.push(asked.clone());
        if let Some(errno) = (state.refuse)(&asked) {
            return fail(errno);
        }
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) } == -1 {
            return -1;
        }
        state.ids += 1;
        let (id, value) = (state.ids, state.base);
        let opened = Opened {
            asked,
            id,
            write_end: ends[1],
            value,
            enabled: 0,
            running: 0,
            blocks: 0,
            members: Vec::new(),
        };
        if let Some(leader) = state.open.get_mut(&leader) {
            leader.members.push(ends[0]);
        }
        if let Some(closed) = state.open.insert(ends[0], opened) {
            // SAFETY: its read end was closed, else the number could not have come again.
            unsafe { libc::close(closed.write_end) };
        }
        ends[0]
    }

    unsafe fn ID(&mut self, fd: c_int, id: *mut u64) -> c_int {
        let state = self.0.borrow();
        let Some(opened) = state.open.get(&fd) else { return fail(libc::EBADF) };
        // SAFETY: the crate passes a place for the identifier.
        unsafe { *id = opened.id };
        0
    }

    unsafe fn RESET(&mut self, fd: c_int, _flags: c_uint) -> c_int {
        let mut state = self.0.borrow_mut();
        let base = state.base;
        let Some(opened) = state.open.get(&fd) else { return fail(libc::EBADF) };
        for member in opened.members.iter().copied().chain([fd]).collect::<Vec<_>>() {
            if let Some(opened) = state.open.get_mut(&member) {
                opened.value = base;
            }
        }
        state.publish(fd);
        0
    }

    unsafe fn ENABLE(&mut self, fd: c_int, _flags: c_uint) -> c_int {
        if self.0.borrow().open.contains_key(&fd) { 0 } else { fail(libc::EBADF) }
    }

    unsafe fn DISABLE(&mut self, fd: c_int, _flags: c_uint) -> c_int {
        self.0.borrow_mut().advance(fd);
        0
    }
}
