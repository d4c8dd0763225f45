#!/bin/sh
# Makes .venv for `make demo`, and adds what the tests need for `make test`.
# Needs Python 3.10 or newer with venv, and a package index that pip knows. No root, no FFmpeg.
set -eu

python="${PYTHON:-python3}"
say() { printf '%s\n' "setup: $*" >&2; }

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    say "'$python' is no Python 3.10 or newer. Run: make demo PYTHON=/path/to/python3.11"
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    say "'$python' comes without venv. Run: sudo apt-get install python3-venv"
    exit 1
fi

if [ ! -x .venv/bin/pip ]; then
    say "making .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
pip() { .venv/bin/python -m pip --disable-pip-version-check --quiet "$@"; }

case "$1" in
demo)
    say "installing reelseek with its decoders (torch is the large one)"
    pip install 'pip>=25.1'
    pip install -c constraints.txt -e '.[torch,bench,report]'
    ;;
test)
    say "installing what the tests need: tools, and the real LeRobot to compare with"
    pip install -c constraints.txt --group dev
    pip install -c constraints.txt -e '.[slurm,ray]'
    # LeRobot pins older torch, torchcodec and av than reelseek is tested with; its dataset code
    # works with the newer ones, so its own requirements are listed instead of resolved.
    pip install --no-deps -r requirements/lerobot-no-deps.txt
    pip install -c constraints.txt -r requirements/lerobot.txt 2>&1 | grep -v 'lerobot .* requires' >&2 || true
    pip install -c constraints.txt -r requirements/transformers.txt
    .venv/bin/python -c 'import datasets, draccus, transformers'
    ;;
esac
touch ".venv/ready-$1"
