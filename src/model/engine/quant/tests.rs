//! Compares the quantized blocks with those of candle.

use super::super::testing::candle_kind;
use super::*;
use candle_core::quantized::QTensor;
use candle_core::{Device, Tensor};

/// Compares with candle, which writes the blocks and reads them back.
#[test]
fn every_kind_agrees_with_candle() {
    for kind in Kind::ALL {
        let values: Vec<f32> =
            (0..512).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.03 + (i as f32 * 0.7).sin()).collect();
        let tensor = Tensor::from_vec(values, (2, 256), &Device::Cpu).unwrap();
        let quantised = QTensor::quantize(&tensor, candle_kind(kind)).unwrap();
        let bytes = quantised.data().unwrap();
        assert_eq!(bytes.len(), kind.row_bytes(512), "{kind}");
        let expected: Vec<f32> = quantised.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        let mut ours = vec![0.0; 512];
        kind.dequantize(&bytes, &mut ours);
        for (at, (a, b)) in ours.iter().zip(&expected).enumerate() {
            assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{kind} [{at}]: {a} is not {b}");
        }
    }
}

#[test]
fn six_bit_scales_unpack() {
    // the layout bit by bit, as the format describes it
    let packed: [u8; 12] = [0xC1, 0x42, 0x83, 0x3F, 0x7F, 0x80, 0xAA, 0x55, 0xF0, 0x1E, 0x99, 0x66];
    let (scales, minima) = blocks::k_scales(&packed);
    for j in 0..4 {
        assert_eq!(scales.to_le_bytes()[j], packed[j] & 63);
        assert_eq!(minima.to_le_bytes()[j], packed[j + 4] & 63);
        assert_eq!(scales.to_le_bytes()[j + 4], packed[j + 8] & 15 | packed[j] >> 6 << 4);
        assert_eq!(minima.to_le_bytes()[j + 4], packed[j + 8] >> 4 | packed[j + 4] >> 6 << 4);
    }
}

#[test]
fn codes_and_sizes_are_consistent() {
    for kind in Kind::ALL {
        let codes: Vec<u32> = (0..256).filter(|&code| Kind::from_code(code) == Some(kind)).collect();
        assert_eq!(codes.len(), 1, "{kind}");
        with_format!(kind, F => {
            assert_eq!(F::KIND, kind);
            assert_eq!((F::LEN, F::BYTES), (kind.block_len(), kind.block_bytes()));
            const { assert!(F::LEN <= MAX_BLOCK && F::LEN / F::GROUP <= MAX_GROUPS && F::GROUP.is_multiple_of(16)) };
        }, ());
    }
    assert!(Kind::from_code(10).is_none());
    assert!(Kind::foreign_name(10).contains("Q2_K"));
}

#[test]
#[should_panic(expected = "bytes of 32 numbers")]
fn wrong_sizes_are_refused() {
    Kind::Q8_0.dequantize(&[0; 33], &mut [0.0; 32]);
}
