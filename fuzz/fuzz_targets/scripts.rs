//! Fuzzes scripts saved beside a snapshot, and the text of a script in which a heap's function
//! begins.
#![no_main]

use heapr_v8::analysis::{Naming, unused_variables};
use heapr_v8::devtools::Heap;
use heapr_v8::{SavedScript, ReadOptions, Snapshot};
use libfuzzer_sys::fuzz_target;

/// Function in line 1 whose context has a variable.
const HEAP: &str = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count"],
"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic"],"string","number","number","number"],
"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],
"string_or_number","node"],"location_fields":["object_index","script_id","line","column"]},"node_count":4,"edge_count":3},
"nodes":[9,0,1,0,1,5,1,3,64,1,3,2,5,32,1,3,3,7,9000,0],"edges":[2,1,5,3,4,10,0,5,15],
"locations":[5,7,1,0],"strings":["","f","system / Context","Big","context","big"]}"#;

fuzz_target!(|bytes: &[u8]| {
    let _ = SavedScript::read_all(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let options = ReadOptions { thread_count: 1, ..ReadOptions::default() };
    let snapshot = Snapshot::read(std::io::Cursor::new(HEAP.as_bytes()), &options).expect("a snapshot");
    let heap = Heap::with_summary(snapshot).expect("a heap");
    let _ = unused_variables(&heap, &Naming::of(&heap), &|_, _| Some(text.to_owned()));
});
