#!/bin/bash
# Ends what start.sh started in FOLDER, by process number, newest first.  Usage: stop.sh FOLDER
set -u
folder=$(realpath -m "${1:?usage: stop.sh FOLDER}")
export SLURM_CONF=$folder/slurm.conf
[ -e "$folder/pids" ] || exit 0
timeout 10 scancel --me 2>/dev/null
for _ in $(seq 80); do [ -z "$(timeout 5 squeue -h 2>/dev/null)" ] && break; sleep 0.1; done
ours() { # NAME PID: whether the process is still the daemon that was started
  case "$(cat "/proc/$2/comm" 2>/dev/null)" in "$1"*) return 0 ;; *) return 1 ;; esac
}
tac "$folder/pids" | while read -r name pid; do ours "$name" "$pid" && kill -TERM "$pid"; done
tac "$folder/pids" | while read -r name pid; do
  for _ in $(seq 100); do ours "$name" "$pid" || break; sleep 0.1; done
  ours "$name" "$pid" && kill -KILL "$pid"
done
rm -f "$folder/pids"
