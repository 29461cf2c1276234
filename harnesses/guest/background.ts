import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { BackgroundRecord, CommandOutcome } from '../../core/capability/types.ts';
import type { BackgroundCommand, BackgroundOperation, BackgroundResult, ToolCommand } from '../../core/ports/placement.ts';
import { BackgroundLog } from './background-log.ts';
import { planCommand } from './command-plan.ts';
import { GuestError } from './errors.ts';
import { type ExecDeps, runCommand, within } from './exec.ts';
import { listeningPorts } from './listening.ts';
import { outputLimit } from './output-limit.ts';
import { mayCarryGid } from './process-trees.ts';
import { spawnTool, type ToolExit, type ToolProcess } from './tool-process.ts';

const MAX_ALIVE = 16;
/** Commands that are remembered, ended ones too; each has a log file of its own, which the next command of its place takes over. */
const MAX_KNOWN = 64;
const MAX_LIFETIME_MS = 24 * 3600 * 1000;
/** How long the last output of a command that was ended is waited for. */
const COMPLETE_MS = 1000;
const ENTER_MS = 10_000;

interface Entry {
  readonly record: BackgroundRecord;
  readonly gid: number;
  readonly place: number;
  readonly log: BackgroundLog;
  readonly startMs: number;
  readonly expiry: NodeJS.Timeout;
  /** While a process carries its gid, the main one or any other. */
  running: boolean;
  exit: ToolExit | undefined;
}

/**
 * Commands declared as background: they outlive their call and their run, and end with the sandbox, when they are killed, or after their
 * lifetime. Each keeps its gid until nothing carries it. What they print goes to a bounded log below `$HOME/.outwork/log`, written as the
 * tool uid. All that is told of one (id, pid, process group, log) is one record, made here.
 */
export class BackgroundCommands {
  readonly #deps: ExecDeps;
  readonly #entries = new Map<string, Entry>();
  #starting = 0;
  #started = 0;

  constructor(deps: ExecDeps) {
    this.#deps = deps;
    mkdirSync(`${deps.settings.privateDir}/background`, { recursive: true, mode: 0o700 });
  }

