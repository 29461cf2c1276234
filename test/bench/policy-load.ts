import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findOpa } from '../../adapters/policy/opa.ts';

/** A copy of the bundle root below `from` that may be changed. */
export async function bundleCopy(from: string): Promise<{ readonly dir: string; remove(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'outwork-bench-policy-'));
  await cp(from, dir, { recursive: true });
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}

/** Adds rows to the list of reviewed commands. */
export async function growEffects(dir: string, entries: number): Promise<void> {
  const path = join(dir, 'data', 'effects.yaml');
  const rows = Array.from(
    { length: entries },
    (_, at) => `  p${at}: [{ words: [], class: pure, flags: "", options: [], prefixes: [], operands: true }]\n`,
  );
  await writeFile(path, `${await readFile(path, 'utf8')}${rows.join('')}`);
}

/** Lists so many hosts, every other one as a pattern, and at the end what is below `last`. */
export async function listHosts(dir: string, entries: number, last: string): Promise<void> {
  const path = join(dir, 'data', 'egress.yaml');
  const terms = '[{ ports: [443], schemes: [https], methods: [GET], paths: [/repos/**] }]';
  const rows = Array.from({ length: entries }, (_, at) => `  "${at % 2 === 0 ? '' : '*.'}h${at}.example.com": ${terms}\n`);
  const hosts = `hosts:\n${rows.join('')}  "*.${last}": ${terms}\n`;
  await writeFile(path, (await readFile(path, 'utf8')).replace(/^hosts: .*\n/m, hosts));
}

export async function denyPrograms(dir: string, programs: string): Promise<void> {
  const path = join(dir, 'data', 'call.yaml');
  await writeFile(path, (await readFile(path, 'utf8')).replace(/^denied_programs: .*$/m, `denied_programs: ${programs}`));
}

/** OPA's own server with the same rules and data, asked over loopback on one kept connection. */
export class OpaServer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#port = port;
  }

  static async start(dir: string, dataFile: string): Promise<OpaServer> {
    const port = await freePort();
    const args = ['run', '--server', '--addr', `127.0.0.1:${port}`, '--log-level', 'error', '--disable-telemetry', 'outwork', dataFile];
    const server = new OpaServer(spawn(await findOpa(), args, { cwd: dir, stdio: 'ignore' }), port);
    for (;;) {
      const up = await server.#exchange('GET', '/health').then(
        ({ status }) => status === 200,
        () => false,
      );
      if (up) return server;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** @returns the effect that it decides */
  async decide(input: unknown): Promise<string> {
    const { text } = await this.#exchange('POST', '/v1/data/outwork/decision', JSON.stringify({ input }));
    return (JSON.parse(text) as { result: { effect: string } }).result.effect;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await ended;
  }

  #exchange(method: string, path: string, body = ''): Promise<{ readonly status: number; readonly text: string }> {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const outgoing = request({ agent: this.#agent, host: '127.0.0.1', port: this.#port, method, path, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }));
        response.once('error', reject);
      });
      outgoing.once('error', reject);
      outgoing.end(body);
    });
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
