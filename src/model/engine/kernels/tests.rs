//! Compares the kernels of every tier with exact products and with one another.

use super::*;
use crate::engine::bytes::Bytes;
use crate::engine::quant::Kind;
use proptest::prelude::*;

/// A small generator of uniform numbers (xorshift64*), so that tests are repeatable.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a number within -1..1.
    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

/// Returns random blocks: any bits for the integers, small half-precision numbers for the scales.
fn weight(kind: Kind, rows: usize, cols: usize, random: &mut Random) -> Weight {
    let mut bytes: Vec<u8> = (0..kind.row_bytes(cols) * rows).map(|_| random.next() as u8).collect();
    let halves: &[usize] = match kind {
        Kind::Q4_0 | Kind::Q5_0 | Kind::Q8_0 => &[0],
        Kind::Q4_1 | Kind::Q5_1 | Kind::Q4K | Kind::Q5K => &[0, 2],
        Kind::Q6K => &[208],
        Kind::F32 | Kind::F16 | Kind::BF16 => &[0],
    };
    for block in bytes.chunks_exact_mut(kind.block_bytes()) {
        for &at in halves {
            let value = random.float() * 0.05;
            match kind {
                Kind::F32 => block.copy_from_slice(&value.to_le_bytes()),
                Kind::BF16 => block.copy_from_slice(&half::bf16::from_f32(value).to_le_bytes()),
                _ => block[at..at + 2].copy_from_slice(&half::f16::from_f32(value).to_le_bytes()),
            }
        }
    }
    Weight::new(kind, rows, cols, Bytes::from(bytes)).unwrap()
}

fn input(m: usize, k: usize, random: &mut Random) -> Vec<f32> {
    // with outliers, as in real activations
    (0..m * k).map(|i| random.float() * if i % 97 == 0 { 8.0 } else { 1.0 }).collect()
}

/// Computes exact products in `f64`, and for each the length of the vector of its terms, the natural unit of rounding
/// errors.
fn exact(weight: &Weight, x: &[f32], m: usize) -> Vec<(f64, f64)> {
    let mut row = vec![0.0; weight.cols];
    let mut all = vec![(0.0, 0.0); m * weight.rows];
    for n in 0..weight.rows {
        weight.embed_row(n, &mut row);
        for i in 0..m {
            let terms = row.iter().zip(&x[i * weight.cols..]).map(|(&w, &x)| f64::from(w) * f64::from(x));
            let (sum, squares) = terms.fold((0.0, 0.0), |(sum, squares), t| (sum + t, squares + t * t));
            all[i * weight.rows + n] = (sum, squares.sqrt());
        }
    }
    all
}

/// Largest error of products in integers. Rounding one of 256 numbers to `largest / 127` steps errs by at most half a
/// step, uniformly: 0.29 steps root mean square. With outliers of 8 that is 0.018 for typical magnitudes of 0.58, 3 %
/// of a typical term; errors of many terms add like their squares, and 6 deviations bound all outputs here.
const TOLERANCE: f64 = 6.0 * 0.04;

/// Largest error of products in bf16 tiles. Each term errs by two roundings of at most 2^-9 each, so one dominant
/// term by 2^-8, and many similar ones by far less; five times the first bounds all mixtures here.
const TILE_TOLERANCE: f64 = 5.0 / 256.0;

/// Largest difference between integer tiers, which differ only in the order of few additions in `f32`: some 2^-24 of
/// the sum of magnitudes, which is below 40 units for the widths here.
const SAME_TOLERANCE: f64 = 2e-4;

/// True if `tier` multiplies this shape in bf16 tiles.
#[cfg(target_arch = "x86_64")]
fn in_tiles(tier: Tier, kind: Kind, m: usize) -> bool {
    tier == Tier::Amx && m >= amx::MIN_BATCH && kind.block_len() > 1
}

/// False: only x86-64 has such tiles.
#[cfg(not(target_arch = "x86_64"))]
fn in_tiles(_: Tier, _: Kind, _: usize) -> bool {
    false
}

fn tolerance(tier: Tier, kind: Kind, m: usize) -> f64 {
    if in_tiles(tier, kind, m) {
        return TILE_TOLERANCE;
    }
    if kind.block_len() > 1 { TOLERANCE } else { SAME_TOLERANCE }
}

