# caro in the prompt of zsh 5 and newer. @KEY_NAME@: the words on the line become a command in the line.
# @EXPLAIN_NAME@: what the command on the line does. In ~/.zshrc: @LOAD@

__caro_command() {
    emulate -L zsh
    [[ $BUFFER == *[^[:space:]]* ]] || return 0
    local answer
    # what is told meanwhile stands between this line and the prompt that is drawn anew
    zle -I
    answer=$(command caro --widget --shell zsh -- "$BUFFER" </dev/tty) || return 0
    @HISTORY@print -sr -- "# ${BUFFER//$'\n'/ }"
    BUFFER=$answer
    CURSOR=$#BUFFER
}

__caro_explain() {
    emulate -L zsh
    [[ $BUFFER == *[^[:space:]]* ]] || return 0
    zle -I
    print -rn -- "$BUFFER" | command caro explain --shell zsh - || return 0
}

if [[ -o interactive ]]; then
    zle -N caro-command __caro_command
    zle -N caro-explain __caro_explain
    for __caro_map in emacs viins vicmd; do
        bindkey -M $__caro_map '@KEY@' caro-command
        bindkey -M $__caro_map '@EXPLAIN@' caro-explain
    done
    unset __caro_map
fi
