//! Store-to-load pairs: a store, or two, and a load that may touch what they wrote.
//!
//! [`Arena`] owns the memory and is the safe way in: it checks every address before a kernel sees
//! it. Offsets are relative to the arena's start, which lies on a page.

use super::target::pairs as kernels;
use crate::sample::Absence;

pub use kernels::WIDTHS;

/// What a kernel is given; read by offset in the assembly.
#[repr(C)]
pub(in crate::kernels) struct Call {
    store: *mut u8,
    second: *mut u8,
    load: *const u8,
    iterations: u64,
    gap: usize,
    older: usize,
    older_base: *mut u8,
}

/// A kernel: `extern "C"`, reads its [`Call`], touches the addresses in it and nothing else.
pub(in crate::kernels) type Kernel = unsafe extern "C" fn(*const Call);

/// Instructions (an older store counts as one) of the three sleds: independent, dependent, older.
pub(in crate::kernels) const SLED_LENGTHS: [usize; 3] =
    [MAX_GAP as usize, MAX_GAP as usize, MAX_OLDER as usize];

/// A run of equally long instructions, entered so many before its end as are wanted.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::kernels) struct Sled {
    start: usize,
    end: usize,
}

impl Sled {
    /// The address from which `steps` of the sled's `length` instructions are executed.
    pub(in crate::kernels) fn enter(self, steps: usize, length: usize) -> usize {
        self.end - (self.end - self.start) / length * steps
    }
}

/// Whether the next iteration waits for the loaded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// The next addresses depend on the loaded value: latency decides.
    Chained,
    /// Nothing depends on the load: throughput decides.
    Independent,
}

/// What stands between the stores and the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gap {
    /// Nothing: the load follows the store.
    #[default]
    None,
    /// So many instructions that neither wait for the store nor delay the load, up to [`MAX_GAP`].
    Instructions(u16),
    /// So many dependent additions of one cycle before the load's address is known, up to
    /// [`MAX_GAP`].
    Cycles(u16),
}

/// The longest [`Gap`].
pub const MAX_GAP: u16 = 256;

/// The most older stores that can be queued before the measured one.
pub const MAX_OLDER: u16 = 64;

/// The second store of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Second {
    /// Its width in bytes, at most the first store's.
    pub bytes: u8,
    /// Where it starts, in bytes above the first store's start.
    pub at: u8,
}

/// One store or two, in program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stores {
    /// Width of the first store in bytes, one of [`WIDTHS`].
    pub bytes: u8,
    /// The store after it.
    pub second: Option<Second>,
}

impl Stores {
    /// One store.
    pub const fn single(bytes: u8) -> Self {
        Stores { bytes, second: None }
    }

    /// Two stores, the second at most as wide as the first and `at` bytes above its start.
    pub const fn pair(bytes: u8, second: u8, at: u8) -> Self {
        Stores { bytes, second: Some(Second { bytes: second, at }) }
    }

    /// Bytes from the first written to the last written.
    pub fn span(&self) -> usize {
        let second = self.second.map_or(0, |second| usize::from(second.at + second.bytes));
        second.max(usize::from(self.bytes))
    }
}

/// One experiment: which bytes are stored, which are loaded, and what stands between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The stores.
    pub stores: Stores,
    /// Offset of the first store in the arena.
    pub store_at: usize,
    /// Width of the load in bytes, one of [`WIDTHS`].
    pub load_bytes: u8,
    /// Offset of the load in the arena.
    pub load_at: usize,
    /// Chained or independent.
    pub form: Form,
    /// What stands between.
    pub gap: Gap,
    /// Stores to other lines before the measured one, in every iteration; up to [`MAX_OLDER`].
    pub older: u16,
}

