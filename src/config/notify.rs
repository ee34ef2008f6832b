//! `notify`: hooks that hear of failures of this host and of their end. **Pure**.

pub use super::template::Template;
use podstead_settings::ConfigError;
use podstead_settings::check::{Check, is_label};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Most hooks.
const MAX_HOOKS: usize = 8;

/// `notify`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenNotify {
    /// Commands and URLs that are notified. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<WrittenHook>,
    /// Time in seconds for which something must fail before it is notified, 0 to 86400. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_after_seconds: Option<u64>,
    /// Time in seconds for which something must be well again before it is notified, 0 to 86400. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_after_seconds: Option<u64>,
    /// Most notifications per hook and hour, 1 to 3600. The rest waits. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_hour: Option<u32>,
}

/// An item of `notify.hooks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenHook {
    /// Name of the hook: a lower-case RFC 1123 label.
    pub name: String,
    /// Kinds to be notified of: `host`, `source`, `revision`, `pod`, `workload`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<NotifyKind>>,
    /// Absolute path of a program, and its arguments with fields such as `{state}`. No shell is used. The notification is its standard
    /// input, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// URL that gets a POST.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<WrittenHttpHook>,
    /// Time limit of an attempt in seconds, 1 to 300. Default: 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// `notify.hooks[].http`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenHttpHook {
    /// The URL, without a secret. Either this or `urlFile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// File with a URL that is a secret itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_file: Option<PathBuf>,
    /// File with a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// PEM file with the only certificate authorities to trust. Default: those of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// JSON with fields such as `{summary}` inside of its texts. Default: all fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// Kind of object that a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifyKind {
    /// The host and its configuration.
    Host,
    /// A source that cannot be fetched.
    Source,
    /// Objects of a fetched revision that were rejected.
    Revision,
    /// A pod.
    Pod,
    /// A Job that failed, or a workload that does not progress.
    Workload,
}

impl NotifyKind {
    /// The word in notifications.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Source => "source",
            Self::Revision => "revision",
            Self::Pod => "pod",
            Self::Workload => "workload",
        }
    }
}

/// Hooks and their times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyConfig {
    /// The hooks; names are unique.
    pub hooks: Vec<Hook>,
    /// Time for which something must fail.
    pub failing_after: Duration,
    /// Time for which something must be well again.
    pub recovered_after: Duration,
    /// Most notifications per hook and hour.
    pub max_per_hour: u32,
}

/// A hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its name.
    pub name: String,
    /// Kinds that it hears of.
    pub on: BTreeSet<NotifyKind>,
    /// The receiver.
    pub target: HookTarget,
    /// Time limit of an attempt.
    pub timeout: Duration,
}

/// Receiver of notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookTarget {
    /// A program.
    Command {
        /// Its absolute path.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<Template>,
    },
    /// A URL that gets a POST.
    Http {
        /// The URL, or the file that has it.
        url: HookUrl,
        /// File with a bearer token.
        token_file: Option<PathBuf>,
        /// PEM file with the only certificate authorities to trust.
        ca_file: Option<PathBuf>,
        /// The body; `None` for all fields as JSON.
        body: Option<Template>,
    },
}

/// Places that a URL is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookUrl {
    /// In the configuration.
    Written(Url),
    /// In a file, because it is a secret.
    File(PathBuf),
}

impl Default for NotifyConfig {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { hooks: Vec::new(), failing_after: minute, recovered_after: minute, max_per_hour: 60 }
    }
}

