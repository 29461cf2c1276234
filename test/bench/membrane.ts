import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MembraneLimits } from '../../adapters/membrane/limits.ts';
import { createMembrane } from '../../adapters/membrane/server.ts';
import { createRunTokens } from '../../adapters/membrane/tokens.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { OPERATIONS } from '../../core/wire/protocol.ts';
import { recordingService } from '../membrane/recording-service.ts';
import type { Figure } from './figure.ts';
import type { Load } from './membrane-load.ts';

const COUNT = 3_000;
const WARM_UP = 500;
/** Alternating rounds, so that whatever else the machine does falls on both sides. */
const ROUNDS = 3;

/** Round trip of a call, and what a flooding neighbour does to it. Load comes from processes of their own, as in life. */
export async function benchMembrane(): Promise<Figure[]> {
  await using bench = await startBench();
  const [echo, call, flooded] = [[] as number[], [] as number[], [] as number[]];
  for (let round = 0; round < ROUNDS; round += 1) {
    echo.push(...(await bench.measure(bench.echo)));
    call.push(...(await bench.measure(bench.victim)));
    const stop = await bench.flood();
    flooded.push(...(await bench.measure(bench.victim)));
    await stop();
  }
  return [
    figure('membrane.round_trip_us_p50', 'at most 3 × a bare node:http echo', at(call, 0.5), at(echo, 0.5), 3),
    figure('membrane.round_trip_us_p99', 'at most 3 × a bare node:http echo', at(call, 0.99), at(echo, 0.99), 3),
    figure('membrane.flooded_call_us_p50', 'at most 2 × without the flood', at(flooded, 0.5), at(call, 0.5), 2),
    figure('membrane.flooded_call_us_p99', 'at most 4 × without the flood', at(flooded, 0.99), at(call, 0.99), 4),
  ];
}

export interface Bench extends AsyncDisposable {
  readonly echo: Target;
  readonly victim: Target;
  measure(target: Target): Promise<number[]>;
  /** Starts a neighbour that floods; the returned function ends it. */
  flood(): Promise<() => Promise<void>>;
}

interface Target {
  readonly socketPath: string;
  readonly token: string;
}

export async function startBench(limits: Partial<MembraneLimits> = {}): Promise<Bench> {
  const dir = await mkdtemp(join(tmpdir(), 'bench-'));
  const tokens = await createRunTokens({ clock: systemClock });
  const service = recordingService();
  // The victim measures latency, not its own rate limit.
  const membrane = await createMembrane({ service, tokens, clock: systemClock, guestDigest: () => '', limits });
  const open = async (user: string, burst: number): Promise<Target> => {
    const socketDir = await mkdtemp(join(dir, 's-'));
    const sandbox = `gen-${user}`;
    const opened = await (burst === 0 ? membrane : patient).open({ tenant: 'acme', user, generation: sandbox, socketDir });
    service.seats.set(`run-${user}`, 1);
    const claims = {
      kind: 'run',
      tenant: 'acme',
      user,
      sandbox,
      thread: 't',
      run: `run-${user}`,
      fence: 1,
      placement: 'persistent-per-user',
    } as const;
    return { socketPath: opened.socketPath, token: await tokens.mint(claims, systemClock.now() + 3_600_000) };
  };
  const patient = await createMembrane({
    service,
    tokens,
    clock: systemClock,
    guestDigest: () => '',
    limits: { ...limits, requestsPerSecond: 1e6, burst: 1e6 },
  });
  const victim = await open('ada', 1);
  const flooder = await open('mallory', 0);
  const echoPath = join(dir, 'echo.sock');
  const echo = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}'));
  });
  echo.listen(echoPath);
  await once(echo, 'listening');
  const started = new Set<ChildProcess>();

  return {
    echo: { socketPath: echoPath, token: victim.token },
    victim,
    async measure({ socketPath, token }) {
      const child = startLoad({ kind: 'calls', socketPath, token, path: OPERATIONS.call.path, count: COUNT, warmUp: WARM_UP }, started);
      let output = '';
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
      const [code] = await once(child, 'close');
      if (code !== 0) throw new Error(`the measuring process ended with ${code}`);
      (service.executed as unknown[]).length = 0;
      return JSON.parse(output) as number[];
    },
    async flood() {
      const token = `${flooder.token.slice(0, -4)}AAAA`;
      const child = startLoad(
        { kind: 'flood', socketPath: flooder.socketPath, token, path: OPERATIONS.call.path, connections: 64 },
        started,
      );
      await once(child.stdout as NodeJS.ReadableStream, 'data');
      return async () => {
        const closed = once(child, 'close');
        child.kill('SIGKILL');
        await closed;
      };
    },
    async [Symbol.asyncDispose]() {
      for (const child of started) child.kill('SIGKILL');
      echo.close();
      echo.closeAllConnections();
      await Promise.all([membrane.close(), patient.close()]);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function startLoad(load: Load, started: Set<ChildProcess>): ChildProcess {
  const script = fileURLToPath(new URL('./membrane-load.ts', import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(load)], { stdio: ['pipe', 'pipe', 'inherit'] });
  started.add(child);
  child.once('close', () => started.delete(child));
  return child;
}

const at = (times: readonly number[], quantile: number): number =>
  [...times].sort((a, b) => a - b)[Math.floor(times.length * quantile)] ?? 0;

const figure = (id: string, target: string, measured: number, baseline: number, most: number): Figure => {
  const ratio = measured / baseline;
  return { id, target, measured, baseline, ratio, met: ratio <= most };
};
