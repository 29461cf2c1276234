import type { ChildProcess } from 'node:child_process';
import type { FileOperation, FileResult } from '../../core/ports/placement.ts';
import { ApprovedFiles } from './approved-files.ts';
import { GuestError, spawnFault } from './errors.ts';
import type { HelperReply, HelperRequest } from './file-helper.ts';
import type { WorkspaceOperation } from './file-operations.ts';
import { LineSplitter } from './lines.ts';
import type { ProcessTrees } from './process-trees.ts';
import type { GuestSettings } from './settings.ts';

/** A helper that a tool has stopped (same uid: it can) is ended after this time. */
const ANSWER_MS = 20_000;

interface Pending {
  readonly resolve: (result: FileResult) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** The guest's side of the file helper: started at the first wish, started again when it died. */
export class FileClient {
  readonly #settings: GuestSettings;
  readonly #bundle: string;
  readonly #trees: ProcessTrees;
  readonly #pending = new Map<number, Pending>();
  readonly #approved: ApprovedFiles;
  #helper: ChildProcess | undefined;
  #ending: Promise<unknown> = Promise.resolve();
  #lastId = 0;

  constructor(settings: GuestSettings, bundle: string, trees: ProcessTrees) {
    this.#trees = trees;
    this.#settings = settings;
    this.#approved = new ApprovedFiles(settings.approvedDir);
    this.#bundle = bundle;
  }

  /** @throws GuestError with the helper's code; `timeout`; `pids`; `io_failed` when the helper died twice (or once, while it wrote) */
  async operate(operation: FileOperation, root: HelperRequest['root'] = 'workspace'): Promise<FileResult> {
    if (operation.op === 'place') return this.#approved.place(operation);
    try {
      return await this.#ask(operation, root);
    } catch (error) {
      if (operation.op === 'write' || !(error instanceof HelperDied)) throw error;
      return this.#ask(operation, root);
    }
  }

  async #ask(operation: WorkspaceOperation, root: HelperRequest['root']): Promise<FileResult> {
    await this.#ending; // It ends by gid: a new helper would be ended with the old one.
    this.#lastId += 1;
    const request: HelperRequest = { id: this.#lastId, root, operation };
    const helper = this.#running();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#end(helper, new GuestError('timeout', 'The file helper gave no answer')), ANSWER_MS);
      this.#pending.set(request.id, { resolve, reject, timer });
      helper.stdin?.write(`${JSON.stringify(request)}\n`);
    });
  }

  #running(): ChildProcess {
    if (this.#helper !== undefined) return this.#helper;
    const { spawn } = process.getBuiltinModule('node:child_process');
    const { toolUid, helperGid, workspace, home } = this.#settings;
    const helper = spawn(process.execPath, [this.#bundle, 'file-helper'], {
      cwd: '/',
      env: { OUTWORK_WORKSPACE: workspace, HOME: home },
      uid: toolUid,
      gid: helperGid,
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    helper.on('exit', () => this.#end(helper, new HelperDied()));
    helper.on('error', (error) => this.#end(helper, spawnFault(error, 'The file helper')));
    helper.stdin?.on('error', () => undefined);
    const lines = new LineSplitter((line) => this.#settle(JSON.parse(line) as HelperReply));
    helper.stdout?.on('data', (chunk: Buffer) => lines.push(chunk));
    this.#helper = helper;
    return helper;
  }

  #settle({ id, result, error }: HelperReply): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    if (result !== undefined) pending.resolve(result);
    else pending.reject(Object.assign(new GuestError('io_failed', error?.message ?? 'failed'), { code: error?.code ?? 'io_failed' }));
  }

  #end(helper: ChildProcess, error: Error): void {
    if (this.#helper !== helper) return;
    this.#helper = undefined;
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer);
      pending.reject(error);
    }
    this.#pending.clear();
    if (helper.exitCode === null && helper.signalCode === null) this.#ending = this.#trees.end(this.#settings.helperGid);
  }
}

class HelperDied extends GuestError {
  constructor() {
    super('io_failed', 'The file helper died');
  }
}
