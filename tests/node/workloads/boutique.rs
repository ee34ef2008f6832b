//! A repository of the shape of microservices-demo's: twelve Deployments with restricted containers and probes, which find each other by the names
//! of their Services and by variables, and a front end behind a load balancer.

use super::{is_ready, names, uids};
use crate::network::lan::{HOST_V4, Site};
use crate::support::{PodView, TestHost, eventually_within, make_image};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const IMAGE: &str = "localhost/boutique:1";

/// The page of each service: its name, and the pages of the services whose addresses it has.
const PAGE: &str = "#!/bin/sh
printf 'Content-Type: text/plain\\n\\n'
echo \"$NAME answers\"
for address in $(env | sed -n 's/^.*_ADDR=\\([a-z].*\\)/\\1/p' | sort); do
    timeout 5 wget -q -O - \"http://$address/\" || echo \"$address is silent\"
done
";

/// A Deployment and the Service of the same name.
struct Tier {
    name: &'static str,
    /// Of the Service and of its pods; `None` for a client.
    ports: Option<(u16, u16)>,
    /// Variables with addresses.
    asks: &'static [(&'static str, &'static str)],
}

const fn tier(name: &'static str, port: u16, target: u16, asks: &'static [(&'static str, &'static str)]) -> Tier {
    Tier { name, ports: Some((port, target)), asks }
}

const CATALOG: (&str, &str) = ("PRODUCT_CATALOG_SERVICE_ADDR", "productcatalogservice:3550");
const CART: (&str, &str) = ("CART_SERVICE_ADDR", "cartservice:7070");
const CURRENCY: (&str, &str) = ("CURRENCY_SERVICE_ADDR", "currencyservice:7000");
const SHIPPING: (&str, &str) = ("SHIPPING_SERVICE_ADDR", "shippingservice:50051");

const TIERS: [Tier; 12] = [
    tier("emailservice", 5000, 8080, &[]),
    tier(
        "checkoutservice",
        5050,
        5050,
        &[
            CATALOG,
            SHIPPING,
            ("PAYMENT_SERVICE_ADDR", "paymentservice:50051"),
            ("EMAIL_SERVICE_ADDR", "emailservice:5000"),
            CURRENCY,
            CART,
        ],
    ),
    tier("recommendationservice", 8080, 8080, &[CATALOG]),
    tier(
        "frontend",
        80,
        8080,
        &[
            CATALOG,
            CURRENCY,
            CART,
            ("RECOMMENDATION_SERVICE_ADDR", "recommendationservice:8080"),
            SHIPPING,
            ("CHECKOUT_SERVICE_ADDR", "checkoutservice:5050"),
            ("AD_SERVICE_ADDR", "adservice:9555"),
        ],
    ),
    tier("paymentservice", 50051, 50051, &[]),
    tier("productcatalogservice", 3550, 3550, &[]),
    tier("cartservice", 7070, 7070, &[("REDIS_ADDR", "redis-cart:6379")]),
    Tier { name: "loadgenerator", ports: None, asks: &[("FRONTEND_ADDR", "frontend:80")] },
    tier("currencyservice", 7000, 7000, &[]),
    tier("shippingservice", 50051, 50051, &[]),
    tier("redis-cart", 6379, 6379, &[]),
    tier("adservice", 9555, 9555, &[]),
];

fn probe(tier: &Tier, port: u16) -> String {
    match tier.name {
        "frontend" => {
            format!("httpGet: {{path: /_healthz, port: {port}, httpHeaders: [{{name: Cookie, value: shop_session-id=x-probe}}]}}")
        }
        "redis-cart" => format!("tcpSocket: {{port: {port}}}"),
        _ => format!("exec: {{command: [wget, -q, -O, /dev/null, 'http://localhost:{port}/_healthz']}}"),
    }
}