fn check(tier: Tier, kind: Kind, n: usize, k: usize, m: usize) {
    let mut random = Random(0x9E37_79B9 + (n * 31 + k * 7 + m) as u64);
    let weight = weight(kind, n, k, &mut random);
    let x = input(m, k, &mut random);
    let mut kernels = Kernels::new(Arc::new(Pool::new(2)), tier);
    let mut out = vec![f32::NAN; m * n];
    kernels.matmul(&[&weight], &x, m, &mut [&mut out]);
    for (at, ((exact, unit), ours)) in exact(&weight, &x, m).into_iter().zip(&out).enumerate() {
        let off = (f64::from(*ours) - exact).abs() / unit.max(1e-30);
        assert!(
            off < tolerance(tier, kind, m),
            "{tier} {kind} {m}x{k}x{n} [{at}]: {ours} is not {exact}, {off:.3} units off"
        );
    }
}

#[test]
fn every_tier_and_kind_agrees_with_exact_products() {
    for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
        for kind in Kind::ALL {
            for (n, k, m) in
                [(1, 256, 1), (3, 512, 1), (17, 1536, 2), (33, 768, 5), (64, 256, 16), (50, 512, 33), (40, 512, 19)]
            {
                check(tier, kind, n, k, m);
            }
            if kind.block_len() <= 32 {
                for (n, k, m) in [(5, 32, 1), (19, 576, 3), (40, 896, 1), (35, 96, 40)] {
                    check(tier, kind, n, k, m);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn tiers_agree_with_the_portable_one(kind in 0..Kind::ALL.len(), n in 1usize..70, blocks in 1usize..6, m in 1usize..41, seed in 1u64..) {
        let kind = Kind::ALL[kind];
        let k = blocks * kind.block_len().max(32);
        let mut random = Random(seed);
        let weight = weight(kind, n, k, &mut random);
        let x = input(m, k, &mut random);
        let run = |tier| {
            let mut out = vec![f32::NAN; m * n];
            Kernels::new(Arc::new(Pool::new(2)), tier).matmul(&[&weight], &x, m, &mut [&mut out]);
            out
        };
        let expected = run(Tier::Portable);
        let units = exact(&weight, &x, m);
        for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
            let limit = if in_tiles(tier, kind, m) { TOLERANCE } else { SAME_TOLERANCE };
            for ((a, b), (_, unit)) in run(tier).into_iter().zip(&expected).zip(&units) {
                let off = f64::from((a - b).abs()) / unit.max(1e-30);
                prop_assert!(off < limit, "{} {} {}x{}x{}: {} and {}", tier, kind, m, k, n, a, b);
            }
        }
    }
}

/// Sets every integer of these blocks to its largest value, and every unit to 1.
fn fill_with_the_largest(kind: Kind, bytes: &mut [u8]) {
    if kind.block_len() == 1 {
        return;
    }
    bytes.fill(0xFF);
    for block in bytes.chunks_exact_mut(kind.block_bytes()) {
        let one = half::f16::ONE.to_le_bytes();
        match kind {
            Kind::Q6K => (block[208..210].copy_from_slice(&one), block[192..208].fill(0x7F)).0,
            _ => block[..2].copy_from_slice(&one),
        }
        if matches!(kind, Kind::Q4_1 | Kind::Q5_1 | Kind::Q4K | Kind::Q5K) {
            block[2..4].copy_from_slice(&one);
        }
    }
}

/// Sums of many products must not overflow: in 16 bits, if a kernel adds there, and in 32.
#[test]
fn the_largest_numbers_do_not_overflow_in_long_batches() {
    // more rows than are multiplied one by one, fewer than are multiplied in bf16 tiles, which round
    let (n, k, m) = (19, 512, 11);
    for kind in Kind::ALL.into_iter().filter(|kind| kind.block_len() > 1) {
        for (fill, sign) in [(0xFF, 1.0), (0xFF, -1.0), (0x80, 1.0)] {
            let mut bytes = vec![0; kind.row_bytes(k) * n];
            fill_with_the_largest(kind, &mut bytes);
            if kind == Kind::Q8_0 {
                // its integers are signed: -1, or -128
                bytes.chunks_exact_mut(kind.block_bytes()).for_each(|block| block[2..].fill(fill));
            }
            let weight = Weight::new(kind, n, k, Bytes::from(bytes)).unwrap();
            let run = |tier| {
                let mut out = vec![f32::NAN; m * n];
                let x = vec![sign; m * k];
                Kernels::new(Arc::new(Pool::new(1)), tier).matmul(&[&weight], &x, m, &mut [&mut out]);
                out
            };
            let expected = run(Tier::Portable);
            for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
                for (a, b) in run(tier).iter().zip(&expected) {
                    assert!((a - b).abs() <= b.abs() * 1e-4, "{tier} {kind}: {a} is not {b}");
                }
            }
        }
    }
}

/// See [`Kernels::BIT_EXACT_BATCH`].
#[test]
fn a_row_of_a_short_batch_equals_the_row_alone() {
    let mut random = Random(5);
    for kind in Kind::ALL {
        for (n, k) in [(1, 256), (37, 512), (20, 2048), (18, 96), (21, 896)] {
            if !usize::is_multiple_of(k, kind.block_len()) {
                continue;
            }
            let mut weight = weight(kind, n, k, &mut random);
            let mut x = input(Kernels::BIT_EXACT_BATCH, k, &mut random);
            // one row of the largest integers: all sums must be exact there too
            let mut bytes = weight.bytes.to_vec();
            fill_with_the_largest(kind, &mut bytes[..kind.row_bytes(k)]);
            weight.bytes = Bytes::from(bytes);
            x[k..2 * k].fill(1.0);
            for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
                let run = |x: &[f32], m: usize, threads: usize| {
                    let mut out = vec![f32::NAN; m * n];
                    Kernels::new(Arc::new(Pool::new(threads)), tier).matmul(&[&weight], x, m, &mut [&mut out]);
                    out
                };
                let alone: Vec<f32> = x.chunks_exact(k).flat_map(|x| run(x, 1, 1)).collect();
                for m in 2..=Kernels::BIT_EXACT_BATCH {
                    let together = run(&x[..m * k], m, 1 + m % 3);
                    for (at, (a, b)) in together.iter().zip(&alone).enumerate() {
                        assert_eq!(a.to_bits(), b.to_bits(), "{tier} {kind} {m}x{k}x{n} [{at}]: {a} and {b}");
                    }
                }
            }
        }
    }
}