/// An experiment that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// A width without a kernel.
    #[error("no kernel for {0} bytes")]
    Width(u8),
    /// A width that this machine lacks the instructions for.
    #[error("this machine has no {missing} for {bytes} bytes")]
    Missing {
        /// The width.
        bytes: u8,
        /// The instruction set.
        missing: &'static str,
    },
    /// The second store is wider than the first.
    #[error("a second store of {second} bytes is wider than the first of {first}")]
    WiderSecond {
        /// Width of the first store.
        first: u8,
        /// Width of the second store.
        second: u8,
    },
    /// An address outside the arena.
    #[error("bytes {start}..{end} lie outside the arena of {size}")]
    Outside {
        /// First byte touched.
        start: usize,
        /// One past the last.
        end: usize,
        /// The arena's size.
        size: usize,
    },
    /// A gap or a number of older stores beyond the sled.
    #[error("{wanted} is more than the {most} that a kernel has room for")]
    TooMany {
        /// What was asked for.
        wanted: u16,
        /// What there is room for.
        most: u16,
    },
}

/// Why kernels of `bytes` cannot run here; `None` where they can.
pub fn width_absence(bytes: u8) -> Option<Absence> {
    if !WIDTHS.contains(&bytes) {
        let why = format!("this architecture has no {bytes}-byte store");
        return Some(Absence::new(why, "none on this machine"));
    }
    kernels::missing(bytes).map(|set| {
        Absence::new(format!("this machine has no {set}"), format!("run on a machine with {set}"))
    })
}

/// Runs `times` × 64 dependent additions: one cycle each, so that a clock around it gives the cycle.
pub fn dependent_additions(times: u64) {
    kernels::dependent_additions(times);
}

/// Dependent additions in one unit of [`dependent_additions`].
pub const ADDITIONS: u64 = 64;

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Page-aligned memory that the kernels may touch.
pub struct Arena {
    pages: Vec<Page>,
    older: Vec<Page>,
}

impl Arena {
    /// An arena of `pages` pages of 4096 bytes, all present.
    pub fn new(pages: usize) -> Self {
        // Filled with something else than zero, so that each page is written and mapped by itself.
        Arena { pages: vec![Page([1; 4096]); pages], older: vec![Page([1; 4096]); 2] }
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.pages.len() * 4096
    }

    /// Runs the experiment's loop `iterations` times.
    ///
    /// # Errors
    /// When the widths have no kernel here or an address lies outside the arena.
    pub fn run(&mut self, access: &Access, iterations: u64) -> Result<(), PairError> {
        let kernel = self.prepare(access)?;
        let base = self.pages.as_mut_ptr().cast::<u8>();
        let (gap, steps) = match access.gap {
            Gap::None => (0, 0),
            Gap::Instructions(steps) => (0, steps),
            Gap::Cycles(steps) => (1, steps),
        };
        let second_at = access.store_at + access.stores.second.map_or(0, |s| usize::from(s.at));
        let call = Call {
            store: base.wrapping_add(access.store_at),
            second: base.wrapping_add(second_at),
            load: base.wrapping_add(access.load_at),
            iterations,
            gap: kernels::sled(gap, usize::from(steps)),
            older: kernels::sled(2, usize::from(access.older)),
            // The sled's displacements start at one page, for their encodings to be of one length.
            older_base: self.older.as_mut_ptr().cast::<u8>().wrapping_sub(OLDER_START),
        };
        if iterations > 0 {
            // SAFETY: `prepare` has checked that every byte stored or loaded lies in the arena and
            // that the machine has the instructions; older stores stay in their own two pages.
            unsafe { kernel(&call) };
        }
        Ok(())
    }

    /// Runs the loop in which one register is stored and reloaded through one address register.
    ///
    /// # Errors
    /// When `bytes` is not the width of a general register or `at` lies outside the arena.
    pub fn reload(&mut self, bytes: u8, at: usize, iterations: u64) -> Result<(), PairError> {
        let kernel = index(bytes).ok().and_then(kernels::reload).ok_or(PairError::Width(bytes))?;
        self.check(at, usize::from(bytes))?;
        let base = self.pages.as_mut_ptr().cast::<u8>();
        let store = base.wrapping_add(at);
        let older_base = self.older.as_mut_ptr().cast::<u8>();
        let call =
            Call { store, second: store, load: store, iterations, gap: 0, older: 0, older_base };
        if iterations > 0 {
            // SAFETY: the bytes lie in the arena, checked above; general registers only.
            unsafe { kernel(&call) };
        }
        Ok(())
    }

