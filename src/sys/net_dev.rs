//! Counters of network interfaces, from `/proc/net/dev` of a process: one small file for all interfaces of its network namespace.

use std::fs;
use std::io;

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Its name.
    pub name: String,
    /// Received traffic.
    pub received: Traffic,
    /// Sent traffic.
    pub sent: Traffic,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that were broken.
    pub errors: u64,
    /// Packets for which there was no room.
    pub dropped: u64,
}

/// Interfaces, but for `lo`, of the network namespace that the process is in.
pub fn interfaces(pid: u32) -> io::Result<Vec<InterfaceCounters>> {
    Ok(parse(&fs::read_to_string(format!("/proc/{pid}/net/dev"))?))
}

fn parse(text: &str) -> Vec<InterfaceCounters> {
    let interface = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let numbers: Vec<u64> = counters.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // Eight columns of each direction; the first four are in the same order.
        let traffic = |first: usize| match numbers.get(first..first + 4)? {
            [bytes, packets, errors, dropped] => {
                Some(Traffic { bytes: *bytes, packets: *packets, errors: *errors, dropped: *dropped })
            }
            _ => None,
        };
        Some(InterfaceCounters { name: name.trim().to_owned(), received: traffic(0)?, sent: traffic(8)? })
    };
    text.lines().filter_map(interface).filter(|interface| interface.name != "lo").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_told_with_both_directions_and_without_lo() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
                    lo: 5 5 0 0 0 0 0 0 5 5 0 0 0 0 0 0\n  eth0: 100 10 1 2 0 0 0 0 200 20 3 4 0 0 0 0\n";
        let received = Traffic { bytes: 100, packets: 10, errors: 1, dropped: 2 };
        let sent = Traffic { bytes: 200, packets: 20, errors: 3, dropped: 4 };
        assert_eq!(parse(text), [InterfaceCounters { name: "eth0".into(), received, sent }]);
        assert!(interfaces(std::process::id()).is_ok());
    }
}
