#!/usr/bin/env bash
# Build a layer for AWS Lambda: XGBoost without the CUDA code that a machine without GPU never runs.
#
#   ./build-layer.sh [OUTPUT.zip]
#
# Run it with the Python of the function's runtime, or name that in PYTHON. A layer may take 250 MiB unpacked; XGBoost
# with NumPy and SciPy takes 432 MiB as installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
output=${1:-layer.zip}
python=${PYTHON:-python3}
limit=$((250 * 1024 * 1024))

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

# NCCL joins GPUs of several machines: --no-deps leaves its 470 MiB out.
"$python" -m pip install --quiet --no-deps --no-compile --only-binary :all: \
    --target "$build/python" -r "$here/requirements.txt"

# compute_50 names no device, only PTX, and --ptx none drops that too: no device code stays.
wheelslim env --arch compute_50 --ptx none --drop tests --quiet "$build/python"

size=$(find "$build/python" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }')
echo "layer: $((size / 1024 / 1024)) MiB unpacked"
if [ "$size" -gt "$limit" ]; then
    echo "the layer is over the limit of $((limit / 1024 / 1024)) MiB" >&2
    exit 1
fi

# Sorted names and one date: the same files give the same zip.
"$python" - "$build" "$output" <<'EOF'
import sys
import zipfile
from pathlib import Path

root, output = Path(sys.argv[1]), Path(sys.argv[2])
with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
    for path in sorted(root.rglob("*")):
        if path.is_file():
            info = zipfile.ZipInfo(path.relative_to(root).as_posix(), (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (path.stat().st_mode & 0o777 | 0o100000) << 16
            archive.writestr(info, path.read_bytes())
EOF
echo "wrote $output"