#[test]
fn fused_weights_are_multiplied_as_separate_ones() {
    let mut random = Random(7);
    let (k, m) = (512, 3);
    let weights = [
        weight(Kind::Q4K, 96, k, &mut random),
        weight(Kind::Q6K, 20, k, &mut random),
        weight(Kind::Q8_0, 33, k, &mut random),
        weight(Kind::F32, 5, k, &mut random),
    ];
    let x = input(m, k, &mut random);
    for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
        let mut kernels = Kernels::new(Arc::new(Pool::new(3)), tier);
        let mut fused: Vec<Vec<f32>> = weights.iter().map(|w| vec![f32::NAN; m * w.rows]).collect();
        let mut outs: Vec<&mut [f32]> = fused.iter_mut().map(Vec::as_mut_slice).collect();
        kernels.matmul(&weights.iter().collect::<Vec<_>>(), &x, m, &mut outs);
        for (weight, fused) in weights.iter().zip(&fused) {
            let mut alone = vec![f32::NAN; m * weight.rows];
            kernels.matmul(&[weight], &x, m, &mut [&mut alone]);
            assert_eq!(&alone, fused, "{tier} {}", weight.kind);
        }
    }
}

#[test]
fn a_call_does_not_reuse_the_last_input() {
    let mut random = Random(11);
    let weight = weight(Kind::Q4K, 8, 256, &mut random);
    let (one, other) = (input(1, 256, &mut random), input(2, 256, &mut random));
    let mut kernels = Kernels::new(Arc::new(Pool::new(1)), Tier::Portable);
    let mut first = vec![0.0; 8];
    kernels.matmul(&[&weight], &one, 1, &mut [&mut first]);
    let mut between = vec![0.0; 16];
    kernels.matmul(&[&weight], &other, 2, &mut [&mut between]);
    let mut again = vec![0.0; 8];
    kernels.matmul(&[&weight], &one, 1, &mut [&mut again]);
    assert_eq!(first, again);
    assert_ne!(first[..], between[..8]);
}

#[test]
fn zeros_and_huge_inputs_give_finite_results() {
    let mut random = Random(13);
    for kind in Kind::ALL {
        let weight = weight(kind, 4, 256, &mut random);
        for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
            let mut kernels = Kernels::new(Arc::new(Pool::new(1)), tier);
            let mut out = vec![f32::NAN; 4];
            kernels.matmul(&[&weight], &[0.0; 256], 1, &mut [&mut out]);
            assert_eq!(out, [0.0; 4], "{tier} {kind}");
            kernels.matmul(&[&weight], &[1e20; 256], 1, &mut [&mut out]);
            assert!(out.iter().all(|v| v.is_finite()), "{tier} {kind}: {out:?}");
        }
    }
}

