#!/usr/bin/env bash
# Builds caro for NVIDIA GPUs on a machine without toolkit and driver: benches/cuda.sh [COMPUTE_CAP] [WORK_DIR]
# The toolkit is installed as Python wheels. COMPUTE_CAP is the GPU's compute capability without the dot (default 90:
# H100, H200).
# The binary needs libcuda (of the driver), libcudart, libcublas and libcurand to run; the last lines of output say how
# to run it.
# State: built caro with candle-core 0.11.1 on 2026-11-23 on a machine without a GPU (records/2026-11-23-audits.md); the
# binary has never run on a GPU.
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

# 2. The names that a linker expects: lib64, and libraries without versions.
ln -sfn lib "$cuda/lib64"
for versioned in "$cuda"/lib/*.so.*; do
  plain=${versioned%%.so.*}.so
  [ -e "$plain" ] || ln -s "$(basename "$versioned")" "$plain"
done

# 3. Without a driver: a stub of its library, with all functions that the crate `cudarc` declares.
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

# 4. The build, in a target folder of its own.
export CUDA_HOME=$cuda CUDA_PATH=$cuda CUDA_ROOT=$cuda CUDA_COMPUTE_CAP=$cap PATH=$cuda/bin:$PATH
export LIBRARY_PATH=$stub:$cuda/lib${LIBRARY_PATH:+:$LIBRARY_PATH}
RUSTFLAGS="-L native=$cuda/lib -L native=$stub ${RUSTFLAGS:-}" \
  cargo build --release --locked --features cuda --target-dir target/cuda

echo "built target/cuda/release/caro; with the card's driver installed:"
echo "  LD_LIBRARY_PATH=$cuda/lib target/cuda/release/caro bench --device cuda"
