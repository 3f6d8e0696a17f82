#!/usr/bin/env bash
# Prove that Arctic's tables are open: Arctic and two other engines take turns on one warehouse.
# See interop/README.md. Called by `make interop`, which makes the project's environment first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ours="${ARCTIC_PYTHON:-.venv/bin/python}"       # Arctic's side
theirs=".venv-interop"                          # the side of the others
export INTEROP_JARS="$PWD/$theirs/jars"         # the Iceberg runtime, fetched once by Spark itself
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
export TZ=UTC
unset SPARK_HOME                                # each side has the Spark of its environment

set_up() {
  echo "Setting up $theirs (once, a few minutes)" >&2
  test -x "$theirs/bin/python" || "$ours" -m venv "$theirs"
  # uv installs faster than pip but does not read its settings: the index is handed over.
  local uv index
  uv="$(dirname "$ours")/uv"
  index="${PIP_INDEX_URL:-$("$theirs/bin/python" -m pip config get global.index-url 2>/dev/null || true)}"
  if [ -n "$index" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"; fi
  if [ -n "${PIP_CERT:-}" ]; then export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"; fi
  { test -x "$uv" && "$uv" pip install --quiet --python "$theirs/bin/python" -r interop/requirements.txt; } \
    || "$theirs/bin/python" -m pip install --quiet -r interop/requirements.txt
  cp interop/requirements.txt "$theirs/.ready"
}
cmp -s interop/requirements.txt "$theirs/.ready" || set_up

java_home="$("$ours" -c 'from arcticlake.spark import require_java; print(require_java().home)')"
export JAVA_HOME="$java_home"

warehouse="$(mktemp -d)/warehouse"
trap 'rm -rf "$(dirname "$warehouse")"' EXIT
log="$(dirname "$warehouse")/log"

failed=0
turn() { # who, script, turn
  echo "== $2 ${*:3}"
  # The log of Spark is shown only when a turn breaks: claims tell the rest.
  local code=0
  "$1" "interop/$2.py" "${@:3}" "$warehouse" 2>"$log" || code=$?
  if [ "$code" = 9 ]; then failed=1; fi # a claim failed; the other turns still say something
  if [ "$code" != 0 ] && [ "$code" != 9 ]; then
    tail -n 60 "$log" >&2
    echo "interop: turn '$3' broke off with code $code" >&2
    exit 1
  fi
}

started=$SECONDS
turn "$ours" arctic_side make
turn "$theirs/bin/python" foreign_side act
turn "$ours" arctic_side check
turn "$theirs/bin/python" foreign_side repair
turn "$ours" arctic_side resume
echo "== $((SECONDS - started)) s"
if [ "$failed" = 1 ]; then
  echo "interop: a claim FAILED, see above" >&2
  exit 1
fi
echo "interop: every claim holds"
