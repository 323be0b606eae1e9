# Kills what an rnix process left behind. Arguments: the instance id; the file that names the container engines that were used, or nothing.
# stdin is a pipe from that rnix process: "+PGID" and "-PGID" lines name process groups that came and went;
# its end means that rnix is gone, however it went. Started without the mark, so that it doesn't find itself.
trap '' HUP INT TERM
mark="RNIX_INSTANCE=$1"
label="rnix.instance=$1"
engines=$2
tab=$(printf '\t')
groups=" "
echo up

while read -r line; do
  group=${line#[+-]}
  case $group in '' | *[!0-9]* | 0 | 1) continue ;; esac
  case $line in
    +*) groups="$groups$group " ;;
    -*) case $groups in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac ;;
  esac
done

for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done

sweep_processes() {
  [ -r /proc/self/environ ] || return 0
  # Two scans in a row must find nothing: a process may fork behind the scan's back.
  clean=0
  round=0
  while [ $clean -lt 2 ] && [ $round -lt 300 ]; do
    round=$((round + 1))
    found=$(grep -lsF "$mark" /proc/[0-9]*/environ 2>/dev/null)
    if [ -z "$found" ]; then
      clean=$((clean + 1))
      continue
    fi
    clean=0
    for file in $found; do
      pid=${file#/proc/}
      kill -s KILL "${pid%%/*}" 2>/dev/null
    done
    sleep 0.02 2>/dev/null || sleep 1
  done
}

# $1: an engine's program; the rest: its environment. Asked again after a removal: a container may have been in the making.
sweep_containers() {
  program=$1
  shift
  for round in 1 2 3; do
    found=$(env -i "$@" "$program" ps -aq --filter "label=$label") || return 1
    [ -n "$found" ] || return 0
    env -i "$@" "$program" rm -f $found
    sleep 0.1 2>/dev/null || sleep 1
  done
}

sweep_processes
[ -n "$engines" ] && [ -r "$engines" ] || exit 0
left=0
while IFS= read -r line; do
  (
    set -f
    IFS=$tab
    set -- $line
    unset IFS
    sweep_containers "$@"
  ) </dev/null >/dev/null 2>&1 || left=1
done <"$engines"
# What an engine refused is tried again by the next sweep of this instance.
[ $left = 1 ] || rm -f "$engines"
exit 0
