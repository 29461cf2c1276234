#!/bin/sh
# PID 1 of a sandbox. It starts the guest, reaps every orphan, and lives exactly as long as the guest: when it exits, the system kernel
# ends whatever else runs in the pid namespace, so no tool outlives its executor (design, "PID 1 is our init").
#
# Descriptors: 3 is the sandbox token, for the guest alone; 4 is the engine's, told once that the sandbox is complete.
umask 022
echo up >&4
exec 4>&-

/opt/outwork/node /opt/outwork/guest.cjs &
guest=$!
# Nobody but the guest keeps the token.
exec 3<&-

# Waiting for one child reaps all others too. PID 1 has no handlers, so no signal from inside ends this early.
wait "$guest"
exit "$?"
