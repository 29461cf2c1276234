import { OutputCapture } from './capture.ts';
import { GuestError } from './errors.ts';
import type { FileClient } from './file-client.ts';
import type { ToolExit, ToolProcess } from './tool-process.ts';

const TAIL_BYTES = 64 * 1024;
const FULL = '\n[… log is full …]\n';
/** Kept back for the last line, which says how the command ended. */
const END_BYTES = 64;

/**
 * What one background command prints, in a file that never outgrows its limit, both marks inside it, and its newest part in memory. The
 * stream is read to its end, also beyond the limit: a full pipe would stop the command.
 */
export class BackgroundLog {
  readonly #files: FileClient;
  readonly #path: string;
  readonly #newest = new OutputCapture(2 * TAIL_BYTES);
  readonly #ended = Promise.withResolvers<void>();
  #left: number;
  #complete = false;
  #written: Promise<unknown> = Promise.resolve();

  private constructor(files: FileClient, path: string, limit: number) {
    this.#files = files;
    this.#path = path;
    this.#left = limit - Buffer.byteLength(FULL) - END_BYTES;
  }

  /** The file is there when this resolves, empty. `path` is relative to HOME. @throws GuestError of the file helper */
  static async create(files: FileClient, path: string, limit: number): Promise<BackgroundLog> {
    await files.operate({ op: 'write', path, body: '', encoding: 'utf8' }, 'home');
    return new BackgroundLog(files, path, limit);
  }

  /** Bytes printed so far, whether or not they were written. */
  get bytes(): number {
    return this.#newest.bytes;
  }

  /** Whether all that the command printed was taken, and its end written. */
  get complete(): boolean {
    return this.#complete;
  }

  /** Resolves when the log is complete. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** The newest of what was printed. @throws GuestError `output_limit` when the command prints no text */
  tail(maxBytes: number): string {
    if (this.#newest.binary) throw new GuestError('output_limit', 'The output of this command is no text; its log has it');
    return this.#newest.tail(Math.min(maxBytes, TAIL_BYTES));
  }

  follow(tool: ToolProcess): void {
    tool.stdout.on('data', (chunk: Buffer) => {
      this.#newest.push(chunk);
      if (this.#left <= 0) return;
      const part = Buffer.from(chunk.subarray(0, this.#left));
      this.#left -= part.length;
      const body = this.#left > 0 ? part : Buffer.concat([part, Buffer.from(FULL)]);
      tool.stdout.pause();
      void this.#append(body).finally(() => tool.stdout.resume());
    });
    tool.stdout.once('close', () => void tool.exited.then((exit) => this.#end(exit)));
  }

  async #end({ code, signal }: ToolExit): Promise<void> {
    await this.#append(Buffer.from(`[ended: ${signal ?? `exit code ${code}`}]\n`.slice(-END_BYTES)));
    this.#complete = true;
    this.#ended.resolve();
  }

  #append(body: Buffer): Promise<unknown> {
    const write = () =>
      this.#files
        .operate({ op: 'write', path: this.#path, body: body.toString('base64'), encoding: 'base64', append: true }, 'home')
        .catch(() => undefined);
    this.#written = this.#written.then(write);
    return this.#written;
  }
}
