# caro in the prompt of fish 3 and newer. @KEY_NAME@: the words on the line become a command in the line.
# @EXPLAIN_NAME@: what the command on the line does. In ~/.config/fish/config.fish: @LOAD@

function __caro_command --description 'Turn the words on the line into a command'
    set -l line (commandline --current-buffer | string collect)
    string match --quiet --regex '\S' -- $line; or return 0
    set -l answer (command caro --widget --shell fish -- $line </dev/tty)
    and begin
        commandline --replace -- (string join \n -- $answer | string collect)
        commandline --function end-of-buffer
    end
    commandline --function repaint
end

function __caro_explain --description 'Explain the command on the line'
    set -l line (commandline --current-buffer | string collect)
    string match --quiet --regex '\S' -- $line; or return 0
    echo
    printf '%s' $line | command caro explain --shell fish -
    commandline --function repaint
end

if status is-interactive
    for __caro_map in default insert
        bind --mode $__caro_map @KEY@ __caro_command
        bind --mode $__caro_map @EXPLAIN@ __caro_explain
    end
    set --erase __caro_map
end
