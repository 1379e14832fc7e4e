//! The few facts that every format quotes from documents which other modules write: which machine,
//! which command. Members are looked up leniently, since older and foreign documents differ.

use serde_json::Value;

use super::redact;
use super::run::RunData;

/// The machine in one line: processor, C library, copy routine, kernel, as far as they are known.
pub fn machine_line(run: &RunData) -> Option<String> {
    let machine = run.document("machine")?;
    let processor = text_at(
        machine,
        &["processor/name", "cpu/name", "cpu/model_name", "cpu/brand", "cpu", "processor"],
    );
    let core = text_at(machine, &["cpu/microarchitecture", "cpu/core", "microarchitecture"]);
    let library = ["libc", "c_library", "glibc"].iter().find_map(|name| {
        let library = machine.get(name)?;
        match (text_at(library, &["name"]), text_at(library, &["version"])) {
            (Some(name), Some(version)) => Some(format!("{name} {version}")),
            (name, version) => name.or(version).or_else(|| scalar(library)),
        }
    });
    let routine = text_at(
        machine,
        &["copy_routine/symbol", "libc/copy/symbol", "copy_routine/name", "copy_routine"],
    );
    let kernel = text_at(machine, &["kernel/release", "kernel/name", "kernel", "os"]);
    let parts: Vec<String> = [
        processor,
        core.map(|core| format!("({core})")),
        library,
        routine.map(|routine| format!("copies with {routine}")),
        kernel,
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", ").replace(", (", " ("))
}

/// The command that repeats the run, from its plan; a foreign command's arguments as `…` unless
/// the plan was read unredacted.
pub fn command_line(run: &RunData) -> Option<String> {
    let plan = run.document("plan")?;
    ["command_line", "repeat", "argv", "command", "invocation"].iter().find_map(|name| {
        match plan.get(name)? {
            Value::String(line) if !line.is_empty() => Some(line.clone()),
            Value::Array(words) if !words.is_empty() => {
                Some(words.iter().filter_map(scalar).collect::<Vec<_>>().join(" "))
            }
            _ => None,
        }
    })
}

/// Everything of the run that may hold private matter, redacted in place.
pub fn redact_run(run: &mut RunData) {
    for document in run.documents.values_mut() {
        redact::redact(document);
    }
    if let Some(verdicts) = &mut run.verdicts {
        for verdict in &mut verdicts.verdicts {
            for reason in &mut verdict.reasons {
                *reason = redact::without_home(reason);
            }
        }
    }
    run.missing.iter_mut().for_each(|sentence| *sentence = redact::without_home(sentence));
}

/// The first of `paths` (members joined by `/`) that holds a scalar.
fn text_at(value: &Value, paths: &[&str]) -> Option<String> {
    paths.iter().find_map(|path| {
        let found = path.split('/').try_fold(value, |value, member| value.get(member))?;
        scalar(found)
    })
}

/// A scalar as text; nothing for `null`, lists and objects.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(if *truth { "yes" } else { "no" }.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::fixture;

    #[test]
    fn machine_and_command_are_found() {
        let mut run = RunData::default();
        assert_eq!((machine_line(&run), command_line(&run)), (None, None));
        run.documents.insert("machine".into(), fixture::machine());
        run.documents.insert("plan".into(), fixture::plan());
        assert_eq!(
            machine_line(&run).as_deref(),
            Some("AMD Ryzen AI MAX+ PRO 395, glibc 2.43, Linux 6.18.0")
        );
        assert_eq!(command_line(&run).as_deref(), Some("stackphase check --seed 20260909 --cpu 8"));
    }

    #[test]
    fn redaction_reaches_documents_reasons_and_notes() {
        let mut run = RunData { missing: vec!["/home/ann/x".into()], ..RunData::default() };
        run.documents.insert("plan".into(), json!({"argv": ["/home/ann/b", "--password", "x"]}));
        let mut verdict = fixture::zmm();
        verdict.reasons = vec!["run /home/ann/b again".into()];
        run.verdicts = Some(crate::analysis::VerdictDocument::new(vec![verdict]));
        redact_run(&mut run);
        assert_eq!(command_line(&run).as_deref(), Some("b …"));
        assert_eq!(run.missing, ["~/x"]);
        assert_eq!(run.verdicts()[0].reasons, ["run ~/b again"]);
    }
}
