//! Numbers of bytes, as a person reads them.

/// `512 bytes`, `3.2 kB`, `1.0 GB`: powers of ten, as disks are sold.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        // a tenth of the unit is exact enough, and no number is rounded up to ten of them
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit / (unit / 10)),
        None if bytes == 1 => "1 byte".into(),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_unit_that_fits() {
        for (bytes, told) in
            [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_050, "1.0 kB"), (3_250_000_000, "3.2 GB")]
        {
            assert_eq!(size(bytes), told);
        }
        assert_eq!(size(u64::MAX), "18446744.0 TB");
    }
}
