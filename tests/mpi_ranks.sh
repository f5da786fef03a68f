# For test scripts that start ranks by the real MPIs: which of them can be tried, and how. Source it with:
#   . "$(dirname "$0")/../mpi_ranks.sh"
# Sets `kinds`, or skips the test where no module was built or there is no mpirun.
kinds=()
for kind in openmpi mpich; do
  [ -e "$TARN_BUILD_DIR/tarn-mpi-$kind.so" ] && command -v mpirun.$kind >/dev/null && kinds+=($kind)
done
[ ${#kinds[@]} -gt 0 ] || { echo "$(basename "$0"): skipped: no module of an MPI was built, or there is no mpirun"; exit 77; }
# Root may: who runs tests in a container is root. Ranks on loopback alone, as many as asked for, wherever they run.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl_base_warn_component_unused=0 HYDRA_IFACE=lo
# What MPI itself leaves behind at its end is not ours.
export LSAN_OPTIONS="${LSAN_OPTIONS:-}:detect_leaks=0" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

# launch_program RANKS COMMAND...: by the MPI $kind.
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
# ours FILE: the lines of tarn in it, into ours.txt; the others are the launcher's.
ours() { grep '^tarn' "$1" >ours.txt || true; }
# one_line FILE PATTERN: tarn says one line there, which has the pattern.
one_line() {
  ours "$1"
  [ "$(wc -l <ours.txt)" -eq 1 ] || fail "$kind: not one line of tarn: $(cat "$1")"
  grep -q -- "$2" ours.txt || fail "$kind: no \"$2\" in: $(cat "$1")"
}
# rank_process RANK: the number of the process in this folder that is this rank.
rank_process() {
  local process
  for process in /proc/[0-9]*; do
    [ "$process/cwd" -ef . ] && [ "$process/exe" -ef "$TARN" ] || continue  # starts no process: this is asked all the time
    { tr '\0' '\n' <"$process/environ" | grep -qE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1\$"; } 2>/dev/null || continue
    echo "${process#/proc/}"
    return
  done
  return 1
}
