# Undoes what its standard input names, once that ends. See guard.rs.
owner=$1 pid= start= mount= loop= fuse= fuse_folder= folder= group= watcher=
PATH=$PATH:/usr/sbin:/sbin

# The start time of a process.
started() {
  { read -r stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${stat##*) }
  echo "${20}"
}

# Signal 9 is bit 8 of the pending ones.
is_dying() { grep -Eq '^(State:[[:space:]]*[ZX]|SigPnd:.*[13579bdf]..$)' "/proc/$owner/status"; }

watch() {
  while sleep 1; do
    is_dying && umount -f "$1"
  done
}

leave() {
  [ -n "$watcher" ] && kill "$watcher"
  exit 0
}

while IFS=' ' read -r word value; do
  case $word in
    server) pid=$value; start=$(started "$pid") ;;
    mount) mount=$value ;;
    loop) loop=$value ;;
    fuse) fuse=$value; watch "$value" & watcher=$! ;;
    fuse_folder) fuse_folder=$value ;;
    folder) folder=$value ;;
    group) group=$value ;;
    gone) eval "$value=" ;;
    done) leave ;;
  esac
done

if [ -n "$start" ] && [ "$(started "$pid")" = "$start" ]; then
  kill -9 "$pid"
  tries=0
  while [ $tries -lt 100 ] && [ "$(started "$pid")" = "$start" ]; do sleep 0.1; tries=$((tries + 1)); done
fi
[ -n "$fuse" ] && umount -l "$fuse"
[ -n "$mount" ] && { umount "$mount" || umount -l "$mount"; }
[ -n "$loop" ] && losetup -d "$loop"
[ -n "$fuse_folder" ] && rmdir "$fuse_folder/fuse" "$fuse_folder"
case $folder in */highwater-*) rm -rf "$folder" ;; esac
[ -n "$group" ] && rmdir "$group"
leave
