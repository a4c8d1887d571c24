# caro in the prompt of bash 4 and newer. @KEY_NAME@: the words on the line become a command in the line.
# @EXPLAIN_NAME@: what the command on the line does. In ~/.bashrc: @LOAD@

__caro_command() {
    [[ $READLINE_LINE == *[![:space:]]* ]] || return 0
    local answer
    answer=$(command caro --widget --shell bash -- "$READLINE_LINE" </dev/tty) || return 0
    @HISTORY@history -s -- "# ${READLINE_LINE//$'\n'/ }"
    READLINE_LINE=$answer
    READLINE_POINT=${#READLINE_LINE}
}

__caro_explain() {
    [[ $READLINE_LINE == *[![:space:]]* ]] || return 0
    printf '%s' "$READLINE_LINE" | command caro explain --shell bash - || return 0
}

if [[ $- == *i* ]]; then
    if ((BASH_VERSINFO[0] < 4)); then
        echo "caro: bash ${BASH_VERSION} cannot put a command into the line, bash 4 and zsh can" >&2
    else
        for __caro_map in emacs vi-insert vi-command; do
            bind -m "$__caro_map" -x '"@KEY@": __caro_command'
            bind -m "$__caro_map" -x '"@EXPLAIN@": __caro_explain'
        done
        unset -v __caro_map
    fi
fi