    fn prepare(&self, access: &Access) -> Result<Kernel, PairError> {
        let Stores { bytes, second } = access.stores;
        let first = index(bytes)?;
        let load = index(access.load_bytes)?;
        let second_index = match second {
            Some(second) if second.bytes > bytes => {
                return Err(PairError::WiderSecond { first: bytes, second: second.bytes });
            }
            Some(second) => Some(index(second.bytes)?),
            None => None,
        };
        self.check(access.store_at, access.stores.span())?;
        self.check(access.load_at, usize::from(access.load_bytes))?;
        let steps = match access.gap {
            Gap::None => 0,
            Gap::Instructions(steps) | Gap::Cycles(steps) => steps,
        };
        for (wanted, most) in [(steps, MAX_GAP), (access.older, MAX_OLDER)] {
            if wanted > most {
                return Err(PairError::TooMany { wanted, most });
            }
        }
        let independent = access.form == Form::Independent;
        let spaced = access.gap != Gap::None || access.older > 0;
        Ok(kernels::kernel(first, second_index, load, independent, spaced))
    }

    fn check(&self, start: usize, bytes: usize) -> Result<(), PairError> {
        let size = self.size();
        match start.checked_add(bytes) {
            Some(end) if end <= size => Ok(()),
            end => Err(PairError::Outside { start, end: end.unwrap_or(usize::MAX), size }),
        }
    }
}

/// Displacement of the sled's first older store.
const OLDER_START: usize = 4096;