#[test]
fn sizes_are_checked() {
    assert!(Weight::new(Kind::Q4K, 1, 256, Bytes::from(vec![0; 143])).is_err());
    assert!(Weight::new(Kind::Q4K, 1, 128, Bytes::from(vec![0; 72])).is_err());
    assert!(Weight::new(Kind::Q4K, usize::MAX, 256, Bytes::from(vec![0; 144])).is_err());
    assert!(Weight::new(Kind::F32, 2, 0, Bytes::from(vec![])).is_err());
    assert_eq!(Tier::from_name(Tier::detect().name()), Some(Tier::detect()));
    assert_eq!(Tier::from_name("abacus"), None);
}

#[test]
fn pieces_cover_every_row_once() {
    let mut random = Random(17);
    let weights = [weight(Kind::Q4K, 1000, 256, &mut random), weight(Kind::Q6K, 1, 256, &mut random)];
    for threads in [1, 2, 16] {
        let pieces = pieces(&[&weights[0], &weights[1]], threads, 32);
        for (at, w) in weights.iter().enumerate() {
            let mut next = 0;
            for piece in pieces.iter().filter(|p| p.weight == at) {
                assert_eq!(piece.rows.start, next);
                assert!(piece.rows.end > next);
                next = piece.rows.end;
            }
            assert_eq!(next, w.rows);
        }
    }
}

/// Both multiply integers exactly and add the same floating point numbers in the same order.
#[cfg(target_arch = "aarch64")]
#[test]
fn dots_and_matrices_agree_bit_by_bit() {
    if !Tier::I8mm.is_available() {
        println!("skipped: this CPU has no matrix instructions");
        return;
    }
    let mut random = Random(23);
    for kind in Kind::ALL {
        for (n, k, m) in [(37, 512, 9), (16, 256, 12), (5, 768, 31)] {
            let weight = weight(kind, n, k, &mut random);
            let x = input(m, k, &mut random);
            let run = |tier| {
                let mut out = vec![f32::NAN; m * n];
                Kernels::new(Arc::new(Pool::new(1)), tier).matmul(&[&weight], &x, m, &mut [&mut out]);
                out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            assert_eq!(run(Tier::Neon), run(Tier::I8mm), "{kind} {m}x{k}x{n}");
        }
    }
}

/// Returns a low-rank addition to a weight of this shape, with `A` and `B` of these kinds.
fn low_rank([a, b]: [Kind; 2], rank: usize, n: usize, k: usize, random: &mut Random) -> LowRank {
    LowRank::new(weight(a, rank, k, random), weight(b, n, rank, random), 3.0).unwrap()
}

/// Computes the low-rank addition to each output in `f64`, and the unit of rounding errors: the sum of the magnitudes
/// of its terms.
fn exact_addition(down: &Weight, up: &Weight, x: &[f32], m: usize) -> Vec<(f64, f64)> {
    let hidden = exact(down, x, m);
    let rank = down.rows;
    let mut row = vec![0.0; rank];
    let mut all = Vec::new();
    for i in 0..m {
        for n in 0..up.rows {
            up.embed_row(n, &mut row);
            let of = |part: fn(&(f64, f64)) -> f64| {
                row.iter().zip(&hidden[i * rank..]).map(move |(&b, h)| 3.0 * f64::from(b) * part(h))
            };
            all.push((of(|h| h.0).sum(), of(|h| h.1).map(f64::abs).sum()));
        }
    }
    all
}

#[test]
fn an_adapter_adds_its_exact_product_on_every_tier() {
    let mut random = Random(29);
    let kinds = [
        [Kind::F32, Kind::F32],
        [Kind::Q8_0, Kind::F16],
        [Kind::Q4_0, Kind::BF16],
        [Kind::Q6K, Kind::F16],
        [Kind::Q8_0, Kind::Q8_0],
    ];
    for (number, kinds) in kinds.into_iter().enumerate() {
        for (n, k, m, rank) in
            [(1, 256, 1, 1), (37, 512, 2, 16), (130, 256, 8, 5), (300, 768, 40, 16), (33, 256, 13, 64)]
        {
            let rank = usize::next_multiple_of(rank, kinds[1].block_len());
            let (down, up) = (weight(kinds[0], rank, k, &mut random), weight(kinds[1], n, rank, &mut random));
            let low = LowRank::new(down.clone(), up.clone(), 3.0).unwrap();
            // a base of zeros, so that the output is the addition alone
            let base = Weight::new(Kind::Q4K, n, k, Bytes::from(vec![0; Kind::Q4K.row_bytes(k) * n])).unwrap();
            let x = input(m, k, &mut random);
            let expected = exact_addition(&down, &up, &x, m);
            for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
                let mut out = vec![f32::NAN; m * n];
                let products = [Adapted { weight: &base, low_rank: Some(&low) }];
                Kernels::new(Arc::new(Pool::new(1 + number % 3)), tier).matmul_adapted(
                    &products,
                    &x,
                    m,
                    &mut [&mut out],
                );
                for (at, ((sum, unit), ours)) in expected.iter().zip(&out).enumerate() {
                    let off = (f64::from(*ours) - sum).abs() / unit.max(1e-30);
                    // both factors of the second product are rounded to 8 bits
                    let limit = tolerance(tier, kinds[0], m) + 0.05;
                    assert!(
                        off < limit,
                        "{tier} {kinds:?} {m}x{k}x{n} rank {rank} [{at}]: {ours} is not {sum}, {off:.4}"
                    );
                }
            }
        }
    }
}

