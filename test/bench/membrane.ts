import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Membrane } from '../../adapters/membrane/channel.ts';
import type { MembraneLimits } from '../../adapters/membrane/limits.ts';
import { createMembrane } from '../../adapters/membrane/server.ts';
import { createRunTokens } from '../../adapters/membrane/tokens.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { OPERATIONS } from '../../core/wire/protocol.ts';
import { runClaims } from '../membrane/harness.ts';
import { recordingService } from '../membrane/recording-service.ts';
import type { Figure } from './figure.ts';
import type { FloodKind, Load } from './membrane-load.ts';

const COUNT = 3_000;
const WARM_UP = 500;
/** Alternating rounds, so that whatever else the machine does falls on both sides. */
const ROUNDS = 3;

/** Round trip of a call, and what a flooding neighbour does to it. Load comes from processes of their own, as in life. */
export async function benchMembrane(): Promise<Figure[]> {
  await using bench = await startBench();
  const times = { echo: [] as number[], call: [] as number[], badTokens: [] as number[], reconnects: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    times.echo.push(...(await bench.measure(bench.echo)));
    times.call.push(...(await bench.measure(bench.victim)));
    times.badTokens.push(...(await bench.underFlood('bad-tokens')));
    times.reconnects.push(...(await bench.underFlood('reconnects')));
  }
  return [
    figure('membrane.callUs.p50', 3, times.call, times.echo, 0.5),
    figure('membrane.callUs.p99', 3, times.call, times.echo, 0.99),
    figure('membrane.callBesideBadTokensUs.p50', 2, times.badTokens, times.call, 0.5),
    figure('membrane.callBesideBadTokensUs.p99', 4, times.badTokens, times.call, 0.99),
    figure('membrane.callBesideReconnectsUs.p50', 2, times.reconnects, times.call, 0.5),
  ];
}

export interface MembraneBench extends AsyncDisposable {
  /** A bare node:http server that reads the body and answers. */
  readonly echo: Target;
  readonly victim: Target;
  /** @returns microseconds of each call */
  measure(target: Target): Promise<number[]>;
  /** The victim's calls while another sandbox floods on 64 connections. */
  underFlood(kind: FloodKind): Promise<number[]>;
}

export interface Target {
  readonly socketPath: string;
  readonly token: string;
}

/** @param floodLimits - bounds of the flooding sandbox's socket; a control may take them away */
export async function startBench(floodLimits: Partial<MembraneLimits> = {}): Promise<MembraneBench> {
  const dir = await mkdtemp(join(tmpdir(), 'bench-'));
  const tokens = await createRunTokens({ clock: systemClock });
  const service = recordingService();
  const common = { service, tokens, clock: systemClock, guestDigest: () => '' };
  const bounded = await createMembrane({ ...common, limits: floodLimits });
  // The victim's own rate limit is not what is measured.
  const unlimited = await createMembrane({ ...common, limits: { requestsPerSecond: 1e6, burst: 1e6 } });
  const open = async (membrane: Membrane, user: string): Promise<Target> => {
    const socketDir = await mkdtemp(join(dir, 's-'));
    const claims = runClaims(user);
    const { socketPath } = await membrane.open({ tenant: claims.tenant, user, generation: claims.sandbox, socketDir });
    service.seats.set(claims.run, claims.fence);
    return { socketPath, token: await tokens.mint(claims, systemClock.now() + 3_600_000) };
  };
  const victim = await open(unlimited, 'ada');
  const flooder = await open(bounded, 'mallory');
  const echoPath = join(dir, 'echo.sock');
  const echo = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}'));
  });
  echo.listen(echoPath);
  await once(echo, 'listening');
  const started = new Set<ChildProcess>();

  const measure = async ({ socketPath, token }: Target): Promise<number[]> => {
    const child = startLoad({ kind: 'calls', socketPath, token, path: OPERATIONS.call.path, count: COUNT, warmUp: WARM_UP }, started);
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`the measuring process ended with ${code}`);
    service.forget();
    return JSON.parse(output) as number[];
  };

  return {
    echo: { socketPath: echoPath, token: victim.token },
    victim,
    measure,
    async underFlood(kind) {
      const token = `${flooder.token.slice(0, -4)}AAAA`;
      const child = startLoad({ kind, socketPath: flooder.socketPath, token, path: OPERATIONS.call.path, connections: 64 }, started);
      await once(child.stdout as NodeJS.ReadableStream, 'data');
      const times = await measure(victim);
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
      return times;
    },
    async [Symbol.asyncDispose]() {
      for (const child of started) child.kill('SIGKILL');
      echo.close();
      echo.closeAllConnections();
      await Promise.all([bounded.close(), unlimited.close()]);
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

function figure(id: string, most: number, measured: readonly number[], baseline: readonly number[], quantile: number): Figure {
  const [value, base] = [at(measured, quantile), at(baseline, quantile)];
  return { id, target: `≤ ${most} × baseline`, measured: value, baseline: base, ratio: value / base, met: value <= most * base };
}
