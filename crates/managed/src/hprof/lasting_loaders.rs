//! Class loaders that a virtual machine never unloads.

/// Classes of these loaders.
const LASTING: [&str; 6] = [
    "jdk.internal.loader.ClassLoaders$AppClassLoader",
    "jdk.internal.loader.ClassLoaders$PlatformClassLoader",
    "jdk.internal.loader.ClassLoaders$BootClassLoader",
    "sun.misc.Launcher$AppClassLoader",
    "sun.misc.Launcher$ExtClassLoader",
    "java.lang.BootClassLoader",
];

/// Whether loaders of a class are never unloaded.
pub(super) fn is_lasting(class: &str) -> bool {
    LASTING.contains(&class)
}
