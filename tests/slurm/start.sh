#!/bin/bash
# A SLURM cluster of four virtual nodes on this machine, on loopback only.  Usage: start.sh FOLDER [FIRST_PORT]
# Prints the line to export. Root without SLURM gets Debian's packages. stop.sh FOLDER ends exactly what this started.
set -euo pipefail
folder=$(realpath -m "${1:?usage: start.sh FOLDER [FIRST_PORT]}")
port=${2:-17002}
nodes=4
host=$(hostname -s)
user=$(id -un)
export PATH=$PATH:/usr/sbin:/sbin

have() { command -v "$1" >/dev/null; }
if ! { have slurmctld && have slurmd && have munged && have sbatch; }; then
  [ "$(id -u)" = 0 ] && have apt-get || { echo "SLURM is not installed, and only root can install it with apt" >&2; exit 3; }
  export DEBIAN_FRONTEND=noninteractive
  { timeout 300 apt-get update -qq && timeout 600 apt-get install -y -qq --no-install-recommends \
      slurmctld slurmd slurm-client munge; } >/dev/null 2>&1 || { echo "apt could not install SLURM" >&2; exit 3; }
fi
# The daemons listen on what the host's name resolves to; that must be loopback.
if ! getent ahostsv4 "$host" | grep -q '^127\.'; then
  [ "$(id -u)" = 0 ] || { echo "the name $host must resolve to 127.0.0.1" >&2; exit 3; }
  echo "127.0.0.1 $host" >> /etc/hosts
fi
[ ! -e "$folder/pids" ] || { echo "$folder/pids exists; call stop.sh first" >&2; exit 1; }

mkdir -p "$folder"/{state,log,munge}
chmod 755 "$folder" "$folder/munge"
(umask 077; mkdir -p "$folder/munge/private"; head -c 1024 /dev/urandom > "$folder/munge/private/key")
for node in $(seq 0 $((nodes - 1))); do mkdir -p "$folder/spool/n$node"; done

cat > "$folder/slurm.conf" <<CONF
ClusterName=tests
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
# Credentials that live long delay a requeued job by two minutes.
AuthInfo=socket=$folder/munge/socket,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/state/slurmctld.pid
SlurmdPidFile=$folder/spool/%n/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=1
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=5
MaxArraySize=11
AccountingStorageType=accounting_storage/none
NodeName=n[0-$((nodes - 1))] NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 10))-$((port + 9 + nodes)) CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=60 DefaultTime=10 DefMemPerCPU=200 PriorityTier=1 PreemptMode=REQUEUE GraceTime=3
PartitionName=urgent Nodes=ALL MaxTime=60 DefaultTime=10 DefMemPerCPU=200 PriorityTier=10 PreemptMode=OFF
CONF
case "$(slurmd -V)" in *\ 2[3-9].*) echo "CgroupPlugin=disabled" > "$folder/cgroup.conf" ;; esac
export SLURM_CONF=$folder/slurm.conf

await() { # SECONDS COMMAND …
  local tries=$(($1 * 10)); shift
  for _ in $(seq "$tries"); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
  echo "timed out: $*" >&2; tail -n 5 "$folder"/log/*.log >&2; return 1
}
note() { await 10 test -s "$2"; echo "$1 $(cat "$2")" >> "$folder/pids"; }

: > "$folder/pids"
munged --socket="$folder/munge/socket" --key-file="$folder/munge/private/key" --pid-file="$folder/munge/pid" \
  --log-file="$folder/munge/private/log" --seed-file="$folder/munge/private/seed" --num-threads=2
note munged "$folder/munge/pid"
slurmctld -c
await 15 scontrol ping
note slurmctld "$folder/state/slurmctld.pid"
for node in $(seq 0 $((nodes - 1))); do
  slurmd -N "n$node"
  note slurmd "$folder/spool/n$node/slurmd.pid"
done
all_idle() { [ "$(sinfo -h -N -p main -t idle -o %N | wc -l)" = "$nodes" ]; }
await 30 all_idle
echo "export SLURM_CONF=$SLURM_CONF"
