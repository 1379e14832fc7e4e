//! What is benchmarked: put your own function here.

/// Copies the input to the stack and reads it back at once, as hashing a short message does. Where a core
/// does not forward the copy's wide stores to the narrower loads, the time depends on where `copy` lies.
#[inline(never)]
pub fn read_back(input: &[u8; 64]) -> u64 {
    let copy = std::hint::black_box(*input);
    copy.chunks_exact(8)
        .map(|word| u64::from_le_bytes(std::array::from_fn(|i| word[i])))
        .fold(0, u64::wrapping_add)
}
