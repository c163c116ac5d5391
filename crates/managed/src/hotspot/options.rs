//! Options with which a virtual machine was started.

/// Options of the command line whose next word is their value.
const WITH_VALUE: [&str; 9] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--limit-modules",
    "--source",
];
/// Options behind which the program's own words stand.
const LAST: [&str; 3] = ["-jar", "-m", "--module"];
/// Name of the option about the protocol.
const ATTACH: &str = "DisableAttachMechanism";

/// True if this form of `DisableAttachMechanism` is the last one among the options of a process.
pub(super) fn is_last(pid: u32, option: &str) -> bool {
    let variable = |name: &str| heapr_proc::variable(pid, name).unwrap_or_default();
    let before = [variable("JAVA_TOOL_OPTIONS"), variable("JDK_JAVA_OPTIONS")].join(" ");
    let line = heapr_proc::command_line(pid);
    let after = variable("_JAVA_OPTIONS");
    let mut words =
        before.split_ascii_whitespace().chain(of_command_line(&line)).chain(after.split_ascii_whitespace());
    words.rfind(|word| word.ends_with(ATTACH)) == Some(option)
}

/// Words of a command line up to the main class.
fn of_command_line(words: &[String]) -> Vec<&str> {
    let mut options = Vec::new();
    let mut words = words.iter().skip(1).map(String::as_str);
    while let Some(word) = words.next() {
        if !word.starts_with(['-', '@']) || LAST.contains(&word) {
            break;
        }
        options.push(word);
        if WITH_VALUE.contains(&word) {
            let _value = words.next();
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_program_are_no_options() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let line = words("java -Xmx1g -cp a:b -Dx=1 app.Main -XX:+DisableAttachMechanism");
        assert_eq!(of_command_line(&line), ["-Xmx1g", "-cp", "-Dx=1"]);
        assert_eq!(of_command_line(&words("java -jar -x.jar -y")), Vec::<&str>::new());
    }
}
