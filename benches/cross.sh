#!/usr/bin/env bash
# Checks caro for other systems than the development machine, from an x86-64 Debian: benches/cross.sh [WHAT...]
# WHAT: kernels (the engine's kernels on emulated ARM CPUs), arm (everything for Linux on AArch64, and the tests of
# the crates in ROOMS on an emulated CPU), macos, windows (`cargo check` only: nothing is linked or run). Default: all.
#
# Nothing is installed: packages are unpacked below WORK (default target/cross, about 4 GB with build outputs).
#   a Rust compiler with the standard library for AArch64, and its source: Debian testing's packages (SUITE)
#   an emulator: Debian testing's qemu-user
#   a C compiler for all of them: Python's package `ziglang`; for Windows, Debian stable's gcc-mingw-w64-x86-64-posix
# A mirror's list of testing packages may have expired: its signature is checked, its age is not.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(realpath -m "${WORK:-target/cross}")
suite=${SUITE:-forky}
rooms=${ROOMS:-"model shell command"}
what=${*:-kernels arm macos windows}
mkdir -p "$work/bin"

# 1. Packages. unpack NAME SUITE ROOT PACKAGE... unpacks PACKAGEs with their dependencies below ROOT, from this
# machine's mirror.
# shellcheck disable=SC2016 # apt expands the variable
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/\?$')
unpack() {
  local apt=$work/apt-$1 from=$2 root=$3
  shift 3
  if [ ! -e "$root/.complete" ]; then
    mkdir -p "$apt"/{lists/partial,archives/partial,sources.list.d,preferences.d,apt.conf.d} "$root"
    : > "$apt/status" # as on an empty machine, so that libraries are downloaded too
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg check-valid-until=no] $mirror $from main" \
      > "$apt/sources.list"
    cat > "$apt/apt.conf" <<CONF
Dir::State "$apt"; Dir::State::lists "$apt/lists"; Dir::State::status "$apt/status"; Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives"; Dir::Etc "$apt"; APT::Architectures { "amd64"; "arm64"; };
APT::Install-Recommends "false"; Acquire::Languages "none"; APT::Sandbox::User "root";
CONF
    APT_CONFIG=$apt/apt.conf apt-get -qq update
    APT_CONFIG=$apt/apt.conf apt-get -qq -y --download-only install "$@"
    for package in "$apt"/archives/*.deb; do dpkg -x "$package" "$root"; done
    rm -rf "$apt"
    touch "$root/.complete"
  fi
}

unpack rust "$suite" "$work/rust" rustc rust-src libstd-rust-dev libstd-rust-dev:arm64 qemu-user
lib=$work/rust/usr/lib/x86_64-linux-gnu
# Makes the libraries available where the emulated programs look for them.
ln -sfn usr/lib "$work/rust/lib"

# The compiler needs a newer C library than this system's, which was unpacked with it.
for tool in rustc rustdoc; do
  printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' "$lib/ld-linux-x86-64.so.2" "$lib" "$work/rust/usr/bin/$tool" \
    > "$work/bin/$tool"
done

# 2. C compilers. `zig` does not know Rust's names of targets, so the wrappers drop --target.
[ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet ziglang==0.17.0
for target in aarch64-linux-gnu.2.34 aarch64-macos; do
  for language in cc c++; do
    cat > "$work/bin/$language-$target" <<WRAPPER
#!/usr/bin/env bash
words=()
for word in "\$@"; do [[ \$word == --target=* ]] || words+=("\$word"); done
export ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig
exec $work/venv/bin/python -m ziglang $language -target $target "\${words[@]}"
WRAPPER
  done
done
printf '#!/bin/sh\nexec %q -m ziglang ar "$@"\n' "$work/venv/bin/python" > "$work/bin/zig-ar"
chmod +x "$work"/bin/*

export RUSTC=$work/bin/rustc RUSTDOC=$work/bin/rustdoc CARGO_PROFILE_DEV_DEBUG=false
export CC_aarch64_unknown_linux_gnu=$work/bin/cc-aarch64-linux-gnu.2.34 CXX_aarch64_unknown_linux_gnu=$work/bin/c++-aarch64-linux-gnu.2.34
export CC_aarch64_apple_darwin=$work/bin/cc-aarch64-macos CXX_aarch64_apple_darwin=$work/bin/c++-aarch64-macos
export AR_aarch64_unknown_linux_gnu=$work/bin/zig-ar AR_aarch64_apple_darwin=$work/bin/zig-ar
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$CC_aarch64_unknown_linux_gnu

# 3. Emulated CPUs: one with matrix instructions, one with dot products only, one with neither.
emulated() {
  local cpu=$1
  shift
  echo "== $cpu: $*"
  CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$work/rust/usr/bin/qemu-aarch64 -cpu $cpu -L $work/rust" \
    cargo "$@"
}
# gemm-f16 0.19, a dependency of candle, does not build for this target without optimization (its issue 31).
arm=(--locked --target aarch64-unknown-linux-gnu --target-dir "$work/target"
     --config profile.dev.package.gemm-f16.opt-level=3 --config profile.dev.package.gemm-common.opt-level=3)
for one in $what; do
  case $one in
    kernels)
      for cpu in max cortex-a76 cortex-a53; do
        emulated "$cpu" test "${arm[@]}" -p caro-model --lib -- engine::kernels engine::matmul engine::simd
      done ;;
    arm)
      cargo check "${arm[@]}" --all-targets
      emulated max run "${arm[@]}" -- --version
      # shellcheck disable=SC2086
      emulated max test "${arm[@]}" --lib $(printf -- '-p caro-%s ' $rooms) ;;
    macos|windows)
      # There are no packages of the standard library for these targets, so its source is checked too. That has a
      # folder of its own, because other settings than above would rebuild everything.
      if [ "$one" = macos ]; then target=aarch64-apple-darwin; else
        target=x86_64-pc-windows-gnu
        # shellcheck source=/dev/null
        unpack mingw "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/mingw" gcc-mingw-w64-x86-64-posix
        export CC_x86_64_pc_windows_gnu=x86_64-w64-mingw32-gcc-posix AR_x86_64_pc_windows_gnu=x86_64-w64-mingw32-ar
      fi
      # `dlltool` must be in the PATH.
      PATH=$PATH:$work/mingw/usr/bin RUSTC_BOOTSTRAP=1 \
        __CARGO_TESTS_ONLY_SRC_ROOT=$(echo "$work"/rust/usr/src/rustc-*/library) \
        cargo check --locked -Zbuild-std --target "$target" --target-dir "$work/target-std" --all-targets ;;
    *) echo "error: $one is none of kernels arm macos windows" >&2; exit 2 ;;
  esac
done
