//! Order in which addresses and ports are tried. **Pure**.

/// A number that a name leads to on every host and in every version (S5): FNV-1a with 64 bits, its bits mixed as in MurmurHash 3, since
/// the upper ones of short names are alike.
pub(super) fn hash(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

/// The numbers of a range of `count`, once each, from the one that the name leads to: first those from `reserved` on, then the reserved ones.
pub(super) fn candidates(name: &str, count: u64, reserved: u64) -> impl Iterator<Item = u64> {
    let reserved = if reserved < count { reserved } else { 0 };
    let chosen = count - reserved;
    let start = if chosen == 0 { 0 } else { hash(name) % chosen };
    (0..chosen).map(move |step| reserved + (start + step) % chosen).chain(0..reserved)
}
