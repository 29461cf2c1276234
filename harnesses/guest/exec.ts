import type { CommandOutcome } from '../../core/capability/types.ts';
import type { CommandProgress, ToolCommand } from '../../core/ports/placement.ts';
import { type Captured, OutputCapture } from './capture.ts';
import { cwdFault, planCommand } from './command-plan.ts';
import type { FifoPool } from './fifo-pool.ts';
import type { FileClient } from './file-client.ts';
import type { GidPool } from './gid-pool.ts';
import type { ProcessTrees } from './process-trees.ts';
import { OutputCopies } from './saved-output.ts';
import type { GuestSettings } from './settings.ts';
import { spawnTool, type ToolExit, type ToolProcess } from './tool-process.ts';

/** How long output may still come from children after the main process has ended. */
const DRAIN_MS = 150;
/** How long the end of the streams is awaited after every process was killed. */
const CLOSE_MS = 100;
/** What an outcome may take on the wire, below the membrane's bound of 1 MiB a body. */
const OUTCOME_BYTES = 900 * 1024;
/** How often a running command's output is told of; one that ends sooner is not. */
const PROGRESS_MS = 500;
const PROGRESS_TAIL_BYTES = 1024;

export interface ExecDeps {
  readonly settings: GuestSettings;
  readonly fifos: FifoPool;
  readonly gids: GidPool;
  readonly trees: ProcessTrees;
  readonly files: FileClient;
}

export type OnProgress = (progress: CommandProgress) => void;

/**
 * Runs one foreground command to its end: when this resolves, nothing that carries its gid is alive, double forks too.
 * An abort of `signal` ends the tree; the outcome then tells of the kill. Timeout, signal and exit code are told apart.
 * `onProgress` sees what a command that lasts has printed so far, now and then.
 *
 * @throws GuestError `invalid_arguments` `path_outside_workspace` `file_not_found` (cwd) `invocations_exhausted` `pids` `io_failed`
 */
export async function runCommand(
  deps: ExecDeps,
  command: ToolCommand,
  signal: AbortSignal,
  onProgress?: OnProgress,
): Promise<CommandOutcome> {
  const plan = planCommand(command, deps.settings);
  const copies = command.save && new OutputCopies(command.save, deps.files);
  const gid = deps.gids.take();
  let clear = false;
  try {
    // From here, as a shell's `time` counts: starting the process is part of a command.
    const startMs = performance.now();
    const tool = await spawnTool(deps, plan, { gid, stdin: command.stdin, merge: false });
    const outcome = await attend({ tool, startMs, command, signal, copies, onProgress, endTree: () => deps.trees.end(gid) });
    clear = outcome.clear;
    const fault = cwdFault(plan, command.cwd, outcome.exitCode, outcome.stderr);
    if (fault !== undefined) throw fault;
    const { clear: _, ...result } = outcome;
    return copies === undefined ? result : await withCopies(result, copies);
  } finally {
    deps.gids.give(gid, clear);
  }
}

/** The command has run, whatever becomes of its copies. */
async function withCopies(outcome: CommandOutcome, copies: OutputCopies): Promise<CommandOutcome> {
  try {
    return { ...outcome, saved: await copies.write() };
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    const note = `[output not saved: ${code ?? 'io_failed'}: ${message}]\n`.slice(0, 500);
    return { ...outcome, saved: [], stderr: outcome.stderr + note };
  }
}

interface Attended {
  readonly tool: ToolProcess;
  readonly startMs: number;
  readonly command: ToolCommand;
  readonly signal: AbortSignal;
  readonly copies: OutputCopies | undefined;
  readonly onProgress: OnProgress | undefined;
  readonly endTree: () => Promise<boolean>;
}

async function attend(work: Attended): Promise<CommandOutcome & { clear: boolean }> {
  const { tool, startMs, command, signal, copies, endTree } = work;
  const out = new OutputCapture(command.outputBytes);
  const err = new OutputCapture(command.outputBytes);
  const streams = [tool.stdout, tool.stderr].filter((stream) => stream !== undefined);
  const drained = Promise.all(streams.map((stream) => new Promise<void>((resolve) => stream.once('close', () => resolve()))));
  tool.stdout.on('data', (chunk: Buffer) => {
    out.push(chunk);
    copies?.stdout.push(chunk);
  });
  tool.stderr?.on('data', (chunk: Buffer) => {
    err.push(chunk);
    copies?.stderr.push(chunk);
  });

  const quiet = tellProgress(out, err, work.onProgress);
  const cut = await endedOrCut(tool, command.timeoutMs, signal, endTree).finally(quiet);
  const wallMs = performance.now() - startMs;
  if (cut.exit.reason !== undefined) err.push(Buffer.from(notStarted(command, cut.exit.reason)));
  await within(drained, DRAIN_MS);
  const clear = await endTree();
  await within(drained, CLOSE_MS);
  tool.close();

  const timedOut = cut.why === 'timeout';
  const ending = {
    exitCode: timedOut ? null : cut.exit.code,
    signal: cut.exit.signal ?? (cut.why === undefined ? null : 'SIGKILL'),
    timedOut,
    wallMs: Math.round(wallMs * 1000) / 1000,
    clear,
  };
  return fitted(out, err, command.outputBytes, { ...ending, exitCode: cut.why === undefined ? ending.exitCode : null });
}

