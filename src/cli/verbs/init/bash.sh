# caro in the prompt of bash 4 and newer. @KEY_NAME@: the words on the line become a command in the line.
# @EXPLAIN_NAME@: what the command on the line does. In ~/.bashrc: @LOAD@

__caro_command() {
    [[ $READLINE_LINE == *[![:space:]]* ]] || return 0
    # on its own answer the key gives the words back
    if [[ $READLINE_LINE == "${__caro_answer-}" ]]; then
        READLINE_LINE=$__caro_words
        READLINE_POINT=${#READLINE_LINE}
        __caro_answer=''
        return 0
    fi
    local answer
    answer=$(command caro --widget --shell bash -- "$READLINE_LINE" </dev/tty) || return 0
    __caro_words=$READLINE_LINE __caro_answer=$answer
    @HISTORY@history -s -- "# ${READLINE_LINE//$'\n'/ }"
    READLINE_LINE=$answer
    READLINE_POINT=${#READLINE_LINE}
}

__caro_explain() {
    [[ $READLINE_LINE == *[![:space:]]* ]] || return 0
    printf '%s' "$READLINE_LINE" | command caro explain --shell bash - || return 0
}
@HISTORY@
@HISTORY@# What was run or taken at the keys after an answer goes into the history, behind the call itself. caro hands it over in a
@HISTORY@# file that is gone when the call is.
@HISTORY@__caro_call() {
@HISTORY@    local taken code
@HISTORY@    taken=$(command mktemp) || { command caro "$@"; return; }
@HISTORY@    CARO_TAKEN=$taken command caro "$@"
@HISTORY@    code=$?
@HISTORY@    [[ ! -s $taken ]] || history -s -- "$(<"$taken")"
@HISTORY@    command rm -f -- "$taken"
@HISTORY@    return "$code"
@HISTORY@}
@ONLY_HISTORY@
@ONLY_HISTORY@caro() {
@ONLY_HISTORY@    __caro_call "$@"
@ONLY_HISTORY@}
@FIX@
@FIX@# Which command failed last. It stays in this shell; `caro fix` alone is told. @REPAIR_NAME@ puts the repaired one into the line.
@FIX@__caro_status=0 __caro_stages=0 __caro_failed='' __caro_asked='' __caro_ran=1
@FIX@__caro_prompt() {
@FIX@    local code=$? stages="${PIPESTATUS[*]}"
@FIX@    # an empty line ran nothing, and `caro fix` itself is not meant
@FIX@    if ((__caro_ran)) && [[ -z $__caro_asked ]]; then
@FIX@        __caro_status=$code __caro_stages=$stages
@FIX@    fi
@FIX@    # what is older than 4.4 does not tell that something is run
@FIX@    __caro_ran=$((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)) __caro_asked=''
@FIX@    return "$code"
@FIX@}
@FIX@
@FIX@# What was run last, by the history.
@FIX@__caro_last() {
@FIX@    local numbered='^[[:space:]]*[0-9]+[*]?[[:space:]]+' all rest='' n
@FIX@    for n in 1 2 3 4 5; do
@FIX@        all=$(HISTTIMEFORMAT='' builtin history "$n")
@FIX@        [[ ${all%"$rest"} =~ $numbered(.*)$ ]] || return 1
@FIX@        rest=$all
@FIX@        __caro_failed=${BASH_REMATCH[1]%$'\n'}
@FIX@        [[ $__caro_failed =~ ^caro[[:space:]]+fix ]] || return 0
@FIX@    done
@FIX@    return 1
@FIX@}
@FIX@
@FIX@caro() {
@FIX@    if [[ ${1-} == fix ]]; then
@FIX@        __caro_asked=yes
@FIX@        __caro_last || __caro_failed=''
@FIX@        CARO_FAILED_COMMAND=$__caro_failed CARO_FAILED_STATUS=$__caro_status CARO_FAILED_STAGES=$__caro_stages command caro "$@"
@FIX@    else
@FIX@        @CALL@ "$@"
@FIX@    fi
@FIX@}
@FIX@
@FIX@__caro_fix() {
@FIX@    local answer code='' stages=''
@FIX@    if [[ $READLINE_LINE == *[![:space:]]* ]]; then
@FIX@        __caro_failed=$READLINE_LINE
@FIX@    else
@FIX@        __caro_last || return 0
@FIX@        code=$__caro_status stages=$__caro_stages
@FIX@    fi
@FIX@    answer=$(CARO_FAILED_COMMAND=$__caro_failed CARO_FAILED_STATUS=$code CARO_FAILED_STAGES=$stages \
@FIX@        command caro fix --widget@TRIES@ --shell bash </dev/tty) || return 0
@FIX@    READLINE_LINE=$answer
@FIX@    READLINE_POINT=${#READLINE_LINE}
@FIX@}

if [[ $- == *i* ]]; then
    if ((BASH_VERSINFO[0] < 4)); then
        echo "caro: bash ${BASH_VERSION} cannot put a command into the line, bash 4 and zsh can" >&2
    else
        for __caro_map in emacs vi-insert vi-command; do
            bind -m "$__caro_map" -x '"@KEY@": __caro_command'
            bind -m "$__caro_map" -x '"@EXPLAIN@": __caro_explain'
            @FIX@bind -m "$__caro_map" -x '"@REPAIR@": __caro_fix'
        done
        unset -v __caro_map
    fi
    @FIX@# it is read before a command runs, and shows nothing
    @FIX@# shellcheck disable=SC2016
    @FIX@case ${PS0-} in
    @FIX@*__caro_ran*) ;;
    @FIX@*) PS0=${PS0-}'${__caro_ran:$((__caro_ran = 1)):0}' ;;
    @FIX@esac
    @FIX@case ${PROMPT_COMMAND-} in
    @FIX@*__caro_prompt*) ;;
    @FIX@*) PROMPT_COMMAND=__caro_prompt${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND} ;;
    @FIX@esac
fi
