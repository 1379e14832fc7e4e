//! The C library's `memcpy`, called as a function that the compiler can neither see through nor
//! expand.

use std::ffi::c_void;

type Memcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void;
}

/// A routine with the contract of `memcpy`.
#[derive(Clone, Copy, Debug)]
pub struct CopyRoutine {
    function: Memcpy,
}

impl CopyRoutine {
    /// The `memcpy` that the running C library resolved for this processor.
    pub fn of_c_library() -> Self {
        // Opaque to the optimiser: a known `memcpy` of constant length would become plain moves.
        CopyRoutine { function: std::hint::black_box(memcpy as Memcpy) }
    }

    /// A routine at `address`.
    ///
    /// # Safety
    /// `address` is that of a function with `memcpy`'s signature and contract, mapped for as long
    /// as the routine is used.
    pub unsafe fn at(address: usize) -> Self {
        // SAFETY: the caller's.
        CopyRoutine { function: unsafe { std::mem::transmute::<usize, Memcpy>(address) } }
    }

    /// The address that a call through this routine goes to.
    pub fn address(self) -> usize {
        self.function as usize
    }

    /// Copies `len` bytes.
    ///
    /// # Panics
    /// When either slice is shorter than `len`.
    #[inline(always)]
    pub fn copy(self, to: &mut [u8], from: &[u8], len: usize) {
        assert!(len <= to.len() && len <= from.len(), "the slices hold what is copied");
        // SAFETY: both slices hold `len` bytes, and a unique reference cannot overlap a shared one.
        unsafe { (self.function)(to.as_mut_ptr().cast(), from.as_ptr().cast(), len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_just_what_it_is_told() {
        let from: Vec<u8> = (0..100).collect();
        let mut to = [0u8; 100];
        CopyRoutine::of_c_library().copy(&mut to[3..], &from, 64);
        assert_eq!(to[3..67], from[..64]);
        assert!(to[..3].iter().chain(&to[67..]).all(|&byte| byte == 0));
    }

    #[test]
    #[should_panic(expected = "the slices hold what is copied")]
    fn a_length_beyond_the_slice_is_refused() {
        CopyRoutine::of_c_library().copy(&mut [0; 8], &[0; 16], 16);
    }
}
