#!/usr/bin/env bash
# A sweep of 12 runs in a private Slurm: munged, slurmctld and two slurmd on loopback, with all their files in this
# test's folder. Three jobs are killed, each in a different way, and every run is complete, exactly once, with the bits
# of a local sweep. Skipped if Slurm is not installed, or does not start.
set -euo pipefail
at() { echo "$SECONDS s: $*"; }
skip() { echo "sweep_slurm.sh: skipped: $*"; exit 77; }
export PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd sbatch squeue scancel scontrol sinfo; do
  command -v $program >/dev/null || skip "there is no $program (packages slurm-wlm and munge)"
done
. "$(dirname "$0")/../tiny_run.sh"
here=$PWD daemons=()
# In all cases; remaining jobs run in this folder, and run_script.sh ends them.
stop_slurm() {
  local pid
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${daemons[@]}"; do within_two_minutes gone "$pid" || kill -KILL "$pid" || true; done
}
trap stop_slurm EXIT

# --- Slurm --------------------------------------------------------------------------------------------------------------
# Unused ports below the ephemeral range.
listens() { awk -v port="$(printf '%04X' "$1")" '$4 == "0A" && $2 ~ ":" port "$" { found = 1 } END { exit !found }' /proc/net/tcp; }
ports=()
while [ ${#ports[@]} -lt 3 ]; do
  port=$((20000 + RANDOM % 10000))
  listens $port || case " ${ports[*]} " in *" $port "*) ;; *) ports+=($port) ;; esac
done
mkdir -m 700 munge
mkdir state spool-node1 spool-node2
head -c 128 /dev/urandom >munge/key
chmod 600 munge/key
host=$(hostname -s)
cat >slurm.conf <<END
ClusterName=tarn
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$here/munge/socket,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SlurmdParameters=config_overrides
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool-%n
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd-%n.pid
SlurmctldLogFile=$here/slurmctld.log
SlurmdLogFile=$here/slurmd-%n.log
KillWait=10
MailProg=/bin/true
MpiDefault=none
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=2 RealMemory=2000
NodeName=node2 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=2 RealMemory=2000
PartitionName=all Nodes=node1,node2 Default=YES State=UP
END
export SLURM_CONF=$here/slurm.conf
munged --foreground --force --socket="$here/munge/socket" --key-file="$here/munge/key" --log-file="$here/munge/log" \
  --pid-file="$here/munge/pid" --seed-file="$here/munge/seed" >munge.out 2>&1 &
daemons+=($!)
within() { local end=$((SECONDS + $1)); shift; until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done; }
within 5 test -S munge/socket || skip "munged does not start: $(tail -n 1 munge.out)"
slurmctld -D -i >slurmctld.out 2>&1 &
daemons+=($!)
for node in node1 node2; do
  slurmd -D -N $node >$node.out 2>&1 &
  daemons+=($!)
done
both_idle() { [ "$(sinfo -h -N -o '%T' 2>/dev/null | grep -c '^idle')" -eq 2 ]; }
within 20 both_idle || skip "Slurm does not start: $(sinfo 2>&1 | tail -n 1) $(tail -qn 1 slurmctld.out node1.out)"

at "Slurm runs"

# --- the sweep ------------------------------------------------------------------------------------------------------------
cat >sweep.yaml <<'END'
base: model.yaml
baseline: regular
seeds: [1, 2, 3]
threads: 1
set:
  train: { max_updates: 80, save_every: 10, keep_last: 1, log_every: 10 }
  valid: { every: 30, max_sentences: 2 }
test: { source: corpus/valid.de, reference: corpus/valid.en, beam: 1 }
variants:
  regular: { encoder.layers: L*2 }
  frozen: { encoder.layers: R L }
  shared: { encoder.layers: (R1 L1)*2 }
  wide: { encoder.layers: R*3 }
