//! Reads, watches, writes and enters pods by kube-rs, with the kubeconfig that `KUBECONFIG` names. Prints what it found, a line for each step, which
//! `tests/node/kube_rs.rs` compares. It needs a daemon with a writable source and the image `localhost/busybox:1`.

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{AsyncBufReadExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod};
use kube::api::{Api, AttachParams, DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::discovery::Discovery;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::json;
use std::future::Future;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Longest time of a step.
const PATIENCE: Duration = Duration::from_secs(60);

async fn step<T>(name: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = tokio::time::timeout(PATIENCE, work).await.with_context(|| format!("{name}: no end within {PATIENCE:?}"))?;
    done.with_context(|| name.to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let client = Client::try_default().await.context("read the kubeconfig")?;
    step("discover", discover(&client)).await?;
    step("objects", objects(&client)).await?;
    step("start", start(&client)).await?;
    step("logs", logs(&client)).await?;
    step("exec", exec(&client)).await?;
    step("terminal", terminal(&client)).await?;
    step("attach", attach(&client)).await?;
    step("port-forward", port_forward(&client)).await?;
    step("watch", watch(&client)).await?;
    step("deployment", deployment(&client)).await?;
    step("delete", delete(&client)).await
}

/// Version, kinds, the node.
async fn discover(client: &Client) -> Result<()> {
    let version = client.apiserver_version().await?;
    for (way, discovery) in [
        ("each group", Discovery::new(client.clone()).run().await?),
        ("aggregated", Discovery::new(client.clone()).run_aggregated().await?),
    ] {
        let groups: Vec<&str> = discovery.groups().map(|group| group.name()).collect();
        ensure!(groups.contains(&"") && groups.contains(&"apps") && groups.contains(&"metrics.k8s.io"), "{way}: {groups:?}");
    }
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    ensure!(nodes.items.len() == 1, "{} nodes", nodes.items.len());
    let info = nodes.items[0].status.as_ref().and_then(|status| status.node_info.as_ref()).context("no facts of the node")?;
    ensure!(info.kubelet_version == version.git_version, "{} and {}", info.kubelet_version, version.git_version);
    println!("version {}.{}, one node", version.major, version.minor);
    Ok(())
}

/// A ConfigMap: create, conflict, replace, patches of three types, metadata alone.
async fn objects(client: &Client) -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "settings"}, "data": {"a": "1"}}))?;
    let made = maps.create(&PostParams::default(), &map).await?;
    match maps.create(&PostParams::default(), &map).await {
        Err(kube::Error::Api(status)) if status.code == 409 => println!("created twice: {}", status.reason),
        other => bail!("created twice: {other:?}"),
    }
    let ours = PatchParams::apply("kube-rs");
    maps.patch("settings", &PatchParams::default(), &Patch::Merge(json!({"data": {"b": "2"}}))).await?;
    maps.patch("settings", &PatchParams::default(), &Patch::Strategic(json!({"metadata": {"labels": {"team": "shop"}}}))).await?;
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"c": "3"}});
    let map = maps.patch("settings", &ours, &Patch::Apply(applied)).await?;
    println!("patched {:?}", map.data.clone().unwrap_or_default());
    let old = ConfigMap { data: None, ..made };
    match maps.replace("settings", &PostParams::default(), &old).await {
        Err(kube::Error::Api(status)) if status.code == 409 => println!("replaced by an older version: {}", status.reason),
        other => bail!("replaced by an older version: {other:?}"),
    }
    let labelled = maps.list_metadata(&ListParams::default().labels("team=shop")).await?;
    let names: Vec<String> = labelled.items.iter().map(|map| map.name_any()).collect();
    println!("labelled {names:?}, absent {}", maps.get_opt("absent").await?.is_none());
    let namespaces = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await?;
    ensure!(namespaces.items.iter().any(|namespace| namespace.name_any() == "default"), "no namespace");
    Ok(())
}

/// A pod by server-side apply, until it runs.
async fn start(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let script = "mkdir -p /www && echo page > /www/index.html; echo ready; httpd -p 127.0.0.1:80 -h /www; exec cat";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
            "name": "main", "image": "localhost/busybox:1", "command": ["sh", "-c", script], "stdin": true,
        }]},
    });
    pods.patch("web", &PatchParams::apply("kube-rs"), &Patch::Apply(pod)).await?;
    await_condition(pods.clone(), "web", conditions::is_pod_running()).await?;
    println!("running");
    Ok(())
}

async fn logs(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut lines = pods.log_stream("web", &LogParams { follow: true, ..LogParams::default() }).await?.lines();
    println!("logged {:?}", lines.try_next().await?);
    ensure!(
        pods.logs("web", &LogParams { tail_lines: Some(1), ..LogParams::default() }).await? == "ready\n",
        "the last line differs"
    );
    Ok(())
}

