import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { keepOutcome } from '../../core/capability/outcome.ts';
import type { Json } from '../../core/json.ts';
import { DEFAULT_LEAK_TERMS } from '../../core/leak/scrub.ts';
import { findShapes } from '../../core/leak/shapes.ts';
import { type GuestProcess, startGuest } from '../support/guest-process.ts';
import type { Figure } from './figure.ts';

const MiB = 1024 * 1024;
const STREAM_MiB = 512;
const WARM_UP = 10;
const ROUNDS = 30;
/** Values that are live while output is scanned. */
const SECRETS = ['Zq3vN8rT1xK6wB9yL2mP5sD7fG4hJ0cV', 'AKIAQ7ZK2VXT4MBWNCRD', 'qv8Xn2Lr5Tz9Wb3Kc7Jd1Mf6Hg4Ps0Ya'];

/**
 * What capturing output costs: how fast a stream goes through beside a bare pipe, what memory that takes, what scanning adds to it, and
 * how often ordinary source text is taken for a credential.
 */
export async function benchOutput(): Promise<Figure[]> {
  await using guest = await startGuest({ ownProcesses: true });
  return [...(await throughput(guest)), ...(await scanning(guest)), falsePositives()];
}

async function throughput(guest: GuestProcess): Promise<Figure[]> {
  const argv = ['dd', 'if=/dev/zero', 'bs=64k', `count=${STREAM_MiB * 16}`, 'status=none'] as const;
  await guest.membrane.exec('run_bench', { argv: ['true'] });
  const before = residentMiB(guest);
  const bareMs = await timed(() => barePipe(argv));
  const ms = await timed(() => guest.membrane.exec('run_bench', { argv, outputBytes: MiB }));
  const grownMiB = Math.max(0, peakMiB(guest) - before);
  const rate = STREAM_MiB / (ms / 1000);
  const bareRate = STREAM_MiB / (bareMs / 1000);
  return [
    figure('output.captureMiBs', '≥ 100 MiB/s', rate, bareRate, rate >= 100),
    figure('output.memoryMiB', `≤ 32 MiB more, for ${STREAM_MiB} MiB of output`, grownMiB, null, grownMiB <= 32),
  ];
}

/** A megabyte of log lines, all of it kept, and the part of it that is kept by default. */
async function scanning(guest: GuestProcess): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [id, kept] of [
    ['output.scanPercent', 64 * 1024],
    ['output.scanAllPercent', MiB],
  ] as const) {
    const capture: number[] = [];
    const scan: number[] = [];
    for (let i = 0; i < WARM_UP + ROUNDS; i += 1) {
      const script = 'seq -f "2024-05-01 INFO worker %.0f handled request /api/v1/items in 12 ms" 20000 | head -c 1048576';
      let result: Json = null;
      const emptyMs = await timed(() => guest.membrane.exec('run_bench', { argv: ['true'] }));
      const ms = await timed(async () => {
        result = (await guest.membrane.exec('run_bench', { argv: ['sh', '-c', script], outputBytes: kept })).exec as unknown as Json;
      });
      const captureMs = Math.max(0.1, ms - emptyMs);
      const rules = { capability: 'shell.exec', secrets: SECRETS, leaks: DEFAULT_LEAK_TERMS, outputBytes: kept } as const;
      const scanMs = await timed(async () => void keepOutcome({ kind: 'result', result, source: 'kernel' }, rules));
      if (i < WARM_UP) continue;
      capture.push(captureMs);
      scan.push(scanMs);
    }
    const percent = (median(scan) / median(capture)) * 100;
    figures.push(figure(id, '≤ 25 % of what capturing it costs', percent, null, percent <= 25));
  }
  return figures;
}

/** Finds in the source trees of installed packages, per MiB. Some of those packages show credentials of nobody on purpose. */
function falsePositives(): Figure {
  let bytes = 0;
  let finds = 0;
  for (const file of sourceFiles('node_modules')) {
    const text = readFileSync(file, 'utf8');
    bytes += text.length;
    for (const { name, start, end } of findShapes(text)) {
      finds += 1;
      process.stderr.write(`  ${name} in ${file}: ${text.slice(start, start + 8)}… (${end - start})\n`);
    }
  }
  const perMiB = finds / (bytes / MiB);
  process.stderr.write(`  ${finds} finds in ${Math.round(bytes / MiB)} MiB of source\n`);
  return figure('leaks.falsePerMiB', '≤ 0.1 in source trees of packages', perMiB, null, perMiB <= 0.1);
}

function* sourceFiles(dir: string): Generator<string> {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) yield* sourceFiles(path);
    else if (entry.isFile() && /\.(?:[cm]?[jt]s|json|md|ya?ml|sh|py|txt)$/.test(entry.name) && statSync(path).size <= 2 * MiB) yield path;
  }
}

const statusOf = (guest: GuestProcess, field: string): number => {
  const pid = guestPid(guest.child.pid ?? 0);
  const line = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) / 1024;
};
const residentMiB = (guest: GuestProcess) => statusOf(guest, 'VmRSS');
const peakMiB = (guest: GuestProcess) => statusOf(guest, 'VmHWM');

/** The guest below the process that made its namespace. */
function guestPid(pid: number): number {
  const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
  return child > 0 ? child : pid;
}

function barePipe([program = '', ...args]: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    child.on('error', reject);
    child.on('close', () => resolve());
    child.stdout.resume();
  });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

const figure = (id: string, target: string, measured: number, baseline: number | null, met: boolean): Figure => ({
  id,
  target,
  measured: round(measured),
  baseline: baseline === null ? null : round(baseline),
  ratio: baseline === null ? null : round(measured / baseline),
  met,
});
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const round = (value: number): number => Math.round(value * 1000) / 1000;
