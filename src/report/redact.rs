//! What must not be posted by accident: host and user names, home directories, a command's
//! arguments.

use serde_json::Value;

/// Members whose value names a person or a machine.
const PRIVATE: [&str; 10] = [
    "host",
    "hostname",
    "host_name",
    "nodename",
    "user",
    "user_name",
    "username",
    "home",
    "cwd",
    "working_directory",
];
/// Members that hold a foreign command line.
const COMMANDS: [&str; 4] = ["argv", "command", "command_line", "args"];

/// The document with private members as `…`, a foreign command's arguments as `…`, and home
/// directories as `~`.
pub fn redact(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let name = name.to_ascii_lowercase();
                if PRIVATE.contains(&name.as_str()) && !member.is_null() {
                    *member = Value::from("…");
                } else if COMMANDS.contains(&name.as_str()) {
                    redact_command(member);
                } else {
                    redact(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) => *text = without_home(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A foreign command keeps its program's file name; our own command line keeps what stands before
/// `--`, which has no one's data in it but paths.
fn redact_command(command: &mut Value) {
    match command {
        Value::Array(words) => {
            let kept = words.first().and_then(Value::as_str).map(file_name);
            let more = words.len() > 1;
            *words = kept.map(Value::from).into_iter().chain(more.then(|| "…".into())).collect();
        }
        Value::String(line) => *line = redact_line(line),
        other => redact(other),
    }
}

/// A command line as text, its program's arguments as `…`.
pub fn redact_line(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ours = words.first().is_some_and(|word| file_name(word) == "stackphase");
    let shown: Vec<String> = match words.iter().position(|word| *word == "--") {
        Some(end) if ours => {
            let own = words[..=end].iter().map(|word| without_home(word));
            let program = words.get(end + 1).map(|word| file_name(word));
            let more = (words.len() > end + 2).then(|| "…".to_owned());
            own.chain(program).chain(more).collect()
        }
        None if ours => words.iter().map(|word| without_home(word)).collect(),
        _ => {
            let program = words.first().map(|word| file_name(word));
            program.into_iter().chain((words.len() > 1).then(|| "…".to_owned())).collect()
        }
    };
    shown.join(" ")
}

fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or("…").to_owned()
}

/// The text with `/home/NAME`, `/Users/NAME` and `/root` as `~`.
pub fn without_home(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    'outer: while !rest.is_empty() {
        for prefix in ["/home/", "/Users/"] {
            if let Some(tail) = rest.strip_prefix(prefix) {
                let end =
                    tail.find(|c: char| c == '/' || c.is_whitespace() || "\"':,;".contains(c));
                out.push('~');
                rest = &tail[end.unwrap_or(tail.len())..];
                continue 'outer;
            }
        }
        if let Some(tail) = rest.strip_prefix("/root")
            && !tail.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
            && !out.ends_with(|c: char| c.is_alphanumeric())
        {
            out.push('~');
            rest = tail;
            continue;
        }
        let mut chars = rest.chars();
        out.extend(chars.next());
        rest = chars.as_str();
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_homes_and_arguments_go() {
        let mut document = json!({
            "hostname": "halo", "cpu": "AMD EPYC", "user": null,
            "plan": {"argv": ["/home/ann/bench", "--token", "secret"], "out": "/home/ann/results/1"},
            "list": ["/Users/bo/x y", "/root", "/rooted"],
            "repeat": {"command_line": "stackphase pad --to 64 -- /root/b --key 1"},
        });
        redact(&mut document);
        assert_eq!(
            document,
            json!({
                "hostname": "…", "cpu": "AMD EPYC", "user": null,
                "plan": {"argv": ["bench", "…"], "out": "~/results/1"},
                "list": ["~/x y", "~", "/rooted"],
                "repeat": {"command_line": "stackphase pad --to 64 -- b …"},
            })
        );
    }

    #[test]
    fn our_own_options_are_kept() {
        assert_eq!(redact_line("stackphase check --seed 1"), "stackphase check --seed 1");
        assert_eq!(redact_line("/usr/bin/openssl speed"), "openssl …");
        assert_eq!(redact_line(""), "");
    }
}
