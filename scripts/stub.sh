#!/bin/sh
# rnix @VERSION@ for @SYSTEM@ in one file: this script, and behind it an archive of Deno @DENO@ and of the program.
# The archive is unpacked once, into the cache folder; a later start only looks that it is complete. Needs POSIX tools.
set -u

runtime_files='@FILES@'
first_byte=@FIRST_BYTE@

case $0 in
/*) RNIX_EXE=$0 ;;
./*) RNIX_EXE=$PWD/${0#./} ;;
*/*) RNIX_EXE=$PWD/$0 ;;
*) if [ -f "$0" ]; then RNIX_EXE=$PWD/$0; else RNIX_EXE=$(command -v -- "$0"); fi ;;
esac

fail() {
  printf '[DRIVER] %s\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

case ${XDG_CACHE_HOME:-}:${HOME:-} in
/*:*) cache=$XDG_CACHE_HOME ;;
*:/*) cache=$HOME/.cache ;;
*) fail 'No folder to unpack rnix to: neither XDG_CACHE_HOME nor HOME is an absolute path' 'set one of them' ;;
esac
runtime=$cache/rnix/runtime/@HASH@

complete() {
  for file in $runtime_files; do
    [ -s "$runtime/$file" ] || return 1
  done
}

unwritable() {
  fail "Cannot unpack rnix to \"$runtime\": $(printf '%s\n' "$1" | head -n 1)" \
    'free about @MEGABYTES@ MB there, or set XDG_CACHE_HOME to a folder that can be written'
}

archive() {
  tail -c +"$first_byte" "$RNIX_EXE"
}

# Removes what killed starts left behind: of this machine those that are not running, of others those a day old.
# And what other versions unpacked, where nobody has started them for a month; they would unpack it again.
sweep() {
  for left in "$cache/rnix/runtime/"*".new-$(uname -n)-"*; do
    kill -0 "${left##*-}" 2>/dev/null || rm -rf "$left"
  done
  find "$cache/rnix/runtime" -name '*.new-*' -prune -mtime +1 -exec rm -rf {} + 2>/dev/null || :
  find "$cache/rnix/runtime" -name used -mtime +30 2>/dev/null | while read -r used; do rm -rf "${used%/used}"; done
}

# Unpacks to a folder of its own and moves file by file: each file appears whole, so that starts at the same moment, and
# one that was killed in the middle, can do no harm to each other.
unpack() (
  umask 077
  [ "$(uname -sm)" = '@SYSTEM@' ] ||
    fail "This rnix is for @SYSTEM@, not for $(uname -sm)" 'get or build the one for this machine'
  for tool in tail gzip tar; do
    command -v "$tool" >/dev/null || fail "rnix needs \"$tool\" to unpack itself" 'install it, or add its folder to PATH'
  done
  said=$(mkdir -p "$cache/rnix/runtime" 2>&1) || unwritable "$said"
  sweep
  new=$runtime.new-$(uname -n)-$$
  said=$(mkdir "$new" 2>&1) || unwritable "$said"
  trap 'rm -rf "$new"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  said=$({ archive | { gzip -dc || : >"$new/damaged"; } | (cd "$new" && tar -xof -); } 2>&1)
  # shellcheck disable=SC2181 # the condition has two parts
  if [ $? -ne 0 ] || [ -e "$new/damaged" ]; then
    if archive | gzip -t 2>/dev/null; then unwritable "$said"; fi
    fail "\"$RNIX_EXE\" is damaged: its archive can't be unpacked" 'get or build it again'
  fi
  said=$("$new/deno" --version 2>&1) ||
    fail "Deno can't be executed in \"$cache\": $(printf '%s\n' "$said" | head -n 1)" \
      'set XDG_CACHE_HOME to a folder that is not mounted noexec; on Linux rnix needs glibc'
  { sync "$new"/* || sync || :; } 2>/dev/null
  said=$(mkdir -p "$runtime" 2>&1) || unwritable "$said"
  for file in $runtime_files; do
    said=$(mv -f "$new/$file" "$runtime/$file" 2>&1) || unwritable "$said"
  done
)

complete || unpack || exit
complete || fail "Somebody is emptying \"$runtime\"" 'start rnix again'
# Says when it was started last; a folder that can't be written to stays.
{ true >"$runtime/used"; } 2>/dev/null

# Put back by the program: only its own Deno is to see these.
if [ -n "${DENO_DIR+set}" ]; then export RNIX_KEPT_DENO_DIR="$DENO_DIR"; else unset RNIX_KEPT_DENO_DIR; fi
export RNIX_EXE DENO_DIR="$runtime/cache" DENO_NO_UPDATE_CHECK=1
exec "$runtime/deno" run @FLAGS@ "$runtime/main.mjs" "$@"
