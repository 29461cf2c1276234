import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessRef } from './processes.ts';

/** What a later kernel of the same state directory must know to end a sandbox that this one left. */
export interface SandboxRecord {
  readonly generation: string;
  readonly socketDir: string;
  readonly bootId: string;
  readonly monitor: ProcessRef;
  readonly init: ProcessRef;
  /** Its control groups. */
  readonly groups?: readonly string[];
}

export interface SandboxRecords {
  write(record: SandboxRecord): Promise<void>;
  remove(generation: string): Promise<void>;
  /** `record` is undefined when the file was damaged: the sandbox cannot be found by it. */
  list(): Promise<readonly { readonly generation: string; readonly record: SandboxRecord | undefined }[]>;
}

/** One small file per generation below `dir`, renamed into place. Only this kernel user can write there. */
export function openRecords(dir: string): SandboxRecords {
  const file = (generation: string) => join(dir, `${generation}.json`);
  return {
    async write(record) {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await writeFile(`${file(record.generation)}.draft`, JSON.stringify(record), { mode: 0o600 });
      await rename(`${file(record.generation)}.draft`, file(record.generation));
    },
    remove: (generation) => rm(file(generation), { force: true }),
    async list() {
      const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return [];
        throw error;
      });
      const found = names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length));
      // A record that cannot be read is an error, not an empty one: sweeping would forget a living sandbox.
      return Promise.all(found.map(async (generation) => ({ generation, record: parse(await readFile(file(generation), 'utf8')) })));
    },
  };
}

function parse(text: string): SandboxRecord | undefined {
  try {
    const value = JSON.parse(text) as SandboxRecord;
    const complete = typeof value.bootId === 'string' && isRef(value.monitor) && isRef(value.init);
    return complete ? value : undefined;
  } catch {
    return undefined;
  }
}

const isRef = (ref: ProcessRef | undefined): boolean => Number.isSafeInteger(ref?.pid) && typeof ref?.startTicks === 'string';
