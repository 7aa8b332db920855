#!/bin/bash
# Print the version (X.Y) of the suite's Python and the platforms of its wheels, a line
# each; run by a login shell. Usage: python.sh PYTHON STATED PLATFORMS
# PYTHON may be `bundled`, a Python that is brought: then any Python of the system prints
# the platforms, after its own version. STATED is the version that the inventory states,
# or empty. PLATFORMS is the text of platforms.py.
python=$1 stated=$2 platforms=$3
if [ "$python" = bundled ]; then
    for python in python3 /usr/libexec/platform-python; do
        "$python" -c "$platforms" 2>/dev/null && exit
    done
    echo "suite_python: bundled: no python3 here reads the C library; state" \
        "suite_wheel_platforms" >&2
    exit 1
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "suite_python: $python is no Python of at least 3.11; found" \
        "$("$python" --version 2>&1); install one and name it, or set bundled" >&2
    exit 1
}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ -n "$stated" ] && [ "$stated" != "$version" ]; then
    echo "suite_python_version: the inventory states $stated, $python is $version;" \
        "correct one of them" >&2
    exit 1
fi
exec "$python" -c "$platforms"
