# Says "marked" when a process above the given one carries the mark, or is the daemon. Arguments: the mark, the pid to begin with, the daemon's pid or 0.
# Without /proc it says nothing: then the environment of rnix itself is all that is known.
pid=$2
files=
round=0
while [ "$pid" -gt 1 ] && [ $round -lt 128 ]; do
  round=$((round + 1))
  if [ "$pid" -eq "$3" ]; then
    echo marked
    exit
  fi
  files="$files /proc/$pid/environ"
  parent=0
  [ -r "/proc/$pid/status" ] || break
  while read -r key value; do
    [ "$key" != PPid: ] || parent=$value
  done <"/proc/$pid/status"
  pid=$parent
done
# shellcheck disable=SC2086 # paths without blanks
[ -z "$files" ] || ! grep -qsF "$1=" $files || echo marked
