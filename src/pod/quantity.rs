//! Kubernetes quantities (`500m`, `64Mi`, `1.5e3`), read exactly.
//!
//! As in apimachinery's `resource.Quantity`: a value keeps nine decimal places, more precise ones are rounded away from zero, and a
//! magnitude above 2^63-1 becomes 2^63-1.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::str::FromStr;

const NANO: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;
const MAX_NANOS: i128 = i64::MAX as i128 * NANO;
/// Decimal places that a value keeps.
const PLACES: i64 = 9;

/// An amount, exact to nine decimal places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    nanos: i128,
}

/// A text that is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a quantity such as 500m, 2, 64Mi or 1.5G")]
pub struct NotAQuantity;

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0 };

    /// So many whole units.
    pub fn of(units: i64) -> Self {
        Self { nanos: i128::from(units) * NANO }
    }

    /// So many thousandths.
    pub fn of_milli(thousandths: i64) -> Self {
        Self { nanos: i128::from(thousandths) * MILLI }
    }

    /// Reads a decoded quantity.
    pub fn read(quantity: &Quantity) -> Result<Self, NotAQuantity> {
        quantity.0.parse()
    }

    /// Whole units, rounded away from zero.
    pub fn value(self) -> i64 {
        self.rounded(NANO)
    }

    /// Thousandths, rounded away from zero; capped at 2^63-1.
    pub fn milli_value(self) -> i64 {
        self.rounded(MILLI)
    }

    /// Billionths: the exact value.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// Returns true if it is zero.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Returns true if it is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Returns true if it has no fraction.
    pub fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// The sum, capped.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { nanos: (self.nanos + other.nanos).clamp(-MAX_NANOS, MAX_NANOS) }
    }

    fn rounded(self, unit: i128) -> i64 {
        let away = if self.nanos < 0 { 1 - unit } else { unit - 1 };
        let rounded = (self.nanos + away) / unit;
        i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
    }
}

impl FromStr for Amount {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let number_length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, suffix) = rest.split_at(number_length);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(NotAQuantity);
        }
        let scale = Scale::from_suffix(suffix).ok_or(NotAQuantity)?;
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        let exponent = scale.tens.saturating_sub(i64::try_from(fraction.len()).unwrap_or(i64::MAX));
        let nanos = nanos_of(&digits, scale.twos, exponent);
        Ok(Self { nanos: if negative { -nanos } else { nanos } })
    }
}

/// A factor of 2^twos * 10^tens.
struct Scale {
    twos: u32,
    tens: i64,
}

impl Scale {
    fn from_suffix(suffix: &str) -> Option<Self> {
        let tens = |tens| Some(Self { twos: 0, tens });
        let twos = |twos| Some(Self { twos, tens: 0 });
        match suffix {
            "" => tens(0),
            "n" => tens(-9),
            "u" => tens(-6),
            "m" => tens(-3),
            "k" => tens(3),
            "M" => tens(6),
            "G" => tens(9),
            "T" => tens(12),
            "P" => tens(15),
            "E" => tens(18),
            "Ki" => twos(10),
            "Mi" => twos(20),
            "Gi" => twos(30),
            "Ti" => twos(40),
            "Pi" => twos(50),
            "Ei" => twos(60),
            _ => suffix.strip_prefix(['e', 'E'])?.parse().ok().and_then(tens),
        }
    }
}

/// `digits * 2^twos * 10^exponent` in billionths, rounded up and capped. Decimal arithmetic, since the number of digits has no bound.
fn nanos_of(digits: &[u8], twos: u32, exponent: i64) -> i128 {
    let significant = digits.iter().position(|digit| *digit != 0).map_or(&[][..], |first| &digits[first..]);
    if significant.is_empty() {
        return 0;
    }
    let mut digits = significant.to_vec();
    for _ in 0..twos {
        double(&mut digits);
    }
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    // Digits that stay once the point is moved behind the ninth decimal place.
    let kept = length.saturating_add(exponent).saturating_add(PLACES);
    // 2^63-1 billionths of billionths: 19 digits before the point and nine behind it.
    if kept > 19 + PLACES {
        return MAX_NANOS;
    }
    let kept = usize::try_from(kept).unwrap_or(0);
    let (integer, dropped) = digits.split_at(kept.min(digits.len()));
    let zeros = kept.saturating_sub(digits.len());
    let value =
        integer.iter().copied().chain(std::iter::repeat_n(0, zeros)).fold(0_i128, |value, digit| value * 10 + i128::from(digit));
    (value + i128::from(dropped.iter().any(|digit| *digit != 0))).min(MAX_NANOS)
}

