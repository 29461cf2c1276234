import { closeSync, readdirSync, readFileSync } from 'node:fs';

const TOKEN_FD = 3;
const O_CLOEXEC = 0o2000000;

/** Reads the sandbox token from descriptor 3 to its end and closes it. Nothing may be spawned before. @throws Error when there is none */
export function readToken(): string {
  const token = readFileSync(TOKEN_FD, 'utf8').trim();
  closeSync(TOKEN_FD);
  if (token === '') throw new Error('descriptor 3: no token');
  return token;
}

/**
 * Closes every inherited descriptor above 2. Those that Node opened are close-on-exec; one that is not came from whoever started us, and a
 * tool would get it too.
 */
export function closeInherited(): number {
  let closed = 0;
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name);
    if (fd <= 2 || !survivesExec(fd)) continue;
    closeSync(fd);
    closed += 1;
  }
  return closed;
}

function survivesExec(fd: number): boolean {
  try {
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    return false; // The descriptor of the directory listing itself: gone by now.
  }
}
