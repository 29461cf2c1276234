import type { SavedOutput } from '../../core/capability/types.ts';
import type { ToolCommand } from '../../core/ports/placement.ts';
import { OutputCapture } from './capture.ts';
import { namesOf } from './directory.ts';
import { GuestError } from './errors.ts';
import type { FileClient } from './file-client.ts';
import { outputLimit } from './output-limit.ts';

/** One write of the file helper. */
const PART_BYTES = 384 * 1024;

/** Copies of a command's output for the workspace, each within a limit of its own, written as the tool uid when the command has ended. */
export class OutputCopies {
  readonly stdout: OutputCapture;
  readonly stderr: OutputCapture;
  readonly #path: string;
  readonly #files: FileClient;

  /** @throws GuestError `path_outside_workspace` `invalid_arguments`, before anything is started */
  constructor(save: NonNullable<ToolCommand['save']>, files: FileClient) {
    if (namesOf(save.path).length === 0) throw new GuestError('invalid_arguments', 'save: names no file');
    const limit = outputLimit(save.bytes);
    this.stdout = new OutputCapture(limit);
    this.stderr = new OutputCapture(limit);
    this.#path = save.path;
    this.#files = files;
  }

  /** Standard error only when there is any. @throws GuestError of the file helper */
  async write(): Promise<readonly SavedOutput[]> {
    const saved = [await this.#save('stdout', this.stdout, this.#path)];
    if (this.stderr.bytes > 0) saved.push(await this.#save('stderr', this.stderr, `${this.#path}.stderr`));
    return saved;
  }

  async #save(stream: SavedOutput['stream'], capture: OutputCapture, path: string): Promise<SavedOutput> {
    const { body, truncated } = capture.file();
    for (let at = 0; at === 0 || at < body.length; at += PART_BYTES) {
      const part = body.toString('base64', at, Math.min(body.length, at + PART_BYTES));
      await this.#files.operate({ op: 'write', path, body: part, encoding: 'base64', append: at > 0 });
    }
    return { stream, path, bytes: body.length, truncated };
  }
}
