//! Small notations that compose files, units and commands share. **Pure**.

use super::model::{Mount, MountSource, Port, Protocol};
use podstead_pod::signal::{signal_name, signal_number};

/// Splits a command line at spaces, with the quotes and backslashes of a POSIX shell and nothing else of it. `None` for an open quote.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => match characters.next()? {
                            escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                            '\n' => {}
                            other => word.extend(['\\', other]),
                        },
                        other => word.push(other),
                    }
                }
            }
            // A continued line is no word.
            '\\' => match characters.next()? {
                '\n' => {}
                other => word.get_or_insert_default().push(other),
            },
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// Reads `8080:80`, `127.0.0.1:8080:80/udp`, `80` and ranges. `None` if it is no port.
pub(super) fn ports(text: &str) -> Option<Vec<Port>> {
    let (text, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let protocol = protocol_of(protocol)?;
    let (rest, container) = text.rsplit_once(':').map_or((None, text), |(rest, container)| (Some(rest), container));
    let (host_ip, host) = match rest {
        None => (None, None),
        Some(rest) => match rest.rsplit_once(':') {
            Some((ip, host)) => (Some(ip.trim_matches(['[', ']']).to_owned()).filter(|ip| !ip.is_empty()), Some(host)),
            None if rest.contains('.') => (Some(rest.to_owned()), None),
            None => (None, Some(rest)),
        },
    };
    let containers = range(container)?;
    let hosts = match host.filter(|host| !host.is_empty()) {
        Some(host) => Some(range(host)?),
        None => None,
    };
    if hosts.as_ref().is_some_and(|hosts| hosts.len() != containers.len()) {
        return None;
    }
    let port = |(index, container): (usize, u16)| {
        let host = hosts.as_ref().and_then(|hosts| hosts.get(index).copied());
        Port { host_ip: host_ip.clone().filter(|ip| ip != "0.0.0.0"), host, container, protocol }
    };
    Some(containers.into_iter().enumerate().map(port).collect())
}

/// Reads the protocol of a port.
pub(super) fn protocol_of(text: &str) -> Option<Protocol> {
    Some(match text.to_lowercase().as_str() {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        _ => return None,
    })
}

fn range(text: &str) -> Option<Vec<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    (0 < first && first <= last && last - first < 100).then(|| (first..=last).collect())
}

/// Reads `source:/target:ro`. Relative paths are left as they are.
pub(super) fn mount(text: &str) -> Option<Mount> {
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, options) = match *parts.as_slice() {
        [target] => (None, target, ""),
        [source, target] => (Some(source), target, ""),
        [source, target, options] => (Some(source), target, options),
        _ => return None,
    };
    if !target.starts_with('/') {
        return None;
    }
    let source = match source {
        None => MountSource::Anonymous,
        Some(path) if path.starts_with(['/', '.', '~', '%', '$', '`']) => MountSource::Host(path.to_owned()),
        Some(name) => MountSource::Named(name.strip_suffix(".volume").unwrap_or(name).to_owned()),
    };
    let has = |names: &[&str]| options.split(',').any(|option| names.contains(&option));
    Some(Mount { source, target: target.to_owned(), read_only: has(&["ro"]), propagation: propagation(options) })
}

/// The policy of Kubernetes for an option such as `rslave`.
pub(super) fn propagation(options: &str) -> Option<&'static str> {
    options.split(',').find_map(|option| match option {
        "rslave" | "slave" => Some("HostToContainer"),
        "rshared" | "shared" => Some("Bidirectional"),
        _ => None,
    })
}

/// Reads `/run` or `/run:rw,size=64m`. Other options, such as modes, are the defaults of volumes in memory.
pub(super) fn tmpfs(text: &str) -> Option<Mount> {
    let (target, options) = text.split_once(':').unwrap_or((text, ""));
    let size = options.split(',').find_map(|option| option.strip_prefix("size="));
    let size = match size {
        Some(size) => Some(memory(size)?),
        None => None,
    };
    let is_read_only = options.split(',').any(|option| option == "ro");
    let mount = Mount::new(MountSource::Memory(size), target);
    target.starts_with('/').then_some(Mount { read_only: is_read_only, ..mount })
}

/// Reads `512m`, `1.5g`, `1024` as a quantity of memory.
pub(super) fn memory(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let factor: f64 = match text.get(digits.len()..)? {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = digits.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0)? * factor;
    let bytes = format!("{bytes:.0}").parse::<u64>().ok()?;
    Some(match bytes {
        bytes if bytes % (1 << 30) == 0 => format!("{}Gi", bytes >> 30),
        bytes if bytes % (1 << 20) == 0 => format!("{}Mi", bytes >> 20),
        bytes => bytes.to_string(),
    })
}

