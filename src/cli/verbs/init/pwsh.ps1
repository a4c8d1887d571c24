# caro in the prompt of PowerShell 7.3 and newer, with PSReadLine. @KEY_NAME@: the words on the line become a command in the line.
# @EXPLAIN_NAME@: what the command on the line does. In the file that $PROFILE names: @LOAD@

if (Get-Command -Name Set-PSReadLineKeyHandler -ErrorAction Ignore) {
    Set-PSReadLineKeyHandler -Chord '@KEY@' -BriefDescription 'CaroCommand' -Description 'Turn the words on the line into a command' -ScriptBlock {
        $line = $null
        $cursor = $null
        [Microsoft.PowerShell.PSConsoleReadLine]::GetBufferState([ref]$line, [ref]$cursor)
        if ([string]::IsNullOrWhiteSpace($line)) { return }
        $caro = Get-Command -Name caro -CommandType Application -TotalCount 1
        $answer = & $caro --widget --shell powershell -- $line
        if ($LASTEXITCODE -eq 0 -and $answer) {
            @HISTORY@[Microsoft.PowerShell.PSConsoleReadLine]::AddToHistory('# ' + ($line -replace '\r?\n', ' '))
            [Microsoft.PowerShell.PSConsoleReadLine]::Replace(0, $line.Length, ($answer -join "`n"))
        }
        [Microsoft.PowerShell.PSConsoleReadLine]::InvokePrompt()
    }

    Set-PSReadLineKeyHandler -Chord '@EXPLAIN@' -BriefDescription 'CaroExplain' -Description 'Explain the command on the line' -ScriptBlock {
        $line = $null
        $cursor = $null
        [Microsoft.PowerShell.PSConsoleReadLine]::GetBufferState([ref]$line, [ref]$cursor)
        if ([string]::IsNullOrWhiteSpace($line)) { return }
        $caro = Get-Command -Name caro -CommandType Application -TotalCount 1
        Write-Host
        $line | & $caro explain --shell powershell - | Out-Host
        [Microsoft.PowerShell.PSConsoleReadLine]::InvokePrompt()
    }
}
