#!/usr/bin/env bash
# Packs a binary, installs each form where nothing else is, uses it there and takes it away again: check.sh BINARY
#
# Needs root (chroot) and python3, dpkg-dev, debootstrap, busybox, man-db; looks with shellcheck, lintian, ruby, rubocop, zsh, fish
# and actionlint where they are. BARE_ROOT=DIR is a Debian of debootstrap's that is there already; it is copied.
# It ends with what passed and what was left out; anything that fails ends it with 1.
set -eEuo pipefail

here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:?usage: check.sh BINARY}")
work=$(mktemp -d)
server=''
passed=() left_out=()
step=start

cleanup() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
trap 'echo "failed: $step" >&2' ERR

fail() {
  printf 'failed: %s: %s\n' "$step" "$1" >&2
  exit 1
}

# says CODE WORD COMMAND...: fails unless the command ends with that code and writes that word.
says() {
  local code=0 out
  out=$("${@:3}" 2>&1 </dev/null) || code=$?
  [ "$code" = "$1" ] || fail "\`${*:3}\` ended with $code, not $1: $out"
  grep -qF -- "$2" <<<"$out" || fail "\`${*:3}\` does not say \"$2\": $out"
}

# looks TOOL COMMAND...: runs a linter, if it is here.
looks() {
  if command -v "$1" >/dev/null; then "${@:2}" || fail "${*:2}"; else left_out+=("$1 (not here)"); fi
}

# What lies below a folder; of a directory its size says nothing.
listing() { find "$1" "${@:2}" \( -type d -printf '%P %m\n' -o -printf '%P %m %s %l\n' \) | sort; }

# same WHAT BEFORE AFTER
same() { diff <(echo "$2") <(echo "$3") >"$work/diff" || fail "$1 is not as it was: $(head -20 "$work/diff")"; }

# works SHARE ZSH RUN...: the program, its completions and its pages; RUN is how a command is run there.
works() {
  local share=$1 zsh=$2
  shift 2
  says 0 "caro $version" "$@" caro --version
  says 1 danger "$@" caro check 'rm -rf /'
  says 0 "WHAT IS KEPT" "$@" caro help privacy
  # shellcheck disable=SC2016 # the inner shell's
  says 0 completions bash --norc -c '. "$1"; COMP_WORDS=(caro compl); COMP_CWORD=1; _caro caro compl caro; echo "${COMPREPLY[@]}"' \
    _ "$share/bash-completion/completions/caro"
  # shellcheck disable=SC2016
  looks zsh says 0 loaded zsh -f -c 'fpath=($1 $fpath); autoload -Uz compinit; compinit -u -D; autoload +X "${_comps[caro]:?}" && echo loaded' \
    _ "$share/zsh/$zsh"
  # fish loads a script only for a program that is on PATH
  # shellcheck disable=SC2016
  looks fish says 0 completions env "PATH=$work/tree/bin:$PATH" fish -N -c 'set fish_complete_path $argv[1]; complete -C "caro compl"' "$share/fish/vendor_completions.d"
  says 0 "$share/man/man1/caro.1" man -M "$share/man" -w caro
  says 0 "caro undo" man -P cat -M "$share/man" caro-undo
}

begin() {
  step=$1
  printf '== %s\n' "$step"
}

