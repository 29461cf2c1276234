import { OutputCapture } from './capture.ts';
import { GuestError } from './errors.ts';
import type { FileClient } from './file-client.ts';
import type { ToolExit, ToolProcess } from './tool-process.ts';

const TAIL_BYTES = 64 * 1024;
const FULL = '\n[… log is full …]\n';
/** Kept back for the last line, which says how the command ended. */
const END_BYTES = 64;

/** One write of the file helper. */
const PART_BYTES = 384 * 1024;

/**
 * What one background command prints, in a file that never outgrows its limit, all marks inside it, and its newest part in memory. While the
 * command runs the file has the beginning; when it has ended, beginning and end as any other copy. The stream is read to its end, also
 * beyond the limit: a full pipe would stop the command.
 */
export class BackgroundLog {
  readonly #files: FileClient;
  readonly #path: string;
  readonly #newest = new OutputCapture(2 * TAIL_BYTES);
  readonly #whole: OutputCapture;
  readonly #ended = Promise.withResolvers<void>();
  /** How much of the beginning is shown while the command runs. */
  readonly #room: number;
  #shown = 0;
  #full = false;
  #complete = false;
  #written: Promise<unknown> = Promise.resolve();

  private constructor(files: FileClient, path: string, limit: number) {
    this.#files = files;
    this.#path = path;
    this.#whole = new OutputCapture(limit - END_BYTES);
    this.#room = limit - END_BYTES - Buffer.byteLength(FULL);
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
      this.#whole.push(chunk);
      if (this.#full) return;
      const body = this.#fresh();
      if (body.length === 0) return;
      tool.stdout.pause();
      void this.#write(body, true).finally(() => tool.stdout.resume());
    });
    tool.stdout.once('close', () => void tool.exited.then((exit) => this.#end(exit)));
  }

  /** What is to be shown and not yet is. No half of a character or of an escape sequence: its rest may be beyond the limit. */
  #fresh(): Buffer {
    const part = this.#whole.start(this.#shown, this.#room);
    this.#shown += part.length;
    this.#full = this.#whole.bytes > this.#room;
    return this.#full ? Buffer.concat([part, Buffer.from(FULL)]) : part;
  }

  async #end({ code, signal }: ToolExit): Promise<void> {
    const last = Buffer.from(`[ended: ${signal ?? `exit code ${code}`}]\n`.slice(-END_BYTES));
    const { body } = this.#whole.file();
    if (this.#full) await this.#write(Buffer.concat([body, last]), false);
    else await this.#write(Buffer.concat([body.subarray(this.#shown), last]), true);
    this.#complete = true;
    this.#ended.resolve();
  }

  /** In order, one after the other. A log that cannot be written, because its user put something else there, is no fault of the command. */
  #write(body: Buffer, append: boolean): Promise<unknown> {
    const parts = Array.from({ length: Math.ceil(body.length / PART_BYTES) }, (_, i) =>
      body.subarray(i * PART_BYTES, (i + 1) * PART_BYTES),
    );
    const write = async () => {
      for (const [i, part] of parts.entries()) {
        const how = { body: part.toString('base64'), encoding: 'base64', append: append || i > 0 } as const;
        await this.#files.operate({ op: 'write', path: this.#path, ...how }, 'home').catch(() => undefined);
      }
    };
    this.#written = this.#written.then(write);
    return this.#written;
  }
}
