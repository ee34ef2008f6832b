//! `podstead kubeconfig`: a configuration of kubectl for this host, without a secret in it.

use super::client::{OWN, Target};
use super::context::Context;
use anyhow::bail;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use podstead_api::{AccessObject, TlsAccess};
use podstead_settings::Role;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;

/// Port of a laptop that `ssh -L` leads to this host.
const LOCAL_PORT: u16 = 6443;

/// Arguments of `kubeconfig`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  podstead kubeconfig > ~/.kube/config          kubectl on this host, over the TLS port (api.tls)\n  \
    ssh root@edge1 podstead kubeconfig --ssh=edge1 > ~/.kube/edge1\n                                                \
    kubectl on a laptop, through ssh"
)]
pub(super) struct KubeconfigArgs {
    /// For another machine, through ssh to HOST [default: the name of this host]
    #[arg(long, value_name = "HOST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    ssh: Option<String>,
    /// With --ssh, to the TLS port instead of the socket: for machines with several users
    #[arg(long, requires = "ssh")]
    tls: bool,
    /// Local port, with --ssh
    #[arg(long, value_name = "PORT", requires = "ssh", default_value_t = LOCAL_PORT)]
    port: u16,
    /// Highest role that kubectl has, of those that you have
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Option<Role>,
}

/// Reads a role.
pub(super) fn role(text: &str) -> Result<Role, String> {
    let all = [Role::View, Role::Edit, Role::Admin];
    all.into_iter().find(|role| role.as_str() == text).ok_or_else(|| "expected view, edit or admin".to_owned())
}

/// Prints the configuration.
pub(super) fn run(args: &KubeconfigArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let access: AccessObject = context.block_on(async { Ok(client.get(Target::new(OWN, &["access"])).await?) })?;
    if let Some(role) = args.role
        && role > access.role
    {
        bail!("user {} has role {}, not {role} (api.roles of the configuration)", access.user, access.role);
    }
    let node = access.node_name.as_str();
    let socket = context.socket()?;
    let host = args.ssh.as_ref().map(|host| if host.is_empty() { node } else { host });
    let way = match (host, args.tls) {
        (Some(_), false) => Way::Socket,
        (Some(host), true) => Way::Tls { tls: tls(&access)?, ssh: Some(host) },
        (None, _) => Way::Tls { tls: tls(&access)?, ssh: None },
    };
    if matches!(way, Way::Socket) && args.role.is_some() {
        bail!("--role needs --tls with --ssh: kubectl sends no token through ssh to the socket");
    }
    let port = if host.is_some() { args.port } else { access.tls.as_ref().map_or(LOCAL_PORT, |tls| tls.port) };
    let mut out = io::stdout().lock();
    if let Some(host) = host {
        let target = match &way {
            Way::Socket => socket.display().to_string(),
            Way::Tls { tls, .. } => format!("127.0.0.1:{}", tls.port),
        };
        writeln!(out, "# First: ssh -N -L 127.0.0.1:{port}:{target} {host}")?;
    }
    let mut credential = vec!["credential".to_owned()];
    if !context.is_default_socket() {
        credential.extend(["--socket".to_owned(), socket.display().to_string()]);
    }
    credential.extend(args.role.map(|role| format!("--role={role}")));
    write!(out, "{}", podstead_manifest::to_yaml(&kubeconfig(node, port, &way, &credential)?))?;
    Ok(ExitCode::SUCCESS)
}

/// The way from kubectl to the API.
enum Way<'a> {
    /// Plain HTTP to a port that ssh leads to the socket: the login is the identity.
    Socket,
    /// The TLS port, with a token that is got here or through ssh.
    Tls { tls: &'a TlsAccess, ssh: Option<&'a str> },
}

fn tls(access: &AccessObject) -> anyhow::Result<&TlsAccess> {
    let Some(tls) = &access.tls else {
        bail!(
            "the TLS port is not open: set api.tls in the configuration and restart the daemon, or use --ssh, which needs no port \
             (see podstead config check)"
        )
    };
    Ok(tls)
}

fn kubeconfig(node: &str, port: u16, way: &Way<'_>, credential: &[String]) -> anyhow::Result<Value> {
    let (cluster, user) = match way {
        Way::Socket => (json!({"server": format!("http://127.0.0.1:{port}")}), json!({})),
        Way::Tls { tls, ssh } => {
            let cluster = json!({
                "server": format!("https://127.0.0.1:{port}"),
                "tls-server-name": tls.server_name,
                "certificate-authority-data": STANDARD.encode(&tls.certificate),
            });
            let (command, args) = match ssh {
                Some(host) => {
                    let remote = std::iter::once("podstead").chain(credential.iter().map(String::as_str));
                    ("ssh".to_owned(), std::iter::once(*host).chain(remote).map(str::to_owned).collect())
                }
                None => (std::env::current_exe()?.display().to_string(), credential.to_vec()),
            };
            let exec = json!({
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "command": command,
                "args": args,
                "interactiveMode": "Never",
            });
            (cluster, json!({"exec": exec}))
        }
    };
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": node, "cluster": cluster}],
        "users": [{"name": node, "user": user}],
        "contexts": [{"name": node, "context": {"cluster": node, "user": node}}],
        "current-context": node,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls() -> TlsAccess {
        TlsAccess { port: 6443, server_name: "edge1.podstead".into(), certificate: "PEM".into() }
    }

    #[test]
    fn kubeconfig_pins_the_certificate_and_has_no_secret() {
        let credential = ["credential".to_owned(), "--role=view".to_owned()];
        let config = kubeconfig("edge1", 6443, &Way::Tls { tls: &tls(), ssh: None }, &credential).unwrap();
        let cluster = &config["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], "https://127.0.0.1:6443");
        assert_eq!(
            (&cluster["tls-server-name"], &cluster["certificate-authority-data"]),
            (&json!("edge1.podstead"), &json!("UEVN"))
        );
        let exec = &config["users"][0]["user"]["exec"];
        assert_eq!(exec["args"], json!(credential));
        assert_eq!(exec["apiVersion"], "client.authentication.k8s.io/v1beta1");
    }

    #[test]
    fn ssh_leads_to_socket_or_gets_tokens() {
        let plain = kubeconfig("edge1", 7443, &Way::Socket, &[]).unwrap();
        assert_eq!(plain["clusters"][0]["cluster"], json!({"server": "http://127.0.0.1:7443"}));
        assert_eq!(plain["users"][0]["user"], json!({}));
        let config = kubeconfig("edge1", 7443, &Way::Tls { tls: &tls(), ssh: Some("box") }, &["credential".into()]).unwrap();
        let exec = &config["users"][0]["user"]["exec"];
        assert_eq!((&exec["command"], &exec["args"]), (&json!("ssh"), &json!(["box", "podstead", "credential"])));
    }
}
