//! `podstead credential`: a token for kubectl, which runs this command as an exec plugin.

use super::client::{OWN, Target};
use super::context::Context;
use clap::Args;
use podstead_api::{Credential, CredentialRequest};
use podstead_settings::Role;
use serde_json::json;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments of `credential`.
#[derive(Debug, Args)]
#[command(after_help = "A kubeconfig of podstead kubeconfig runs this command for each command of kubectl.\n\n\
    The token is good for 10 minutes, and for the TLS port of this host only.")]
pub(super) struct CredentialArgs {
    /// Highest role of the token, of those that you have
    #[arg(long, value_name = "ROLE", value_parser = super::kubeconfig::role)]
    role: Option<Role>,
}

/// Prints an `ExecCredential`. It has no expiry: the clock of the client may differ, and kubectl asks again after a 401.
pub(super) fn run(args: &CredentialArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let request = CredentialRequest { role: args.role };
    let credential: Credential =
        context.block_on(async { Ok(client.post(Target::new(OWN, &["credentials"]), &request).await?) })?;
    // Version v1 is not known to kubectl before 1.22.
    let answer = json!({
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"token": credential.token},
    });
    writeln!(io::stdout(), "{answer}")?;
    Ok(ExitCode::SUCCESS)
}
