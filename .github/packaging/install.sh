#!/bin/sh
# Installs caro from the archive of a release, for one person, or takes it away again. See usage below.
# Everything is a function, called in the last line: a download that was cut off runs nothing.

usage() {
  cat <<'EOF'
Installs caro below ~/.local, from the archive of a release:

  install.sh [--prefix DIR] [--sha256 SUM] [--force] ARCHIVE
  install.sh [--prefix DIR] --uninstall

ARCHIVE is a file (caro-VERSION-TARGET.tar.gz) or an https:// address; $CARO_ARCHIVE stands for it, too.
The sum is that of --sha256 or $CARO_SHA256, else that of the file SHA256SUMS beside the archive. Without one nothing is installed.
--force writes over files that something else has put there. Nothing needs root, and nothing outside DIR is touched.
EOF
}

fail() {
  printf 'error: %s\n' "$1" >&2
  if [ -n "${2:-}" ]; then printf 'hint: %s\n' "$2" >&2; fi
  exit 1
}

main() {
  set -eu
  umask 022
  prefix='' archive=${CARO_ARCHIVE:-} sum=${CARO_SHA256:-} force='' uninstall='' work=''
  while [ $# -gt 0 ]; do
    case $1 in
      --prefix | --sha256)
        [ $# -gt 1 ] || fail "$1 wants a word behind it"
        if [ "$1" = --prefix ]; then prefix=$2; else sum=$2; fi
        shift ;;
      --prefix=*) prefix=${1#*=} ;;
      --sha256=*) sum=${1#*=} ;;
      --force) force=yes ;;
      --uninstall) uninstall=yes ;;
      -h | --help)
        usage
        return ;;
      -*) fail "there is no option $1" "--help lists them" ;;
      *) archive=$1 ;;
    esac
    shift
  done
  if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail "HOME is not set" "say where: --prefix DIR"
    prefix=$HOME/.local
  fi
  case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
  esac
  list=$prefix/lib/caro/installed
  if [ -n "$uninstall" ]; then
    take_away
    return
  fi
  [ -n "$archive" ] || { usage >&2; fail "no archive was named"; }
  trap 'clean' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  # below the prefix: programs may be forbidden in /tmp, and what is moved from here lies on the same disk
  new_prefix=''
  [ -d "$prefix" ] || new_prefix=yes
  mkdir -p "$prefix" || fail "$prefix cannot be made" "name a folder of yours: --prefix DIR"
  work=$(mktemp -d "$prefix/.caro-XXXXXX") || fail "$prefix cannot be written" "name a folder of yours: --prefix DIR"
  fetch
  verify
  unpack
  put
  tell
}

# shellcheck disable=SC2317 # the trap calls it
clean() {
  if [ -n "$work" ]; then rm -rf "$work"; fi
  # an installation that came to nothing leaves no empty folder
  if [ -n "${new_prefix:-}" ]; then rmdir "$prefix" 2>/dev/null || true; fi
}

