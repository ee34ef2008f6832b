//! Names of stop signals.

/// Names and numbers on Linux; real-time signals are written relative to the ends of their range.
const NAMED: [(&str, i32); 35] = [
    ("SIGHUP", 1),
    ("SIGINT", 2),
    ("SIGQUIT", 3),
    ("SIGILL", 4),
    ("SIGTRAP", 5),
    ("SIGABRT", 6),
    ("SIGIOT", 6),
    ("SIGBUS", 7),
    ("SIGFPE", 8),
    ("SIGKILL", 9),
    ("SIGUSR1", 10),
    ("SIGSEGV", 11),
    ("SIGUSR2", 12),
    ("SIGPIPE", 13),
    ("SIGALRM", 14),
    ("SIGTERM", 15),
    ("SIGSTKFLT", 16),
    ("SIGCHLD", 17),
    ("SIGCLD", 17),
    ("SIGCONT", 18),
    ("SIGSTOP", 19),
    ("SIGTSTP", 20),
    ("SIGTTIN", 21),
    ("SIGTTOU", 22),
    ("SIGURG", 23),
    ("SIGXCPU", 24),
    ("SIGXFSZ", 25),
    ("SIGVTALRM", 26),
    ("SIGPROF", 27),
    ("SIGWINCH", 28),
    ("SIGIO", 29),
    ("SIGPOLL", 29),
    ("SIGPWR", 30),
    ("SIGSYS", 31),
    ("SIGRTMIN", RT_MIN),
];
/// The first real-time signal that the C library leaves to programs.
const RT_MIN: i32 = 34;
const RT_MAX: i32 = 64;

/// The number behind what an image or a pod names: `SIGQUIT`, `QUIT`, `SIGRTMIN+3`, or a number from 1 to 64. `None` for anything else.
pub fn signal_number(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return (1..=RT_MAX).contains(&number).then_some(number);
    }
    let upper = text.to_ascii_uppercase();
    let name = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    if let Some(offset) = name.strip_prefix("SIGRTMIN+") {
        return real_time(RT_MIN.checked_add(offset.parse().ok()?)?);
    }
    if let Some(offset) = name.strip_prefix("SIGRTMAX-") {
        return real_time(RT_MAX.checked_sub(offset.parse().ok()?)?);
    }
    if name == "SIGRTMAX" {
        return Some(RT_MAX);
    }
    NAMED.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The name of a signal as Kubernetes lists them: `SIGQUIT`, `SIGRTMIN+3`, `SIGRTMAX-1`. `None` for what is no signal.
pub fn signal_name(number: i32) -> Option<String> {
    // Between the ends of their range they are named by the nearer one.
    const UPPER_HALF: i32 = RT_MIN + 16;
    if number == RT_MAX {
        Some("SIGRTMAX".to_owned())
    } else if (RT_MIN + 1..UPPER_HALF).contains(&number) {
        Some(format!("SIGRTMIN+{}", number - RT_MIN))
    } else if (UPPER_HALF..RT_MAX).contains(&number) {
        Some(format!("SIGRTMAX-{}", RT_MAX - number))
    } else {
        NAMED.iter().find(|(_, known)| *known == number).map(|(name, _)| (*name).to_owned())
    }
}

/// Returns true if `lifecycle.stopSignal` accepts it: a full upper-case name, as Kubernetes lists them.
pub(super) fn is_stop_signal(text: &str) -> bool {
    text.starts_with("SIG") && !text.bytes().any(|byte| byte.is_ascii_lowercase()) && signal_number(text).is_some()
}

fn real_time(number: i32) -> Option<i32> {
    (RT_MIN..=RT_MAX).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read_as_docker_reads_them() {
        for (text, expected) in [
            ("SIGTERM", Some(15)),
            ("term", Some(15)),
            ("QUIT", Some(3)),
            ("SIGRTMIN", Some(34)),
            ("SIGRTMIN+3", Some(37)),
            ("RTMAX-1", Some(63)),
            ("SIGRTMAX", Some(64)),
            ("9", Some(9)),
            ("64", Some(64)),
            ("0", None),
            ("65", None),
            ("-1", None),
            ("SIGRTMIN+31", None),
            ("SIGRTMAX-31", None),
            ("SIGRTMIN+-1", None),
            ("SIGNONE", None),
            ("", None),
        ] {
            assert_eq!(signal_number(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_signal_has_a_name_that_a_manifest_could_say() {
        for number in (1..=31).chain(34..=64) {
            let name = signal_name(number).unwrap();
            assert!(is_stop_signal(&name) && signal_number(&name) == Some(number), "{number} {name}");
        }
        let names = [6, 15, 49, 50].map(|number| signal_name(number).unwrap());
        assert_eq!(names, ["SIGABRT", "SIGTERM", "SIGRTMIN+15", "SIGRTMAX-14"]);
        assert_eq!([0, -1, 32, 33, 65].map(signal_name), [const { None }; 5]);
    }

    #[test]
    fn a_manifest_writes_signals_in_full() {
        assert!(is_stop_signal("SIGQUIT") && is_stop_signal("SIGRTMIN+3"));
        assert!(!is_stop_signal("QUIT") && !is_stop_signal("sigquit") && !is_stop_signal("3"));
    }
}
