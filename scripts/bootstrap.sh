#!/usr/bin/env bash
# Make .venv (pinned dependencies, ROS 2 from PyPI), build the messages and install the package into it, live (symlinks).
# Each step is stamped with what it depends on, so that a run with nothing to do takes a moment.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
venv=$root/.venv
log=$root/build/bootstrap.log

say() { printf '\033[1m[%s]\033[0m %s\n' "$1" "$2"; }
die() { printf 'bootstrap: %s\n' "$*" >&2; exit 1; }

# Run a command with its output in the log; on failure show the end of it.
quietly() {
    if ! "$@" >>"$log" 2>&1; then
        tail -n 30 "$log" >&2
        die "'$1 ...' failed; the whole log is $log"
    fi
}

digest() { sha256sum | cut -c1-32; }

find_python() {
    local candidate PATH=$PATH
    PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -vxF "$venv/bin" | paste -sd:)  # an active .venv may be about to be remade
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    die "no Python 3.10 or newer found (looked for ${PYTHON:-python3, python3.10 ... 3.14}). Install one, or name it: PYTHON=/path/to/python3 make build"
}

check_machine() {
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        die "$python cannot make virtual environments. Install its venv module (Debian, Ubuntu: apt install python3-venv)."
    local include
    include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -f "$include/Python.h" ] ||
        die "the Python headers are missing ($include/Python.h). Install them (Debian, Ubuntu: apt install python3-dev)."
    command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null ||
        die "no C compiler found. Install one (Debian, Ubuntu: apt install build-essential)."
    command -v "${CXX:-c++}" >/dev/null || command -v g++ >/dev/null ||
        die "no C++ compiler found; the ROS message support is C++. Install one (Debian, Ubuntu: apt install build-essential)."
}

install_dependencies() {
    local stamp=$venv/.dependencies wanted files=(requirements/core.txt requirements/lint.txt requirements/ros.txt)
    command -v cmake >/dev/null && command -v ninja >/dev/null || files+=(requirements/build.txt)
    wanted=$({ echo "$python $root"; "$python" -VV; cat "${files[@]}"; } | digest)
    [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
    check_machine
    say 1/3 "virtual environment in .venv, $("$python" -V)"
    rm -rf "$venv"
    quietly "$python" -m venv "$venv"
    say 2/3 "pinned dependencies and ROS 2 Jazzy from PyPI (about a minute)"
    local options=()
    for file in "${files[@]}"; do options+=(-r "$file"); done
    quietly "$venv/bin/python" -m pip install --disable-pip-version-check --no-input -q "${options[@]}"
    # The message wheels' CMake files carry include paths of the machine they were built on; CMake refuses absent ones.
    find "$venv/share" -name '*.cmake' -exec grep -l '/opt/python/cp3' {} + |
        xargs -r sed -i -E 's#/opt/python/cp3[^;"]*;?##g'
    echo "$wanted" >"$stamp"
}

build_package() {
    # Contents decide where CMake reads them; names decide where files are only linked.
    local stamp=$venv/.build wanted
    wanted=$({ cat "$venv/.dependencies" CMakeLists.txt package.xml scripts/launcher.py.in msg/*.msg
               find contact_estimation config launch rviz msg -type f -not -path '*/__pycache__/*' | LC_ALL=C sort; } | digest)
    [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
    say 3/3 "messages and package"
    export PATH=$venv/bin:$PATH AMENT_PREFIX_PATH=$venv
    rm -rf build/ros
    quietly cmake -S . -B build/ros -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
        -DCMAKE_PREFIX_PATH="$venv" -DCMAKE_INSTALL_PREFIX="$venv" -DPython3_EXECUTABLE="$venv/bin/python" \
        -DPython3_FIND_VIRTUALENV=ONLY -DAMENT_CMAKE_SYMLINK_INSTALL=1
    # Links to files that no longer exist would keep removed modules importable.
    find "$venv/lib/contact_estimation" "$venv/share/contact_estimation" "$venv"/lib/python3*/site-packages/contact_estimation \
        -xtype l -delete 2>/dev/null || true
    quietly cmake --build build/ros --target install
    echo "$wanted" >"$stamp"
}

mkdir -p build
: >"$log"
python=$(find_python)
install_dependencies
build_package