impl WrittenNotify {
    /// Checks every value.
    pub(super) fn resolve(&self, check: &Check<'_>) -> Result<NotifyConfig, ConfigError> {
        let seconds = |field: &str, written: Option<u64>| {
            check.range(&format!("notify.{field}"), written.unwrap_or(60), 0, 86_400).map(Duration::from_secs)
        };
        let hooks = self.hooks.iter().enumerate();
        let hooks = hooks.map(|(index, hook)| hook.resolve(check, &format!("notify.hooks[{index}]")));
        let hooks: Vec<Hook> = hooks.collect::<Result<_, _>>()?;
        if hooks.len() > MAX_HOOKS {
            return Err(check.invalid("notify.hooks", format!("has {} items, must have at most {MAX_HOOKS}", hooks.len())));
        }
        let mut names = BTreeSet::new();
        if let Some(index) = hooks.iter().position(|hook| !names.insert(hook.name.clone())) {
            let message = format!("duplicate entry for {:?}", hooks[index].name);
            return Err(check.invalid(&format!("notify.hooks[{index}].name"), message));
        }
        Ok(NotifyConfig {
            hooks,
            failing_after: seconds("failingAfterSeconds", self.failing_after_seconds)?,
            recovered_after: seconds("recoveredAfterSeconds", self.recovered_after_seconds)?,
            max_per_hour: check.range("notify.maxPerHour", self.max_per_hour.unwrap_or(60), 1, 3600)?,
        })
    }

    /// As it would be written.
    pub(super) fn of(config: &NotifyConfig) -> Self {
        Self {
            hooks: config.hooks.iter().map(WrittenHook::of).collect(),
            failing_after_seconds: Some(config.failing_after.as_secs()),
            recovered_after_seconds: Some(config.recovered_after.as_secs()),
            max_per_hour: Some(config.max_per_hour),
        }
    }
}

impl WrittenHook {
    fn resolve(&self, check: &Check<'_>, field: &str) -> Result<Hook, ConfigError> {
        let Self { name, on, command, http, timeout_seconds } = self;
        if !is_label(name) {
            let message = format!("{name:?} is not a lower-case RFC 1123 label");
            return Err(check.invalid(&format!("{field}.name"), message));
        }
        let all = [NotifyKind::Host, NotifyKind::Source, NotifyKind::Revision, NotifyKind::Pod, NotifyKind::Workload];
        let target = match (command, http) {
            (Some(command), None) => resolve_command(check, &format!("{field}.command"), command)?,
            (None, Some(http)) => http.resolve(check, &format!("{field}.http"))?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(check.invalid(field, "must have either command or http".to_owned()));
            }
        };
        let timeout = check.range(&format!("{field}.timeoutSeconds"), timeout_seconds.unwrap_or(30), 1, 300)?;
        Ok(Hook {
            name: name.clone(),
            on: on.as_ref().map_or_else(|| all.into(), |on| on.iter().copied().collect()),
            target,
            timeout: Duration::from_secs(timeout),
        })
    }

    fn of(hook: &Hook) -> Self {
        let (command, http) = match &hook.target {
            HookTarget::Command { program, arguments } => {
                let arguments = arguments.iter().map(|argument| argument.as_written().to_owned());
                (Some(std::iter::once(program.display().to_string()).chain(arguments).collect()), None)
            }
            HookTarget::Http { url, token_file, ca_file, body } => {
                let (url, url_file) = match url {
                    HookUrl::Written(url) => (Some(url.to_string()), None),
                    HookUrl::File(file) => (None, Some(file.clone())),
                };
                let body = body.as_ref().map(|body| body.as_written().to_owned());
                let (token_file, ca_file) = (token_file.clone(), ca_file.clone());
                (None, Some(WrittenHttpHook { url, url_file, token_file, ca_file, body }))
            }
        };
        Self {
            name: hook.name.clone(),
            on: Some(hook.on.iter().copied().collect()),
            command,
            http,
            timeout_seconds: Some(hook.timeout.as_secs()),
        }
    }
}

fn resolve_command(check: &Check<'_>, field: &str, command: &[String]) -> Result<HookTarget, ConfigError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(check.invalid(field, "is empty, must begin with the path of a program".to_owned()));
    };
    let arguments = arguments.iter().enumerate().map(|(index, argument)| {
        let field = format!("{field}[{}]", index + 1);
        if argument.contains('\0') {
            return Err(check.invalid(&field, "has a null character".to_owned()));
        }
        Template::argument(argument).map_err(|problem| check.invalid(&field, problem))
    });
    let arguments = arguments.collect::<Result<_, _>>()?;
    Ok(HookTarget::Command { program: check.file(&format!("{field}[0]"), program.as_ref())?, arguments })
}

