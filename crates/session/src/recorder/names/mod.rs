//! Names for reports: files of modules, and JIT code, held while a process lives.

pub(crate) mod made_code;
pub(crate) mod made_objects;
pub(crate) mod map_folders;
pub(crate) mod module_files;
pub(crate) mod module_image;
