#!/bin/sh
# Install the stand-ins of a truth. Usage: install.sh PYTHON FOLDER STAMP
set -eu
python=$1 folder=$2 stamp=$3
rm -f "$folder"/installed-*
"$python" -m seatrial.standins install "$folder" --truth "$folder/truth.yaml"
touch "$stamp"