/// [`Kernels::BIT_EXACT_BATCH`] with adapters, in one region with weights that have none.
#[test]
fn a_row_of_a_short_batch_equals_the_row_alone_with_an_adapter() {
    let mut random = Random(31);
    let (k, shapes) = (512, [(96, Kind::Q4K), (37, Kind::Q8_0), (700, Kind::Q6K)]);
    let weights = shapes.map(|(n, kind)| weight(kind, n, k, &mut random));
    let lows = [
        Some(low_rank([Kind::Q8_0, Kind::F16], 16, 96, k, &mut random)),
        None,
        Some(low_rank([Kind::Q6K, Kind::F32], 7, 700, k, &mut random)),
    ];
    let x = input(Kernels::BIT_EXACT_BATCH, k, &mut random);
    for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
        let run = |x: &[f32], threads: usize| {
            let m = x.len() / k;
            let mut outs = shapes.map(|(n, _)| vec![f32::NAN; m * n]);
            let products: Vec<Adapted> =
                weights.iter().zip(&lows).map(|(weight, low)| Adapted { weight, low_rank: low.as_ref() }).collect();
            let mut slices: Vec<&mut [f32]> = outs.iter_mut().map(Vec::as_mut_slice).collect();
            Kernels::new(Arc::new(Pool::new(threads)), tier).matmul_adapted(&products, x, m, &mut slices);
            outs
        };
        let alone: Vec<[Vec<f32>; 3]> = x.chunks_exact(k).map(|x| run(x, 1)).collect();
        for m in 1..=Kernels::BIT_EXACT_BATCH {
            for (which, out) in run(&x[..m * k], 1 + m % 4).iter().enumerate() {
                for (i, row) in out.chunks_exact(shapes[which].0).enumerate() {
                    let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(row), bits(&alone[i][which]), "{tier}, weight {which}, row {i} of {m}");
                }
            }
        }
    }
}

#[test]
fn the_sizes_of_adapters_are_checked() {
    let mut random = Random(37);
    let mut half = |rows: usize, cols: usize| weight(Kind::F32, rows, cols, &mut random);
    let base = half(20, 64);
    let low = LowRank::new(half(4, 64), half(20, 4), 1.0).unwrap();
    assert!(low.fits(&base) && low.rank() == 4);
    assert!(!low.fits(&half(21, 64)) && !low.fits(&half(20, 32)));
    assert!(LowRank::new(half(4, 64), half(20, 5), 1.0).is_err());
    assert!(LowRank::new(half(4, 64), half(20, 4), f32::NAN).is_err());
    assert!(LowRank::new(half(MAX_RANK + 1, 64), half(20, MAX_RANK + 1), 1.0).is_err());
}

/// A task of `A` that panics must not block the others.
#[test]
fn a_panic_in_an_adapter_ends_its_region() {
    let pool = Pool::new(3);
    let pending = low_rank::PendingTasks::new(2);
    let region = std::panic::AssertUnwindSafe(|| {
        pool.run(20, |index, _| {
            if index < 2 {
                let _running = pending.begin();
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert!(index > 0, "a panic of the test");
            } else {
                pending.wait();
            }
        });
    });
    assert!(std::panic::catch_unwind(region).is_err());
}
