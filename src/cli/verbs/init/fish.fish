# caro in the prompt of fish 3 and newer. @KEY_NAME@: the words on the line become a command in the line.
# @EXPLAIN_NAME@: what the command on the line does. In ~/.config/fish/config.fish: @LOAD@

function __caro_below --description 'Begin a line below, without the suggestion behind the cursor'
    set -l line (commandline --current-buffer | string collect)
    test (commandline --cursor) -eq (string length -- "$line"); and printf '\e[J'
    echo
end

function __caro_command --description 'Turn the words on the line into a command'
    set -l line (commandline --current-buffer | string collect)
    string match --quiet --regex '\S' -- $line; or return 0
    # on its own answer the key gives the words back
    if test "$line" = "$__caro_answer"
        commandline --replace -- $__caro_words
        commandline --function end-of-buffer
        set --erase __caro_answer
        return 0
    end
    __caro_below
    set -l answer (command caro --widget --shell fish -- $line </dev/tty)
    and begin
        set -g __caro_words $line
        set -g __caro_answer (string join \n -- $answer | string collect)
        commandline --replace -- $__caro_answer
        commandline --function end-of-buffer
    end
    commandline --function repaint
end

function __caro_explain --description 'Explain the command on the line'
    set -l line (commandline --current-buffer | string collect)
    string match --quiet --regex '\S' -- $line; or return 0
    __caro_below
    printf '%s' $line | command caro explain --shell fish -
    commandline --function repaint
end
@FIX@
@FIX@# Which command failed last. It stays in this shell; `caro fix` alone is told. @REPAIR_NAME@ puts the repaired one into the line.
@FIX@function __caro_ended --on-event fish_postexec
@FIX@    set -l codes $status "$pipestatus"
@FIX@    # an empty line ran nothing, and `caro fix` itself is not meant
@FIX@    string match --quiet --regex '^\s*(caro\s+fix|$)' -- $argv[1]; and return
@FIX@    set -g __caro_failed
@FIX@    # what is not to be in the history is not kept here either
@FIX@    string match --quiet ' *' -- $argv[1]; or set -g __caro_failed (string join \n -- $argv[1] | string collect)
@FIX@    set -g __caro_status $codes[1]
@FIX@    set -g __caro_stages $codes[2]
@FIX@end
@FIX@
@FIX@function caro --description 'The shell command for plain words'
@FIX@    if test "$argv[1]" = fix; and test -n "$__caro_failed"
@FIX@        set -lx CARO_FAILED_COMMAND $__caro_failed
@FIX@        set -lx CARO_FAILED_STATUS $__caro_status
@FIX@        set -lx CARO_FAILED_STAGES $__caro_stages
@FIX@        command caro $argv
@FIX@    else
@FIX@        command caro $argv
@FIX@    end
@FIX@end
@FIX@
@FIX@function __caro_fix --description 'Repair the last command, or the one on the line'
@FIX@    set -l line (commandline --current-buffer | string collect)
@FIX@    set -lx CARO_FAILED_COMMAND $__caro_failed
@FIX@    set -lx CARO_FAILED_STATUS $__caro_status
@FIX@    set -lx CARO_FAILED_STAGES $__caro_stages
@FIX@    if string match --quiet --regex '\S' -- $line
@FIX@        set CARO_FAILED_COMMAND $line
@FIX@        set CARO_FAILED_STATUS
@FIX@        set CARO_FAILED_STAGES
@FIX@    end
@FIX@    test -n "$CARO_FAILED_COMMAND"; or return 0
@FIX@    __caro_below
@FIX@    set -l answer (command caro fix --widget@TRIES@ --shell fish </dev/tty)
@FIX@    and begin
@FIX@        commandline --replace -- (string join \n -- $answer | string collect)
@FIX@        commandline --function end-of-buffer
@FIX@    end
@FIX@    commandline --function repaint
@FIX@end

if status is-interactive
    for __caro_map in default insert
        bind --mode $__caro_map @KEY@ __caro_command
        bind --mode $__caro_map @EXPLAIN@ __caro_explain
        @FIX@bind --mode $__caro_map @REPAIR@ __caro_fix
    end
    set --erase __caro_map
end
