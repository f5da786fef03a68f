# For test scripts that start ranks with real MPIs: which of them are usable, and how. Source it with:
#   . "$(dirname "$0")/../mpi_ranks.sh"
# Sets `kinds`, or skips the test if no module was built or there is no mpirun.
kinds=()
for kind in openmpi mpich; do
  [ -e "$TARN_BUILD_DIR/tarn-mpi-$kind.so" ] && command -v mpirun.$kind >/dev/null && kinds+=($kind)
done
[ ${#kinds[@]} -gt 0 ] || { echo "$(basename "$0"): skipped: no module of an MPI was built, or there is no mpirun"; exit 77; }
# Their modules are one source. Under sanitizers, where the libraries of both are strangers, the first one is enough.
[ -z "${TARN_SANITIZED:-}" ] || kinds=("${kinds[0]}")
# Allow root, as tests in a container run as root. Ranks use loopback only, as many as requested, on any cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl_base_warn_component_unused=0 HYDRA_IFACE=lo
# Open MPI makes and removes a folder in /tmp that all its jobs of a user share; one that starts meanwhile fails.
export OMPI_MCA_orte_tmpdir_base=$PWD
# Leaks of MPI itself at its end are not ours.
export LSAN_OPTIONS="${LSAN_OPTIONS:-}:detect_leaks=0" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

# launch_program RANKS COMMAND...: runs it with the MPI $kind.
launch_program() {
  local ranks=$1
  shift
  if [ "$kind" = openmpi ]; then mpirun.openmpi --bind-to none -n "$ranks" "$@"; else mpirun.mpich -n "$ranks" "$@"; fi
}
# launch RANKS ARGUMENT...: tarn.
launch() {
  local ranks=$1
  shift
  launch_program "$ranks" "$TARN" "$@"
}
# ours FILE: writes its lines from tarn to ours.txt; the others are the launcher's.
ours() { grep '^tarn' "$1" >ours.txt || true; }
# one_line FILE PATTERN: tarn prints a single line there, with the pattern.
one_line() {
  ours "$1"
  [ "$(wc -l <ours.txt)" -eq 1 ] || fail "$kind: not one line of tarn: $(cat "$1")"
  grep -q -- "$2" ours.txt || fail "$kind: no \"$2\" in: $(cat "$1")"
}
# rank_process RANK: the process id in this folder of this rank.
rank_process() {
  local process
  for process in /proc/[0-9]*; do
    [ "$process/cwd" -ef . ] && [ "$process/exe" -ef "$TARN" ] || continue  # starts no process: it is called all the
                                                                            # time
    { tr '\0' '\n' <"$process/environ" | grep -qE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1\$"; } 2>/dev/null || continue
    echo "${process#/proc/}"
    return
  done
  return 1
}
