//! Registries whose name has an address of each family, of which one does not answer (F25).

use crate::fake_registry::{Door, FakeRegistry};
use crate::support::{TestStore, run};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use podstead::{
    image::{ImageStoreConfig, RegistryConfig},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use std::process::Command;

/// Addresses of this host.
const HERE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
/// Addresses behind a link that swallows everything.
const DARK: [&str; 2] = ["198.51.100.2", "2001:db8:1::2"];

/// Makes a network in which only these addresses are known, and names for them.
fn prepare(test: &TestStore) {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).unwrap();
    for arguments in [
        "link set lo up",
        "address add 192.0.2.1/32 dev lo",
        "address add 2001:db8::1/128 dev lo nodad",
        "link add dark type veth peer name end",
        "link set dark up",
        "link set end up",
        "address add 198.51.100.1/24 dev dark",
        "address add 2001:db8:1::1/64 dev dark nodad",
        // Nobody has it: what is sent there is dropped without a word.
        "neighbour add 198.51.100.2 lladdr 02:00:00:00:00:99 dev dark nud permanent",
        "neighbour add 2001:db8:1::2 lladdr 02:00:00:00:00:99 dev dark nud permanent",
    ] {
        run(Command::new("ip").args(arguments.split(' ')));
    }
    let names = [
        ("refused", [HERE[0], HERE[1]]),
        ("dark-v6", [HERE[0], DARK[1]]),
        ("dark-v4", [DARK[0], HERE[1]]),
        ("v6", [HERE[1], HERE[1]]),
    ];
    let lines = names.map(|(name, [first, second])| format!("{first} {name}.example\n{second} {name}.example\n"));
    std::fs::write(test.path("hosts"), lines.concat()).unwrap();
    mount(Some(&test.path("hosts")), "/etc/hosts", None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
}

/// Pulls from `name`, of a registry that listens at `address`.
async fn pull(test: &TestStore, name: &str, address: &str) -> Result<(), String> {
    let registry = FakeRegistry::serve_at(address, &test.path("app.tar"), Door::Open).await;
    let host = format!("{name}.example:{}", registry.port());
    let config = RegistryConfig { host: host.clone(), http: true, ..Default::default() };
    let own = TestStore::new();
    let store = own.open_with(ImageStoreConfig { registries: vec![config], ..Default::default() });
    let image = store.ensure(&format!("{host}/app:1"), PullPolicy::Always, &PullSecrets::none()).await;
    let image = image.map_err(|error| error.to_string())?;
    assert!(image.layers[0].join("bin/busybox").is_file());
    assert_eq!(registry.seen("GET /v2/app/manifests/1"), 1);
    Ok(())
}

/// F25: a family without an answer, be it that nobody listens or that nothing comes through, hinders no pull over the other one.
#[test]
fn either_family_of_addresses_suffices() {
    // On a thread of its own, whose namespaces go with it.
    let apart = std::thread::spawn(|| {
        let test = TestStore::new();
        test.make_image("app.tar", "app:1", &[]);
        prepare(&test);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for (name, address) in
                [("refused", HERE[0]), ("refused", HERE[1]), ("dark-v6", HERE[0]), ("dark-v4", HERE[1]), ("v6", HERE[1])]
            {
                assert_eq!(pull(&test, name, address).await, Ok(()), "{name} at {address}");
            }
        });
    });
    apart.join().unwrap();
}
