//! The hash functions: one-shot, over an input on the heap.

use std::hint::black_box;
use std::marker::PhantomData;

use sha2::Digest;

use super::{ResultSink, Workload};

/// A function from an input to a digest that is handed to a sink.
pub trait HashFunction {
    /// Hashes `input` and hands the digest over.
    fn hash<S: ResultSink>(input: &[u8], sink: &mut S);
}

/// `blake3::hash`.
pub struct Blake3;
/// `blake3::Hasher`, made anew for each message.
pub struct Blake3Hasher;
/// SHA-256 of the `sha2` crate, with its assembly.
pub struct Sha256;
/// SHA3-256 of the `sha3` crate.
pub struct Sha3;
/// CRC-32 of the `crc32fast` crate.
pub struct Crc32;

impl HashFunction for Blake3 {
    #[inline(always)]
    fn hash<S: ResultSink>(input: &[u8], sink: &mut S) {
        sink.take(blake3::hash(input).as_bytes());
    }
}

impl HashFunction for Blake3Hasher {
    #[inline(always)]
    fn hash<S: ResultSink>(input: &[u8], sink: &mut S) {
        sink.take(blake3::Hasher::new().update(input).finalize().as_bytes());
    }
}

impl HashFunction for Sha256 {
    #[inline(always)]
    fn hash<S: ResultSink>(input: &[u8], sink: &mut S) {
        sink.take(&sha2::Sha256::digest(input));
    }
}

impl HashFunction for Sha3 {
    #[inline(always)]
    fn hash<S: ResultSink>(input: &[u8], sink: &mut S) {
        sink.take(&sha3::Sha3_256::digest(input));
    }
}

impl HashFunction for Crc32 {
    #[inline(always)]
    fn hash<S: ResultSink>(input: &[u8], sink: &mut S) {
        sink.take(&u64::from(crc32fast::hash(input)).to_le_bytes());
    }
}

/// Hashes one message on the heap, again and again.
pub struct Hashing<H, S> {
    input: Vec<u8>,
    sink: S,
    function: PhantomData<H>,
}

impl<H: HashFunction, S: ResultSink> Hashing<H, S> {
    /// Over a message of `len` bytes, zero until it is renewed.
    pub fn new(len: usize) -> Self {
        Hashing { input: vec![0; len], sink: S::default(), function: PhantomData }
    }
}

impl<H: HashFunction, S: ResultSink> Workload for Hashing<H, S> {
    type Frame = ();

    fn frame(&self) -> Self::Frame {}

    #[inline(always)]
    fn call(&mut self, (): &mut ()) {
        H::hash(black_box(&self.input), &mut self.sink);
    }

    fn message(&self) -> Option<&[u8]> {
        Some(&self.input)
    }

    fn renew(&mut self, random: &mut fastrand::Rng) {
        random.fill(&mut self.input);
    }
}
