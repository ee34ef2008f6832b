//! Attacks on the kernel's own interfaces, which the host and its containers share.

use super::{Container, FOREVER, pod, refusals, sh, try_sh};
use crate::support::TestHost;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

const BUSYBOX: &str = "localhost/busybox:1";

/// A pod as nobody restricted it: root, with the default capabilities and the default filter.
fn plain(spec: &[&str], fields: &[&str]) -> TestHost {
    let host = TestHost::start();
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, spec, &[Container::new("main", FOREVER, fields)]));
    host.wait_running("web");
    host
}

/// Contents of `release_agent` of every v1 hierarchy.
fn release_agents() -> Vec<String> {
    let hierarchies = fs::read_dir("/sys/fs/cgroup").unwrap().flatten();
    hierarchies.filter_map(|entry| fs::read_to_string(entry.path().join("release_agent")).ok()).collect()
}

/// CVE-2022-0492: a container mounts a v1 hierarchy, in a user namespace of its own if need be, and names a program that the kernel runs as root of
/// the host.
#[test]
fn release_agent_of_cgroups_cannot_be_set() {
    let before = release_agents();
    let host = plain(&[], &[]);
    let attack = "mkdir -p /tmp/c; mount -t cgroup -o rdma cgroup /tmp/c && echo mounted; mount -t cgroup -o memory cgroup /tmp/c && echo mounted; \
                  mount -t cgroup2 cgroup2 /tmp/c && echo mounted; unshare -U -r -m -C sh -c 'mount -t cgroup -o memory cgroup /tmp/c && echo mounted'; \
                  find / -xdev -name release_agent 2>/dev/null | while read file; do echo /evil >$file && echo written; done; \
                  for file in /sys/fs/cgroup/release_agent /sys/fs/cgroup/*/release_agent; do echo /evil >$file && echo written; done";
    let said = try_sh(&host, "web", attack);
    assert!(!said.contains("mounted") && !said.contains("written"), "{said}");
    assert_eq!(release_agents(), before);
}

/// Cgroup mounts that a container may write to: limits are raised, groups made, other groups frozen or killed.
#[test]
fn cgroups_are_not_writable() {
    let host = plain(&[], &["resources: {limits: {memory: 64Mi}}"]);
    let attack = "for group in /sys/fs/cgroup /sys/fs/cgroup/*; do [ -d $group ] || continue; mkdir $group/evil && echo made; \
                  for file in memory.max memory.limit_in_bytes pids.max cgroup.freeze cgroup.kill freezer.state devices.allow notify_on_release; do \
                  [ ! -e $group/$file ] || { echo 1 >$group/$file && echo written; }; done; done";
    let said = try_sh(&host, "web", attack);
    assert!(!said.contains("made\n") && !said.contains("written"), "{said}");
    assert!(refusals(&said) > 0, "the attack found nothing to attack: {said}");
}

/// Files of `/proc` and `/sys` that act on the whole host: a program for core dumps, SysRq, modules' loader, power states, firmware.
#[test]
fn kernel_settings_of_host_cannot_be_written() {
    const SETTINGS: [&str; 6] = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/hotplug",
        "/proc/sys/kernel/panic",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/fs/binfmt_misc/register",
    ];
    let read = || SETTINGS.map(|path| fs::read(path).unwrap_or_default());
    let before = read();
    let host = plain(&[], &[]);
    // `?` prints help; were the file writable, nothing would happen to the host.
    let attack = format!(
        "for file in {}; do [ ! -e $file ] || {{ cat $file >$file && echo written $file; }}; done; \
         echo '?' >/proc/sysrq-trigger && echo written sysrq; [ ! -e /sys/power/state ] || {{ echo none >/sys/power/state && echo written power; }}; \
         for file in /sys/kernel/uevent_helper /sys/kernel/mm/transparent_hugepage/enabled; do [ ! -e $file ] || {{ echo >$file && echo written $file; }}; done",
        SETTINGS.join(" ")
    );
    let said = try_sh(&host, "web", &attack);
    assert!(!said.contains("written"), "{said}");
    assert!(refusals(&said) >= 4, "the attack found nothing to attack: {said}");
    assert_eq!(read(), before);
}

/// The node of a device of the host, made by the container with CAP_MKNOD, which is among the default capabilities.
#[test]
fn devices_of_the_host_cannot_be_opened() {
    let host = plain(&[], &[]);
    let partitions = fs::read_to_string("/proc/partitions").unwrap();
    let disks = partitions.lines().skip(2).take(3).filter_map(|line| {
        let mut fields = line.split_whitespace();
        Some(format!("b {} {}", fields.next()?, fields.next()?))
    });
    // Memory, I/O ports and the kernel's log.
    let nodes: Vec<String> = disks.chain(["c 1 1", "c 1 4", "c 1 11"].map(str::to_owned)).collect();
    assert!(nodes.len() > 3, "this machine has no disk: {partitions}");
    for node in nodes {
        let attack = format!("rm -f /node; mknod /node {node} && dd if=/node of=/dev/null bs=1 count=1 && echo read");
        let said = try_sh(&host, "web", &attack);
        assert!(!said.contains("1+0 records in") && refusals(&said) > 0, "{node}: {said}");
    }
}

