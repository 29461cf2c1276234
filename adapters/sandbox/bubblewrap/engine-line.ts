import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';

/** What arrives on the engine's line: words of stages and init, and bubblewrap's status objects. */
export interface EngineLine {
  /** Resolves when the word was said. Rejects when the line ended without it. */
  hear(word: string): Promise<void>;
  say(word: string): void;
  /** Host pid of the init; undefined until bubblewrap has said it. */
  initPid(): number | undefined;
}

/** Reads the line to its very end: bubblewrap writes once more when it ends, and a closed line would kill it first. */
export function openEngineLine(line: Duplex): EngineLine {
  const said = new Set<string>();
  let waiting: (() => void)[] = [];
  let over = false;
  let initPid: number | undefined;
  const wake = () => {
    const all = waiting;
    waiting = [];
    for (const resolve of all) resolve();
  };
  line.on('error', () => {});
  createInterface({ input: line })
    .on('line', (text) => {
      if (text.startsWith('{')) initPid ??= childPid(text);
      else said.add(text);
      wake();
    })
    .on('close', () => {
      over = true;
      wake();
    });
  return {
    async hear(word) {
      while (!said.has(word)) {
        if (over) throw new Error(`ended before it was ${word}`);
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    say: (word) => void line.write(`${word}\n`),
    initPid: () => initPid,
  };
}

function childPid(text: string): number | undefined {
  const status: unknown = JSON.parse(text);
  return typeof status === 'object' && status !== null && 'child-pid' in status ? Number(status['child-pid']) : undefined;
}