begin "two builds give the same bytes"
python3 "$here/pack.py" "$binary" "$work/out" >/dev/null
(
  umask 077
  mkdir "$work/elsewhere"
  TMPDIR=$work/elsewhere TZ=Asia/Tokyo LC_ALL=C python3 "$here/pack.py" "$binary" "$work/again" >/dev/null
)
diff "$work/out/SHA256SUMS" "$work/again/SHA256SUMS"
(cd "$work/out" && sha256sum --quiet -c SHA256SUMS)
rm -r "$work/again"
archive=$(echo "$work"/out/caro-*.tar.gz) wheel=$(echo "$work"/out/*.whl) deb=$(echo "$work"/out/*.deb)
mkdir "$work/tree"
tar -xzf "$archive" -C "$work/tree" --strip-components=1
version=$("$work/tree/bin/caro" --version)
version=${version#caro }
passed+=("$step")

begin "linters"
looks shellcheck shellcheck "$here/install.sh" "$here/check.sh"
# what is said for information only are words that lintian sees in the machine code
looks lintian lintian --allow-root --fail-on error,warning "$deb"
looks actionlint actionlint "$here"/../workflows/*.yml
passed+=("$step")

begin "every crate has its notice"
papers=$work/tree/share/doc/caro
for name in candle-core tokio ring tree-sitter-bash; do
  grep -q "^$name [0-9]" "$papers/THIRD-PARTY.txt" || fail "THIRD-PARTY.txt has no $name"
done
for held in "$(unzip -p "$wheel" '*/licenses/THIRD-PARTY.txt')" \
            "$(dpkg-deb --fsys-tarfile "$deb" | tar -xO ./usr/share/doc/caro/THIRD-PARTY.txt.gz | zcat)"; do
  same THIRD-PARTY.txt "$(cat "$papers/THIRD-PARTY.txt")" "$held"
done
same LICENSE "$(cat "$here/../../LICENSE")" "$(unzip -p "$wheel" '*/licenses/LICENSE')"
passed+=("$step")

begin "archive: install.sh in an empty root with nothing but libc and busybox"
root=$work/bare
# `.cache` is every program's, and caro leaves it behind
mkdir -p "$root"/{bin,dev,tmp,home/u/.cache}
mknod -m 666 "$root/dev/null" c 1 3
cp "$(command -v busybox)" "$root/bin/busybox"
# as ldd lists them: NAME => PATH, or the loader's path alone
ldd "$root/bin/busybox" "$work/tree/bin/caro" | grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r library; do
  mkdir -p "$root${library%/*}"
  cp "$library" "$root$library"
done
for name in $("$root/bin/busybox" --list); do ln -sf busybox "$root/bin/$name"; done
cp "$here/install.sh" "$work"/out/{SHA256SUMS,*.tar.gz} "$root/tmp/"
chown -R 1000:1000 "$root/home/u"
chmod 1777 "$root/tmp"
name=${archive##*/}
sum=$(sha256sum "$archive")
sum=${sum%% *}
inside() { chroot --userspec=1000:1000 "$root" /bin/env -i HOME=/home/u "PATH=${path:-/home/u/.local/bin:/bin}" "$@"; }
before=$(listing "$root")
says 1 "no archive was named" inside sh /tmp/install.sh
says 1 "and not 0000" inside sh /tmp/install.sh --sha256 "${sum//[0-9a-f]/0}" "/tmp/$name"
says 1 "no sum" inside sh -c "cp /tmp/$name /home/u/$name && cd /home/u && sh /tmp/install.sh $name; code=\$?; rm $name; exit \$code"
says 1 "can be changed on its way" inside sh /tmp/install.sh "http://127.0.0.1/$name"
whole=$(wc -c <"$here/install.sh")
for cut in 100 2000 $((whole / 2)) $((whole - 2)) $((whole - 8)) $((whole - 15)) $((whole - 20)); do
  head -c "$cut" "$here/install.sh" >"$root/tmp/half.sh"
  inside CARO_ARCHIVE="/tmp/$name" sh /tmp/half.sh >/dev/null 2>&1 || true
done
rm "$root/tmp/half.sh"
same "the root after refusals and half scripts" "$before" "$(listing "$root")"
path=/bin says 0 "is not on your PATH" inside sh /tmp/install.sh "/tmp/$name"
works "$root/home/u/.local/share" site-functions inside
says 0 "caro $version is in" inside sh /tmp/install.sh "/tmp/$name"
says 0 "removed" inside caro self uninstall --yes
says 0 "is gone" inside sh /home/u/.local/lib/caro/install.sh --uninstall
same "the root" "$before" "$(listing "$root")"
# what somebody else has put there stays
inside mkdir -p /home/u/.local/bin
inside sh -c 'echo mine > /home/u/.local/bin/caro'
says 1 "did not put it there" inside sh /tmp/install.sh "/tmp/$name"
says 0 mine inside cat /home/u/.local/bin/caro
inside rm -r /home/u/.local
python3 -m http.server --bind 127.0.0.1 --directory "$work/out" 0 >"$work/server" 2>&1 &
server=$!
port=''
for _ in {1..50}; do
  port=$(sed -n 's/.* port \([0-9]*\).*/\1/p' "$work/server")
  [ -z "$port" ] || break
  sleep 0.1
done
says 0 "caro $version is in" inside sh /tmp/install.sh --prefix /home/u/own --sha256 "$sum" "http://127.0.0.1:$port/$name"
says 0 "caro $version" inside /home/u/own/bin/caro --version
says 0 "is gone" inside sh /home/u/own/lib/caro/install.sh --prefix /home/u/own --uninstall
same "the root" "$before" "$(listing "$root")"
passed+=("$step")

begin "wheel: pip in a fresh environment"
python3 - "$wheel" <<'PYTHON'
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
assert sorted(row[0] for row in rows) == sorted(wheel.namelist()), "RECORD has other files than the wheel"
for name, digest, size in rows:
    content = wheel.read(name)
    own = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    assert name == record or (digest, size) == (own, str(len(content))), f"RECORD is wrong on {name}"
PYTHON
python3 -m venv "$work/venv"
mkdir "$work/home"
in_venv() { env -i HOME="$work/home" PATH="$work/venv/bin:/usr/bin:/bin" PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1 "$@"; }
in_venv pip list >/dev/null
before=$(listing "$work/venv" -name __pycache__ -prune -o)
says 0 "Successfully installed caro-cli-$version" in_venv pip install --no-index --no-compile "$wheel"
[ "$(in_venv sh -c 'command -v caro')" = "$work/venv/bin/caro" ] || fail "caro is not on PATH"
works "$work/venv/share" site-functions in_venv
says 0 "No broken requirements" in_venv pip check
says 0 "Successfully uninstalled" in_venv pip uninstall -y caro-cli
# pip takes away files and leaves the folders that it made for them
find "$work/venv/share" -depth -type d -empty -delete
same "the environment" "$before" "$(listing "$work/venv" -name __pycache__ -prune -o)"
passed+=("$step")

begin "deb: dpkg in a bare Debian"
debian=$work/debian
if [ -n "${BARE_ROOT:-}" ]; then
  cp -a "$BARE_ROOT" "$debian"
else
  # shellcheck source=/dev/null
  debootstrap --variant=minbase "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$debian" >"$work/debootstrap" 2>&1 || {
    tail "$work/debootstrap" >&2
    fail "debootstrap made no Debian"
  }
fi
cp "$deb" "$debian/tmp/caro.deb"
in_debian() { chroot "$debian" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
own_records=(\( -path "$debian/var/lib/dpkg" -o -path "$debian/var/log" \) -prune -o)
mkdir -p "$debian/root/.cache"
before=$(listing "$debian" "${own_records[@]}")
in_debian dpkg -i /tmp/caro.deb >/dev/null
same "what was installed" "" "$(in_debian dpkg --verify caro)"
works "$debian/usr/share" vendor-completions in_debian
in_debian caro self uninstall --yes >/dev/null 2>&1
in_debian dpkg -P caro >/dev/null
same "the Debian" "$before" "$(listing "$debian" "${own_records[@]}")"
says 1 "not installed" in_debian dpkg -s caro
passed+=("$step")

begin "formula for Homebrew: its form, and the files it names"
python3 "$here/formula.py" "$work/out" "file:///caro" "file://$work/out"
grep -qF "sha256 \"$sum\"" "$work/out/caro.rb" || fail "the formula has not the archive's sum"
grep -o '"\(bin\|share\)/[^"]*"' "$work/out/caro.rb" | tr -d '"' | while read -r pattern; do
  compgen -G "$work/tree/$pattern" >/dev/null || fail "the archive has no $pattern"
done
looks ruby says 0 "Syntax OK" ruby -c "$work/out/caro.rb"
looks rubocop rubocop --only Lint,Layout --except Layout/LineLength "$work/out/caro.rb" >/dev/null
passed+=("$step")

printf '\n'
printf 'passed: %s\n' "${passed[@]}"
if [ ${#left_out[@]} -gt 0 ]; then printf '%s\n' "${left_out[@]}" | sort -u | sed 's/^/left out: /'; fi
