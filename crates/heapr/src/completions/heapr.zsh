#compdef heapr
# Completion of heapr for zsh; heapr itself says what may follow.
_heapr() {
    local kind line word text
    local -a lines described folders
    lines=("${(@f)$(${~words[1]} complete-for-shell zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    kind=$lines[1]
    case $kind in
    files) _files ;;
    directories) _files -/ ;;
    commands) _command_names -e ;;
    *)
        for line in "${(@)lines[2,-1]}"; do
            word=${line%%$'\t'*} text=${line#*$'\t'}
            if [[ $word == */ ]]; then
                folders+=("$word")
            elif [[ -n $text ]]; then
                described+=("${word//:/\\:}:$text")
            elif [[ -n $word ]]; then
                described+=("${word//:/\\:}")
            fi
        done
        (( $#folders )) && compadd -f -S '' -- "${(@)folders}"
        (( $#described )) && _describe heapr described
        ;;
    esac
}
if [[ $funcstack[1] == _heapr ]]; then
    _heapr "$@"
else
    compdef _heapr heapr
fi
