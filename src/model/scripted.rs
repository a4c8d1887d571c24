//! (see the helper's brief)
