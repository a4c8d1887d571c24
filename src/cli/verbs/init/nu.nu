# caro in the prompt of nushell 0.101 and newer. @KEY_NAME@: the words on the line become a command in the line.
# @EXPLAIN_NAME@: what the command on the line does. In config.nu: @LOAD@

# A command of bash as nushell runs it: in quotes that nothing in it ends.
def __caro_quoted [command: string] {
    let ends = ($command | parse --regex `'(?<marks>#+)` | get marks | each {|marks| $marks | str length })
    let marks = ('' | fill --character '#' --width (($ends | append 0 | math max) + 1))
    $"^bash -c r($marks)'($command)'($marks)"
}

# What stands on the line; of a command in such quotes the command.
def __caro_line [] {
    let line = (commandline)
    let quoted = ($line | parse --regex `^\s*\^bash -c r(?<marks>#+)'(?<command>[\s\S]*)'\k<marks>(?<behind>[\s\S]*)$`)
    if ($quoted | is-empty) { $line } else { $"($quoted.0.command)($quoted.0.behind)" }
}

def __caro_command [] {
    let line = (__caro_line)
    if ($line | str trim | is-empty) { return }
    # what caro tells stands below the line
    print ''
    let answer = (try { ^caro --widget --shell bash -- $line } catch { return })
    commandline edit --replace (__caro_quoted ($answer | str trim --right))
}

def __caro_explain [] {
    let line = (__caro_line)
    if ($line | str trim | is-empty) { return }
    print ''
    try { $line | ^caro explain --shell bash - }
}

$env.config.keybindings = ($env.config.keybindings | append [
    {
        name: caro_command
        modifier: @KEY_MODIFIER@
        keycode: @KEY@
        mode: [emacs vi_insert vi_normal]
        event: { send: executehostcommand cmd: '__caro_command' }
    }
    {
        name: caro_explain
        modifier: @EXPLAIN_MODIFIER@
        keycode: @EXPLAIN@
        mode: [emacs vi_insert vi_normal]
        event: { send: executehostcommand cmd: '__caro_explain' }
    }
])
