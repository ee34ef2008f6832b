//! Plan for a pod's attachments: from its request, its record, and the content of its namespace. **Pure**.
//!
//! ```text
//!   attach:  record Adding ---> ADD ---> record Added + result
//!   detach:  record Deleting -> DEL ---> out of the record
//! ```
//!
//! A crash leaves the record of the step before. Only `Added` is something that a pod can have; all else is taken down with DEL, which
//! plugins answer well whatever there is.

use super::spec::conflist::{Conflist, Form};
use super::spec::invocation::Ask;
use super::spec::report::InterfaceReport;
use super::spec::result::CniResult;
use super::spec::version::CniVersion;
use super::wish::Wish;
use podstead_pod::networks::FIRST_INTERFACE;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Progress of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Stage {
    /// ADD is about to begin, under way, or was cut short.
    Adding,
    /// ADD is done.
    Added,
    /// DEL is about to begin, under way, or was cut short.
    Deleting,
}

/// An attachment of a pod. Recorded before plugins are called, with all that DEL needs: whatever becomes of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attachment {
    pub(super) stage: Stage,
    /// As the pod asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) wanted: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    /// The configuration that ADD was called with.
    pub(super) network: Value,
    pub(super) version: String,
    pub(super) ask: Ask,
    /// Result of ADD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Value>,
}

impl Attachment {
    /// Of a wish, before ADD.
    pub(super) fn new(wish: &Wish, ask: Ask, network: &Conflist, version: CniVersion) -> Self {
        Self {
            stage: Stage::Adding,
            wanted: wish.network.clone(),
            namespace: wish.namespace.clone(),
            network: network.to_value(),
            version: version.to_string(),
            ask,
            result: None,
        }
    }

    /// Name of the interface in the pod.
    pub(super) fn interface(&self) -> &str {
        &self.ask.place.interface
    }

    /// Returns true if it is the pod's first interface.
    pub(super) fn is_primary(&self) -> bool {
        self.interface() == FIRST_INTERFACE
    }

    /// The configuration; `None` for a record that was tampered with.
    pub(super) fn conflist(&self) -> Option<(Conflist, CniVersion)> {
        let network = Conflist::from_value(self.network.clone(), Form::List).ok()?;
        Some((network, CniVersion::parse(&self.version)?))
    }

    /// Interfaces and addresses that the pod gained.
    pub(super) fn gained(&self) -> CniResult {
        self.result.as_ref().and_then(|result| CniResult::from_value(result).ok()).unwrap_or_default()
    }

    /// Name of the network.
    pub(super) fn network_name(&self) -> &str {
        self.network.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// For the pod's status.
    pub(super) fn report(&self) -> InterfaceReport {
        let name = match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.network_name()),
            None => self.network_name().to_owned(),
        };
        InterfaceReport::of(name, self.interface(), self.is_primary(), &self.gained())
    }

    /// Returns true if ADD was done and its interfaces are in the namespace.
    pub(super) fn is_there(&self, interfaces: &[String]) -> bool {
        let gained = self.gained();
        let mut made = gained.pod_interfaces().peekable();
        let is_named = |name: &str| interfaces.iter().any(|there| there == name);
        let are_there = match made.peek() {
            Some(_) => made.all(|interface| is_named(&interface.name)),
            // A chain that tells none was asked for one.
            None => is_named(self.interface()),
        };
        self.stage == Stage::Added && are_there
    }
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Take down what has the interface of this name.
    Detach(String),
    /// Call the plugins from this one on again, with other arguments: the first ones, which make the interface, are left alone.
    Renew { wish: Wish, first: usize },
    /// Attach.
    Attach(Wish),
}

/// The steps, in their order. `interfaces` are those in the pod's namespace.
pub(super) fn steps(wishes: &[Wish], attached: &[Attachment], interfaces: &[String]) -> Vec<Step> {
    let mut steps = Vec::new();
    // The last one first.
    for attachment in attached.iter().rev() {
        let wish = wishes.iter().find(|wish| wish.ask.place.interface == attachment.interface());
        let is_there = attachment.is_there(interfaces);
        let stays = match wish {
            Some(wish) => is_there && fate(wish, attachment) != Fate::Replace,
            // The configuration changed the provider of the first interface: the pod keeps its interface until it is recreated.
            None => is_there && attachment.is_primary(),
        };
        if !stays {
            steps.push(Step::Detach(attachment.interface().to_owned()));
        }
    }
    for wish in wishes {
        let interface = &wish.ask.place.interface;
        let attachment = attached.iter().find(|attachment| attachment.interface() == interface);
        match attachment.filter(|attachment| attachment.is_there(interfaces)).map(|attachment| fate(wish, attachment)) {
            Some(Fate::Keep) => {}
            Some(Fate::Renew(first)) => steps.push(Step::Renew { wish: wish.clone(), first }),
            Some(Fate::Replace) => steps.push(Step::Attach(wish.clone())),
            // The first interface is there, and not by a record: an earlier configuration had another network.
            None if attachment.is_none() && wish.is_primary() && interfaces.contains(interface) => {}
            None => steps.push(Step::Attach(wish.clone())),
        }
    }
    steps
}

#[derive(Debug, PartialEq)]
enum Fate {
    Keep,
    Renew(usize),
    Replace,
}

