#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one, from a bare checkout, in less than four minutes:
#
#   scripts/gpu_check.sh [FOLDER]      leaves reports and logs in FOLDER, or in build/gpu
#
# Needs a CUDA build of torch, nvcc, g++, and from PyPI ninja, hypothesis, jinja2, numpy, packaging, psutil, pytest,
# setuptools, tabulate and tqdm. Installs nothing. PYTHON is the interpreter, LIMIT the seconds in all (230). DEVICE=sim
# tries the script itself on the simulated device, on a machine without a GPU.
#
# The exit status is 0 when all went as it should, 1 when something did not, 2 when the machine lacks what is needed.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=$(mkdir -p "${1:-$root/build/gpu}" && cd "${1:-$root/build/gpu}" && pwd) || exit 2
cd "$root"

python=${PYTHON:-python3}
device=${DEVICE:-cuda}
all=${LIMIT:-230}
jobs=$(($(nproc) > 12 ? 12 : $(nproc)))
export PYTHONPATH=$root OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1

if [ "$device" = cuda ]; then
  good=reference_ops.specs faults=reference_ops.broken.cuda
  "$python" -c 'import torch; raise SystemExit(not torch.cuda.is_available())' || {
    echo "gpu_check: torch sees no GPU here: $("$python" -c 'import torch; print(torch.__version__)' 2>&1 | tail -n 1)" >&2
    exit 2
  }
  command -v nvidia-smi > /dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
else
  good=reference_ops.simdevice.specs faults=reference_ops.broken.device
fi
"$python" -c 'import platform, torch; print("torch", torch.__version__, "CUDA", torch.version.cuda, "Python", platform.python_version())'

status=0
# step NAME PERCENT WANTED COMMAND...: runs a command for at most PERCENT of the time, and less when less is left
step() {
  local name=$1 limit=$((all * $2 / 100)) wanted=$3 began=$SECONDS got word=ok
  shift 3
  [ $((all - SECONDS)) -lt "$limit" ] && limit=$((all - SECONDS))
  if [ "$limit" -le 0 ]; then
    got=124
  else
    timeout --signal=TERM --kill-after=10 "$limit" "$@" > "$out/$name.log" 2>&1
    got=$?
  fi
  case " $wanted " in *" $got "*) ;; *) word="FAILED, exit status $got, see $out/$name.log" && status=1 ;; esac
  printf '%-10s %4d s  %s\n' "$name" $((SECONDS - began)) "$word"
}

step build 50 0 "$python" -m reference_ops.native
# what is planted must be found: the tests below say whether by the right checks
step faults 25 1 "$python" -m opcheck_suite.cli run "$faults" --device "$device" --tier full --checks '!compile' --checks '!export' \
  -j "$jobs" --report "$out/faults.json" --report "$out/faults.md"
step tests 30 0 "$python" -m pytest -p opcheck_suite.plugin -p no:cacheprovider -q --device "$device" \
  tests/checks/test_gpu.py tests/properties/test_dispatch.py
step ops 60 0 "$python" -m opcheck_suite.cli run "$good" --device "$device,cpu" --tier standard -j "$jobs" \
  --report "$out/ops.json" --report "$out/ops.md"
for log in faults ops; do
  grep -E '^(ops|results|verdict) ' "$out/$log.log" 2> /dev/null | sed "s/^/$log: /"
done
echo "$SECONDS s in all; $([ $status = 0 ] && echo 'all as it should be' || echo 'NOT all as it should be'): $out"
exit $status
