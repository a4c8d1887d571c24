//! A fast checksum of bytes on the disk.

/// Returns the checksum of bytes.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let mut sum = Sum::new();
    sum.add(bytes);
    sum.value()
}

/// A checksum as fast as memory, against accidents, not against attackers: eight lanes of multiply-and-rotate, of which
/// each step is a bijection. A change within one word of the input always changes the sum; any other change is missed
/// with a probability of about 2^-64.
pub(super) struct Sum {
    lanes: [u64; 8],
    /// The last, incomplete block.
    block: [u8; 64],
    /// The number of bytes in it.
    filled: usize,
    len: u64,
}

impl Sum {
    /// An odd number with random-looking bits: those of the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(super) fn new() -> Self {
        let lanes = std::array::from_fn(|lane| Self::FACTOR.wrapping_mul(lane as u64 + 1));
        Self { lanes, block: [0; 64], filled: 0, len: 0 }
    }

    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if self.filled > 0 {
            let (now, later) = bytes.split_at(bytes.len().min(64 - self.filled));
            self.block[self.filled..][..now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.filled < 64 {
                return;
            }
            mix(&mut self.lanes, &self.block);
            self.filled = 0;
        }
        let (blocks, rest) = bytes.as_chunks::<64>();
        // on a copy, so that the lanes stay in registers
        let mut lanes = self.lanes;
        blocks.iter().for_each(|block| mix(&mut lanes, block));
        self.lanes = lanes;
        self.block[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    pub(super) fn value(&self) -> u64 {
        let mut lanes = self.lanes;
        let mut last = [0; 64];
        last[..self.filled].copy_from_slice(&self.block[..self.filled]);
        mix(&mut lanes, &last);
        lanes.iter().fold(self.len, |sum, &lane| turn(sum, lane))
    }
}

fn mix(lanes: &mut [u64; 8], block: &[u8; 64]) {
    for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
        *lane = turn(*lane, u64::from_le_bytes(*word));
    }
}

fn turn(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_mul(Sum::FACTOR).rotate_left(29)
}