/// The memory, environment and files of the host's processes, through `/proc` or ptrace, in a pod that may trace and in one that sees all processes.
#[test]
fn processes_of_host_cannot_be_looked_into() {
    let alone = plain(&[], &["securityContext: {capabilities: {add: [SYS_PTRACE]}}"]);
    let own: Vec<String> = sh(&alone, "web", "cat /proc/[0-9]*/comm").lines().map(str::to_owned).collect();
    assert!(own.iter().all(|name| ["sleep", "sh", "cat"].contains(&name.as_str())), "processes beyond its own: {own:?}");

    let sees_all = plain(&["hostPID: true"], &[]);
    let daemon = sees_all.daemon_pid();
    assert_eq!(sh(&sees_all, "web", &format!("cat /proc/{daemon}/comm")), "podstead\n", "it sees the daemon");
    for look in [
        "cat /proc/PID/environ",
        "cat /proc/PID/maps",
        "ls /proc/PID/root/",
        "ls /proc/PID/cwd/",
        "head -c 1 /proc/PID/fd/0",
        "head -c 1 /proc/PID/mem",
    ] {
        let look = look.replace("PID", &daemon.to_string());
        let said = try_sh(&sees_all, "web", &format!("{look} && echo looked"));
        assert!(!said.contains("looked") && said.contains("ermission denied"), "{look}: {said}");
    }
    let said = try_sh(&sees_all, "web", &format!("nsenter -t {daemon} -m true && echo entered"));
    assert!(!said.contains("entered"), "{said}");
}

/// A program of one system call with zeros for arguments, whose exit code is the error.
#[cfg(target_arch = "x86_64")]
fn program(system_call: u32) -> Vec<u8> {
    // xor edi,edi; xor esi,esi; xor edx,edx; xor r10d,r10d; xor r8d,r8d; mov eax,N; syscall; neg eax; mov edi,eax; mov eax,60; syscall
    let mut code = vec![0x31, 0xff, 0x31, 0xf6, 0x31, 0xd2, 0x45, 0x31, 0xd2, 0x45, 0x31, 0xc0, 0xb8];
    code.extend(system_call.to_le_bytes());
    code.extend([0x0f, 0x05, 0xf7, 0xd8, 0x89, 0xc7, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]);
    let (base, headers) = (0x40_0000_u64, 64 + 56);
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // Executable, x86-64, version 1; entry, program headers, no sections; sizes.
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    file.extend([base + headers, 64, 0].iter().flat_map(|value| value.to_le_bytes()));
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    // One segment: the whole file, readable and executable.
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    let size = headers + code.len() as u64;
    file.extend([0, base, base, size, size, 0x1000].iter().flat_map(|value| value.to_le_bytes()));
    file.extend(code);
    file
}

/// CVE-2016-0728 and many later ones: keyrings, which no namespace divides, and parts of the kernel that containers have no use for;
/// `open_by_handle_at` opens files of the host's disk ("shocker").
#[cfg(target_arch = "x86_64")]
#[test]
fn keyrings_and_risky_system_calls_are_refused() {
    const EPERM: i32 = 1;
    let host = TestHost::start();
    let calls = [
        ("keyctl", 250),
        ("add_key", 248),
        ("request_key", 249),
        ("bpf", 321),
        ("userfaultfd", 323),
        ("io_uring_setup", 425),
        ("kexec_load", 246),
        ("open_by_handle_at", 304),
    ];
    super::import(&host, &[], |layer| {
        for (name, number) in calls {
            fs::write(layer.join(name), program(number)).unwrap();
            fs::set_permissions(layer.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        // getpid: the programs work.
        fs::write(layer.join("getpid"), program(39)).unwrap();
        fs::set_permissions(layer.join("getpid"), fs::Permissions::from_mode(0o755)).unwrap();
    });
    host.write_manifest("web.yaml", &pod("web", super::HOSTILE, &[], &[Container::new("main", FOREVER, &[])]));
    host.wait_running("web");
    let exit_code = |name: &str| sh(&host, "web", &format!("/{name}; echo $?")).trim().parse::<i32>().unwrap();
    assert_ne!(exit_code("getpid"), EPERM, "the program of one call does not work");
    for (name, _) in calls {
        assert_eq!(exit_code(name), EPERM, "{name}");
    }
    // Masked; where the profile of AppArmor holds, it may not be opened either.
    assert_eq!(sh(&host, "web", "cat /proc/keys 2>/dev/null || true"), "", "keys of the host are listed");
}

/// Abstract unix sockets belong to a network namespace: a pod without `hostNetwork` reaches none of the host's.
#[test]
fn abstract_sockets_of_host_are_unreachable() {
    let name = format!("podstead-hostile-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    assert!(fs::read_to_string("/proc/net/unix").unwrap().contains(&name), "it listens");
    let apart = plain(&[], &[]);
    assert!(!sh(&apart, "web", "cat /proc/net/unix").contains(&name));
    let shared = plain(&["hostNetwork: true"], &[]);
    assert!(sh(&shared, "web", "cat /proc/net/unix").contains(&name), "what the host's network is for");
}

/// A user namespace of its own gives a process rights over namespaces of its own, and with them more of the kernel to attack.
#[test]
fn user_namespaces_cannot_be_made() {
    let host = plain(&[], &[]);
    let said = try_sh(&host, "web", "unshare -U -r id && echo made; unshare -m true && echo made; unshare -n true && echo made");
    assert!(!said.contains("made"), "{said}");
    assert!(refusals(&said) > 0, "{said}");
}