/// Reads `0.5` as a quantity of processors.
pub(super) fn cpu(text: &str) -> Option<String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0)?;
    Some(format!("{:.0}m", number * 1000.0))
}

/// Shares of processors as a request: 1024 are one processor.
pub(super) fn shares(text: &str) -> Option<String> {
    let shares = text.trim().parse::<u64>().ok().filter(|shares| (2..=262_144).contains(shares))?;
    Some(format!("{}m", (shares * 1000).div_ceil(1024)))
}

/// Reads `1m30s`, `10s`, `90` as seconds, rounded up.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut all = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let unit = after.find(|character: char| character.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let factor = match unit.trim() {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        all += number.parse::<f64>().ok()? * factor;
        rest = after;
    }
    format!("{:.0}", f64::ceil(all)).parse().ok()
}

/// A name for an object: lower case, digits and dashes.
pub(super) fn object_name(text: &str) -> String {
    let name: String =
        text.to_lowercase().chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '-' }).collect();
    let name: String = name.trim_matches('-').chars().take(50).collect();
    if name.is_empty() { "app".to_owned() } else { name.trim_end_matches('-').to_owned() }
}

/// A key of a ConfigMap or Secret.
pub(super) fn key_name(text: &str) -> String {
    let is_allowed = |character: &char| character.is_ascii_alphanumeric() || "-_.".contains(*character);
    let key: String = text.chars().map(|character| if is_allowed(&character) { character } else { '-' }).collect();
    if key.is_empty() { "file".to_owned() } else { key }
}

/// A signal with its full name, such as `SIGQUIT`, from `SIGQUIT`, `quit` or `3`.
pub(super) fn signal(text: &str) -> Option<String> {
    signal_name(signal_number(text.trim())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_by_a_shell() {
        let of = |text: &str| split(text).unwrap();
        assert_eq!(of(r#"sh -c 'echo "$A"' "two words" a\ b"#), ["sh", "-c", r#"echo "$A""#, "two words", "a b"]);
        assert_eq!(of("a \\\n  b ''"), ["a", "b", ""]);
        assert_eq!(split("'open"), None);
    }

    #[test]
    fn ports_are_read_in_all_notations() {
        let port = |host_ip: Option<&str>, host, container, protocol| Port {
            host_ip: host_ip.map(str::to_owned),
            host,
            container,
            protocol,
        };
        assert_eq!(ports("80"), Some(vec![port(None, None, 80, Protocol::Tcp)]));
        assert_eq!(ports("127.0.0.1:53:5353/udp"), Some(vec![port(Some("127.0.0.1"), Some(53), 5353, Protocol::Udp)]));
        assert_eq!(ports("[::1]:8080:80/SCTP"), Some(vec![port(Some("::1"), Some(8080), 80, Protocol::Sctp)]));
        assert_eq!(ports("8000-8001:80-81").unwrap().len(), 2);
        for text in ["", "0", "a:80", "80:81-82", "1-60000", "80/tls"] {
            assert_eq!(ports(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_become_quantities() {
        assert_eq!(
            (memory("64m"), memory("1.5g"), memory("2gb")),
            (Some("64Mi".into()), Some("1536Mi".into()), Some("2Gi".into()))
        );
        assert_eq!((memory("x"), memory("-1m")), (None, None));
        assert_eq!((cpu("0.5"), cpu("nan")), (Some("500m".into()), None));
        assert_eq!((seconds("1m30s"), seconds("500ms"), seconds("10"), seconds("x")), (Some(90), Some(1), Some(10), None));
        assert_eq!(object_name("My_App."), "my-app");
    }

    #[test]
    fn mounts_keep_size_and_propagation() {
        let mount = |text: &str| mount(text).unwrap();
        assert_eq!(
            mount("/:/host:ro,rslave"),
            Mount { read_only: true, propagation: Some("HostToContainer"), ..Mount::new(MountSource::Host("/".into()), "/host") }
        );
        assert_eq!(mount("$PWD/a:/a").source, MountSource::Host("$PWD/a".into()));
        assert_eq!(tmpfs("/run:rw,size=10m,mode=1777"), Some(Mount::new(MountSource::Memory(Some("10Mi".into())), "/run")));
        assert_eq!(
            (tmpfs("/run").map(|mount| mount.source), tmpfs("run"), tmpfs("/a:size=x")),
            (Some(MountSource::Memory(None)), None, None)
        );
    }

    #[test]
    fn signals_have_full_names() {
        assert_eq!(
            (signal("SIGQUIT"), signal("int"), signal("9")),
            (Some("SIGQUIT".into()), Some("SIGINT".into()), Some("SIGKILL".into()))
        );
        assert_eq!((signal("SIGRTMIN+3"), signal("x"), signal("0")), (Some("SIGRTMIN+3".into()), None, None));
    }
}
