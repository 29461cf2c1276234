#!/usr/bin/env -S node --max-semi-space-size=4
// With the young generation of the heap held to 4 MiB an idle kernel has 127 MiB of its own instead of 173, at the same processor time.
// Plain JavaScript for any Node from 20 on: finds the Node that runs the rest, and gets out of the way.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const WANTED_MAJOR = 24;
const AGAIN = 'OUTWORK_LAUNCHED';

const here = dirname(fileURLToPath(import.meta.url));
const relaunched = process.env[AGAIN] !== undefined;
// Nothing that is started later inherits it.
delete process.env[AGAIN];

if (Number.parseInt(process.versions.node, 10) >= WANTED_MAJOR) await runHere();
else if (relaunched) missing(`the Node.js of this package is ${process.versions.node}, not ${WANTED_MAJOR}`);
else relaunch();

async function runHere() {
  // Features that this Node calls experimental are pinned by our tests; everything else that it warns of is shown.
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.name !== 'ExperimentalWarning') process.stderr.write(`${warning.name}: ${warning.message}\n`);
  });
  // Sources in development, which this Node runs as they are; the emitted code in an installed package.
  const sources = join(here, 'main.ts');
  const emitted = join(here, '..', '..', 'build', 'package', 'adapters', 'cli', 'main.js');
  const { main } = await import(existsSync(sources) ? sources : emitted);
  process.exitCode = await main(process.argv.slice(2));
}

function relaunch() {
  const node = packagedNode();
  if (node === undefined) {
    missing(`Node.js ${WANTED_MAJOR} or newer is needed, this is ${process.versions.node}, and the packaged one is not installed`);
    return;
  }
  const child = spawn(node, [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, [AGAIN]: '1' },
  });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  child.once('error', (error) => missing(`${node} cannot be started: ${error.message}`));
  child.once('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    // Ends as the child did, so that a shell sees the same.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

function packagedNode() {
  try {
    const manifest = createRequire(import.meta.url).resolve(`node-linux-${process.arch}/package.json`);
    const node = join(dirname(manifest), 'bin', 'node');
    return existsSync(node) ? node : undefined;
  } catch {
    return undefined;
  }
}

/** Exit code 3: something that this machine must have is missing; the error names the command that mends it. */
function missing(message) {
  const error = { code: 'component_missing', message, hint: 'npm ci --include=optional' };
  if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify({ error })}\n`);
  else process.stderr.write(`error: ${message} (${error.code})\nhint: ${error.hint}\n`);
  process.exitCode = 3;
}
