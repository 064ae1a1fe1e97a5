#!/usr/bin/env bash
# From a fresh clone to a running program in one command: installs what is missing, configures, builds, runs.
#
#   cmake/run.sh demo  [options of train_gpt]   trains a small GPT on four ranks
#   cmake/run.sh plan  [options of plan_model]  plans Llama 3 8B for 64 A100s, or what the options name
#   cmake/run.sh test  [options of cmake]       builds and runs every test
#   cmake/run.sh bench [name [options]]         builds the benches and runs them, or one of them
#   cmake/run.sh clean                          removes build/
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

demo_arguments=(--ranks 4)
plan_arguments=(--model llama3-8b --mesh data=8,model=8 --device a100-80g --nodes 8 --batch 64)

usage() {
  sed -n '4,8s/^# \{0,1\}//p' cmake/run.sh
  exit "${1:-0}"
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; elif command -v sudo > /dev/null; then sudo "$@"; else return 1; fi
}

apt_install() {
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
  as_root "${apt[@]}" install -y --no-install-recommends "$@" && return
  as_root "${apt[@]}" update && as_root "${apt[@]}" install -y --no-install-recommends "$@"
}

missing_of() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || echo "$package"
  done
}

# Installs what the package lists name and this machine lacks. Without apt it only says what is needed: the compiler and
# CMake then tell whether it is there.
install_packages() {
  local needed=(g++ make cmake libboost-graph-dev coinor-libcbc-dev nlohmann-json3-dev libcli11-dev "$@")
  local optional=(libopenmpi-dev openmpi-bin) missing
  if ! command -v apt-get > /dev/null; then
    echo "This system has no apt-get, so nothing is installed. mmr needs: GCC 12 or clang 14 (or newer), CMake 3.22, make," \
      "Boost.Graph's headers, COIN-OR CBC, nlohmann-json 3, CLI11 (examples), Catch2 2 or 3 (tests)," \
      "Eigen 3.4 and zlib (bench), and takes Open MPI where it is installed."
    return
  fi
  missing=$(missing_of "${needed[@]}")
  if [ -n "$missing" ]; then
    echo "Installing:" $missing
    # The names are one a line and hold no blanks.
    if ! apt_install $missing; then
      echo "These packages could not be installed (no root, no sudo or no network): $(echo $missing)." \
        "Install them as root and run this again: apt-get install $(echo $missing)" >&2
      exit 1
    fi
  fi
  missing=$(missing_of "${optional[@]}")
  if [ -n "$missing" ]; then
    echo "Installing, where possible:" $missing
    apt_install $missing || echo "Open MPI could not be installed: continuing without it, on threads."
  fi
}

# GCC 12 is the oldest that takes the headers. Where the default is older (Ubuntu 22.04), its packaged GCC 12 is used.
choose_compiler() {
  [ -z "${CXX:-}" ] || return 0
  local version
  version=$(g++ -dumpversion 2> /dev/null | cut -d. -f1)
  [ "${version:-0}" -lt 12 ] || return 0
  if ! command -v g++-12 > /dev/null && command -v apt-get > /dev/null; then apt_install g++-12 || true; fi
  if command -v g++-12 > /dev/null; then
    export CXX=g++-12
  else
    echo "g++ is of version ${version:-none}, and mmr needs GCC 12 or clang 14: install one and set CXX to it." >&2
    exit 1
  fi
}

# One job a core, but no more than memory holds: the largest translation units take about 2.2 GB.
jobs() {
  local cores memory
  cores=$(nproc 2> /dev/null || echo 2)
  memory=$(awk '/MemAvailable/ {print int($2 / 2200000)}' /proc/meminfo 2> /dev/null || echo "$cores")
  [ "$memory" -ge 1 ] || memory=1
  [ "$memory" -lt "$cores" ] && echo "$memory" || echo "$cores"
}

# build PRESET TARGET [options of cmake]
build() {
  local preset=$1 target=$2
  shift 2
  choose_compiler
  cmake --preset "$preset" "$@"
  cmake --build --preset "$preset" --target "$target" -j "$(jobs)"
}

command=${1:-}
[ $# -eq 0 ] || shift
case "$command" in
  demo)
    install_packages
    build demo train_gpt
    exec build/demo/bin/train_gpt "${demo_arguments[@]}" "$@"
    ;;
  plan)
    install_packages
    build demo plan_model
    [ $# -gt 0 ] || set -- "${plan_arguments[@]}"
    exec build/demo/bin/plan_model "$@"
    ;;
  test)
    install_packages catch2
    build test all "$@"
    ctest --preset test -j "$(jobs)"
    ;;
  bench)
    install_packages libeigen3-dev zlib1g-dev
    build bench all
    if [ $# -gt 0 ]; then
      name=$1
      shift
      exec "build/bench/bin/bench_$name" "$@"
    fi
    shopt -s nullglob
    for program in build/bench/bin/bench_*; do
      echo "== ${program##*/}"
      "$program"
    done
    ;;
  clean) rm -rf build ;;
  -h | --help | help) usage ;;
  *) usage 1 >&2 ;;
esac
