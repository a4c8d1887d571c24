# caro in the prompt of zsh 5 and newer. @KEY_NAME@: the words on the line become a command in the line.
# @EXPLAIN_NAME@: what the command on the line does. In ~/.zshrc: @LOAD@

__caro_command() {
    emulate -L zsh
    [[ $BUFFER == *[^[:space:]]* ]] || return 0
    # on its own answer the key gives the words back
    if [[ $BUFFER == "${__caro_answer-}" ]]; then
        BUFFER=$__caro_words
        CURSOR=$#BUFFER
        __caro_answer=
        return 0
    fi
    local answer
    # what is told meanwhile stands between this line and the prompt that is drawn anew
    zle -I
    answer=$(command caro --widget --shell zsh -- "$BUFFER" </dev/tty) || return 0
    typeset -g __caro_words=$BUFFER __caro_answer=$answer
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
@HISTORY@
@HISTORY@# What was run or taken at the keys after an answer goes into the history, behind the call itself. caro hands it over in a
@HISTORY@# file that is gone when the call is.
@HISTORY@__caro_call() {
@HISTORY@    emulate -L zsh
@HISTORY@    local taken code
@HISTORY@    taken=$(command mktemp) || { command caro "$@"; return; }
@HISTORY@    CARO_TAKEN=$taken command caro "$@"
@HISTORY@    code=$?
@HISTORY@    [[ ! -s $taken ]] || print -sr -- "$(<$taken)"
@HISTORY@    command rm -f -- "$taken"
@HISTORY@    return "$code"
@HISTORY@}
@ONLY_HISTORY@
@ONLY_HISTORY@caro() {
@ONLY_HISTORY@    __caro_call "$@"
@ONLY_HISTORY@}
@FIX@
@FIX@# Which command failed last. It stays in this shell; `caro fix` alone is told. @REPAIR_NAME@ puts the repaired one into the line.
@FIX@typeset -g __caro_status= __caro_stages= __caro_failed= __caro_typed=
@FIX@__caro_preexec() {
@FIX@    __caro_typed=$1
@FIX@}
@FIX@
@FIX@__caro_precmd() {
@FIX@    local __caro_code=$? __caro_all="${pipestatus[*]}"
@FIX@    emulate -L zsh
@FIX@    setopt extendedglob
@FIX@    # an empty line ran nothing, and `caro fix` itself is not meant
@FIX@    [[ -n $__caro_typed && $__caro_typed != [[:space:]]#caro[[:space:]]##fix* ]] || return 0
@FIX@    # what is not to be in the history is not kept here either
@FIX@    [[ $__caro_typed != ' '* ]] && __caro_failed=$__caro_typed || __caro_failed=
@FIX@    __caro_status=$__caro_code __caro_stages=$__caro_all __caro_typed=
@FIX@}
@FIX@
@FIX@caro() {
@FIX@    if [[ ${1-} == fix && -n $__caro_failed ]]; then
@FIX@        CARO_FAILED_COMMAND=$__caro_failed CARO_FAILED_STATUS=$__caro_status CARO_FAILED_STAGES=$__caro_stages command caro "$@"
@FIX@    else
@FIX@        @CALL@ "$@"
@FIX@    fi
@FIX@}
@FIX@
@FIX@__caro_fix() {
@FIX@    emulate -L zsh
@FIX@    local answer failed=$__caro_failed code=$__caro_status stages=$__caro_stages
@FIX@    [[ $BUFFER != *[^[:space:]]* ]] || failed=$BUFFER code= stages=
@FIX@    [[ -n $failed ]] || return 0
@FIX@    zle -I
@FIX@    answer=$(CARO_FAILED_COMMAND=$failed CARO_FAILED_STATUS=$code CARO_FAILED_STAGES=$stages \
@FIX@        command caro fix --widget@TRIES@ --shell zsh </dev/tty) || return 0
@FIX@    BUFFER=$answer
@FIX@    CURSOR=$#BUFFER
@FIX@}

if [[ -o interactive ]]; then
    zle -N caro-command __caro_command
    zle -N caro-explain __caro_explain
    @FIX@zle -N caro-fix __caro_fix
    for __caro_map in emacs viins vicmd; do
        bindkey -M $__caro_map '@KEY@' caro-command
        bindkey -M $__caro_map '@EXPLAIN@' caro-explain
        @FIX@bindkey -M $__caro_map '@REPAIR@' caro-fix
    done
    unset __caro_map
    @FIX@typeset -ga preexec_functions precmd_functions
    @FIX@[[ " ${preexec_functions[*]} " == *' __caro_preexec '* ]] || preexec_functions+=(__caro_preexec)
    @FIX@# the first of them still sees what the command left
    @FIX@[[ " ${precmd_functions[*]} " == *' __caro_precmd '* ]] || () { emulate -L zsh; precmd_functions=(__caro_precmd $precmd_functions) }
fi
