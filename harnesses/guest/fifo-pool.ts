import { closeSync, constants, openSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { GuestError, spawnFault } from './errors.ts';

const BATCH = 48;
const REFILL_BELOW = 16;

/** Both ends of a FIFO that has no name any more. */
export interface FifoEnds {
  /** The guest's end, non-blocking. */
  readonly ours: number;
  /** The tool's end, blocking. Close it once the tool has it. */
  readonly theirs: number;
}

/**
 * FIFOs for tools' standard streams: mode 0666, so that a tool may open /dev/stdout again, made in a directory that only we can enter, and
 * unlinked when opened, so that no other invocation can. Node cannot make them; they are made in batches, so that a command does not wait.
 */
export class FifoPool {
  readonly #dir: string;
  readonly #path: string;
  readonly #ready: string[] = [];
  #made = 0;
  #filling: Promise<void> | undefined;

  constructor(dir: string, path: string) {
    this.#dir = dir;
    this.#path = path;
  }

  /** Opens a stream per wish: `output` from the tool to us, `input` from us to the tool. @throws GuestError `pids` `io_failed` */
  async open(ways: readonly ('output' | 'input')[]): Promise<readonly FifoEnds[]> {
    while (this.#ready.length < ways.length) await this.#fill();
    const paths = this.#ready.splice(0, ways.length);
    if (this.#ready.length < REFILL_BELOW) this.#fill().catch(() => undefined);
    return paths.map((path, i) => {
      try {
        return ways[i] === 'input' ? openInput(path) : openOutput(path);
      } finally {
        unlinkSync(path);
      }
    });
  }

  /** Makes the first batch ahead of the first command. */
  warm(): void {
    this.#fill().catch(() => undefined);
  }

  #fill(): Promise<void> {
    this.#filling ??= this.#make().finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  #make(): Promise<void> {
    const { spawn } = process.getBuiltinModule('node:child_process');
    const paths = Array.from({ length: BATCH }, () => join(this.#dir, `fifo-${this.#made++}`));
    return new Promise((resolve, reject) => {
      const child = spawn('mkfifo', ['-m', '666', '--', ...paths], { stdio: 'ignore', env: { PATH: this.#path } });
      child.on('error', (error) => reject(spawnFault(error, 'mkfifo')));
      child.on('exit', (code) => {
        if (code !== 0) return reject(new GuestError('io_failed', `mkfifo ended with ${code}`));
        this.#ready.push(...paths);
        resolve();
      });
    });
  }
}

function openOutput(path: string): FifoEnds {
  const ours = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { ours, theirs: openSync(path, constants.O_WRONLY) };
}

function openInput(path: string): FifoEnds {
  const both = openSync(path, constants.O_RDWR | constants.O_NONBLOCK); // A reader and a writer, so that the next two do not block.
  const theirs = openSync(path, constants.O_RDONLY);
  const ours = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  closeSync(both);
  return { ours, theirs };
}
