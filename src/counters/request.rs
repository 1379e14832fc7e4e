//! The user's own events: `NAME=r0224` or `NAME=cpu/event=0x24,umask=0x02/`.

use std::str::FromStr;

use super::event::{Encoding, Event, Fields, Software};

/// An `--event` that cannot be used; its text says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEvent {
    /// There is no `=` between name and code.
    #[error("`{0}` has no name: write NAME=r0224 or NAME=cpu/event=0x24,umask=0x02/")]
    NoName(String),
    /// The name cannot be a column.
    #[error(
        "`{0}` cannot name a column: at most 48 small letters, digits and `_`, a letter first, \
         without the ending `_per_op`"
    )]
    Name(String),
    /// The code after `r` is not a hexadecimal number of at most 64 bits.
    #[error("`{0}` is not a raw code: write r and hexadecimal digits, such as r0224")]
    Raw(String),
    /// Neither a raw code nor a PMU with terms between slashes nor a software event.
    #[error(
        "`{0}` is not an event: write r0224, cpu/event=0x24,umask=0x02/, task-clock, page-faults \
         or context-switches"
    )]
    Form(String),
    /// The PMU's name has characters that no PMU has.
    #[error("`{0}` is not the name of a PMU: see /sys/bus/event_source/devices")]
    Pmu(String),
    /// A term that is not known.
    #[error("`{0}` is not a term: use event, umask, cmask, inv, edge, any or config")]
    Term(String),
    /// A term given twice, or `config` beside other terms.
    #[error("`{0}` is given twice, or beside config")]
    Twice(String),
    /// A term's value is not a number of its range.
    #[error("`{0}` is not a number that this term can have")]
    Value(String),
    /// There is neither `event` nor `config`.
    #[error("`{0}` has neither event= nor config=")]
    NoCode(String),
    /// A mode other than user mode.
    #[error("`{0}` asks for another mode: this tool counts user mode only; leave the modifier out")]
    Modifier(String),
}

/// Parses the argument of `--event`.
///
/// # Errors
/// [`BadEvent`], for any other text; never panics.
impl FromStr for Event {
    type Err = BadEvent;

    fn from_str(text: &str) -> Result<Event, BadEvent> {
        let (name, code) = text.split_once('=').ok_or_else(|| BadEvent::NoName(text.to_owned()))?;
        if !is_column(name) {
            return Err(BadEvent::Name(name.to_owned()));
        }
        let encoding = encoding(code)?;
        Ok(Event { name: name.to_owned(), native: None, source: None, encoding })
    }
}

fn is_column(name: &str) -> bool {
    name.len() <= 48
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.ends_with("_per_op")
}

fn encoding(code: &str) -> Result<Encoding, BadEvent> {
    if let Some((pmu, rest)) = code.split_once('/') {
        let (terms, modifier) =
            rest.rsplit_once('/').ok_or_else(|| BadEvent::Form(code.to_owned()))?;
        check_modifier(modifier)?;
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
        if pmu.is_empty() || pmu.len() > 64 || !pmu.chars().all(good) || pmu.starts_with('.') {
            return Err(BadEvent::Pmu(pmu.to_owned()));
        }
        // `cpu` is the core that the thread is pinned to, whatever this machine calls its PMU.
        let pmu = (pmu != "cpu").then(|| pmu.to_owned());
        return fields(terms, pmu);
    }
    let (code, modifier) = code.split_once(':').unwrap_or((code, ""));
    check_modifier(modifier)?;
    let software = match code {
        "task-clock" => Some(Software::TaskClock),
        "page-faults" => Some(Software::PageFaults),
        "context-switches" => Some(Software::ContextSwitches),
        _ => None,
    };
    if let Some(software) = software {
        return Ok(Encoding::Software(software));
    }
    let digits = code.strip_prefix('r').ok_or_else(|| BadEvent::Form(code.to_owned()))?;
    // `from_str_radix` would accept a sign.
    if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(BadEvent::Raw(code.to_owned()));
    }
    let config = u64::from_str_radix(digits, 16).map_err(|_| BadEvent::Raw(code.to_owned()))?;
    Ok(Encoding::Config { pmu: None, config })
}

fn check_modifier(modifier: &str) -> Result<(), BadEvent> {
    match modifier {
        "" | "u" | ":u" => Ok(()),
        other => Err(BadEvent::Modifier(other.to_owned())),
    }
}

