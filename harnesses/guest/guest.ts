import { writeSync } from 'node:fs';
import type { ControlMessage } from '../../core/wire/protocol.ts';
import { BackgroundCommands } from './background.ts';
import { WireError } from './errors.ts';
import { runCommand } from './exec.ts';
import { FifoPool } from './fifo-pool.ts';
import { FileClient } from './file-client.ts';
import { GidPool } from './gid-pool.ts';
import { HARNESSES } from './harnesses.ts';
import { isSeeded, seedVersion } from './home.ts';
import { createWire, isSocketGone, type Wire } from './http-wire.ts';
import { GUEST_DIGEST } from './identity.ts';
import { closeInherited, readToken } from './inherited.ts';
import { ProcessTrees } from './process-trees.ts';
import { Runs } from './runs.ts';
import { type GuestSettings, readSettings } from './settings.ts';

/** The wire version this guest speaks; a test holds it to core/wire/protocol.ts, whose values a guest cannot import. */
export const GUEST_WIRE_VERSION = 1;

const WITHOUT_KERNEL_MS = 10 * 60_000;
const HELLO_MS = 20_000;
const WATCH_MS = 60_000;
const RETRY_MS = 500;

/** How a guest ended; its exit code is the only thing the init looks at. */
const EXIT = { kernelGone: 0, refused: 1, unusable: 2 } as const;

/** Runs the guest of one sandbox until its kernel is gone. `bundle` is the file this program was started from. */
export async function runGuest(bundle: string): Promise<number> {
  let settings: GuestSettings;
  let token: string;
  try {
    token = readToken();
    closeInherited();
    settings = readSettings(process.env);
  } catch (error) {
    log((error as Error).message);
    return EXIT.unusable;
  }
  process.umask(0o022);
  try {
    await prepareHome(settings, bundle);
  } catch (error) {
    log(`HOME cannot be seeded: ${(error as Error).message}`);
    return EXIT.unusable;
  }
  const wire = createWire(settings.socket);
  const hello = async () => {
    await wire.post('hello', token, { wire: GUEST_WIRE_VERSION, guest: GUEST_DIGEST }, AbortSignal.timeout(HELLO_MS));
  };
  const { runs, warm } = createRuns(settings, wire, token, bundle);
  return stayConnected({ wire, token, hello, runs, warm });
}

function createRuns(settings: GuestSettings, wire: Wire, sandboxToken: string, bundle: string): { runs: Runs; warm: () => void } {
  const fifos = new FifoPool(settings.privateDir, settings.path);
  const trees = new ProcessTrees(settings.toolUid, settings.helperGid);
  const files = new FileClient(settings, bundle, trees);
  const deps = { settings, fifos, trees, files, gids: new GidPool(settings.invocationGids) };
  const background = new BackgroundCommands(deps);
  const runs = new Runs({
    wire,
    sandboxToken,
    harnesses: HARNESSES,
    files,
    log,
    background,
    run: (command, signal, onProgress) =>
      command.background === true ? background.start(command) : runCommand(deps, command, signal, onProgress),
  });
  return { runs, warm: () => fifos.warm() };
}

/**
 * Seeds HOME as the tool uid when it does not bear the seed's version. A guest whose HOME is not as it should be does not start: a tool that
 * finds half of its files is worse than none.
 */
async function prepareHome({ home, homeSeed, toolUid, helperGid }: GuestSettings, bundle: string): Promise<void> {
  if (seedVersion(homeSeed) === undefined || isSeeded({ home, source: homeSeed })) return;
  const { spawn } = process.getBuiltinModule('node:child_process');
  const child = spawn(process.execPath, [bundle, 'seed-home', homeSeed], {
    cwd: '/',
    env: { HOME: home },
    uid: toolUid,
    gid: helperGid,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said = `${said}${chunk}`.slice(-500);
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => (code === 0 ? resolve() : reject(new Error(said.trim() || `ended with ${signal ?? code}`))));
  });
}

interface Connection {
  readonly wire: Wire;
  readonly token: string;
  readonly hello: () => Promise<void>;
  readonly runs: Runs;
  /** What can wait until the kernel has us. */
  readonly warm: () => void;
}

/**
 * Holds the control stream. A lost stream is opened again as long as the socket listens; a closed or removed socket, or ten minutes without
 * any sign of the kernel, is the end: a new kernel makes a new sandbox.
 */
async function stayConnected(connection: Connection): Promise<number> {
  let seenMs = performance.now();
  const seen = () => {
    seenMs = performance.now();
  };
  const silentMs = () => performance.now() - seenMs;
  const { promise: abandoned, resolve: abandon } = Promise.withResolvers<number>();
  const watch = setInterval(() => {
    if (silentMs() > WITHOUT_KERNEL_MS) abandon(EXIT.kernelGone);
    else if (silentMs() > WITHOUT_KERNEL_MS / 2) void probe(connection.hello).then((alive) => alive && seen());
  }, WATCH_MS);
  try {
    return await Promise.race([abandoned, holdControl(connection, seen)]);
  } finally {
    clearInterval(watch);
  }
}

async function holdControl({ wire, token, hello, runs, warm }: Connection, seen: () => void): Promise<number> {
  const onOpen = () => {
    seen();
    warm();
  };
  for (;;) {
    try {
      await hello();
      await wire.control(token, onOpen, (message) => {
        seen();
        runs.take(message as ControlMessage);
      });
      log('control stream ended');
    } catch (error) {
      log(`kernel: ${(error as Error).message}`);
      if (isSocketGone(error)) return EXIT.kernelGone;
      if (isRefusal(error)) return EXIT.refused;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** A busy kernel, or one that still holds our last stream, may admit us later; any other refusal is for good. */
const isRefusal = (error: unknown): boolean =>
  error instanceof WireError && error.status >= 400 && error.status < 500 && ![408, 409, 429].includes(error.status);

/** Any answer is a sign of life. */
async function probe(hello: () => Promise<void>): Promise<boolean> {
  try {
    await hello();
    return true;
  } catch (error) {
    return error instanceof WireError && error.status > 0;
  }
}

/** Standard error may be closed or full; a guest never fails for that. */
function log(line: string): void {
  try {
    writeSync(2, `guest: ${line}\n`);
  } catch {
    // Nobody listens.
  }
}
