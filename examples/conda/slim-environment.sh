#!/usr/bin/env bash
# Create a conda environment and slim it for one kind of GPU, in one step of an image build.
#
#   ./slim-environment.sh PREFIX GPU [ENVIRONMENT.yml]
#
# CONDA names the client: micromamba (default), mamba or conda. Its package cache is left as it is: linked files
# get inodes of their own. conda list, conda remove and conda doctor go on as before.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$1
gpu=$2
file=${3:-$here/environment.yml}
client=${CONDA:-micromamba}

"$client" create --yes --prefix "$prefix" --file "$file"
wheelslim env --arch "$gpu" "$prefix"

# In an image, the cache would keep the old libraries on the disk.
if [ -n "${CLEAN_CACHE-}" ]; then
    "$client" clean --all --yes
fi
