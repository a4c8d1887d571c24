//! Formats numbers of bytes for people.

/// Formats a number of bytes: `512 bytes`, `3.2 kB`, `1.0 GB`, in powers of ten as disks are sold.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        // rounded down, so that the tenths never reach ten
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit / (unit / 10)),
        None if bytes == 1 => "1 byte".into(),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_use_the_unit_that_fits() {
        for (bytes, expected) in
            [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_050, "1.0 kB"), (3_250_000_000, "3.2 GB")]
        {
            assert_eq!(size(bytes), expected);
        }
        assert_eq!(size(u64::MAX), "18446744.0 TB");
    }
}