/// Doubles a decimal number in place, highest digit first.
fn double(digits: &mut Vec<u8>) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let doubled = *digit * 2 + carry;
        *digit = doubled % 10;
        carry = doubled / 10;
    }
    if carry > 0 {
        digits.insert(0, carry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap_or_else(|_| panic!("{text:?} is a quantity"))
    }

    #[test]
    fn every_suffix_has_its_factor() {
        for (text, nanos) in [
            ("1n", 1),
            ("1u", 1_000),
            ("1m", 1_000_000),
            ("1", NANO),
            ("1k", NANO * 1_000),
            ("1M", NANO * 1_000_000),
            ("1G", NANO * 1_000_000_000),
            ("1T", NANO * 1_000_000_000_000),
            ("1P", NANO * 1_000_000_000_000_000),
            ("1E", NANO * 1_000_000_000_000_000_000),
            ("1Ki", NANO << 10),
            ("1Mi", NANO << 20),
            ("1Gi", NANO << 30),
            ("1Ti", NANO << 40),
            ("1Pi", NANO << 50),
            ("1Ei", NANO << 60),
            ("1e3", NANO * 1_000),
            ("1E3", NANO * 1_000),
            ("1e+3", NANO * 1_000),
            ("15e-1", NANO + NANO / 2),
        ] {
            assert_eq!(amount(text).nanos(), nanos, "{text}");
        }
    }

    #[test]
    fn signs_points_and_leading_zeros_are_read_as_kubernetes_reads_them() {
        for (text, milli) in [
            ("+1", 1000),
            ("-1", -1000),
            ("-0.5", -500),
            (".5", 500),
            ("1.", 1000),
            ("0001", 1000),
            ("1.50", 1500),
            ("0", 0),
            ("-0", 0),
            ("0Ki", 0),
            ("1.5Ki", 1_536_000),
        ] {
            assert_eq!(amount(text).milli_value(), milli, "{text}");
        }
    }

    #[test]
    fn values_are_rounded_away_from_zero() {
        for (text, value, milli) in [
            ("100m", 1, 100),
            ("-100m", -1, -100),
            ("0.1m", 1, 1),
            ("0.1Ki", 103, 102_400),
            ("1001m", 2, 1001),
            ("0.0000000001", 1, 1),
            ("1n", 1, 1),
            ("0.00000000000000000000000000000000000000000000001Ei", 1, 1),
        ] {
            assert_eq!((amount(text).value(), amount(text).milli_value()), (value, milli), "{text}");
        }
    }

    #[test]
    fn too_large_magnitudes_are_capped() {
        for text in [
            "9223372036854775807",
            "9223372036854775808",
            "1e1000",
            "8Ei",
            "100E",
            "1e9223372036854775807",
            "99999999999999999999999999",
        ] {
            assert_eq!(amount(text).value(), i64::MAX, "{text}");
        }
        assert_eq!(amount("-100E").value(), -i64::MAX);
        assert_eq!(amount("9223372036854775806").value(), i64::MAX - 1);
        assert_eq!(amount("8Ei").milli_value(), i64::MAX);
        assert_eq!(amount("8Ei").plus(amount("8Ei")).value(), i64::MAX);
        assert_eq!(amount("1e-9223372036854775808").nanos(), 1, "a little is not nothing");
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in [
            "", " 1", "1 ", ".", "-", "+", "+-1", "1.2.3", "1K", "1mi", "1kI", "1KI", "Mi", "1e", "1e3.5", "1e3Mi", "0x10",
            "1_000", "1,5", "ten", "１",
        ] {
            assert_eq!(text.parse::<Amount>(), Err(NotAQuantity), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn reading_never_panics(text in "[-+]?[0-9.]{0,40}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,20}") {
            if let Ok(amount) = text.parse::<Amount>() {
                proptest::prop_assert!(amount.nanos().abs() <= MAX_NANOS);
            }
        }

        #[test]
        fn integers_keep_their_value(value: i64) {
            proptest::prop_assert_eq!(amount(&value.to_string()).value(), value.max(-i64::MAX));
        }
    }
}