impl WrittenHttpHook {
    fn resolve(&self, check: &Check<'_>, field: &str) -> Result<HookTarget, ConfigError> {
        let Self { url, url_file, token_file, ca_file, body } = self;
        let url = match (url, url_file) {
            (Some(url), None) => {
                HookUrl::Written(parse_url(url).map_err(|problem| check.invalid(&format!("{field}.url"), problem))?)
            }
            (None, Some(file)) => HookUrl::File(check.file(&format!("{field}.urlFile"), file)?),
            (Some(_), Some(_)) | (None, None) => {
                return Err(check.invalid(field, "must have either url or urlFile".to_owned()));
            }
        };
        let file = |name: &str, path: &Option<PathBuf>| {
            path.as_deref().map(|path| check.file(&format!("{field}.{name}"), path)).transpose()
        };
        let body =
            body.as_ref().map(|text| Template::body(text).map_err(|problem| check.invalid(&format!("{field}.body"), problem)));
        Ok(HookTarget::Http {
            url,
            token_file: file("tokenFile", token_file)?,
            ca_file: file("caFile", ca_file)?,
            body: body.transpose()?,
        })
    }
}

/// Parses the URL of a hook.
pub fn parse_url(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|error| format!("is not a URL: {error}"))?;
    match url.scheme() {
        "https" | "http" if url.username().is_empty() && url.password().is_none() => Ok(url),
        "https" | "http" => Err("has credentials; use tokenFile, or urlFile for a URL that is a secret".to_owned()),
        other => Err(format!("has the scheme {other:?}, must be https or http")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn resolve(text: &str) -> Result<NotifyConfig, String> {
        let written: WrittenNotify = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        written.resolve(&Check { path: Path::new("/c") }).map_err(|error| error.to_string())
    }

    #[test]
    fn hooks_survive_being_written() {
        let config = resolve(
            "{maxPerHour: 5, hooks: [{name: ops, on: [pod, host], command: [/bin/tell, '{state}'], timeoutSeconds: 5}, \
             {name: chat, http: {urlFile: /u, tokenFile: /t, caFile: /c, body: '{\"text\": \"{summary} {x y}\"}'}}]}",
        )
        .unwrap();
        let written = WrittenNotify::of(&config);
        assert_eq!(written.resolve(&Check { path: Path::new("/c") }).unwrap(), config);
        assert_eq!((config.hooks[0].on.len(), config.hooks[1].on.len()), (2, 5));
    }

    #[test]
    fn mistakes_name_field_and_fix() {
        for (text, expected) in [
            ("{hooks: [{name: a}]}", "notify.hooks[0]: must have either command or http"),
            ("{hooks: [{name: A_, command: [/x]}]}", "notify.hooks[0].name: \"A_\" is not a lower-case"),
            ("{hooks: [{name: a, command: []}]}", "notify.hooks[0].command: is empty"),
            ("{hooks: [{name: a, command: [x]}]}", "notify.hooks[0].command[0]: \"x\" is not an absolute path"),
            ("{hooks: [{name: a, command: [/x, '{message}']}]}", "command[1]: {message} is not available in arguments"),
            ("{hooks: [{name: a, command: [/x, '{stat}']}]}", "command[1]: has an unknown field {stat}"),
            ("{hooks: [{name: a, http: {}}]}", "notify.hooks[0].http: must have either url or urlFile"),
            ("{hooks: [{name: a, http: {url: 'ftp://x'}}]}", "http.url: has the scheme \"ftp\""),
            ("{hooks: [{name: a, http: {url: 'https://u:p@x'}}]}", "http.url: has credentials"),
            ("{hooks: [{name: a, http: {url: 'https://x', body: '{\"a\": {summary}}'}}]}", "http.body: is not JSON"),
            ("{hooks: [{name: a, command: [/x]}, {name: a, command: [/x]}]}", "hooks[1].name: duplicate entry for \"a\""),
            ("{maxPerHour: 0}", "notify.maxPerHour: is 0, must be at least 1"),
        ] {
            let error = resolve(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
