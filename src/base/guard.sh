# Kills what an rnix process left behind. Arguments: the instance id.
# stdin is a pipe from that rnix process: "+PGID" and "-PGID" lines name process groups that came and went;
# its end means that rnix is gone, however it went. Started without the mark, so that it doesn't find itself.
trap '' HUP INT TERM
mark="RNIX_INSTANCE=$1"
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

[ -r /proc/self/environ ] || exit 0
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
