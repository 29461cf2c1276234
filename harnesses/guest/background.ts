import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { CommandOutcome } from '../../core/capability/types.ts';
import type { ToolCommand } from '../../core/ports/placement.ts';
import { planCommand } from './command-plan.ts';
import { GuestError } from './errors.ts';
import type { ExecDeps } from './exec.ts';
import type { FileClient } from './file-client.ts';
import { mayCarryGid } from './process-trees.ts';
import { spawnTool, type ToolProcess } from './tool-process.ts';

const MAX_ALIVE = 16;
const LOG_BYTES = 1024 * 1024;

/**
 * Commands declared as background: they outlive their call and their run, and end with the sandbox. Each keeps its gid until nothing
 * carries it. What they print goes to a bounded log below `$HOME/.outwork/log`, written as the tool uid.
 */
export class BackgroundCommands {
  readonly #deps: ExecDeps;
  readonly #files: FileClient;
  readonly #alive = new Set<number>();

  constructor(deps: ExecDeps, files: FileClient) {
    this.#deps = deps;
    this.#files = files;
    mkdirSync(`${deps.settings.privateDir}/background`, { recursive: true, mode: 0o700 });
  }

  /** Answers as soon as the command has started. @throws GuestError `background_limit` and those of a foreground command's start */
  async start(command: ToolCommand): Promise<CommandOutcome> {
    const plan = planCommand(command, this.#deps.settings);
    this.#forgetDead();
    if (this.#alive.size >= MAX_ALIVE) throw new GuestError('background_limit', `${MAX_ALIVE} background commands are alive`);
    const gid = this.#deps.gids.take();
    this.#alive.add(gid);
    try {
      const tool = await spawnTool(this.#deps, plan, { gid, stdin: command.stdin, merge: true });
      if (tool.pid === 0) return await this.#notStarted(tool, command);
      writeFileSync(this.#note(gid), `${tool.pid}\n`, { mode: 0o600 });
      const name = `${Date.now().toString(36)}-${tool.pid}.log`;
      this.#log(tool, `.outwork/log/${name}`);
      return { ...running, background: { pid: tool.pid, log: `${this.#deps.settings.home}/.outwork/log/${name}` } };
    } catch (error) {
      if (await this.#deps.trees.end(gid)) this.#release(gid);
      throw error;
    } finally {
      this.#forgetDead();
    }
  }

  async #notStarted(tool: ToolProcess, { argv }: ToolCommand): Promise<CommandOutcome> {
    const { code, reason } = await tool.exited;
    tool.close();
    const stderr = `${argv[0]}: could not be started (${reason ?? 'unknown'})\n`;
    return { ...running, exitCode: code, stderr, stderrBytes: Buffer.byteLength(stderr) };
  }

  /** The stream is read to its end, also beyond the log's bound: a full pipe would stop the command. */
  #log(tool: ToolProcess, path: string): void {
    let left = LOG_BYTES;
    const append = (body: Buffer): Promise<unknown> =>
      this.#files
        .operate({ op: 'write', path, body: body.toString('base64'), encoding: 'base64', append: true }, 'home')
        .catch(() => undefined);
    let written = append(Buffer.alloc(0));
    tool.stdout.on('data', (chunk: Buffer) => {
      if (left <= 0) return;
      const part = chunk.subarray(0, left);
      left -= part.length;
      const body = left > 0 ? part : Buffer.concat([part, Buffer.from('\n[… log is full …]\n')]);
      tool.stdout.pause();
      written = written.then(() => append(body)).finally(() => tool.stdout.resume());
    });
    void tool.exited.then(({ code, signal }) => {
      written = written.then(() => append(Buffer.from(`[ended: ${signal ?? `exit code ${code}`}]\n`)));
    });
  }

  #forgetDead(): void {
    for (const gid of this.#alive) if (!mayCarryGid(gid)) this.#release(gid);
  }

  #release(gid: number): void {
    this.#alive.delete(gid);
    rmSync(this.#note(gid), { force: true });
    this.#deps.gids.give(gid, true);
  }

  /** Tells the init which gids are declared background ones. */
  #note(gid: number): string {
    return `${this.#deps.settings.privateDir}/background/${gid}`;
  }
}

const running: CommandOutcome = {
  exitCode: null,
  signal: null,
  timedOut: false,
  stdout: '',
  stderr: '',
  stdoutBytes: 0,
  stderrBytes: 0,
  truncated: false,
  wallMs: 0,
};