fn deployment(tier: &Tier) -> String {
    let name = tier.name;
    let mut env = String::from("{name: NAME, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['app']\"}}}");
    for (variable, address) in tier.asks {
        // Writing to memory cannot fail.
        let _infallible = write!(env, ", {{name: {variable}, value: '{address}'}}");
    }
    let (program, ready, init) = match tier.ports {
        Some((_, port)) => (
            format!("[httpd, -f, -p, '{port}', -h, /srv]\n        ports: [{{containerPort: {port}}}]"),
            format!("readinessProbe: {{periodSeconds: 1, {}}}", probe(tier, port)),
            String::new(),
        ),
        None => (
            "[sh, -c, 'while timeout 5 wget -q -O - http://$FRONTEND_ADDR/; do sleep 5; done']".to_owned(),
            String::new(),
            format!(
                "\n      initContainers:\n      - name: frontend-check\n        image: {IMAGE}\n        command: [sh, -c, 'until timeout 2 wget -q -O - \
                 http://$FRONTEND_ADDR/_healthz; do sleep 1; done']\n        env: [{env}]"
            ),
        ),
    };
    format!(
        "
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      serviceAccountName: {name}
      terminationGracePeriodSeconds: 1
      securityContext: {{fsGroup: 1000, runAsGroup: 1000, runAsNonRoot: true, runAsUser: 1000}}{init}
      containers:
      - name: server
        securityContext:
          allowPrivilegeEscalation: false
          capabilities: {{drop: [ALL]}}
          privileged: false
          readOnlyRootFilesystem: true
        image: {IMAGE}
        command: {program}
        {ready}
        env: [{env}]
        resources:
          requests: {{cpu: 10m, memory: 16Mi}}
          limits: {{cpu: 300m, memory: 128Mi}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {name}
"
    )
}

fn services(tier: &Tier) -> String {
    let Some((port, target)) = tier.ports else { return String::new() };
    let of = |name: &str, kind: &str| {
        format!(
            "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  labels: {{app: {app}}}\nspec:\n  type: {kind}\n  selector: {{app: {app}}}\n  \
             ports:\n  - {{name: http, port: {port}, targetPort: {target}}}\n",
            app = tier.name
        )
    };
    let mut all = of(tier.name, "ClusterIP");
    if tier.name == "frontend" {
        all.push_str(&of("frontend-external", "LoadBalancer"));
    }
    all
}

/// NetworkPolicies of the shape of those that microservices-demo has as a component: nothing is allowed, but for what each tier is asked by.
fn policies() -> String {
    let policy = |name: &str, spec: &str| {
        format!("---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: {name}\nspec: {{{spec}}}\n")
    };
    let mut all = policy("deny-all", "podSelector: {}, policyTypes: [Ingress, Egress]");
    for tier in &TIERS {
        let asks = |client: &&Tier| client.asks.iter().any(|(_, address)| address.split(':').next() == Some(tier.name));
        let clients: Vec<String> =
            TIERS.iter().filter(asks).map(|client| format!("{{podSelector: {{matchLabels: {{app: {}}}}}}}", client.name)).collect();
        let ingress = match tier.ports {
            Some(_) if tier.name == "frontend" => "[{}]".to_owned(),
            Some((_, target)) => format!("[{{from: [{}], ports: [{{port: {target}, protocol: TCP}}]}}]", clients.join(", ")),
            None => "[]".to_owned(),
        };
        let spec = format!(
            "podSelector: {{matchLabels: {{app: {}}}}}, policyTypes: [Ingress, Egress], ingress: {ingress}, egress: [{{}}]",
            tier.name
        );
        all.push_str(&policy(tier.name, &spec));
    }
    all
}

/// The database's answer to a pod of a tier, or the reason for none.
fn asks_redis(host: &TestHost, tier: &str) -> Result<String, String> {
    let command =
        ["exec", &format!("deploy/{tier}"), "--", "timeout", "5", "wget", "-q", "-O", "-", "http://redis-cart:6379/_healthz"];
    let out = host.cli(&command);
    let [said, failed] = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if out.status.success() { Ok(said) } else { Err(failed) }
}

/// Q32: each tier reaches the tiers that it asks, and no other one reaches the database.
fn policies_are_enforced(site: &Site) {
    eventually_within(Duration::from_secs(60), "the database to refuse the front end", || {
        match asks_redis(&site.host, "frontend") {
            Err(failed) if failed.contains("refused") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    page_is_whole(site);
    eventually_within(Duration::from_secs(60), "the database to answer the cart", || asks_redis(&site.host, "cartservice"));
}

fn import_image(host: &TestHost) {
    let (page, health) = (host.path("index.cgi"), host.path("_healthz"));
    std::fs::write(&page, PAGE).unwrap();
    std::fs::set_permissions(&page, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(&health, "ok\n").unwrap();
    let archive = host.path("boutique.tar");
    let options = [
        "--add".to_owned(),
        format!("{}:/srv/cgi-bin/index.cgi", page.display()),
        "--add".to_owned(),
        format!("{}:/srv/_healthz", health.display()),
    ];
    make_image(&options.iter().map(OsStr::new).collect::<Vec<_>>(), &archive, IMAGE);
    host.cli_ok(&["image", "import", archive.to_str().unwrap()]);
}

fn all_ready(host: &TestHost) -> Vec<PodView> {
    eventually_within(Duration::from_secs(180), "a ready pod of each Deployment", || {
        let pods = host.pods();
        let of = |tier: &Tier| {
            let is_of = |pod: &&PodView| pod.0["metadata"]["labels"]["app"] == tier.name && is_ready(pod);
            pods.iter().filter(is_of).count() == 1
        };
        match TIERS.iter().find(|tier| !of(tier)) {
            None if pods.len() == TIERS.len() => Ok(pods),
            None => Err(format!("{:?}", names(&pods))),
            Some(missing) => Err(format!("{} is missing\n{}", missing.name, host.cli_ok(&["get", "pods"]))),
        }
    })
}

/// The front end's page, for a machine of the LAN, with answers of all tiers that it reaches.
fn page_is_whole(site: &Site) {
    eventually_within(Duration::from_secs(60), "answers of all services", || {
        let page = site.outside.get(&format!("http://{HOST_V4}/"))?;
        let answers = |tier: &Tier| page.contains(&format!("{} answers", tier.name));
        let whole = TIERS.iter().filter(|tier| tier.ports.is_some()).all(answers) && !page.contains("is silent");
        if whole { Ok(()) } else { Err(page) }
    });
}

#[test]
fn boutique_answers_before_and_after_power_cut() {
    let mut site = Site::start();
    import_image(&site.host);
    let manifest: String = TIERS.iter().map(|tier| deployment(tier) + &services(tier)).collect();
    site.host.write_manifest("kubernetes-manifests.yaml", &manifest);
    let before = all_ready(&site.host);
    page_is_whole(&site);
    assert!(site.host.cli_ok(&["get", "events"]).contains("ServiceAccount"), "objects that are not run are told of");
    assert_eq!(asks_redis(&site.host, "frontend").as_deref(), Ok("ok\n"), "nothing denies it yet");
    site.host.write_manifest("network-policies.yaml", &policies());
    policies_are_enforced(&site);
    site.host.lose_power();
    site.host.start_daemon();
    let after = all_ready(&site.host);
    policies_are_enforced(&site);
    assert_eq!(uids(&after), uids(&before), "a power cut replaces no pod");
}