END
refuse 1 'sbatch: .*Invalid partition' "$TARN" sweep sweep.yaml --output jobs --launcher slurm --partition nowhere
follow() { "$TARN" sweep "$@" --output jobs --launcher slurm --interval 0.5 >>out.txt 2>>error.txt & follower=$!; }
: >out.txt
follow sweep.yaml
job_of() { squeue -h -r -t R -o '%F_%K %i' -n "$first" 2>/dev/null | grep -m 1 -o "^[0-9]*_$1 " | tr -d ' '; }
begun() { [ -s "jobs/$1/log.jsonl" ]; }
within_two_minutes begun regular/seed-1 || fail "no job begins: $(cat out.txt error.txt; squeue -r)"
first=$(basename "$(ls jobs/slurm/*.runs | head -n 1)" .runs)
# The first running jobs are killed, in the order of submission.
killed=()
# A job that is forgotten is an error to squeue, as is a controller that does not answer.
none_of() {
  local jobs
  jobs=$(squeue -h -r "$@" 2>&1) && [ -z "$jobs" ] || [[ $jobs = *'Invalid job id'* ]]
}
left() { none_of -t R -j "$1"; }
ended() { none_of -j "$1"; }
kill_next() {  # HOW: kills a job whose run has begun and is not over
  local run index job pid
  for index in $(seq 0 11); do
    run=$(sed -n "$((index + 1))p" "jobs/slurm/$first.runs")
    case " ${killed[*]} " in *" $run "*) continue ;; esac
    begun "$run" && [ ! -e "jobs/$run/result.json" ] || continue
    job=$(job_of "$index") || continue
    case $1 in
      scancel)
        scancel --signal=KILL --full "$job" && within_two_minutes ended "$job" || continue
        [ ! -e "jobs/$run/result.json" ] || continue  # it finished first
        ;;
      requeue)
        scontrol requeue "$job" && within_two_minutes left "$job" || continue
        [ ! -e "jobs/$run/result.json" ] || continue  # its training was over
        ;;
      process)
        pid=$(cat "jobs/$run/lock") && kill -KILL "$pid" 2>/dev/null || continue ;;
    esac
    killed+=("$run")
    echo "killed by $1: $run, job $job"
    return 0
  done
  return 1
}
for how in process requeue scancel; do within_two_minutes kill_next $how || fail "no job to kill by $how: $(cat out.txt)"; done
at "three jobs are killed"
# The command is killed too; the jobs continue, and the next command attaches.
kill -KILL $follower 2>/dev/null || true
wait $follower 2>/dev/null || true
code=0
for _ in 1 2 3; do
  code=0
  follow
  wait $follower || code=$?
  # The next command resubmits cancelled jobs.
  [ $code -ne 0 ] && grep -q 'were cancelled' error.txt || break
  : >error.txt
done
[ $code -eq 0 ] || fail "the sweep ends with $code: $(cat out.txt error.txt)"
tail -n 2 out.txt | grep -q '^12 of 12 runs are finished' || fail "not all are finished: $(cat out.txt)"

at "all is finished"
# A job writes its last lines after the run's result, which the command waits for.
no_job_left() { local jobs; jobs=$(squeue -h 2>/dev/null) && [ -z "$jobs" ]; }
within_two_minutes no_job_left || fail "jobs are left: $(squeue)"
# Each run finished once; killed ones have the bits of an undisturbed local run.
for run in jobs/*/seed-*; do
  name=${run#jobs/}
  words="$(dirname "$name") seed ${name##*-} "
  [ "$(cat jobs/slurm/*.log | grep -c "^finished  $words")" -eq 1 ] || fail "$name was not finished once: $(grep -h "$words" jobs/slurm/*.log)"
  begun=$(cat jobs/slurm/*.log | grep -c "^started   $words")
  trained=$(cat jobs/slurm/*.log | grep -c "^trained   $words") || true
  case " ${killed[*]} " in *" $name "*) [ "$begun" -eq 2 ] || [ "$trained" -eq 2 ] ;; *) [ "$begun" -eq 1 ] ;; esac ||
    fail "$name was begun $begun times: $(grep -h "$words" jobs/slurm/*.log)"
done
for name in "${killed[@]}"; do
  "$TARN" sweep sweep.yaml --output here --quiet --only "$name"
  same_runs "here/$name" "jobs/$name"
  cmp "here/$name/test.hyp" "jobs/$name/test.hyp"
done
# Nothing is left to do, and no job is pending.
"$TARN" sweep --output jobs --launcher slurm --interval 0.5 >again.txt || fail "again: $(cat again.txt)"
[ "$(grep -c '^skipped' again.txt)" -eq 12 ] || fail "again: $(cat again.txt)"
within_two_minutes no_job_left || fail "jobs are left: $(squeue)"
