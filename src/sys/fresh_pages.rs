//! Pages that nothing has touched yet, for a self-test that counts page faults.

use std::num::NonZeroUsize;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

/// Maps `pages` pages, writes to each once and unmaps them; returns whether they could be mapped.
///
/// Memory of the allocator will not do: it hands out again what was freed, already mapped. Huge
/// pages are declined where the kernel lets one, as one fault would map all.
pub fn touch_fresh_pages(pages: usize) -> bool {
    let page = super::page_size() as usize;
    let Some(len) = NonZeroUsize::new(pages * page) else { return false };
    let (access, kind) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE);
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
    let Ok(start) = (unsafe { mmap_anonymous(None, len, access, kind) }) else { return false };
    // SAFETY: advice on the mapping just made; a refusal leaves it as it is.
    let _ = unsafe { madvise(start, len.get(), MmapAdvise::MADV_NOHUGEPAGE) };
    for at in (0..len.get()).step_by(page) {
        // SAFETY: inside the mapping, which is writable and known to nobody else.
        unsafe { start.cast::<u8>().add(at).write_volatile(1) };
    }
    // SAFETY: the whole mapping made above, to which no reference exists.
    unsafe { munmap(start, len.get()) }.is_ok()
}

#[cfg(test)]
mod tests {
    use nix::sys::resource::{UsageWho, getrusage};

    #[test]
    fn every_call_faults_afresh() {
        for _ in 0..3 {
            let before = getrusage(UsageWho::RUSAGE_THREAD).expect("is readable");
            assert!(super::touch_fresh_pages(64));
            let after = getrusage(UsageWho::RUSAGE_THREAD).expect("is readable");
            assert!(after.minor_page_faults() > before.minor_page_faults());
        }
    }
}
