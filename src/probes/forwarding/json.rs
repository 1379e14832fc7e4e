//! The map as JSON text: everything about it readable, one line a cell, since there are thousands.

use serde_json::Value;

use super::map::Map;

/// The lists of cells, which stand one cell a line.
const LISTS: [&str; 3] = ["cells", "pairs", "spaced"];

/// The map as one JSON document.
///
/// # Errors
/// When a figure cannot be JSON; the map's figures are finite.
pub fn to_json(map: &Map) -> Result<String, serde_json::Error> {
    let value = serde_json::to_value(map)?;
    let Value::Object(fields) = value else { return serde_json::to_string(&value) };
    let mut members = Vec::with_capacity(fields.len());
    for (name, value) in &fields {
        let text = match value {
            Value::Array(cells) if LISTS.contains(&name.as_str()) => lines(cells)?,
            other => serde_json::to_string(other)?,
        };
        members.push(format!("{}: {text}", serde_json::to_string(name)?));
    }
    Ok(format!("{{\n{}\n}}\n", members.join(",\n")))
}

fn lines(cells: &[Value]) -> Result<String, serde_json::Error> {
    let lines = cells.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n]", lines.join(",\n")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let text = br#"{"schema":"stackphase/forwarding/1","cells":[{"store_bytes":64,
            "load_bytes":16,"offset":24,"residue":0,"crosses":null,"form":"chained","ns":7.8,
            "spread_percent":0.4,"class":"slow forward"}]}"#;
        let map = Map::from_slice("map", text).expect("the fields of the schema");
        let written = to_json(&map).expect("finite figures");
        assert_eq!(Map::from_slice("map", written.as_bytes()).ok(), Some(map));
        assert_eq!(written.matches("slow forward").count(), 1);
    }
}
