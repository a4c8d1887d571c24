//! The plan of shards: which parts of a tree or of a document stand together. Pure.

/// The most shards.
pub const MOST: usize = 8;
/// The most items that are looked at; what comes behind them is told as left out.
pub const MOST_ITEMS: usize = 3000;
/// A shard is worth a request of its own from about this weight on.
const WORTH: usize = 8 << 10;
/// The least and the most that one item weighs: of a long file only an outline is shown, and each has its name.
const WEIGHTS: (usize, usize) = (200, 6000);

/// A shard: items that stand next to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// The numbers of its items, in order.
    pub items: std::ops::Range<usize>,
    /// The sum of their weights.
    pub weight: usize,
}

/// How much an item of so many bytes counts.
fn weight(bytes: usize) -> usize {
    bytes.clamp(WEIGHTS.0, WEIGHTS.1)
}

/// Groups items of these sizes, in their order, into at most [`MOST`] shards of about the same weight. The order is that of
/// their paths, so that a folder stays together. Items from number [`MOST_ITEMS`] on are in none.
pub fn plan(bytes: &[usize]) -> Vec<Shard> {
    let weights: Vec<usize> = bytes.iter().take(MOST_ITEMS).map(|bytes| weight(*bytes)).collect();
    let total: usize = weights.iter().sum();
    let most = (total / WORTH).clamp(1, MOST);
    // the least capacity with which that many will do
    let (mut low, mut high) = (weights.iter().copied().max().unwrap_or_default(), total);
    while low < high {
        let middle = low + (high - low) / 2;
        if filled(&weights, middle).len() <= most {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    filled(&weights, high)
}

/// Shards that are filled one after the other, none above `capacity`.
fn filled(weights: &[usize], capacity: usize) -> Vec<Shard> {
    let mut shards: Vec<Shard> = Vec::new();
    for (at, weight) in weights.iter().enumerate() {
        match shards.last_mut() {
            Some(last) if last.weight + weight <= capacity => {
                last.items.end = at + 1;
                last.weight += weight;
            }
            _ => shards.push(Shard { items: at..at + 1, weight: *weight }),
        }
    }
    shards
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn c18_each_item_is_in_one_shard_and_shards_are_few_and_balanced(
            sizes in prop::collection::vec(0usize..20_000, 0..600)
        ) {
            let shards = plan(&sizes);
            prop_assert!(shards.len() <= MOST);
            let items: Vec<usize> = shards.iter().flat_map(|shard| shard.items.clone()).collect();
            prop_assert_eq!(items, (0..sizes.len()).collect::<Vec<_>>());
            let total: usize = sizes.iter().map(|bytes| weight(*bytes)).sum();
            let most = (total / WORTH).clamp(1, MOST);
            let heaviest = shards.iter().map(|shard| shard.weight).max().unwrap_or_default();
            prop_assert!(heaviest <= total / most + WEIGHTS.1, "{heaviest} of {total} in {most}");
        }
    }

    #[test]
    fn c18_a_little_is_one_shard_and_too_much_is_left_out() {
        assert_eq!(plan(&[]), []);
        assert_eq!(plan(&[10, 20]).len(), 1);
        assert_eq!(plan(&[100_000; 300]).len(), MOST);
        let shards = plan(&vec![1; MOST_ITEMS + 5]);
        assert_eq!(shards.last().unwrap().items.end, MOST_ITEMS);
    }
}
