# Completion of heapr for bash; heapr itself says what may follow.
_heapr() {
    local kind word text lines
    mapfile -t lines < <("$1" complete-for-shell bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    kind=${lines[0]-}
    COMPREPLY=()
    case $kind in
    files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    commands) mapfile -t COMPREPLY < <(compgen -c -- "$2") ;;
    *)
        [[ $kind == paths ]] && compopt -o filenames
        for word in "${lines[@]:1}"; do
            text=${word#*$'\t'} word=${word%%$'\t'*}
            # A number says nothing without its program's name; bash inserts what all have in common.
            if [[ $kind == described && ${#lines[@]} -gt 2 && -n $text ]]; then
                word+="  ($text)"
            fi
            COMPREPLY+=("$word")
        done
        if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
            compopt -o nospace
        fi
        ;;
    esac
}
complete -F _heapr heapr