/// A program with standard input that ends with a code.
async fn exec(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let wanted = AttachParams::default().stdin(true).stderr(true);
    let mut process = pods.exec("web", ["sh", "-c", "head -c 200000 | wc -c; echo aside >&2; exit 3"], &wanted).await?;
    let mut input = process.stdin().context("no standard input")?;
    let (mut output, mut aside) = (process.stdout().context("no output")?, process.stderr().context("no errors")?);
    let status = process.take_status().context("no status")?;
    input.write_all(&vec![b'x'; 200_000]).await?;
    input.shutdown().await?;
    let (mut counted, mut told) = (String::new(), String::new());
    output.read_to_string(&mut counted).await?;
    aside.read_to_string(&mut told).await?;
    let status = status.await.context("no status came")?;
    let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
    let code = causes.into_iter().find(|cause| cause.reason.as_deref() == Some("ExitCode")).and_then(|cause| cause.message);
    println!("executed: {:?}, {:?}, code {code:?}", counted.trim(), told.trim());
    Ok(())
}

/// A terminal, whose size changes.
async fn terminal(client: &Client) -> Result<()> {
    use futures_util::SinkExt as _;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut process = pods.exec("web", ["sh"], &AttachParams::interactive_tty()).await?;
    let mut sizes = process.terminal_size().context("no terminal")?;
    sizes.send(kube::api::TerminalSize { width: 91, height: 33 }).await?;
    let (mut input, mut output) = (process.stdin().context("no input")?, process.stdout().context("no output")?);
    // The size may arrive after the shell asks: it asks until it has.
    input.write_all(b"until stty size | grep '33 91'; do sleep 0.1; done; exit\n").await?;
    let mut shown = String::new();
    output.read_to_string(&mut shown).await?;
    ensure!(shown.lines().any(|line| line.trim() == "33 91"), "the terminal showed {shown:?}");
    println!("terminal of 33 lines");
    Ok(())
}

/// Input of the container itself comes back.
async fn attach(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut process = pods.attach("web", &AttachParams::default().stdin(true).stderr(false)).await?;
    let (mut input, mut output) = (process.stdin().context("no input")?, process.stdout().context("no output")?);
    input.write_all(b"echo\n").await?;
    let mut line = [0; 5];
    output.read_exact(&mut line).await?;
    println!("attached {:?}", String::from_utf8_lossy(&line));
    process.abort();
    Ok(())
}

async fn port_forward(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut forwarder = pods.portforward("web", &[80]).await?;
    let mut stream = forwarder.take_stream(80).context("no stream")?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    println!("forwarded {:?}", answer.lines().last());
    Ok(())
}

/// Both ways of a watcher, and a plain watch from a version on.
async fn watch(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let mut events = std::pin::pin!(watcher(pods.clone(), config.labels("app=web")));
        let mut found = Vec::new();
        while let Some(event) = events.try_next().await? {
            match event {
                watcher::Event::InitApply(pod) | watcher::Event::Apply(pod) => found.push(pod.name_any()),
                watcher::Event::InitDone => break,
                watcher::Event::Init | watcher::Event::Delete(_) => {}
            }
        }
        println!("watched {found:?}");
    }
    let version = pods.list(&ListParams::default()).await?.metadata.resource_version.context("a list without a version")?;
    let mut changes = std::pin::pin!(pods.watch(&WatchParams::default().timeout(30), &version).await?);
    pods.patch("web", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": {"tier": "front"}}}))).await?;
    while let Some(change) = changes.try_next().await? {
        if let WatchEvent::Modified(pod) = change
            && pod.labels().get("tier").is_some_and(|tier| tier == "front")
        {
            println!("changed {:?}", pod.name_any());
            break;
        }
    }
    let events =
        Api::<Event>::default_namespaced(client.clone()).list(&ListParams::default().fields("involvedObject.name=web")).await?;
    ensure!(events.items.iter().any(|event| event.reason.as_deref() == Some("Started")), "no event of the start");
    Ok(())
}

/// A Deployment that is scaled by its subresource and restarted.
async fn deployment(client: &Client) -> Result<()> {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let deployment = serde_json::from_value(json!({
        "metadata": {"name": "shop"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "shop"}}, "template": {
            "metadata": {"labels": {"app": "shop"}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [
                {"name": "main", "image": "localhost/busybox:1", "command": ["sleep", "100000"]},
            ]},
        }},
    }))?;
    deployments.create(&PostParams::default(), &deployment).await?;
    deployments.patch_scale("shop", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 2}}))).await?;
    await_condition(deployments.clone(), "shop", |found: Option<&Deployment>| {
        found.and_then(|found| found.status.as_ref()).is_some_and(|status| status.available_replicas == Some(2))
    })
    .await?;
    deployments.restart("shop").await?;
    println!("scaled to {:?}", deployments.get_scale("shop").await?.spec.and_then(|spec| spec.replicas));
    Ok(())
}

async fn delete(client: &Client) -> Result<()> {
    let (maps, deployments): (Api<ConfigMap>, Api<Deployment>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    maps.delete("settings", &DeleteParams::default()).await?;
    deployments.delete("shop", &DeleteParams::default()).await?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let uid = pods.get("web").await?.uid().context("no uid")?;
    pods.delete("web", &DeleteParams::default()).await?;
    await_condition(pods.clone(), "web", conditions::is_deleted(&uid)).await?;
    println!("deleted");
    Ok(())
}
