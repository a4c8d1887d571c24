//! Groups the files of a tree, or the passages of a document, into shards.

/// Most shards.
pub const MAX_SHARDS: usize = 8;
/// Most items read; further ones are reported as left out.
pub const MAX_ITEMS: usize = 3000;
/// Weight from which a shard is worth a request of its own.
const MIN_SHARD_WEIGHT: usize = 8 << 10;
/// Smallest weight of an item, since each has its name.
const MIN_ITEM_WEIGHT: usize = 200;
/// Largest weight of an item, since only an outline of a long file is shown.
const MAX_ITEM_WEIGHT: usize = 6000;

/// A shard: a range of adjacent items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// The indices of its items.
    pub items: std::ops::Range<usize>,
    /// The sum of their weights.
    pub weight: usize,
}

/// Returns the weight of an item of `bytes` bytes.
fn weight(bytes: usize) -> usize {
    bytes.clamp(MIN_ITEM_WEIGHT, MAX_ITEM_WEIGHT)
}

/// Groups items, given by their sizes in bytes, into at most [`MAX_SHARDS`] shards of about equal weight. The items are
/// in the order of their paths, so that a folder stays together. Items from index [`MAX_ITEMS`] on are left out.
pub fn plan(bytes: &[usize]) -> Vec<Shard> {
    let weights: Vec<usize> = bytes.iter().take(MAX_ITEMS).map(|bytes| weight(*bytes)).collect();
    let total: usize = weights.iter().sum();
    let most = (total / MIN_SHARD_WEIGHT).clamp(1, MAX_SHARDS);
    // binary search for the smallest capacity with which `most` shards are enough
    let (mut low, mut high) = (weights.iter().copied().max().unwrap_or_default(), total);
    while low < high {
        let middle = low + (high - low) / 2;
        if fill(&weights, middle).len() <= most {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    fill(&weights, high)
}

/// Fills shards one after the other, none above `capacity`.
fn fill(weights: &[usize], capacity: usize) -> Vec<Shard> {
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
            prop_assert!(shards.len() <= MAX_SHARDS);
            let items: Vec<usize> = shards.iter().flat_map(|shard| shard.items.clone()).collect();
            prop_assert_eq!(items, (0..sizes.len()).collect::<Vec<_>>());
            let total: usize = sizes.iter().map(|bytes| weight(*bytes)).sum();
            let most = (total / MIN_SHARD_WEIGHT).clamp(1, MAX_SHARDS);
            let heaviest = shards.iter().map(|shard| shard.weight).max().unwrap_or_default();
            prop_assert!(heaviest <= total / most + MAX_ITEM_WEIGHT, "{heaviest} of {total} in {most}");
        }
    }

    #[test]
    fn c18_a_small_tree_is_one_shard_and_extra_items_are_left_out() {
        assert_eq!(plan(&[]), []);
        assert_eq!(plan(&[10, 20]).len(), 1);
        assert_eq!(plan(&[100_000; 300]).len(), MAX_SHARDS);
        let shards = plan(&vec![1; MAX_ITEMS + 5]);
        assert_eq!(shards.last().unwrap().items.end, MAX_ITEMS);
    }
}
