# Completion of heapr for fish; heapr itself says what may follow.
function __heapr_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l lines ($words[1] complete-for-shell fish $words[2..-1] "$typed" 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path "$typed"
        case directories
            __fish_complete_directories "$typed"
        case commands
            __fish_complete_command
        case '*'
            printf '%s\n' $lines[2..-1]
    end
end
complete -c heapr -f -a '(__heapr_complete)'