fn fields(terms: &str, pmu: Option<String>) -> Result<Encoding, BadEvent> {
    let mut fields = Fields::default();
    let mut config = None;
    let mut seen: Vec<&str> = Vec::new();
    for term in terms.split(',').filter(|term| !term.is_empty()) {
        let (key, value) = term.split_once('=').unwrap_or((term, "1"));
        if seen.contains(&key) {
            return Err(BadEvent::Twice(key.to_owned()));
        }
        seen.push(key);
        let bad = || BadEvent::Value(term.to_owned());
        let value = super::number(value).ok_or_else(bad)?;
        let flag = || if value <= 1 { Ok(value == 1) } else { Err(bad()) };
        match key {
            "config" => config = Some(value),
            "event" => fields.event = value,
            "umask" => fields.umask = value,
            "cmask" => fields.cmask = value,
            "inv" => fields.inv = flag()?,
            "edge" => fields.edge = flag()?,
            "any" => fields.any = flag()?,
            _ => return Err(BadEvent::Term(key.to_owned())),
        }
    }
    match config {
        Some(_) if seen.len() > 1 => Err(BadEvent::Twice("config".to_owned())),
        Some(config) => Ok(Encoding::Config { pmu, config }),
        None if seen.contains(&"event") => Ok(Encoding::Fields { pmu, fields }),
        None => Err(BadEvent::NoCode(terms.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counters::Layout;

    fn raw(text: &str) -> Result<String, BadEvent> {
        let event: Event = text.parse()?;
        Ok(event.raw(Layout::Amd).expect("fits"))
    }

    #[test]
    fn both_forms_of_one_event_agree() {
        assert_eq!(raw("stli=r0224"), Ok("r0224".to_owned()));
        assert_eq!(raw("stli=r224:u"), Ok("r0224".to_owned()));
        assert_eq!(raw("stli=cpu/event=0x24,umask=0x02/"), Ok("r0224".to_owned()));
        assert_eq!(raw("stli=cpu/event=36,umask=2/u"), Ok("r0224".to_owned()));
        assert_eq!(raw("x=cpu_atom/config=0x224/"), Ok("r0224".to_owned()));
        assert_eq!(raw("x=cpu/event=0xa6,umask=0x40,cmask=2,inv,edge=0/"), Ok("r28040a6".into()));
        assert_eq!(raw("x=task-clock"), Ok("PERF_COUNT_SW_TASK_CLOCK".to_owned()));
    }

    #[test]
    fn each_mistake_has_its_own_sentence() {
        use BadEvent as B;
        let error = |text: &str| raw(text).expect_err(text);
        assert_eq!(error("r0224"), B::NoName("r0224".into()));
        assert_eq!(error("=r0224"), B::Name("".into()));
        assert_eq!(error("Stli=r0224"), B::Name("Stli".into()));
        assert_eq!(error("x_per_op=r0224"), B::Name("x_per_op".into()));
        assert_eq!(error("a,b=r0224"), B::Name("a,b".into()));
        assert_eq!(error("x=r"), B::Raw("r".into()));
        assert_eq!(error("x=r+24"), B::Raw("r+24".into()));
        assert_eq!(error("x=rfffffffffffffffff"), B::Raw("rfffffffffffffffff".into()));
        assert_eq!(error("x=instructions"), B::Form("instructions".into()));
        assert_eq!(error("x=cpu/event=1"), B::Form("cpu/event=1".into()));
        assert_eq!(error("x=../event=1/"), B::Pmu("..".into()));
        assert_eq!(error("x=/event=1/"), B::Pmu("".into()));
        assert_eq!(error("x=cpu/event=1,colour=2/"), B::Term("colour".into()));
        assert_eq!(error("x=cpu/event=1,event=2/"), B::Twice("event".into()));
        assert_eq!(error("x=cpu/event=1,config=2/"), B::Twice("config".into()));
        assert_eq!(error("x=cpu/event=-1/"), B::Value("event=-1".into()));
        assert_eq!(error("x=cpu/event=1,inv=2/"), B::Value("inv=2".into()));
        assert_eq!(error("x=cpu/umask=1/"), B::NoCode("umask=1".into()));
        assert_eq!(error("x=r0224:k"), B::Modifier("k".into()));
        assert_eq!(error("x=cpu/event=1/pp"), B::Modifier("pp".into()));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,60}") {
            let _ = text.parse::<Event>();
        }

        #[test]
        fn nearly_right_text_never_panics(text in "[a-c=/,:r0-9xeventumaskcid_ ]{0,40}") {
            let _ = text.parse::<Event>();
        }

        #[test]
        fn every_code_survives_being_written_and_read(event in 0u64..0x1000, umask in 0u64..0x100) {
            let fields: Event = format!("x=cpu/event={event:#x},umask={umask}/").parse()?;
            let packed: Event = format!("x={}", fields.raw(Layout::Amd)?).parse()?;
            prop_assert_eq!(fields.raw(Layout::Amd), packed.raw(Layout::Amd));
        }
    }
}
