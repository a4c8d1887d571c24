//! Compares the encoder with plain arithmetic, one number at a time, on a small file of invented weights.

use super::*;
use serde_json::json;
use std::collections::BTreeMap;

const SIZE: usize = 64;
const WIDE: usize = 96;
const VOCAB: usize = 20;

fn config() -> Config {
    Config {
        vocab_size: VOCAB,
        hidden_size: SIZE,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        intermediate_size: WIDE,
        hidden_act: "gelu".into(),
        max_position_embeddings: 90,
        type_vocab_size: 2,
        layer_norm_eps: 1e-12,
    }
}

/// Invented weights by name, which eight bits represent exactly, so that only the arithmetic is compared.
struct Weights(BTreeMap<String, (Vec<usize>, Vec<f32>)>);

impl Weights {
    fn new() -> Self {
        let mut state = 1u64;
        let mut all = BTreeMap::new();
        let mut add = |name: String, shape: &[usize], about: f32| {
            let count: usize = shape.iter().product();
            let mut step = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as i32 % 255 - 127
            };
            let mut numbers: Vec<f32> = (0..count).map(|_| step() as f32 / 1024.0 + about).collect();
            // the largest number of a block determines its scale
            if shape.len() == 2 {
                numbers.chunks_mut(32).for_each(|block| block[0] = 127.0 / 1024.0);
            }
            all.insert(name, (shape.to_vec(), numbers));
        };
        add("embeddings.word_embeddings.weight".into(), &[VOCAB, SIZE], 0.0);
        add("embeddings.position_embeddings.weight".into(), &[90, SIZE], 0.0);
        add("embeddings.token_type_embeddings.weight".into(), &[2, SIZE], 0.0);
        let norms =
            ["embeddings.LayerNorm".to_owned()].into_iter().chain((0..2).flat_map(|i| {
                ["attention.output", "output"].map(|part| format!("encoder.layer.{i}.{part}.LayerNorm"))
            }));
        for norm in norms {
            add(format!("{norm}.weight"), &[SIZE], 1.0);
            add(format!("{norm}.bias"), &[SIZE], 0.0);
        }
        for i in 0..2 {
            for (part, rows, cols) in [
                ("attention.self.query", SIZE, SIZE),
                ("attention.self.key", SIZE, SIZE),
                ("attention.self.value", SIZE, SIZE),
                ("attention.output.dense", SIZE, SIZE),
                ("intermediate.dense", WIDE, SIZE),
                ("output.dense", SIZE, WIDE),
            ] {
                add(format!("encoder.layer.{i}.{part}.weight"), &[rows, cols], 0.0);
                add(format!("encoder.layer.{i}.{part}.bias"), &[rows], 0.0);
            }
        }
        Self(all)
    }

    fn file(&self) -> Bytes {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, (shape, numbers)) in &self.0 {
            let from = data.len();
            data.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
            header.insert(name.clone(), json!({"dtype": "F32", "shape": shape, "data_offsets": [from, data.len()]}));
        }
        let header = serde_json::Value::Object(header).to_string();
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes.into()
    }

    fn get(&self, name: &str) -> &[f32] {
        &self.0[name].1
    }

    fn linear(&self, name: &str, x: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let (weight, bias) = (self.get(&format!("{name}.weight")), self.get(&format!("{name}.bias")));
        let one = |x: &Vec<f32>| {
            let row = |(row, b): (&[f32], &f32)| row.iter().zip(x).map(|(w, x)| w * x).sum::<f32>() + b;
            weight.chunks(x.len()).zip(bias).map(row).collect()
        };
        x.iter().map(one).collect()
    }

    fn norm(&self, name: &str, x: &mut [Vec<f32>]) {
        for row in x {
            let mean = row.iter().sum::<f32>() / SIZE as f32;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / SIZE as f32;
            let (weight, bias) = (self.get(&format!("{name}.weight")), self.get(&format!("{name}.bias")));
            for (x, (w, b)) in row.iter_mut().zip(weight.iter().zip(bias)) {
                *x = (*x - mean) / (variance + 1e-12).sqrt() * w + b;
            }
        }
    }

    fn states(&self, text: &[u32]) -> Vec<Vec<f32>> {
        let row = |name: &str, i: usize| {
            self.get(&format!("embeddings.{name}_embeddings.weight"))[i * SIZE..][..SIZE].to_vec()
        };
        let sum = |(a, b): (Vec<f32>, Vec<f32>)| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f32>>();
        let mut x: Vec<Vec<f32>> = text
            .iter()
            .enumerate()
            .map(|(i, t)| sum((sum((row("word", *t as usize), row("position", i))), row("token_type", 0))))
            .collect();
        self.norm("embeddings.LayerNorm", &mut x);
        for i in 0..2 {
            let part = |part: &str| format!("encoder.layer.{i}.{part}");
            let [q, k, v] = ["query", "key", "value"].map(|p| self.linear(&part(&format!("attention.self.{p}")), &x));
            let mut context = vec![vec![0.0; SIZE]; x.len()];
            for head in 0..4 {
                let at = head * 16..head * 16 + 16;
                for (row, context) in q.iter().zip(&mut context) {
                    let dot = |k: &Vec<f32>| {
                        k[at.clone()].iter().zip(&row[at.clone()]).map(|(a, b)| a * b).sum::<f32>() / 4.0
                    };
                    let weights: Vec<f32> = k.iter().map(|k| dot(k).exp()).collect();
                    let total: f32 = weights.iter().sum();
                    for (w, v) in weights.iter().zip(&v) {
                        for j in at.clone() {
                            context[j] += w / total * v[j];
                        }
                    }
                }
            }
            let mixed = self.linear(&part("attention.output.dense"), &context);
            x = x.into_iter().zip(mixed).map(sum).collect();
            self.norm(&part("attention.output.LayerNorm"), &mut x);
            let mut wide = self.linear(&part("intermediate.dense"), &x);
            // another formula for nearly the same function, so that an error in either is noticed
            let gelu = |x: f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh());
            wide.iter_mut().flatten().for_each(|x| *x = gelu(*x));
            let down = self.linear(&part("output.dense"), &wide);
            x = x.into_iter().zip(down).map(sum).collect();
            self.norm(&part("output.LayerNorm"), &mut x);
        }
        x
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn states_agree_with_plain_arithmetic_alone_and_in_a_batch() {
    let weights = Weights::new();
    let mut encoder = Encoder::new(&weights.file(), config()).unwrap();
    let texts: Vec<Vec<u32>> =
        [1usize, 3, 70, 17].iter().map(|n| (0..*n as u32).map(|i| (i * 7 + 3) % 20).collect()).collect();
    let refs: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let together = encoder.forward(&refs).unwrap();
    let mut rows = together.chunks_exact(SIZE);
    for text in &texts {
        let alone = encoder.forward(&[text]).unwrap();
        for (wanted, alone) in weights.states(text).iter().zip(alone.chunks_exact(SIZE)) {
            let row = rows.next().unwrap();
            // the kernels round activations
            assert!(cosine(row, wanted) > 0.9995, "{} tokens: {}", text.len(), cosine(row, wanted));
            assert!(cosine(alone, wanted) > 0.9995, "{} tokens alone: {}", text.len(), cosine(alone, wanted));
        }
    }
    assert!(rows.next().is_none());
    assert!(encoder.forward(&[]).unwrap().is_empty());
}

#[test]
fn invalid_texts_and_configs_are_errors() {
    let weights = Weights::new();
    let mut encoder = Encoder::new(&weights.file(), config()).unwrap();
    assert!(matches!(encoder.forward(&[&[99]]), Err(ModelError::Engine(_))));
    assert!(matches!(encoder.forward(&[&[1; 91]]), Err(ModelError::TooLong { tokens: 91, limit: 90 })));
    for (broken, word) in [
        (Config { hidden_act: "relu".into(), ..config() }, "relu"),
        (Config { num_attention_heads: 5, ..config() }, "5 heads"),
        (Config { num_attention_heads: 0, ..config() }, "0 heads"),
        (Config { hidden_size: 32, ..config() }, "shape"),
        (Config { num_hidden_layers: 3, ..config() }, "encoder.layer.2"),
    ] {
        let Err(why) = Encoder::new(&weights.file(), broken) else { panic!("{word} was taken") };
        assert!(why.contains(word), "{why}");
    }
}
