import { readFileSync } from 'node:fs';
import { scanForGid } from './process-scan.ts';

/** How long a look at the sockets of one command may take. */
const LOOK_MS = 2000;
const TABLE_BYTES = 256 * 1024;
const LISTEN = '0A';
/** Told of one command. */
const MAX_PORTS = 64;

/** Who looks: it must have the uid and the gid of those whose sockets it sees, so the executor itself cannot. */
export interface SocketLook {
  readonly toolUid: number;
  readonly gid: number;
  readonly path: string;
}

/**
 * TCP ports on which processes of an invocation listen, ascending. Empty when none does, and when it cannot be seen: a process that made
 * itself undumpable shows its sockets to nobody.
 */
export async function listeningPorts(look: SocketLook): Promise<readonly number[]> {
  const ports = portsByInode();
  if (ports.size === 0) return [];
  const found = new Set<number>();
  for (const [, inode] of (await socketsOf(look)).matchAll(/socket:\[(\d+)\]/g)) {
    const port = ports.get(String(inode));
    if (port !== undefined) found.add(port);
  }
  return [...found].sort((a, b) => a - b).slice(0, MAX_PORTS);
}

/** Listening sockets of this network namespace by inode (proc_pid_net(5)); their owner is the same uid for all tools. */
function portsByInode(): ReadonlyMap<string, number> {
  const ports = new Map<string, number>();
  for (const table of ['tcp', 'tcp6']) {
    for (const line of readTable(table).split('\n').slice(1)) {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
      if (state === LISTEN && inode !== undefined) ports.set(inode, Number.parseInt(local?.slice(local.lastIndexOf(':') + 1) ?? '', 16));
    }
  }
  return ports;
}

function readTable(name: string): string {
  try {
    return readFileSync(`/proc/self/net/${name}`, 'latin1');
  } catch {
    return '';
  }
}

/** Links of all descriptors of the invocation. What it says is a tool's word, as is all that is told of a command. */
function socketsOf({ toolUid, gid, path }: SocketLook): Promise<string> {
  const { spawn } = process.getBuiltinModule('node:child_process');
  const child = spawn('ls', ['-ln', ...scanForGid(gid).live.map((pid) => `/proc/${pid}/fd`)], {
    cwd: '/',
    env: { PATH: path },
    uid: toolUid,
    gid,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    if (text.length < TABLE_BYTES) text += chunk.toString('latin1');
  });
  return new Promise((resolve) => {
    const late = setTimeout(() => {
      child.kill('SIGKILL');
      child.stdout.destroy();
    }, LOOK_MS);
    const done = () => {
      clearTimeout(late);
      resolve(text);
    };
    child.once('close', done);
    child.once('error', done);
  });
}
