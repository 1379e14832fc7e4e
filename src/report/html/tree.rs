//! A document that another part of the program (or another version of it) wrote, as lists and
//! tables: every member is shown, whatever its name, down to a bounded depth and size.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::report::escape::xml;
use crate::report::words;

/// Levels that are shown; deeper ones become their JSON text.
const DEPTH: usize = 5;
/// Members or rows of one level that are shown; further ones are counted.
const BREADTH: usize = 60;
/// Columns of a table made from a list of objects.
const COLUMNS: usize = 12;

/// The document as HTML; members named in `skip` and the schema are left out at the top.
pub fn html(value: &Value, skip: &[&str]) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) => {
            let shown: Map<String, Value> = members
                .iter()
                .filter(|(name, _)| *name != "schema" && !skip.contains(&name.as_str()))
                .map(|(name, member)| (name.clone(), member.clone()))
                .collect();
            object(&shown, 0, &mut out);
        }
        other => node(other, 0, &mut out),
    }
    out
}

// Writing to a String cannot fail, so results of `write!` are let go below.
fn node(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) if depth < DEPTH => object(members, depth, out),
        Value::Array(items) if items.is_empty() => out.push_str("none"),
        Value::Array(items) if depth < DEPTH => list(items, depth, out),
        Value::Object(_) | Value::Array(_) => {
            let _ = write!(out, "<code>{}</code>", xml(&value.to_string()));
        }
        other => out.push_str(&scalar(other)),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "not known".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number.as_f64() {
            Some(value) if !number.is_i64() && !number.is_u64() => {
                format!("<data value=\"{value}\">{}</data>", words::figure(value))
            }
            _ => number.to_string(),
        },
        Value::String(text) => xml(text),
        other => xml(&other.to_string()),
    }
}

fn object(members: &Map<String, Value>, depth: usize, out: &mut String) {
    if members.is_empty() {
        out.push_str("none");
        return;
    }
    out.push_str("<dl class=\"tree\">");
    for (name, member) in members.iter().take(BREADTH) {
        let _ = write!(out, "<dt>{}</dt><dd>", xml(&name.replace('_', " ")));
        node(member, depth + 1, out);
        out.push_str("</dd>");
    }
    if members.len() > BREADTH {
        let _ = write!(out, "<dt>more</dt><dd>{} members</dd>", members.len() - BREADTH);
    }
    out.push_str("</dl>");
}

fn list(items: &[Value], depth: usize, out: &mut String) {
    if let Some(columns) = columns(items) {
        table(items, &columns, out);
    } else if items.iter().all(|item| matches!(item, Value::Number(_) | Value::Bool(_))) {
        let shown: Vec<String> = items.iter().take(BREADTH).map(scalar).collect();
        out.push_str(&shown.join(", "));
    } else {
        out.push_str("<ul>");
        for item in items.iter().take(BREADTH) {
            out.push_str("<li>");
            node(item, depth + 1, out);
            out.push_str("</li>");
        }
        out.push_str("</ul>");
    }
    if items.len() > BREADTH {
        let _ = write!(out, "<p>{} more</p>", items.len() - BREADTH);
    }
}

/// The columns of a list of objects, in order of appearance; `None` where it is not a table.
fn columns(items: &[Value]) -> Option<Vec<String>> {
    let mut columns: Vec<String> = Vec::new();
    for item in items.iter().take(BREADTH) {
        for name in item.as_object()?.keys() {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
    }
    (!columns.is_empty() && columns.len() <= COLUMNS && items.len() > 1).then_some(columns)
}

fn table(items: &[Value], columns: &[String], out: &mut String) {
    let heads: Vec<String> = columns.iter().map(|name| xml(&name.replace('_', " "))).collect();
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table of {0}\">\
         <table><thead><tr>",
        heads.join(", ")
    );
    for head in &heads {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for item in items.iter().take(BREADTH) {
        out.push_str("<tr>");
        for column in columns {
            out.push_str("<td>");
            match item.get(column) {
                None | Some(Value::Null) => {}
                // A row of a table has no room for further levels.
                Some(member) => node(member, DEPTH - 1, out),
            }
            out.push_str("</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_member_is_shown_and_none_is_markup() {
        let shown = html(
            &json!({"schema": "x", "a_b": "<script>", "list": [{"p": 1.25, "q": null}, {"p": 2, "r": true}]}),
            &[],
        );
        assert!(shown.contains("<dt>a b</dt><dd>&lt;script&gt;</dd>"), "{shown}");
        assert!(shown.contains("<data value=\"1.25\">1.25</data>"), "{shown}");
        assert!(!shown.contains("schema"), "{shown}");
    }

    #[test]
    fn depth_and_breadth_are_bounded() {
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        let wide = json!((0..10_000).map(|n| json!({"n": n})).collect::<Vec<_>>());
        assert!(html(&deep, &[]).len() < 2000);
        assert!(html(&wide, &[]).len() < 20_000);
    }
}
