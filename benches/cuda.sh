#!/usr/bin/env bash
# Builds caro for NVIDIA cards where no toolkit and no driver is installed: benches/cuda.sh [COMPUTE_CAP] [WORK_DIR]
# The toolkit comes as Python wheels. COMPUTE_CAP is the card's, without the dot (default 90: H100, H200).
# The binary needs libcuda (the driver's), libcudart, libcublas and libcurand where it runs; the last lines say how to run it.
# State: built caro with candle-core 0.11.1 on 2026-11-23 on a machine without a card (records/2026-11-23-audits.md); what it built has never
# computed anything.
set -euo pipefail
cap=${1:-90}
work=$(realpath -m "${2:-target/cuda-toolkit}")
cd "$(dirname "$0")/.."
mkdir -p "$work"

# 1. The toolkit.
[ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet \
  nvidia-cuda-nvcc==13.0.* nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.* nvidia-cuda-crt==13.0.* nvidia-nvvm==13.0.* \
  nvidia-cublas==13.0.* nvidia-cuda-nvrtc==13.0.* nvidia-curand
cuda=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13)
[ -x "$cuda/bin/nvcc" ] || { echo "error: there is no nvcc in $cuda" >&2; exit 1; }

# 2. What a linker expects of an installed one: lib64, and names without versions.
ln -sfn lib "$cuda/lib64"
for versioned in "$cuda"/lib/*.so.*; do
  plain=${versioned%%.so.*}.so
  [ -e "$plain" ] || ln -s "$(basename "$versioned")" "$plain"
done

# 3. Where no driver is installed: a library with its name that has all of its functions and none of their bodies.
#    They are those that the crate `cudarc` declares.
stub=$work/stub
if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
  mkdir -p "$stub"
  cargo fetch --locked
  home=${CARGO_HOME:-$HOME/.cargo}
  grep -rhoE '\bfn cu[A-Z][A-Za-z0-9_]*' "$home"/registry/src/*/cudarc-*/src/driver/sys \
    | sed 's/^fn //' | sort -u | sed 's/.*/int &(void) { return 999; }/' > "$stub/cuda.c"
  [ -s "$stub/cuda.c" ] || { echo "error: no functions were found in cudarc's sources" >&2; exit 1; }
  cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$stub/libcuda.so.1" "$stub/cuda.c"
  ln -sf libcuda.so.1 "$stub/libcuda.so"
fi

# 4. The build, beside the usual one.
export CUDA_HOME=$cuda CUDA_PATH=$cuda CUDA_ROOT=$cuda CUDA_COMPUTE_CAP=$cap PATH=$cuda/bin:$PATH
export LIBRARY_PATH=$stub:$cuda/lib${LIBRARY_PATH:+:$LIBRARY_PATH}
RUSTFLAGS="-L native=$cuda/lib -L native=$stub ${RUSTFLAGS:-}" \
  cargo build --release --locked --features cuda --target-dir target/cuda

echo "built target/cuda/release/caro; with the card's driver installed:"
echo "  LD_LIBRARY_PATH=$cuda/lib target/cuda/release/caro bench --device cuda"