/** Tells of output whenever there is more of it, at most every half second. @returns what ends it */
function tellProgress(out: OutputCapture, err: OutputCapture, onProgress: OnProgress | undefined): () => void {
  if (onProgress === undefined) return () => {};
  let told = 0;
  const timer = setInterval(() => {
    const [stdoutBytes, stderrBytes] = [out.bytes, err.bytes];
    if (stdoutBytes + stderrBytes === told) return;
    told = stdoutBytes + stderrBytes;
    const newest = stdoutBytes > 0 && !out.binary ? out.tail(PROGRESS_TAIL_BYTES) : '';
    onProgress({ stdoutBytes, stderrBytes, tail: newest === '' && !err.binary ? err.tail(PROGRESS_TAIL_BYTES) : newest });
  }, PROGRESS_MS);
  return () => clearInterval(timer);
}

/** Waits for the main process; a timeout or an abort ends the whole tree first. */
async function endedOrCut(
  tool: ToolProcess,
  timeoutMs: number,
  signal: AbortSignal,
  endTree: () => Promise<boolean>,
): Promise<{ exit: ToolExit; why: 'timeout' | 'abort' | undefined }> {
  const { promise: cut, resolve } = Promise.withResolvers<'timeout' | 'abort'>();
  const timer = setTimeout(() => resolve('timeout'), Math.min(timeoutMs, 2 ** 31 - 1));
  const onAbort = () => resolve('abort');
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const first = await Promise.race([tool.exited, cut]);
    if (typeof first !== 'string') return { exit: first, why: undefined };
    await endTree();
    // A process that even SIGKILL does not end at once must not hold the call.
    const exit = await Promise.race([tool.exited, delay(1000)]);
    return { exit: exit ?? { code: null, signal: 'SIGKILL' }, why: first };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

const REASONS: { readonly [code: string]: string } = {
  ENOENT: 'not found',
  EACCES: 'not executable: permission denied',
  ENOEXEC: 'not executable: unknown format',
  EISDIR: 'not executable: is a directory',
};

const notStarted = ({ argv }: ToolCommand, reason: string): string =>
  `${argv[0]}: ${REASONS[reason] ?? `could not be started (${reason})`}\n`;

/** Renders both streams, cut again when their JSON form (escapes, replaced bytes) would not go through the membrane. */
function fitted<T extends object>(out: OutputCapture, err: OutputCapture, limit: number, ending: T) {
  const binary = [...(out.binary ? ['stdout' as const] : []), ...(err.binary ? ['stderr' as const] : [])];
  for (let bytes = limit; ; bytes = Math.floor(bytes / 2)) {
    const stdout = shown(out, bytes);
    const stderr = shown(err, bytes);
    const outcome = {
      ...ending,
      ...(binary.length === 0 ? {} : { binary }),
      stdout: stdout.text,
      stderr: stderr.text,
      stdoutBytes: stdout.bytes,
      stderrBytes: stderr.bytes,
      truncated: stdout.truncated || stderr.truncated,
    };
    if (limit < OUTCOME_BYTES / 14 || bytes === 0 || Buffer.byteLength(JSON.stringify(outcome)) <= OUTCOME_BYTES) return outcome;
  }
}

const shown = (capture: OutputCapture, bytes: number): Captured =>
  capture.binary ? { text: `[binary data: ${capture.bytes} bytes]\n`, bytes: capture.bytes, truncated: true } : capture.render(bytes);

const delay = (ms: number): Promise<undefined> => new Promise((resolve) => setTimeout(resolve, ms, undefined));

/** Waits for `done`, at most `ms`; leaves no timer behind. */
export async function within(done: Promise<unknown>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([done, promise]);
  clearTimeout(timer);
}
