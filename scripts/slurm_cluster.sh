#!/usr/bin/env bash
# A real SLURM on this machine, for tests: slurmctld, one slurmd for each node, and munged, all on
# loopback and with their files in one folder. Needs root and Debian's packages
#   slurmctld slurmd slurm-client munge
# but neither systemd nor cgroups, and nothing of the system's own SLURM.
#
#   scripts/slurm_cluster.sh up FOLDER [NODES]     prints the path of slurm.conf: export it as SLURM_CONF
#   scripts/slurm_cluster.sh down FOLDER           stops what `up` started, and nothing else
#
# munged refuses a folder that others can't enter, and sockets can't have long paths: choose a short
# FOLDER such as /tmp/slurm-1234.
set -euo pipefail

usage() { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
command=$1 folder=$2 nodes=${3:-2}
case $folder in
/*) ;; # the daemons are started in /, and find their files by this path
*) echo "slurm_cluster: give FOLDER as an absolute path, not $folder" >&2; exit 2 ;;
esac
conf=$folder/slurm.conf
host=$(hostname -s)
tag="# slurm_cluster $folder"
PATH=$PATH:/usr/sbin:/sbin
say() { echo "slurm_cluster: $*" >&2; }

die() {
    say "$*"
    for log in "$folder"/log/*.log; do
        if [ -s "$log" ]; then say "end of $log:"; tail -n 8 "$log" >&2; fi
    done
    exit 1
}

# Whether a pid file names a running program of that name that was started for this folder. A pid
# may have been given to another process since.
is_ours() { # NAME PIDFILE
    local pid
    pid=$(cat "$2" 2>/dev/null) && [ -n "$pid" ] || return 1
    case $(readlink "/proc/$pid/exe") in */"$1"*) ;; *) return 1 ;; esac
    tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "$folder/"
}

daemons() { # name and pid file, in the order of starting
    echo "munged $folder/run/munged.pid"
    echo "slurmctld $folder/run/slurmctld.pid"
    for i in $(seq "$nodes"); do echo "slurmd $folder/run/slurmd-node$i.pid"; done
}

write_conf() {
    local port=$1
    cat <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A task that goes back into the queue waits until its credential has expired.
AuthInfo=socket=$folder/run/munge.socket,cred_expire=5
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=1
# The nodes are taken for what is said here, whatever the machine has.
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=60
KillWait=2
MinJobAge=300
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdPidFile=$folder/run/slurmd-%n.pid
SlurmdLogFile=$folder/log/slurmd-%n.log
SlurmdSpoolDir=$folder/spool/%n
StateSaveLocation=$folder/state
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    for i in $(seq "$nodes"); do
        echo "NodeName=node$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + i)) CPUs=4 RealMemory=4000"
    done
}

# The first of as many ports in a row as are needed that nothing listens at.
free_port() {
    local port i
    for port in $(shuf -i 20000-29990 -n 50); do
        for i in $(seq 0 "$nodes"); do
            if (exec 3<>"/dev/tcp/127.0.0.1/$((port + i))") 2>/dev/null; then continue 2; fi
        done
        echo "$port"
        return
    done
    die "no free ports"
}

# Adds lines for these names, or removes ours. Several clusters may come and go at once; and not by
# rename, as in a container /etc/hosts is a mounted file.
edit_hosts() { # add NAME... | remove
    local name kept
    # shellcheck disable=SC2094  # opened to be locked, not to be read
    (
        flock 9
        if [ "$1" = add ]; then
            for name in "${@:2}"; do echo "127.0.0.1 $name $tag"; done >>/etc/hosts
        else
            # All of it is on the disk before the file is cut; killed or full there, a copy is left.
            kept=$(mktemp /etc/hosts.slurm_cluster.XXXXXX)
            awk -v tag="$tag" 'substr($0, length($0) - length(tag) + 1) != tag' /etc/hosts >"$kept"
            cat "$kept" >/etc/hosts || { say "/etc/hosts is cut short: copy $kept there"; exit 1; }
            rm "$kept"
        fi
    ) 9</etc/hosts
}

# Not with the caller's environment, which jobs would see, nor with its pipes.
start() { # NAME PIDFILE COMMAND...
    local name=$1 pidfile=$2
    shift 2
    (cd / && exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        SLURM_CONF="$conf" "$@" </dev/null >>"$folder/log/start.log" 2>&1) || die "$name did not start"
    for _ in $(seq 100); do
        if is_ours "$name" "$pidfile"; then return; fi
        sleep 0.1
    done
    die "$name did not start"
}

up() {
    local name port
    [ "$(id -u)" = 0 ] || die "slurmd has to be started by root"
    for name in slurmctld slurmd sbatch munged; do
        command -v "$name" >/dev/null || die "$name is not installed: apt-get install slurmctld slurmd slurm-client munge"
    done
    [ ! -e "$conf" ] || die "$conf exists: run \`$0 down $folder\` first"
    mkdir -p "$folder"/{run,log,state,spool}
    chmod 755 "$folder" "$folder"/*/
    (umask 077; head -c 1024 /dev/urandom >"$folder/munge.key")
    port=$(free_port) # on a line of its own, so that its failure ends this
    write_conf "$port" >"$conf"
    # The host and the nodes are found by these names; `down` takes the lines away.
    edit_hosts add "$host" $(seq -f 'node%g' "$nodes")
    start munged "$folder/run/munged.pid" munged --key-file="$folder/munge.key" \
        --socket="$folder/run/munge.socket" --pid-file="$folder/run/munged.pid" \
        --log-file="$folder/log/munged.log" --seed-file="$folder/run/munged.seed"
    start slurmctld "$folder/run/slurmctld.pid" slurmctld -f "$conf"
    for i in $(seq "$nodes"); do
        start slurmd "$folder/run/slurmd-node$i.pid" slurmd -N "node$i" -f "$conf"
    done
    export SLURM_CONF=$conf
    for _ in $(seq 300); do
        if [ "$(sinfo -h -N -o %T 2>/dev/null | grep -cx idle || true)" = "$nodes" ]; then
            echo "$conf"
            return
        fi
        sleep 0.1
    done
    die "the nodes are not idle: $(sinfo -N -o '%N %T %E' 2>&1)"
}

down() {
    local name pidfile pid
    nodes=$(grep -c '^NodeName=' "$conf" 2>/dev/null || true)
    if [ "${nodes:-0}" = 0 ]; then say "there is no cluster in $folder"; return; fi
    SLURM_CONF=$conf timeout 10 scancel --quiet --user=root 2>/dev/null || true
    # The jobs' own daemons, slurmstepd, end with their jobs.
    for _ in $(seq 50); do
        if [ -z "$(SLURM_CONF=$conf timeout 5 squeue -h 2>/dev/null || true)" ]; then break; fi
        sleep 0.1
    done
    # The last started first. One that has ended may stay in /proc until someone asks for its status.
    while read -r name pidfile; do
        if ! is_ours "$name" "$pidfile"; then continue; fi
        pid=$(cat "$pidfile")
        kill "$pid" 2>/dev/null || true
        for _ in $(seq 100); do
            if ! is_ours "$name" "$pidfile"; then continue 2; fi
            sleep 0.05
        done
        kill -KILL "$pid" 2>/dev/null || true
    done < <(daemons | tac)
    edit_hosts remove
    rm -f "$conf" "$folder/munge.key"
}

case $command in
up) up ;;
down) down ;;
*) usage ;;
esac
