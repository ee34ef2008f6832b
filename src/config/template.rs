//! Templates of notifications: texts with fields that are replaced by values. **Pure**.

/// Longest template in bytes.
const MAX_TEMPLATE: usize = 16 << 10;
/// Fields of a notification. Those of the first group are safe in arguments of a command, which every user of the host can see.
const ARGUMENT_FIELDS: [&str; 8] = ["id", "state", "kind", "namespace", "name", "object", "reason", "node"];
/// Fields that only a body may have.
const BODY_FIELDS: [&str; 5] = ["message", "summary", "source", "revision", "since"];

/// Text with fields such as `{state}`; braces around anything but a lower-case word stand for themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// An argument of a command.
    pub fn argument(text: &str) -> Result<Self, String> {
        Self::parse(text, &ARGUMENT_FIELDS)
    }

    /// A body: JSON with fields inside of its texts.
    pub fn body(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = ARGUMENT_FIELDS.into_iter().chain(BODY_FIELDS).collect();
        let template = Self::parse(text, &fields)?;
        // With a value that is only safe inside of a JSON string.
        let example = template.render_json(|_| "\"\n{} \u{1}".to_owned());
        match serde_json::from_str::<serde_json::Value>(&example) {
            Ok(_) => Ok(template),
            Err(error) => Err(format!("is not JSON with fields inside of its texts: {error}")),
        }
    }

    /// The text with its fields.
    pub fn as_written(&self) -> &str {
        &self.0
    }

    /// Checks that all fields are known. The error names the one that is not.
    fn parse(text: &str, fields: &[&str]) -> Result<Self, String> {
        if text.len() > MAX_TEMPLATE {
            return Err(format!("has more than {MAX_TEMPLATE} bytes"));
        }
        match parts(text).into_iter().find_map(|part| part.field().filter(|field| !fields.contains(field))) {
            Some(field) if BODY_FIELDS.contains(&field) => {
                Err(format!("{{{field}}} is not available in arguments, which all users can see; read it from standard input"))
            }
            Some(field) => Err(format!("has an unknown field {{{field}}}, must be one of {}", fields.join(", "))),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The text with values for its fields.
    pub fn render(&self, value: impl Fn(&str) -> String) -> String {
        let parts = parts(&self.0).into_iter();
        parts.map(|part| part.field().map_or_else(|| part.text().to_owned(), &value)).collect()
    }

    /// The text with values for its fields, each escaped for the inside of a JSON string.
    pub fn render_json(&self, value: impl Fn(&str) -> String) -> String {
        self.render(|field| {
            let quoted = serde_json::Value::String(value(field)).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        })
    }
}

/// A piece of a template.
#[derive(Clone, Copy, Debug)]
enum Part<'a> {
    Text(&'a str),
    Field(&'a str),
}

impl<'a> Part<'a> {
    const fn field(self) -> Option<&'a str> {
        match self {
            Self::Field(field) => Some(field),
            Self::Text(_) => None,
        }
    }

    const fn text(self) -> &'a str {
        match self {
            Self::Field(text) | Self::Text(text) => text,
        }
    }
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(open) = rest[from..].find('{').map(|index| from + index) {
        let word = rest[open + 1..].bytes().take_while(u8::is_ascii_lowercase).count();
        let end = open + 1 + word;
        if word > 0 && rest[end..].starts_with('}') {
            parts.push(Part::Text(&rest[..open]));
            parts.push(Part::Field(&rest[open + 1..end]));
            rest = &rest[end + 1..];
            from = 0;
        } else {
            from = open + 1;
        }
    }
    parts.push(Part::Text(rest));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_leave_their_json_text() {
        let template = Template::body("{\"a\": \"{message}\", \"b\": {\"c\": \"{name}{name}\"}}").unwrap();
        let hostile = "\", \"admin\": \"{state}\\";
        let body = template.render_json(|_| hostile.to_owned());
        let value: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(value["a"], hostile);
        assert_eq!(value["b"]["c"], format!("{hostile}{hostile}"));
    }

    #[test]
    fn braces_around_anything_else_stay() {
        let template = Template::argument("{} {State} {a-b} {{name} {name").unwrap();
        assert_eq!(template.render(|field| field.to_uppercase()), "{} {State} {a-b} {NAME {name");
        assert_eq!(template.as_written(), "{} {State} {a-b} {{name} {name");
    }
}
