# Simulated hosts: network namespaces with their own host names, processes and addresses, joined by a bridge in a
# separate namespace, so nothing is visible from outside. The links can be slowed and cut. For test scripts and
# measurements, as root; source it after tests/helpers.sh:
#   namespaces_possible || exit 77       prints the reason if not
#   namespaces_open 3                    node1 to node3, 10.77.0.1 to 10.77.0.3; removed by namespaces_close or at exit
#   link_rate 2 100mbit                  limits node2 to 100 Mbit/s in each direction; link_rate 2 - removes the limit
#   link_cut 2; link_mend 2              disconnects it, and reconnects it and waits until it reaches another node
#   on_node 2 COMMAND...                 runs the command there
#   nodes_clear                          kills all processes on the nodes
#   mpirun_on_nodes openmpi 3 COMMAND... one rank on each of the first three nodes, started from node1, over TCP; also mpich
ns_prefix=tarn$$ ns_count=0
ns_folder=

namespaces_possible() {
  local tool
  [ "$(id -u)" -eq 0 ] || { echo "skipped: not root, so no network namespaces"; return 1; }
  for tool in ip tc unshare; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool (packages iproute2 and util-linux)"; return 1; }
  done
  if ! { ip netns add "$ns_prefix-try" && ip -n "$ns_prefix-try" link add try type bridge && unshare --uts --pid --mount-proc --fork true; } >/dev/null 2>&1; then
    ip netns del "$ns_prefix-try" 2>/dev/null || true
    echo "skipped: this machine makes no network namespaces, bridges, host names or processes apart (a container without the right to?)"
    return 1
  fi
  ip netns del "$ns_prefix-try"
}

namespaces_open() {  # COUNT
  local i node
  ns_folder=$(mktemp -d)
  trap namespaces_close EXIT
  ip netns add "$ns_prefix-net" && ip -n "$ns_prefix-net" link add bridge type bridge && ip -n "$ns_prefix-net" link set bridge up || return 1
  for ((i = 1; i <= $1; i++)); do
    node=$ns_prefix-$i ns_count=$i
    ip netns add "$node" &&
      ip -n "$ns_prefix-net" link add "port$i" type veth peer name eth0 netns "$node" &&
      ip -n "$ns_prefix-net" link set "port$i" master bridge up &&
      ip -n "$node" link set lo up && ip -n "$node" addr add "10.77.0.$i/24" dev eth0 && ip -n "$node" link set eth0 up || return 1
    # Launchers detect a cut link by unacknowledged data: after seconds, instead of the default minutes.
    ip netns exec "$node" bash -c 'echo 3 >/proc/sys/net/ipv4/tcp_retries2' || return 1
  done
  # The launcher's replacement for ssh: options, the host, and a command line for its shell.
  cat >"$ns_folder/agent" <<END
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
node=\${1##*.}
shift
exec ip netns exec $ns_prefix-\$node unshare --uts --pid --mount-proc --fork --kill-child bash -c 'hostname node'"\$node"'; eval "\$*"' agent "\$@"
END
  chmod +x "$ns_folder/agent"
}

nodes_clear() {
  local i
  for ((i = 1; i <= ns_count; i++)); do ip netns pids "$ns_prefix-$i" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true; done
}

namespaces_close() {
  local i
  nodes_clear
  for ((i = 1; i <= ns_count; i++)); do
    ip netns del "$ns_prefix-$i" 2>/dev/null || true
  done
  ip netns del "$ns_prefix-net" 2>/dev/null || true
  rm -rf "$ns_folder"
  ns_count=0
}

on_node() {  # NUMBER COMMAND...
  local node=$1
  shift
  ip netns exec "$ns_prefix-$node" unshare --uts --pid --mount-proc --fork --kill-child bash -c 'hostname node'"$node"'; exec "$@"' on_node "$@"
}

link_rate() {  # NUMBER RATE|-
  local where device
  for where in "$ns_prefix-net port$1" "$ns_prefix-$1 eth0"; do
    device=${where#* }
    tc -n "${where% *}" qdisc del dev "$device" root 2>/dev/null || true
    [ "$2" = - ] || tc -n "${where% *}" qdisc add dev "$device" root tbf rate "$2" burst 64kb latency 100ms || return 1
  done
}
link_cut() { ip -n "$ns_prefix-net" link set "port$1" down; }
link_mend() {
  ip -n "$ns_prefix-net" link set "port$1" up || return 1
  [ "$ns_count" -lt 2 ] || within_two_minutes reaches "$1" $(($1 == 1 ? 2 : 1))
}
reaches() {  # NUMBER OTHER: what answers there, if only by a refusal, is reached
  timeout 5 ip netns exec "$ns_prefix-$1" env LC_ALL=C bash -c ": </dev/tcp/10.77.0.$2/9" 2>&1 | grep -q refused
}

mpirun_on_nodes() {  # openmpi|mpich RANKS COMMAND...
  local kind=$1 ranks=$2 hosts= i
  shift 2
  for ((i = 1; i <= ranks; i++)); do hosts+=${hosts:+,}10.77.0.$i; done
  if [ "$kind" = openmpi ]; then
    on_node 1 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --bind-to none --host "$hosts" -n "$ranks" \
      --mca plm_rsh_agent "$ns_folder/agent" --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 \
      --mca oob_tcp_if_include 10.77.0.0/24 --mca oob_tcp_keepalive_time 2 --mca oob_tcp_keepalive_intvl 2 \
      --mca oob_tcp_keepalive_probes 3 "$@"
  else
    on_node 1 env UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 mpirun.mpich -launcher ssh -launcher-exec "$ns_folder/agent" -iface eth0 \
      -hosts "$hosts" -n "$ranks" "$@"
  fi
}
