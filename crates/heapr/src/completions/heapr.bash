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
            # Names of programs and files may be hostile: bash itself quotes paths alone.
            [[ $kind == paths ]] || printf -v word %q "$word"
            # A number says nothing without its program's name, in a list: nothing of it is inserted.
            if [[ $kind == described && ${#lines[@]} -gt 2 && -n $text && ${COMP_TYPE-} == @(33|63|64) ]]; then
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
