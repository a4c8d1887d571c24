//! Measures the engine's matrix products, tier by tier, on random weights with the shapes of Qwen2.5-Coder 1.5B and
//! 0.5B.
//!
//! ```text
//! cargo bench --bench kernels                            # every tier of this CPU, batches 1 4 32 128 512
//! cargo bench --bench kernels -- tier=amx m=1,32 kind=Q4_K threads=2
//! cargo bench --bench kernels -- m=1 adapter=Q8_0        # the cost of an adapter of rank 16: A in this format, B in F16
//! ```
//!
//! Each matrix has so many copies, used in turn, that together they exceed the caches: weights come from memory, as in
//! decoding. Each figure is printed with its ratio to a plain loop that reads memory with the same pool in the same
//! run, since machines are shared. Times are the 10th percentile of all calls.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use caro::model::engine::bytes::Bytes;
use caro::model::engine::kernels::{Adapted, Kernels, LowRank, Tier, Weight};
use caro::model::engine::quant::Kind;
use caro::model::engine::threads::Pool;

/// Bytes of all copies of a matrix together: more than a machine's share of a last-level cache.
const FOOTPRINT: usize = 256 << 20;

/// The measured matrices: name, kind, inputs, outputs.
const SHAPES: [(&str, Kind, usize, usize); 7] = [
    ("ffn gate/up", Kind::Q4K, 1536, 8960),
    ("ffn down", Kind::Q4K, 8960, 1536),
    ("ffn down", Kind::Q6K, 8960, 1536),
    ("attention q/o", Kind::Q4K, 1536, 1536),
    ("head", Kind::Q6K, 1536, 151_936),
    ("ffn gate/up 0.5B", Kind::Q5_0, 896, 4864),
    ("head 0.5B", Kind::Q8_0, 896, 151_936),
];

fn main() {
    let mut tiers: Vec<Tier> = Tier::ALL.iter().copied().filter(|tier| tier.is_available()).collect();
    let mut batches = vec![1, 4, 32, 128, 512];
    let mut kinds: Vec<Kind> = Kind::ALL.to_vec();
    let (mut pool, mut adapter) = (None, None);
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("tier", list)) => tiers.retain(|tier| list.split(',').any(|name| name == tier.name())),
            Some(("kind", list)) => kinds.retain(|kind| list.split(',').any(|name| name == kind.name())),
            Some(("m", list)) => batches = list.split(',').map(|m| m.parse().expect("m=1,4,32")).collect(),
            Some(("adapter", name)) => adapter = Kind::ALL.into_iter().find(|kind| kind.name() == name),
            Some(("threads", count)) => pool = Some(Pool::new(count.parse().expect("threads=2"))),
            _ => {} // cargo itself passes `--bench`
        }
    }
    let pool = Arc::new(pool.unwrap_or_else(Pool::for_this_machine));
    println!("{} threads, best tier {}", pool.threads(), Tier::detect());
    for (name, kind, cols, rows) in SHAPES.into_iter().filter(|shape| kinds.contains(&shape.1)) {
        let size = kind.row_bytes(cols) * rows;
        let copies: Vec<Weight> = (0..FOOTPRINT.div_ceil(size)).map(|seed| random(kind, rows, cols, seed)).collect();
        let memory = read_speed(&pool, &copies);
        let lows: Vec<LowRank> =
            (0..copies.len()).filter_map(|seed| Some(low_rank(adapter?, rows, cols, seed))).collect();
        println!("{name} {kind} {cols} -> {rows}, {size} bytes; memory reads {memory:.1} GB/s");
        for &tier in &tiers {
            let mut kernels = Kernels::new(pool.clone(), tier);
            for &m in &batches {
                let [seconds, adapted] = time(&mut kernels, &copies, &lows, m);
                let (speed, flops) = (size as f64 / seconds / 1e9, 2.0 * (rows * cols * m) as f64 / seconds / 1e9);
                let ratio = speed / memory;
                println!(
                    "  {:9} m={m:<4} {:9.3} ms {speed:7.2} GB/s ({ratio:4.2} of reads) {flops:8.1} GFLOP/s",
                    tier.name(),
                    seconds * 1e3
                );
                if !lows.is_empty() {
                    println!(
                        "            with the adapter {:9.3} ms, {:+.1} %",
                        adapted * 1e3,
                        (adapted / seconds - 1.0) * 100.0
                    );
                }
            }
        }
    }
}

/// Creates random weights. The upper bits of each byte are zero, so that scales are ordinary numbers.
fn random(kind: Kind, rows: usize, cols: usize, seed: usize) -> Weight {
    let mut state = seed as u64 | 1 << 40;
    let bytes: Vec<u8> = (0..kind.row_bytes(cols) * rows)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8 & 0x3F
        })
        .collect();
    Weight::new(kind, rows, cols, Bytes::from(bytes)).unwrap()
}

/// Creates a random adapter of rank 16.
fn low_rank(kind: Kind, rows: usize, cols: usize, seed: usize) -> LowRank {
    LowRank::new(random(kind, 16, cols, seed), random(Kind::F16, rows, 16, seed), 1.0).unwrap()
}

/// The 10th percentile of times in seconds.
fn lowest_tenth(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 10]
}

/// Measures a product with `m` rows of input, alone and with its adapter in turn, for at least 0.3 seconds. Returns
/// seconds.
fn time(kernels: &mut Kernels, copies: &[Weight], lows: &[LowRank], m: usize) -> [f64; 2] {
    let (cols, rows) = (copies[0].cols(), copies[0].rows());
    let x: Vec<f32> = (0..m * cols).map(|i| (i * 31 % 1009) as f32 / 504.5 - 1.0).collect();
    let mut out = vec![0.0; m * rows];
    let mut times = [Vec::new(), Vec::new()];
    let start = Instant::now();
    while times[0].len() < copies.len() || start.elapsed().as_millis() < 300 {
        let number = times[0].len() % copies.len();
        let alone = Adapted { weight: &copies[number], low_rank: None };
        // the adapted product reads another copy, because this one is in the cache now
        let number = (number + copies.len() / 2) % copies.len();
        let adapted = Adapted { weight: &copies[number], low_rank: lows.get(number) };
        for (product, times) in [alone, adapted].into_iter().zip(&mut times) {
            let call = Instant::now();
            kernels.matmul_adapted(&[product], &x, m, &mut [&mut out]);
            times.push(call.elapsed().as_secs_f64());
        }
        // the reference tier takes seconds instead of milliseconds: few calls are enough
        if start.elapsed().as_secs() >= 2 {
            break;
        }
    }
    times.map(lowest_tenth)
}

/// Measures the speed of a loop that only reads memory, in GB/s.
fn read_speed(pool: &Pool, copies: &[Weight]) -> f64 {
    const REGION: usize = 1 << 20;
    const PART: usize = 32 << 10;
    let sink = AtomicU64::new(0);
    let mut times = Vec::new();
    for _ in 0..2 {
        for region in copies.iter().flat_map(|weight| weight.bytes().chunks_exact(REGION)) {
            let call = Instant::now();
            pool.run(REGION / PART, |part, _| {
                let words = region[part * PART..][..PART].chunks_exact(64);
                // one word of every cache line, because memory delivers whole lines
                let sum = words.fold(0u64, |sum, line| sum ^ u64::from_ne_bytes(*line.first_chunk().unwrap()));
                sink.fetch_xor(sum, Ordering::Relaxed);
            });
            times.push(call.elapsed().as_secs_f64());
        }
    }
    std::hint::black_box(sink.into_inner());
    REGION as f64 / lowest_tenth(times) / 1e9
}
