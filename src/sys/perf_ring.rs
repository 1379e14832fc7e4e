//! The memory that the kernel shares with a perf event, and the records in it.
//!
//! The kernel appends at `data_head`, we consume from `data_tail`. Nothing is overwritten: what
//! does not fit is counted by the kernel in a record of its own.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event::hooks::sys::bindings;

/// Length of `perf_event_header`: type (4), misc (2), size (2).
const HEADER: usize = 8;

/// One record as the kernel wrote it, without its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// What follows the header.
    pub body: Vec<u8>,
}

/// The mapped ring of one perf event.
#[derive(Debug)]
pub struct Ring {
    page: NonNull<bindings::perf_event_mmap_page>,
    mapped: usize,
    data_offset: usize,
    data_size: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps `pages` (a power of two) pages of records behind the control page of `fd`.
    ///
    /// # Errors
    /// What `mmap(2)` gives: EPERM when the user's locked memory is used up.
    pub fn map(fd: BorrowedFd<'_>, pages: usize) -> io::Result<Ring> {
        let page = super::page_size() as usize;
        let mapped = (pages + 1) * page;
        // SAFETY: a new shared mapping at an address of the kernel's choice touches no memory that
        // is in use; the result is checked.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page_at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // Kernels before 4.1 leave offset and size 0; the layout is the same.
        Ok(Ring { page: page_at, mapped, data_offset: page, data_size: pages * page })
    }

    /// Takes every complete record out of the ring, oldest first.
    pub fn drain(&mut self) -> Vec<Record> {
        let control = self.page.as_ptr();
        // SAFETY: the control page is mapped, and both fields are aligned u64 that the kernel also
        // accesses as single words.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*control).data_head),
                AtomicU64::from_ptr(&raw mut (*control).data_tail),
            )
        };
        // Acquire: the records up to `head` are read after it.
        let end = head.load(Ordering::Acquire);
        let start = tail.load(Ordering::Relaxed);
        let bytes = self.copy(start, end);
        // Release: the kernel may reuse the space only after our copy.
        tail.store(end, Ordering::Release);
        split(&bytes)
    }

    /// Copies `[start, end)`, positions in an endless stream that the ring holds the end of.
    fn copy(&self, start: u64, end: u64) -> Vec<u8> {
        let len = (end.wrapping_sub(start) as usize).min(self.data_size);
        let from = (start % self.data_size as u64) as usize;
        let first = len.min(self.data_size - from);
        let mut bytes = vec![0u8; len];
        // SAFETY: both parts lie inside the data area of the mapping (`from + first` and
        // `len - first` are at most `data_size`), and the kernel writes only from `head` on, which
        // is not below `end`.
        unsafe {
            let data = self.page.as_ptr().cast::<u8>().add(self.data_offset);
            std::ptr::copy_nonoverlapping(data.add(from), bytes.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr().add(first), len - first);
        }
        bytes
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `map`, and nothing borrows from it.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.mapped) };
    }
}

/// Cuts a run of records apart; a record that is cut short ends it.
fn split(mut bytes: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some((header, _)) = bytes.split_first_chunk::<HEADER>() {
        let [a, b, c, d, _, _, low, high] = *header;
        let size = usize::from(u16::from_ne_bytes([low, high]));
        if size < HEADER || size > bytes.len() {
            break;
        }
        let kind = u32::from_ne_bytes([a, b, c, d]);
        records.push(Record { kind, body: bytes[HEADER..size].to_vec() });
        bytes = &bytes[size..];
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(2u16.to_ne_bytes());
        bytes.extend((HEADER as u16 + body.len() as u16).to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn records_are_cut_by_their_own_size() {
        let bytes = [record(9, &[1; 16]), record(2, &[2; 8])].concat();
        let records = split(&bytes);
        assert_eq!(records.len(), 2);
        assert_eq!(records[0], Record { kind: 9, body: vec![1; 16] });
        assert_eq!(records[1], Record { kind: 2, body: vec![2; 8] });
    }

    #[test]
    fn a_record_that_is_cut_short_or_claims_no_size_ends_the_list() {
        let whole = record(9, &[1; 16]);
        assert!(split(&whole[..whole.len() - 1]).is_empty());
        assert!(split(&[0; 64]).is_empty());
        assert_eq!(split(&[whole.clone(), vec![0; 8]].concat()).len(), 1);
    }
}
