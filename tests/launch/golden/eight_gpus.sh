#!/bin/bash
#SBATCH --job-name=idm
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --output=%x-%j.out
#SBATCH --error=%x-%j.err
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
# Written by `reelseek slurm train`.
# shellcheck disable=SC2016,SC2088,SC1003
set -euo pipefail

# SLURM starts this script again after a preemption or a node's failure, and so does its end.
reelseek_restarts=${SLURM_RESTART_COUNT:-0}
if [ "$reelseek_restarts" -gt 3 ]; then
    echo "reelseek: job $SLURM_JOB_ID was started again $reelseek_restarts times, 3 are allowed: it is given up" >&2
    exit 1
fi

reelseek_prefix=@ENV@
export PATH="$reelseek_prefix/bin:${PATH:-/usr/local/bin:/usr/bin:/bin}"
# torchcodec's libraries (reelseek env --format slurm). Put these lines before the first
# srun, and start tasks with `srun --export=ALL`: under `sbatch --export=NONE`, srun does
# not pass on what the script exports.
reelseek_env=@ENV@
reelseek_path="$reelseek_env/lib"
reelseek_python=$("$reelseek_env/bin/python" -I -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
for reelseek_folder in "$reelseek_env/lib/$reelseek_python/site-packages"/nvidia/*/lib; do
    if [ -d "$reelseek_folder" ]; then
        reelseek_path="${reelseek_path:+$reelseek_path:}$reelseek_folder"
    fi
done
unset reelseek_python reelseek_folder
export LD_LIBRARY_PATH="$reelseek_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset reelseek_env reelseek_path

# Preflight: a task on each node looks whether it can train.
reelseek_check=$(
    cat <<'END_OF_CHECK'
reelseek_python=$1
shift
reelseek_fail() {
    printf 'reelseek preflight: %s: FAILED: %s\n' "$SLURMD_NODENAME" "$*"
    exit 1
}
[ -x "$reelseek_python" ] || reelseek_fail "there is no $reelseek_python"
reelseek_status=0
reelseek_said=$("$reelseek_python" -m reelseek slurm preflight "$@" 2>&1) || reelseek_status=$?
if grep '^reelseek preflight: ' <<<"$reelseek_said"; then
    exit "$reelseek_status"
fi
case $reelseek_said in
    *"No module named reelseek"* | *"No such command"*)
        reelseek_fail "no reelseek with a preflight is installed. Run:" \
            "$reelseek_python -m pip install -U reelseek"
        ;;
    *)
        reelseek_fail "$reelseek_python -m reelseek ends with status $reelseek_status:" \
            "$(tail -n 1 <<<"$reelseek_said")"
        ;;
esac
END_OF_CHECK
)
reelseek_arguments=(
    --gpus
    8
)
reelseek_status=0
reelseek_said=$(
    timeout --kill-after=10 300 srun --export=ALL --quiet --kill-on-bad-exit=1 \
        --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
        bash -c "$reelseek_check" preflight "$reelseek_prefix/bin/python" \
        "${reelseek_arguments[@]}" 2>&1
) || reelseek_status=$?
if [ "$reelseek_status" -ne 0 ]; then
    if ! grep '^reelseek preflight: .*: FAILED: ' <<<"$reelseek_said" >&2; then
        reelseek_silent=''
        for reelseek_node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
            case $reelseek_said in
                *"reelseek preflight: $reelseek_node: "*) ;;
                *) reelseek_silent="$reelseek_silent $reelseek_node" ;;
            esac
        done
        case $reelseek_status in
            124 | 137) reelseek_said="no answer within 300 s" ;;
            *) reelseek_said="srun ends with status $reelseek_status: $reelseek_said" ;;
        esac
        echo "reelseek preflight:$reelseek_silent: FAILED: $reelseek_said" >&2
    fi
    exit 1
fi
echo "reelseek preflight: $SLURM_JOB_NUM_NODES of $SLURM_JOB_NUM_NODES nodes can train"

reelseek_command=(
    torchrun
    --nproc-per-node=8
    --standalone
    train_idm.py
    '/data/my set'
)

# Before the time is up SLURM sends USR1 here. The tasks get TERM, so that the program can save:
# from scancel, as srun ends them at once when it is sent TERM itself.
reelseek_signal=''
reelseek_woken=''
trap 'reelseek_signal=USR1 reelseek_woken=yes; scancel --signal=TERM "$SLURM_JOB_ID" || true' USR1
trap 'reelseek_signal=TERM reelseek_woken=yes' TERM
# torchrun kills its processes after this time, or 30 s.
export TORCH_ELASTIC_SHUTDOWN_TIMEOUT="${TORCH_ELASTIC_SHUTDOWN_TIMEOUT:-110}"

srun --export=ALL --output=%x-%j-%t.log --open-mode=append \
    "${reelseek_command[@]}" &
reelseek_status=0
wait "$!" || reelseek_status=$?
while [ -n "$reelseek_woken" ]; do # a signal ends `wait` early
    reelseek_woken=''
    reelseek_status=0
    wait "$!" || reelseek_status=$?
done

if [ "$reelseek_status" -ne 0 ] && [ -z "$reelseek_signal" ]; then
    echo "reelseek: srun ended with status $reelseek_status. What each task said:" \
        ."/$SLURM_JOB_NAME-$SLURM_JOB_ID-*.log" >&2
fi
if [ "$reelseek_signal" = USR1 ] && [ "$reelseek_restarts" -lt 3 ]; then
    echo "reelseek: the time of job $SLURM_JOB_ID is nearly up, it is queued again"
    scontrol requeue "$SLURM_JOB_ID"
elif [ "$reelseek_signal" = USR1 ]; then
    echo "reelseek: the time of job $SLURM_JOB_ID is up, and it was started again" \
        "$reelseek_restarts times: 3 are allowed" >&2
fi
exit "$reelseek_status"

