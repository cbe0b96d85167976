#!/usr/bin/env bash
# Slim downloaded conda packages into a channel of one's own, which clients prefer to the original.
#
#   ./slim-channel.sh CHANNEL GPU PACKAGE.conda…
#
# CHANNEL comes first in the list of channels, with strict priority; the build string ends in _slim.
set -euo pipefail
channel=$1
gpu=$2
shift 2

mkdir -p "$channel/linux-64" "$channel/noarch"
wheelslim prune --arch "$gpu" --build-suffix slim --output-dir "$channel/linux-64" "$@"
"${INDEX:-rattler-index}" fs "$channel"