/// The index into [`WIDTHS`] of a width that has kernels and that this machine can run.
fn index(bytes: u8) -> Result<usize, PairError> {
    let index = WIDTHS.iter().position(|&width| width == bytes).ok_or(PairError::Width(bytes))?;
    match kernels::missing(bytes) {
        Some(missing) => Err(PairError::Missing { bytes, missing }),
        None => Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(stores: Stores, load_bytes: u8) -> Access {
        Access {
            stores,
            store_at: 256,
            load_bytes,
            load_at: 256,
            form: Form::Chained,
            gap: Gap::None,
            older: 0,
        }
    }

    fn every_access() -> Vec<Access> {
        let mut all = Vec::new();
        let runs = |bytes: u8| width_absence(bytes).is_none();
        for &first in WIDTHS.iter().filter(|&&w| runs(w)) {
            let seconds = WIDTHS.iter().filter(|&&second| second <= first);
            let pairs = seconds.map(|&second| Stores::pair(first, second, first - second));
            for stores in pairs.chain([Stores::single(first)]) {
                for &load in WIDTHS.iter().filter(|&&w| runs(w)) {
                    for form in [Form::Chained, Form::Independent] {
                        for gap in [Gap::None, Gap::Instructions(9), Gap::Cycles(3)] {
                            all.push(Access { form, gap, older: 2, ..access(stores, load) });
                        }
                        all.push(Access { form, ..access(stores, load) });
                    }
                }
            }
        }
        all
    }

    /// Every store of every kernel writes exactly its bytes (they become zero), and every kernel
    /// returns with the callee-saved registers that the surrounding code relies on.
    #[test]
    fn a_kernel_writes_its_stores_and_nothing_else() -> Result<(), PairError> {
        for access in every_access() {
            let mut arena = Arena::new(1);
            arena.run(&access, 3)?;
            let bytes = &arena.pages[0].0;
            let written: Vec<usize> = (0..4096).filter(|&i| bytes[i] != 1).collect();
            let first = 256..256 + usize::from(access.stores.bytes);
            let second = access.stores.second.map_or(0..0, |second| {
                let start = 256 + usize::from(second.at);
                start..start + usize::from(second.bytes)
            });
            let expected: Vec<usize> =
                (0..4096).filter(|i| first.contains(i) || second.contains(i)).collect();
            assert_eq!(written, expected, "{access:?}");
            let older = arena.older.iter().flat_map(|page| page.0).filter(|&b| b != 1).count();
            assert_eq!(older, usize::from(access.older) * 8, "{access:?}");
        }
        Ok(())
    }

    #[test]
    fn the_longest_gap_and_the_most_older_stores_fit() -> Result<(), PairError> {
        let mut arena = Arena::new(1);
        for gap in [Gap::Instructions(MAX_GAP), Gap::Cycles(MAX_GAP)] {
            let access = Access { gap, older: MAX_OLDER, ..access(Stores::single(8), 8) };
            arena.run(&access, 2)?;
            let older = arena.older.iter().flat_map(|page| page.0).filter(|&b| b != 1).count();
            assert_eq!(older, usize::from(MAX_OLDER) * 8);
        }
        let gap = Gap::Cycles(MAX_GAP + 1);
        let wanted = Access { gap, ..access(Stores::single(8), 8) };
        assert_eq!(
            arena.run(&wanted, 1),
            Err(PairError::TooMany { wanted: MAX_GAP + 1, most: MAX_GAP })
        );
        Ok(())
    }

    /// An entry between two instructions would execute something else: every number is entered.
    #[test]
    fn every_entry_of_a_sled_runs_that_many_instructions() -> Result<(), PairError> {
        for older in 0..=MAX_OLDER {
            let mut arena = Arena::new(1);
            let gap = Gap::Cycles(older * 4);
            arena.run(&Access { gap, older, ..access(Stores::single(8), 8) }, 1)?;
            let gap = Gap::Instructions(older * 4);
            arena.run(&Access { gap, older, ..access(Stores::single(8), 8) }, 1)?;
            let written = arena.older.iter().flat_map(|page| page.0).filter(|&b| b != 1).count();
            assert_eq!(written, usize::from(older) * 8);
        }
        Ok(())
    }

    #[test]
    fn what_lies_outside_is_refused() {
        let mut arena = Arena::new(1);
        let end = Access { load_at: 4089, ..access(Stores::single(8), 8) };
        assert_eq!(
            arena.run(&end, 1),
            Err(PairError::Outside { start: 4089, end: 4097, size: 4096 })
        );
        let far = Access { store_at: usize::MAX, ..access(Stores::single(8), 8) };
        assert!(matches!(arena.run(&far, 1), Err(PairError::Outside { .. })));
        assert_eq!(arena.run(&access(Stores::single(3), 8), 1), Err(PairError::Width(3)));
        assert_eq!(
            arena.run(&access(Stores::pair(4, 8, 0), 8), 1),
            Err(PairError::WiderSecond { first: 4, second: 8 })
        );
        assert_eq!(arena.reload(16, 0, 1), Err(PairError::Width(16)));
    }

    #[test]
    fn a_width_that_is_absent_says_what_is_missing() {
        assert_eq!(width_absence(8), None);
        assert!(width_absence(128).is_some_and(|absence| absence.why.contains("128-byte")));
        if let Some(absence) = width_absence(64) {
            assert!(!absence.remedy.is_empty());
            let error = Arena::new(1).run(&access(Stores::single(64), 8), 1);
            assert!(error.is_err(), "a kernel without its instructions must not run");
        }
    }

    #[test]
    fn a_register_survives_its_reload() -> Result<(), PairError> {
        let mut arena = Arena::new(1);
        for bytes in [1, 2, 4, 8] {
            arena.reload(bytes, 512, 5)?;
            let written = arena.pages[0].0[512..512 + usize::from(bytes)].iter();
            assert_eq!(written.filter(|&&b| b == 0).count(), usize::from(bytes));
        }
        dependent_additions(2);
        Ok(())
    }
}
