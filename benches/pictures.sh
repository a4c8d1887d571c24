#!/usr/bin/env bash
# Draws the pictures of the documents: benches/pictures.sh CARO [NAME ...]. Each is a real session of CARO with the
# default model (CARO_MODELS_DIR, or the cache folder), in a new home folder (PICTURE_HOME) with a folder of small
# files.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
caro=$(realpath "$1")
shift
stage=$(mktemp -d)
home=${PICTURE_HOME:-/home/ada}
mkdir "$home"    # fails if it exists
trap 'rm -rf "$stage" "$home"' EXIT
export CARO_MODELS_DIR=${CARO_MODELS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/caro/models}
export HOME=$home CARO_CACHE_DIR=$stage/cache CARO_RUNTIME_DIR=$stage/run CARO_RESIDENT=off CARO_KNOWLEDGE=off
export SHELL=/bin/bash LANG=C.UTF-8
mkdir "$stage/bin"
ln -s "$caro" "$stage/bin/caro"
export PATH=$stage/bin:/usr/local/bin:/usr/bin:/bin
# the messages of the first call should be in no picture
caro "list files" > /dev/null

# Creates a typical folder, anew for each picture.
lay() {
  find "$HOME" -mindepth 1 -delete; mkdir -p "$HOME/project/src" "$HOME/project/logs"; cd "$HOME/project"
  printf 'date,item,amount\n2026-10-02,paper,12.50\n2026-10-09,ink,31.00\n2026-11-03,paper,13.10\n' > costs.csv
  printf 'The backup runs at 03:00 and goes to the disk "attic".\nIts key is kept by Maria.\n' > notes.txt
  for n in 1 2 3; do head -c $((n * 70000)) /dev/zero | tr '\0' "$n" > "logs/web.$n.log"; done
  printf 'port = 8080\nworkers = 4\n' > src/server.conf
  printf '# Starts the server with src/server.conf.\nexec server --config src/server.conf\n' > src/start.sh
  printf 'def parse(line):\n    """Reads one line of costs.csv."""\n    return line.split(",")\n' > src/parse.py
}

# picture NAME STEP ...
picture() {
  local name=$1; shift
  [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " == *" $name "* ]] || return 0
  lay
  "$here/picture.py" "$here/records/terminal-$name.svg" --columns "${columns:-100}" --seconds 120 "$@"
}
wanted=("$@")

picture preview 'caro -x --preview "delete all files ending in .log"' 'wait:\[y/' 'n'
picture undo 'caro -x "delete all files ending in .log"' 'wait:\[y/' 'y' 'caro undo --list' 'caro undo' 'ls logs'
picture fix 'caro fix "cat nots.txt | wc -l" --try'
picture agent 'caro agent "who keeps the key of the backup, and when does it run?"'
picture task 'caro task add --cron "0 8 * * 1-5" "list the files below logs by size"' 'caro task list' \
  'caro task run list-the-files-below'
picture loop 'caro loop' 'wait:ends it' 'how many lines has costs.csv?' 'wait:[0-9] lines|lines: [0-9]|has [0-9]' 'key:^D'
picture forge 'caro forge "the sum of two numbers" --example "1 2 => 3" --example "10 5 => 15"'
picture shards 'caro agent --shards . "which files say how the server is started?"'
