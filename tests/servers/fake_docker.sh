#!/bin/sh
# A container engine: `run` starts a "container" that is nobody's child and carries nobody's mark, and stays as long as it is told to; `ps` lists by label; `rm -f` ends.
# Its containers are files in $DOCKER_CONFIG/containers: OS pid and label.
mkdir -p "$DOCKER_CONFIG/containers"
case $1 in
  run)
    shift
    label=none
    while [ $# -gt 0 ]; do
      case $1 in
        --label) label=$2; shift 2 ;;
        -*) shift ;;
        *) break ;;
      esac
    done
    shift # the image
    id=$$
    env -i setsid sleep 600 </dev/null >/dev/null 2>&1 &
    echo "$! $label" >"$DOCKER_CONFIG/containers/$id"
    exec "$@"
    ;;
  ps)
    wanted=${4#label=}
    for file in "$DOCKER_CONFIG"/containers/*; do
      [ -e "$file" ] || continue
      read -r pid label <"$file"
      [ "$label" = "$wanted" ] && echo "${file##*/}"
    done
    exit 0
    ;;
  rm)
    shift 2
    for id in "$@"; do
      read -r pid label <"$DOCKER_CONFIG/containers/$id" && kill -KILL "$pid"
      rm -f "$DOCKER_CONFIG/containers/$id"
    done
    ;;
esac
