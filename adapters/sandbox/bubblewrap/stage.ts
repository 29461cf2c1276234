/**
 * Two short shell programs that run between unshare(1) and bubblewrap. They are the kernel's own code and see nothing of a sandbox.
 *
 * Descriptors, fixed: 3 is the token, 4 the engine's line, 5 to 9 the host directories to be mounted. The last five are closed before
 * bubblewrap starts: one of them inside would be a way out. 5 is then a second descriptor of the engine's line, because bubblewrap closes
 * the one it reports its status on, and 6 the seccomp filter, which bubblewrap reads and closes.
 */
export const TOKEN_FD = 3;
export const ENGINE_FD = 4;
export const STATUS_FD = 5;
export const SECCOMP_FD = 6;

/** The filter's file in the image. */
export const SECCOMP_NAME = 'seccomp.bpf';

/**
 * Runs as the kernel's user in the new namespaces, while no id is mapped: closes what the kernel process itself inherited and never
 * marked (Node closes such descriptors up to the first gap only), waits until the map is written (the line closing is the end), lowers
 * the limits while it still may, and opens what the slice's ids could not reach. For bash: dash cannot name a descriptor above 9.
 * Arguments: `name=value …`, the five directories, the command.
 */
export const UNMAPPED_STAGE = `for fd in /proc/self/fd/*; do
  fd=\${fd##*/}
  if [ "$fd" -gt ${ENGINE_FD} ]; then eval "exec $fd>&-"; fi
done
echo unshared >&${ENGINE_FD}
read -r answer <&${ENGINE_FD} && [ "$answer" = mapped ] || exit 97
for limit in $1; do
  file=/proc/sys/user/\${limit%=*}
  if [ -e "$file" ]; then echo "\${limit#*=}" >"$file" || exit 98; fi
done
exec 5<"$2" 6<"$3" 7<"$4" 8<"$5" 9<"$6" || exit 99
shift 6
exec "$@"`;

export const MOUNT_TABLE_NAME = 'stage.fstab';

/** The mounts of the stage, in fstab(5) form so that one mount(8) makes all. Sources are descriptors: no path is resolved again. */
export const MOUNT_TABLE = `stage /tmp tmpfs mode=0755,size=64k 0 0
/proc/self/fd/5 /tmp/image none bind,nosuid,nodev,X-mount.mkdir 0 0
/proc/self/fd/6 /tmp/node none bind,nosuid,nodev,X-mount.mkdir 0 0
/proc/self/fd/7 /tmp/s none bind,nosuid,nodev,noexec,X-mount.mkdir 0 0
/proc/self/fd/8 /tmp/w none bind,nosuid,nodev,X-mount.mkdir 0 0
/proc/self/fd/9 /tmp/h none bind,nosuid,nodev,X-mount.mkdir 0 0
`;

/** Runs with the slice's first ids and all capabilities of the user namespace, in a mount namespace that nothing else shares. */
export const MOUNT_STAGE = `mount --no-mtab --no-canonicalize --all --fstab /proc/self/fd/5/${MOUNT_TABLE_NAME} || exit 99
exec ${STATUS_FD}>&${ENGINE_FD} ${SECCOMP_FD}</tmp/image/${SECCOMP_NAME} 7<&- 8<&- 9<&- || exit 99
exec "$@"`;
