# Shared by the stand-ins: programs that take the options that a BSD manual has, fail on others as BSD's getopt does, and do the
# work with GNU's tools or print a fixed table. What they start (find -exec, xargs) is looked up among the stand-ins.

name=${0##*/}

# The program of the system, past the stand-ins.
system() { (PATH=/usr/local/bin:/usr/bin:/bin; command -v "$1"); }

# Ends as BSD does on an option that it does not know, or one without its argument.
illegal() {
    if [ "$1" = : ]; then
        echo "$name: option requires an argument -- $2" >&2
    else
        echo "$name: illegal option -- $2" >&2
    fi
    [ -z "${usage-}" ] || echo "usage: $usage" >&2
    exit "${status-1}"
}

# The processes that every `ps` shows.
# pid ppid user cpu mem vsz rss tty stat started time command
table='1 0 root 0.1 0.3 409000 20100 ?? Ss Mon08 12:01.10 /sbin/launchd
88 1 root 0.9 0.2 408100 14400 ?? Ss Mon08 3:11.02 /usr/libexec/logd
120 1 root 12.2 1.1 410300 90400 ?? Ss Mon08 40:21.77 /usr/libexec/mds
177 1 win 31.5 2.4 480100 200800 ?? Ss Mon08 99:07.31 /Library/WindowServer
301 1 ada 0.4 4.9 470500 410900 ?? S Mon08 2:20.45 /Applications/Mail
322 1 ada 5.5 9.7 640200 810300 ?? S Mon08 31:18.20 /Applications/Safari
340 1 ada 9.8 8.8 980700 740600 ?? S 9:10 14:09.63 /usr/bin/java
355 1 ada 0.0 0.4 420600 33100 s001 Ss 9:12 0:00.81 /bin/zsh
371 355 ada 97.3 1.9 450800 160700 s001 R+ 9:40 22:40.12 /opt/render
390 1 bo 64.0 6.1 710900 510500 s002 R+ 10:02 8:13.90 /usr/bin/swiftc
402 1 bo 7.1 0.7 430400 60200 ?? S 10:11 1:54.38 /usr/sbin/sharingd
418 1 bo 4.2 3.3 460700 280900 ?? S 10:15 1:02.27 /Applications/Notes
433 1 root 3.0 0.6 411500 50300 ?? Ss 10:20 0:44.16 /usr/sbin/bluetoothd
447 1 root 2.2 0.5 410800 42700 ?? Ss 10:31 0:31.09 /usr/libexec/trustd'

# Prints the table in this order of sort(1): the columns named, of everybody, of those with a terminal, or of one person. Reads
# the variables that the options set: columns, every, others, daemons, names, user, pids, running, bare.
show() {
    echo "$table" | "$(system sort)" "$@" | "$(system awk)" -v columns="${columns:-pid,tt,time,command}" -v every="${every-}" \
        -v others="${others-}" -v daemons="${daemons-}" -v names="${names-}" -v user="${user-}" -v pids=",${pids-}," \
        -v running="${running-}" -v bare="${bare-}" '
        BEGIN {
            n = split("pid ppid user %cpu %mem vsz rss tt stat started time command", known, " ")
            for (i = 1; i <= n; i++) field[known[i]] = i
            n = split("pcpu=4 pmem=5 vsize=6 tty=8 tname=8 state=9 s=9 start=10 lstart=10 stime=10 bsdstart=10 cputime=11 etime=11 " \
                "args=12 comm=12 ucomm=12 cmd=12 uid=3 ruser=3 euser=3 uname=3 c=4", other, " ")
            for (i = 1; i <= n; i++) { split(other[i], pair, "="); field[pair[1]] = pair[2] }
            count = split(columns, shown, ",")
            for (i = 1; i <= count; i++) {
                title = toupper(shown[i])
                if (split(shown[i], own, "=") > 1) { shown[i] = own[1]; title = own[2] }
                if (!(shown[i] in field)) { print "ps: " shown[i] ": keyword not found" > "/dev/stderr"; exit 1 }
                head = head sprintf("%-10s ", title); titles = titles title
            }
            if (titles != "" && !bare) print head
        }
        {
            terminal = $8 != "??"
            if (running && $9 !~ /R/) next
            if (pids != ",,") { if (index(pids, "," $1 ",") == 0) next }
            else if (user != "") { if ($3 != user) next }
            else if (!every && !(others && terminal) && !(daemons && $3 == "ada") && !(terminal && $3 == "ada")) next
            line = ""
            for (i = 1; i <= count; i++) {
                value = $(field[shown[i]])
                if (names || shown[i] == "ucomm") sub(/.*\//, "", value)
                line = line sprintf("%-10s ", value)
            }
            print line
        }'
}