  /**
   * Answers as soon as the command has started.
   * @throws GuestError `background_limit`, `invalid_arguments` (`save`), and those of a foreground command's start
   */
  async start(command: ToolCommand): Promise<CommandOutcome> {
    if (command.save !== undefined) throw new GuestError('invalid_arguments', 'save: what a background command prints is in its log');
    const plan = planCommand(command, this.#deps.settings);
    // Whether the directory can be entered only its tool sees, after this call has been answered: another one goes there first.
    if (plan.cwdFault !== undefined) await this.#enter(command.cwd ?? '.');
    this.#look();
    const alive = [...this.#entries.values()].filter(({ running }) => running).length + this.#starting;
    if (alive >= MAX_ALIVE) throw new GuestError('background_limit', `${MAX_ALIVE} background commands are alive`);
    const gid = this.#deps.gids.take();
    this.#starting += 1;
    try {
      const place = this.#freePlace();
      const path = `.outwork/log/${place}.log`;
      const log = await BackgroundLog.create(this.#deps.files, path, outputLimit(command.outputBytes));
      const startMs = performance.now();
      const tool = await spawnTool(this.#deps, plan, { gid, stdin: command.stdin, merge: true });
      if (tool.pid === 0) return await this.#notStarted(tool, gid, command);
      writeFileSync(this.#note(gid), `${tool.pid}\n`, { mode: 0o600 });
      const id = `bg_${Date.now().toString(36)}_${this.#started}`;
      // It leads a session of its own: its process group has its pid.
      const record = { id, pid: tool.pid, pgid: tool.pid, log: `${this.#deps.settings.home}/${path}` };
      this.#keep({ record, gid, place, log, startMs, expiry: this.#expiry(id, command.lifetimeMs), running: true, exit: undefined }, tool);
      return { ...RUNNING, background: record };
    } catch (error) {
      this.#release(gid, await this.#deps.trees.end(gid));
      throw error;
    } finally {
      this.#starting -= 1;
    }
  }

  /** @throws GuestError `not_running` (no command of that id is known) `output_limit` (its output is no text) */
  async operate(operation: BackgroundOperation): Promise<BackgroundResult> {
    this.#look();
    if (operation.op === 'list')
      return { op: 'list', commands: await Promise.all([...this.#entries.values()].map((entry) => this.#listed(entry))) };
    const entry = this.#entries.get(operation.id);
    if (entry === undefined) throw new GuestError('not_running', `No background command ${operation.id}`);
    if (operation.op === 'tail') return { op: 'tail', command: stateOf(entry), text: entry.log.tail(operation.maxBytes) };
    await this.#end(entry);
    return { op: 'kill', command: stateOf(entry) };
  }

  async #enter(cwd: string): Promise<void> {
    const there = { argv: ['true'], cwd, timeoutMs: ENTER_MS, outputBytes: 1024 };
    await runCommand(this.#deps, there, new AbortController().signal);
  }

  /** While one looks at its sockets as the command itself, the command counts as running: its gid is nobody else's. */
  async #listed(entry: Entry): Promise<BackgroundCommand> {
    if (!entry.running) return stateOf(entry);
    const { toolUid, path } = this.#deps.settings;
    const ports = await listeningPorts({ toolUid, gid: entry.gid, path });
    return entry.running && ports.length > 0 ? { ...stateOf(entry), ports } : stateOf(entry);
  }

  #keep(entry: Entry, tool: ToolProcess): void {
    this.#started += 1;
    for (const [id, old] of this.#entries) if (old.place === entry.place) this.#entries.delete(id);
    this.#entries.set(entry.record.id, entry);
    entry.log.follow(tool);
    void tool.exited.then((exit) => {
      entry.exit = exit;
    });
  }

  async #end(entry: Entry): Promise<void> {
    if (entry.running && (await this.#deps.trees.end(entry.gid))) this.#ended(entry);
    await within(entry.log.ended, COMPLETE_MS);
  }

  /** Places are taken in turn, so that the log of an ended command stays as long as it can. */
  #freePlace(): number {
    const taken = new Set([...this.#entries.values()].filter(({ running }) => running).map(({ place }) => place));
    for (let i = this.#started + this.#starting - 1; ; i += 1) if (!taken.has(i % MAX_KNOWN)) return i % MAX_KNOWN;
  }

  #expiry(id: string, lifetimeMs: number = MAX_LIFETIME_MS): NodeJS.Timeout {
    const timer = setTimeout(
      () => {
        const entry = this.#entries.get(id);
        if (entry !== undefined) void this.#end(entry);
      },
      Math.min(lifetimeMs, MAX_LIFETIME_MS),
    );
    return timer.unref();
  }

  async #notStarted(tool: ToolProcess, gid: number, { argv }: ToolCommand): Promise<CommandOutcome> {
    const { code, reason } = await tool.exited;
    tool.close();
    this.#release(gid);
    const stderr = `${argv[0]}: could not be started (${reason ?? 'unknown'})\n`;
    return { ...RUNNING, exitCode: code, stderr, stderrBytes: Buffer.byteLength(stderr) };
  }

  #look(): void {
    for (const entry of this.#entries.values()) if (entry.running && !mayCarryGid(entry.gid)) this.#ended(entry);
  }

  #ended(entry: Entry): void {
    if (!entry.running) return;
    entry.running = false;
    clearTimeout(entry.expiry);
    this.#release(entry.gid);
  }

  #release(gid: number, clear = true): void {
    rmSync(this.#note(gid), { force: true });
    this.#deps.gids.give(gid, clear);
  }

  /** Tells the init which gids are declared background ones. */
  #note(gid: number): string {
    return `${this.#deps.settings.privateDir}/background/${gid}`;
  }
}

/** A command runs until nothing carries its gid and all that it printed is in its log. */
function stateOf({ record, running: alive, exit, log, startMs }: Entry): BackgroundCommand {
  const running = alive || !log.complete;
  return {
    ...record,
    running,
    exitCode: running ? null : (exit?.code ?? null),
    signal: running ? null : (exit?.signal ?? null),
    bytes: log.bytes,
    ageMs: Math.round(performance.now() - startMs),
  };
}

const RUNNING: CommandOutcome = {
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