# The archive, and the sums beside it if they are needed, into $work.
fetch() {
  name=${archive##*/}
  case $archive in
    https://*) download "$archive" "$work/archive" ;;
    http://*)
      [ -n "$sum" ] || fail "what comes over http:// can be changed on its way" "give the sum: --sha256 SUM, or use https://"
      download "$archive" "$work/archive" ;;
    *://*) fail "$archive is no address that can be fetched" "give a file or an https:// address" ;;
    *)
      [ -f "$archive" ] || fail "there is no file $archive" "give the path of caro-VERSION-TARGET.tar.gz"
      cp "$archive" "$work/archive" ;;
  esac
  [ -z "$sum" ] || return 0
  case $archive in
    https://*) download "${archive%/*}/SHA256SUMS" "$work/sums" ;;
    */*) [ ! -f "${archive%/*}/SHA256SUMS" ] || cp "${archive%/*}/SHA256SUMS" "$work/sums" ;;
    *) [ ! -f SHA256SUMS ] || cp SHA256SUMS "$work/sums" ;;
  esac
  [ -f "$work/sums" ] || fail "there is no sum to hold the archive against" "put SHA256SUMS beside it, or give --sha256 SUM"
  while read -r digest file; do
    if [ "${file#\*}" = "$name" ]; then sum=$digest; fi
  done <"$work/sums"
  [ -n "$sum" ] || fail "SHA256SUMS has no line for $name" "give --sha256 SUM, or the archive its own name back"
}

download() {
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL --proto-redir '=https' -o "$2" "$1" || fail "$1 could not be fetched" "look at the address and the network"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$1" || fail "$1 could not be fetched" "look at the address and the network"
  else
    fail "neither curl nor wget is here" "fetch $1 by other means and give the file"
  fi
}

verify() {
  if command -v sha256sum >/dev/null 2>&1; then
    found=$(sha256sum <"$work/archive")
  elif command -v shasum >/dev/null 2>&1; then
    found=$(shasum -a 256 <"$work/archive")
  else
    fail "neither sha256sum nor shasum is here" "install one of them"
  fi
  found=${found%% *}
  sum=$(printf %s "$sum" | tr 'ABCDEF' 'abcdef')
  [ "$found" = "$sum" ] || fail "the archive has the SHA-256 $found and not $sum" "fetch it again; nothing was installed"
}

# The tree of the archive, as $tree, if it has nothing but plain files in places that are ours.
unpack() {
  tar -tzf "$work/archive" >"$work/names" || fail "$archive is no archive" "give caro-VERSION-TARGET.tar.gz"
  tar -tvzf "$work/archive" >"$work/long"
  if grep -v '^-' "$work/long" >&2; then fail "the archive has something that is no plain file" "do not use it"; fi
  while read -r entry; do
    inside=${entry#caro-*/}
    case $entry in
      *[!A-Za-z0-9._/+-]* | *..* | /*) inside='' ;;
    esac
    case $inside in
      bin/caro | share/*/?* | lib/caro/install.sh) printf '%s\n' "$inside" >>"$work/inside" ;;
      *) fail "the archive has a file $entry, which is not of caro's" "do not use it" ;;
    esac
  done <"$work/names"
  mkdir "$work/tree"
  tar -xzf "$work/archive" -C "$work/tree" || fail "the archive cannot be unpacked" "is there room below $prefix?"
  set -- "$work"/tree/*
  if [ $# -ne 1 ] || [ ! -f "$1/bin/caro" ]; then fail "the archive has no program" "give caro-VERSION-TARGET.tar.gz"; fi
  tree=$1
  version=$("$tree/bin/caro" --version) ||
    fail "the program does not run here; nothing was changed" "take the archive for $(uname -sm), or build caro from its source"
}

# Moves the files into their places. What is listed can be taken away at any moment, so the list comes first.
put() {
  touch "$work/old" "$work/list"
  if [ -f "$list" ]; then cp "$list" "$work/old"; fi
  while read -r inside; do
    place=$prefix/$inside
    [ ! -d "$place" ] || fail "$place is a folder" "move it away"
    if { [ -e "$place" ] || [ -L "$place" ]; } && [ -z "$force" ] && ! grep -qxF "file $inside" "$work/old"; then
      fail "$place is there already, and this script did not put it there" "take it away, or say --force"
    fi
    printf 'file %s\n' "$inside" >>"$work/list"
  done <"$work/inside"
  { cat "$work/inside"; echo lib/caro/installed; } >"$work/all"
  if [ -n "$new_prefix" ]; then echo 'folder .' >>"$work/list"; fi
  while read -r inside; do
    while [ "$inside" != "${inside%/*}" ]; do
      inside=${inside%/*}
      if [ ! -d "$prefix/$inside" ]; then echo "folder $inside" >>"$work/list"; fi
    done
  done <"$work/all"
  grep '^folder ' "$work/old" >>"$work/list" || true
  sort -u "$work/list" -o "$work/list"
  sort -u "$work/list" "$work/old" >"$work/both"
  mkdir -p "$prefix/lib/caro"
  mv -f "$work/both" "$list"
  while read -r inside; do
    mkdir -p "$prefix/${inside%/*}"
    mv -f "$tree/$inside" "$prefix/$inside" || fail "$prefix/$inside cannot be written" "--uninstall takes away what is there"
  done <"$work/inside"
  # of an earlier version, and in this one no more
  while read -r kind inside; do
    if [ "$kind" = file ] && ours "$inside" && ! grep -qxF "file $inside" "$work/list"; then rm -f "$prefix/$inside"; fi
  done <"$work/old"
  mv -f "$work/list" "$list"
}

# True of a path that an archive can have put there: a list that was tampered with takes nothing else away.
ours() {
  case $1 in
    *..* | /* | '') return 1 ;;
    . | bin | lib | share | bin/caro | lib/caro | lib/caro/install.sh | share/*) return 0 ;;
    *) return 1 ;;
  esac
}

tell() {
  printf '%s is in %s\n' "$version" "$prefix/bin/caro"
  case :${PATH:-}: in
    *":$prefix/bin:"*) ;;
    *)
      printf '%s is not on your PATH. This line in the file of your shell (~/.profile, ~/.zshrc) puts it there:\n' "$prefix/bin"
      printf '  export PATH="%s:%sPATH"\n' "$prefix/bin" '$' ;;
  esac
  printf 'To take it away: sh %s --uninstall --prefix %s\n' "$prefix/lib/caro/install.sh" "$prefix"
}

take_away() {
  [ -f "$list" ] || fail "nothing was installed below $prefix by this script" "say where: --prefix DIR"
  while read -r kind inside; do
    if [ "$kind" = file ] && ours "$inside"; then rm -f "$prefix/$inside"; fi
  done <"$list"
  folders=$(sort -r "$list" | sed -n 's/^folder //p')
  rm -f "$list"
  # the deepest first; what somebody else uses is not empty and stays
  for inside in $folders; do
    # `.` is the prefix itself, which rmdir does not take by that name
    if ours "$inside"; then (cd "$prefix/$inside" && rmdir "$PWD") 2>/dev/null || true; fi
  done
  printf 'the program is gone from %s\n' "$prefix"
  printf 'Settings, models and what it stored stay; "caro self uninstall" lists and removes them while the program is still there.\n'
}

{ main "$@"; exit; }
