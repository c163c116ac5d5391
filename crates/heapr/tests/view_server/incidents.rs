//! An incident in the page: it opens on its sentence and its last minutes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use heapr_testkit::Stage;
use serde_json::json;

use crate::HEAPR;
use crate::viewer::Viewer;

#[test]
fn the_page_of_an_incident_has_its_sentence_and_opens_on_its_last_minutes() {
    let stage = Stage::new(HEAPR);
    fs::create_dir(stage.path("incidents")).unwrap();
    fs::set_permissions(stage.path("incidents"), fs::Permissions::from_mode(0o700)).unwrap();
    let script = "echo $$ > pid";
    stage.heapr(&["run", "-q", "-o", "incidents/incident-000003.heapr", "--", "sh", "-c", script]).ok();
    let pid: u32 = fs::read_to_string(stage.path("pid")).unwrap().trim().parse().unwrap();
    let sentence =
        "app (7) was killed by the kernel for lack of memory at 14:03:12: /pods/app reached its limit.";
    let incident = json!({
        "schema": "heapr.incident/1", "number": 3, "kind": "death", "sentences": [sentence],
        "process": {"pid": pid}, "ending": {"kind": "signalled", "signal": 9, "has_core": false},
    });
    let file = stage.path("incidents/incident-000003.json");
    fs::write(&file, incident.to_string()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let page = Viewer::start(&stage, &["incidents/incident-000003.json"]);
    assert!(page.place.starts_with("range=0ns&range="), "{}", page.place);
    assert!(page.place.ends_with(&format!("&pid={pid}")), "{}", page.place);
    let files = page.files();
    assert_eq!((&files[0]["incident"]["number"], &files[0]["warnings"][0]), (&json!(3), &json!(sentence)));
}
