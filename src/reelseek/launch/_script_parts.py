"""The fixed parts of a training job's script, in bash; ``@MARKS@`` are filled in.

All names start with ``reelseek_``, so that none of the user's is changed.
"""

GIVE_UP = """\
# SLURM starts this script again after a preemption or a node's failure, and so does its end.
reelseek_restarts=${SLURM_RESTART_COUNT:-0}
if [ "$reelseek_restarts" -gt @REQUEUES@ ]; then
    echo "reelseek: job $SLURM_JOB_ID was started again $reelseek_restarts times, @REQUEUES@ are \
allowed: it is given up" >&2
    exit 1
fi
"""

CHECK = """\
# Preflight: a task on each node looks whether it can train.
reelseek_check=$(
    cat <<'END_OF_CHECK'
reelseek_python=$1
shift
reelseek_fail() {
    printf 'reelseek preflight: %s: FAILED: %s\\n' "$SLURMD_NODENAME" "$*"
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
        reelseek_fail "no reelseek with a preflight is installed. Run:" \\
            "$reelseek_python -m pip install -U reelseek"
        ;;
    *)
        reelseek_fail "$reelseek_python -m reelseek ends with status $reelseek_status:" \\
            "$(tail -n 1 <<<"$reelseek_said")"
        ;;
esac
END_OF_CHECK
)
"""

PREFLIGHT = """\
reelseek_status=0
reelseek_said=$(
    timeout --kill-after=10 @SECONDS@ srun --export=ALL --quiet --kill-on-bad-exit=1 \\
        --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \\
        bash -c "$reelseek_check" preflight "$reelseek_prefix/bin/python" \\
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
            124 | 137) reelseek_said="no answer within @SECONDS@ s" ;;
            *) reelseek_said="srun ends with status $reelseek_status: $reelseek_said" ;;
        esac
        echo "reelseek preflight:$reelseek_silent: FAILED: $reelseek_said" >&2
    fi
    exit 1
fi
echo "reelseek preflight: $SLURM_JOB_NUM_NODES of $SLURM_JOB_NUM_NODES nodes can train"
"""

MEETING_PLACE = """\
# Where the processes meet: the first node, and a port that another job on it doesn't take.
read -r reelseek_head _ < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
reelseek_port=$((10000 + SLURM_JOB_ID % 20000))
export MASTER_ADDR="$reelseek_head" MASTER_PORT="$reelseek_port"
"""

RANKS = """\
# What torch.distributed reads where there is no torchrun.
reelseek_ranks=$(
    cat <<'END_OF_RANKS'
export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE="$SLURM_NTASKS"
exec "$@"
END_OF_RANKS
)
"""

START = """\
# Before the time is up SLURM sends USR1 here. The tasks get TERM, so that the program can save:
# from scancel, as srun ends them at once when it is sent TERM itself.
reelseek_signal=''
reelseek_woken=''
trap 'reelseek_signal=USR1 reelseek_woken=yes; scancel --signal=TERM "$SLURM_JOB_ID" || true' USR1
trap 'reelseek_signal=TERM reelseek_woken=yes' TERM
# torchrun kills its processes after this time, or 30 s.
export TORCH_ELASTIC_SHUTDOWN_TIMEOUT="${TORCH_ELASTIC_SHUTDOWN_TIMEOUT:-@SHUTDOWN@}"

@MKDIR@srun --export=ALL @OPTIONS@ \\
    @RANKS@"${reelseek_command[@]}" &
reelseek_status=0
wait "$!" || reelseek_status=$?
while [ -n "$reelseek_woken" ]; do # a signal ends `wait` early
    reelseek_woken=''
    reelseek_status=0
    wait "$!" || reelseek_status=$?
done
"""

END_OF_JOB = """\
if [ "$reelseek_status" -ne 0 ] && [ -z "$reelseek_signal" ]; then
    echo "reelseek: srun ended with status $reelseek_status. What each task said:" \\
        @LOGS@"/$SLURM_JOB_NAME-$SLURM_JOB_ID-*.log" >&2
fi
if [ "$reelseek_signal" = USR1 ] && [ "$reelseek_restarts" -lt @REQUEUES@ ]; then
    echo "reelseek: the time of job $SLURM_JOB_ID is nearly up, it is queued again"
    scontrol requeue "$SLURM_JOB_ID"
elif [ "$reelseek_signal" = USR1 ]; then
    echo "reelseek: the time of job $SLURM_JOB_ID is up, and it was started again" \\
        "$reelseek_restarts times: @REQUEUES@ are allowed" >&2
fi
exit "$reelseek_status"
"""
