#!/bin/sh
# A shell and util-linux' flock: LOCK WIDTH SESSION TURNS LOG.
lock=$1 width=$2 session=$3 turns=$4 log=$5
stem=${lock%.lock}
export session log

turn() {
  flock -n -E 75 "$1" sh -c 'echo "+ $session" >>"$log"; echo "- $session" >>"$log"'
}

done=0
while [ "$done" -lt "$turns" ]; do
  slot=0
  while [ "$slot" -lt "$width" ]; do
    if [ "$slot" -eq 0 ]; then file=$lock; else file=$stem.$slot.lock; fi
    if turn "$file"; then
      done=$((done + 1))
      break
    fi
    slot=$((slot + 1))
  done
done
