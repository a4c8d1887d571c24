//! Tests a copied folder of models.

use super::*;

/// The copied records still name the files in the old folder.
#[test]
fn a_copied_models_folder_serves_its_own_files() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Sound);
    let mut place = Place::new(Some(&hub), None);
    let old = place.ensure(&card(&bytes)).unwrap();
    let copy = place.folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(&place.settings.models).unwrap().flatten() {
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    place.settings.models = copy.clone();
    assert_eq!(place.ensure(&card(&bytes)).unwrap(), copy.join("tiny.gguf"));
    assert_eq!(fetch::locate(&card(&bytes), &place.settings), Some(copy.join("tiny.gguf")));
    // a wrong file in the copy is not replaced by the one in the old folder
    std::fs::write(copy.join("tiny.gguf"), b"another file").unwrap();
    assert_eq!(fetch::locate(&card(&bytes), &place.settings), None);
    assert_eq!(std::fs::read(old).unwrap(), bytes);
}