/// Decision about an existing attachment.
fn fate(wish: &Wish, attachment: &Attachment) -> Fate {
    let Ask { place, capabilities, cni_args } = &wish.ask;
    // A change of the first interface's network takes effect in the next sandbox.
    let is_same = attachment.is_primary() || wish.network == attachment.wanted;
    if !is_same || *place != attachment.ask.place || *cni_args != attachment.ask.cni_args {
        return Fate::Replace;
    }
    let differences = capabilities.differences(&attachment.ask.capabilities);
    if differences.is_empty() {
        return Fate::Keep;
    }
    let Some((network, _)) = attachment.conflist() else { return Fate::Replace };
    let concerned = |plugin: &super::spec::conflist::Plugin| differences.iter().any(|name| plugin.capabilities.contains(*name));
    match network.plugins.iter().position(concerned) {
        // It makes the interface.
        Some(0) => Fate::Replace,
        Some(first) => Fate::Renew(first),
        // Not reported here: the attempt refuses it or warns.
        None => Fate::Renew(network.plugins.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::capability::{CapabilityArguments, PortMapping};
    use super::super::spec::invocation::Place;
    use super::*;

    fn wish(network: Option<&str>, interface: &str) -> Wish {
        let place = Place { container_id: "u1".into(), interface: interface.into(), arguments: Vec::new() };
        let ask = Ask { place, capabilities: CapabilityArguments::default(), cni_args: serde_json::Map::new() };
        Wish { network: network.map(str::to_owned), namespace: None, ask, default_route: None }
    }

    fn attachment(wish: &Wish) -> Attachment {
        let text = r#"{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "bridge", "capabilities": {"mac": true}},
            {"type": "tuning"}, {"type": "portmap", "capabilities": {"portMappings": true}}]}"#;
        let network = Conflist::parse(text.as_bytes(), Form::List).unwrap();
        let result = serde_json::json!({"interfaces": [{"name": "br"}, {"name": wish.ask.place.interface, "sandbox": "/n"}]});
        let added = Attachment::new(wish, wish.ask.clone(), &network, CniVersion::V1_0_0);
        Attachment { stage: Stage::Added, result: Some(result), ..added }
    }

    fn detach(name: &str) -> Step {
        Step::Detach(name.to_owned())
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_there_as_wanted_is_left_alone() {
        let wishes = [wish(None, "eth0"), wish(Some("plant"), "net1")];
        let attached: Vec<Attachment> = wishes.iter().map(attachment).collect();
        assert_eq!(steps(&wishes, &attached, &names(&["lo", "eth0", "net1"])), []);
        assert_eq!(steps(&wishes, &[], &names(&["lo"])), wishes.clone().map(Step::Attach));
        assert_eq!(steps(&[], &[], &names(&["lo", "eth0"])), []);
    }

    #[test]
    fn what_was_cut_short_or_is_gone_is_taken_down_and_made_anew() {
        let wishes = [wish(None, "eth0")];
        let anew = [detach("eth0"), Step::Attach(wishes[0].clone())];
        for stage in [Stage::Adding, Stage::Deleting] {
            let attached = Attachment { stage, ..attachment(&wishes[0]) };
            assert_eq!(steps(&wishes, &[attached], &names(&["lo", "eth0"])), anew, "{stage:?}");
        }
        assert_eq!(steps(&wishes, &[attachment(&wishes[0])], &names(&["lo"])), anew, "somebody removed the interface");
    }

    #[test]
    fn interfaces_come_and_go_with_the_annotation_the_last_one_first() {
        let (eth, one, two) = (wish(None, "eth0"), wish(Some("a"), "net1"), wish(Some("b"), "net2"));
        let attached = [attachment(&eth), attachment(&one), attachment(&two)];
        let there = names(&["lo", "eth0", "net1", "net2"]);
        assert_eq!(steps(std::slice::from_ref(&eth), &attached, &there), [detach("net2"), detach("net1")]);
        let other = wish(Some("c"), "net1");
        assert_eq!(steps(&[eth, other.clone()], &attached, &there), [detach("net2"), detach("net1"), Step::Attach(other)]);
    }

    #[test]
    fn a_first_interface_of_an_earlier_configuration_stays() {
        let eth = wish(None, "eth0");
        assert_eq!(steps(std::slice::from_ref(&eth), &[], &names(&["lo", "eth0"])), [], "podstead's own");
        assert_eq!(steps(&[], &[attachment(&eth)], &names(&["lo", "eth0"])), [], "a plugin's");
        assert_eq!(steps(&[wish(Some("other"), "eth0")], &[attachment(&eth)], &names(&["lo", "eth0"])), []);
        assert_eq!(steps(&[], &[attachment(&eth)], &names(&["lo"])), [detach("eth0")]);
    }

    #[test]
    fn ports_change_without_the_interface() {
        let old = wish(None, "eth0");
        let mut new = old.clone();
        new.ask.capabilities.port_mappings =
            vec![PortMapping { host_port: 1, container_port: 1, protocol: "tcp".into(), host_ip: None }];
        let there = names(&["lo", "eth0"]);
        let renewed = [Step::Renew { wish: new.clone(), first: 2 }];
        assert_eq!(steps(std::slice::from_ref(&new), &[attachment(&old)], &there), renewed);
        let mut other = old.clone();
        other.ask.capabilities.mac = Some("02:00:00:00:00:01".into());
        let replaced = [detach("eth0"), Step::Attach(other.clone())];
        assert_eq!(steps(&[other], &[attachment(&old)], &there), replaced, "the plugin that makes it is told");
    }

    #[test]
    fn a_record_is_read_again_as_it_was_written() {
        let attachment = attachment(&wish(Some("plant"), "net1"));
        let text = serde_json::to_string(&attachment).unwrap();
        assert_eq!(serde_json::from_str::<Attachment>(&text).unwrap(), attachment);
        assert_eq!(attachment.conflist().unwrap().0.plugins.len(), 3);
        assert_eq!(attachment.report().name, "n");
    }
}
