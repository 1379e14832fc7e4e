//! Where the current thread's stack ends.
//!
//! Moving the stack pointer down by more than a page could jump over the guard page of a small stack and
//! into whatever lies below, without a fault. So the end of the stack is asked of the C library, once a
//! thread (for the main thread that reads `/proc/self/maps`, which is dear), and compared at each call.

#![allow(unsafe_code)] // questions to the C library

use std::ops::Range;

/// The usable addresses of the current thread's stack, its guard excluded; `None` where they are not known.
#[cfg(target_os = "linux")]
pub(crate) fn current() -> Option<Range<usize>> {
    thread_local! {
        static BOUNDS: Option<(usize, usize)> = ask();
    }
    // `try_with`: a destructor of another thread-local may call after ours is gone.
    BOUNDS.try_with(|bounds| *bounds).ok().flatten().map(|(low, high)| low..high)
}

/// Elsewhere nothing is asked, and the caller touches the pages instead.
#[cfg(not(target_os = "linux"))]
pub(crate) fn current() -> Option<Range<usize>> {
    None
}

/// Asks the C library. `None` when it does not know, as for the main thread where `/proc` is hidden.
#[cfg(target_os = "linux")]
fn ask() -> Option<(usize, usize)> {
    use std::mem::MaybeUninit;

    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the thread is the caller itself, and the attributes are written before success is returned.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the attributes were initialised above, and are destroyed exactly once, after their last use.
    let known = unsafe {
        let stack = libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size);
        let guarded = libc::pthread_attr_getguardsize(attributes.as_ptr(), &mut guard);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        stack == 0 && guarded == 0
    };
    // glibc before 2.27 counts the guard as part of the stack, later ones and musl do not, and nothing
    // tells which this is: taking it off costs a page where it was not needed.
    let low = low as usize;
    known.then(|| (low.saturating_add(guard), low.saturating_add(size)))
}
