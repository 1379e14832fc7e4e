//! Maps written by hand, as for another core.

use super::*;

/// Only what the schema demands: the rule that 64-byte stores are blocked unless 32-aligned.
fn by_hand() -> Map {
    let mut cells = Vec::new();
    for residue in [0u8, 16, 32, 48] {
        for offset in [0, 16, 32, 48] {
            let class = if residue % 32 == 0 { "forwards" } else { "blocked" };
            cells.push(serde_json::json!({
                "store_bytes": 64, "load_bytes": 16, "offset": offset, "residue": residue,
                "crosses": null, "form": "chained", "ns": 5.0, "spread_percent": 0.4,
                "class": class,
            }));
        }
    }
    let text =
        serde_json::json!({"schema": "stackphase/forwarding/1", "cells": cells, "rules": []});
    Map::from_slice("by hand", text.to_string().as_bytes()).expect("the schema's own fields")
}

fn ask(map: &Map, store: u64, load: u64) -> Option<Prediction> {
    let stores = [StorePart { bytes: 64, at: 0 }];
    map.predict(&Place {
        stores: &stores,
        store_address: store,
        load_address: load,
        load_bytes: 16,
    })
}

#[test]
fn a_map_by_hand_predicts_by_residue() {
    let map = by_hand();
    let class = |residue: u64| {
        let store = 0x7fff_0000_0000 + residue;
        ask(&map, store, store + 32).map(|prediction| prediction.class)
    };
    use Class::{Blocked, Forwards};
    assert_eq!([0, 16, 32, 48].map(class), [Forwards, Blocked, Forwards, Blocked].map(Some));
    // A residue that is not on the map is like the one it shares most low bits with.
    assert_eq!(class(80), Some(Blocked));
    assert!(ask(&map, 4096, 4096 + 16).is_some_and(|p| p.exact && p.cost_cycles.is_none()));
    assert!(ask(&map, 4104, 4104).is_some_and(|p| !p.exact));
}

#[test]
fn what_is_not_on_the_map_is_not_guessed() {
    let map = by_hand();
    assert_eq!(ask(&map, 4096, 4096 + 7), None);
    assert_eq!(ask(&map, 0, u64::MAX), None);
}

#[test]
fn another_document_is_refused_by_its_schema() {
    let error = Map::from_slice("v.json", br#"{"schema":"stackphase/verdict/1","verdicts":[]}"#);
    let text = error.map(|_| ()).map_err(|error| crate::Failure::from(error).to_string());
    assert!(text.is_err_and(|text| text.contains("stackphase/verdict/1")));
    assert!(Map::from_slice("v.json", b"{").is_err());
    assert!(Map::read(std::path::Path::new("/nonexistent/map.json")).is_err());
}
