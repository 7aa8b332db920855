#!/bin/sh
# Make the virtual environment from unpacked wheels; runs on the system, without internet.
# Usage: install.sh WHEELS VENV PYTHON STAMP <REQUIREMENTS
set -eu
umask g-w,o-w # only the owner may change what is installed
wheels=$1 venv=$2 python=$3 stamp=$4

cat >"$wheels/requirements.txt"
unpack='import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])'
"$python" -c "$unpack" "$wheels"/uv-*.whl "$wheels/uv"
uv=$(echo "$wheels"/uv/uv-*.data/scripts/uv)
chmod +x "$uv" # a zip file does not say so

rm -rf "$venv"
"$uv" venv --quiet --no-config --offline --python "$python" "$venv"
"$uv" pip install --quiet --no-config --no-cache --offline --no-index \
    --find-links "$wheels" --require-hashes --requirement "$wheels/requirements.txt" \
    --python "$venv/bin/python"
rm -rf "$wheels"
touch "$stamp"
