//! The limits of a rolling update: pods beyond the wanted number, and unavailable pods (W21).

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The limits of a rolling update, in pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Pods that may exist beyond the wanted number.
    pub surge: u32,
    /// Pods that may be unavailable.
    pub unavailable: u32,
}

impl Limits {
    /// Resolves both fields for `replicas` pods. Surge rounds up and unavailability down; if both become 0, one pod may be unavailable, since
    /// nothing could move otherwise.
    pub fn resolve(surge: &IntOrString, unavailable: &IntOrString, replicas: u32) -> Self {
        let surge = scaled(surge, replicas, Rounding::Up);
        let unavailable = scaled(unavailable, replicas, Rounding::Down);
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { surge, unavailable: unavailable.min(replicas) }
    }
}

/// The direction in which parts of a pod are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the next whole pod.
    Up,
    /// To the whole pods.
    Down,
}

/// Resolves a number, or a percentage of `total`. Text that is no percentage, which validation refuses, counts as 0.
pub fn scaled(value: &IntOrString, total: u32, rounding: Rounding) -> u32 {
    match value {
        IntOrString::Int(number) => u32::try_from(*number).unwrap_or(0),
        IntOrString::String(text) => {
            let percent: u64 = text.strip_suffix('%').and_then(|number| number.parse().ok()).unwrap_or(0);
            let hundredths = percent.saturating_mul(total.into());
            let pods = match rounding {
                Rounding::Up => hundredths.div_ceil(100),
                Rounding::Down => hundredths / 100,
            };
            u32::try_from(pods).unwrap_or(u32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(text: &str) -> IntOrString {
        IntOrString::String(text.to_owned())
    }

    /// TD7, TD4.
    #[test]
    fn limits_resolve_as_upstream() {
        let of = |surge: &IntOrString, unavailable: &IntOrString, replicas| {
            let limits = Limits::resolve(surge, unavailable, replicas);
            (limits.surge, limits.unavailable)
        };
        assert_eq!(of(&IntOrString::Int(0), &percent("1%"), 2), (0, 1));
        assert_eq!(of(&percent("1%"), &percent("25%"), 2), (1, 0));
        assert_eq!(of(&percent("1%"), &IntOrString::Int(0), 2), (1, 0));
        assert_eq!(of(&IntOrString::Int(0), &percent("1%"), 1), (0, 1));
        assert_eq!(of(&IntOrString::Int(0), &percent("1%"), 10), (0, 1));
        assert_eq!(of(&percent("25%"), &percent("25%"), 0), (0, 0));
        assert_eq!(of(&percent("25%"), &percent("25%"), 3), (1, 0));
        assert_eq!(of(&percent("25%"), &percent("25%"), 10), (3, 2));
    }
}
