//! Helpers for iterators.

/// Returns the only item of an iterator; `None` if there are none or several.
pub fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_item_is_returned() {
        assert_eq!(only([1].into_iter()), Some(1));
        assert_eq!(only([1, 2].into_iter()), None);
        assert_eq!(only(std::iter::empty::<u8>()), None);
    }
}
