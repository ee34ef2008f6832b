//! Credentials of this host, with Debian's docker-registry.

use crate::real_registry::{Authority, Registry, Validity};
use crate::support::TestStore;
use podstead::{
    image::{ImageStore, ImageStoreConfig, RegistryConfig, RegistryDirectories},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

/// base64 of `me:open sesame`
const RIGHT: &str = "bWU6b3BlbiBzZXNhbWU=";
/// base64 of `me:wrong`
const WRONG: &str = "bWU6d3Jvbmc=";

/// A registry with a password, and the files of a host that may have it.
struct Site {
    test: TestStore,
    registry: Registry,
}

impl Site {
    fn new() -> Self {
        let test = TestStore::new();
        let authority = Authority::new(Validity::Now);
        let registry = Registry::secure(&authority);
        registry.push(&test.make_image("a.tar", "a:1", &[]), "team/a:1", &[]);
        std::fs::write(test.path("ca.pem"), &authority.ca).unwrap();
        Self { test, registry }
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        std::fs::write(self.test.path(name), text).unwrap();
        std::fs::set_permissions(self.test.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// An auth file with one entry.
    fn entry(&self, key: &str, auth: &str) -> String {
        format!(r#"{{"auths":{{"{}{key}":{{"auth":"{auth}"}}}}}}"#, self.registry.host)
    }

    fn open(&self) -> Arc<ImageStore> {
        let registry = RegistryConfig { ca_file: Some(self.test.path("ca.pem")), ..self.registry.config() };
        self.test.open_with(ImageStoreConfig {
            registries: vec![registry],
            auth_files: ["one.json", "two.json", "three.json"].map(|name| self.test.path(name)).to_vec(),
            directories: RegistryDirectories { helpers: vec![self.test.directory.path().to_owned()], hosts: None },
            ..Default::default()
        })
    }

    async fn ensure(&self, store: &ImageStore, policy: PullPolicy, may_use_host: bool) -> Result<(), String> {
        let secrets = PullSecrets::none().with_host_credentials(may_use_host);
        let done = store.ensure(&self.registry.image("team/a:1"), policy, &secrets).await;
        done.map(drop).map_err(|error| error.to_string())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_file_is_tried_after_a_refusal() {
    let site = Site::new();
    let store = site.open();
    let error = site.ensure(&store, PullPolicy::Always, true).await.unwrap_err();
    assert!(error.contains("401 Unauthorized"), "{error}");
    site.write("one.json", &site.entry("/team", WRONG), 0o600);
    let error = site.ensure(&store, PullPolicy::Always, true).await.unwrap_err();
    assert!(error.contains("one.json: ") && error.contains("the user name or password is wrong"), "{error}");
    // Files are read at each pull.
    site.write("two.json", &site.entry("/other", RIGHT), 0o600);
    site.ensure(&store, PullPolicy::Always, true).await.unwrap_err();
    site.write("three.json", &site.entry("", RIGHT), 0o666);
    let error = site.ensure(&store, PullPolicy::Always, true).await.unwrap_err();
    assert!(error.contains("three.json") && error.contains("chmod go-w"), "{error}");
    site.write("three.json", &site.entry("", RIGHT), 0o644);
    site.ensure(&store, PullPolicy::Always, true).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helper_has_the_password() {
    let site = Site::new();
    let store = site.open();
    site.write("one.json", r#"{"auths":{},"credsStore":"test"}"#, 0o600);
    let error = site.ensure(&store, PullPolicy::Always, true).await.unwrap_err();
    assert!(error.contains("docker-credential-test is not in"), "{error}");
    site.write("docker-credential-test", "#!/bin/sh\necho 'credentials not found in native keychain'; exit 1\n", 0o755);
    let error = site.ensure(&store, PullPolicy::Always, true).await.unwrap_err();
    assert!(error.contains("no credentials are configured"), "{error}");
    let script = "#!/bin/sh\nread -r host\n[ \"$host\" = HOST ] && echo '{\"Username\":\"me\",\"Secret\":\"open sesame\"}'\n";
    site.write("docker-credential-other", &script.replace("HOST", &site.registry.host), 0o755);
    site.write("one.json", &format!(r#"{{"credHelpers":{{"{}":"other"}}}}"#, site.registry.host), 0o600);
    site.ensure(&store, PullPolicy::Always, true).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restricted_pod_gets_no_host_credentials() {
    let site = Site::new();
    site.write("one.json", &site.entry("", RIGHT), 0o600);
    let store = site.open();
    let error = site.ensure(&store, PullPolicy::IfNotPresent, false).await.unwrap_err();
    assert!(error.contains("401 Unauthorized") && error.contains("allow.registryCredentials"), "{error}");
    site.ensure(&store, PullPolicy::IfNotPresent, true).await.unwrap();
    drop(store);
    let store = site.open();
    site.ensure(&store, PullPolicy::Never, true).await.unwrap();
    let error = site.ensure(&store, PullPolicy::Never, false).await.unwrap_err();
    assert!(error.contains(&site.registry.host), "{error}");
    site.ensure(&store, PullPolicy::IfNotPresent, false).await.unwrap_err();
}
