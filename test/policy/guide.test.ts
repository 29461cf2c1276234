import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { PolicyCommands } from './support/commands.ts';
import { SHIPPED } from './support/policy-dir.ts';

interface Block {
  readonly language: string;
  /** File that its text is; undefined for commands. */
  readonly file: string | undefined;
  readonly text: string;
}

const guide = await readFile(join(SHIPPED, 'README.md'), 'utf8');
const blocks: Block[] = [...guide.matchAll(/^```(\w+)(?: file=(\S+))?\n([\s\S]*?)^```$/gm)].map(([, language = '', file, text = '']) => ({
  language,
  file,
  text,
}));

describe('the guide, as a new reader follows it', () => {
  const ran: { command: string; code: number; stdout: string; stderr: string }[] = [];
  const of = (start: string) => ran.find(({ command }) => command.startsWith(start)) ?? expect.fail(`the guide does not run ${start}`);

  beforeAll(async () => {
    const commands = await PolicyCommands.make();
    for (const { language, file, text } of blocks) {
      if (file !== undefined) {
        await mkdir(dirname(join(commands.dir, file)), { recursive: true });
        await writeFile(join(commands.dir, file), text);
        continue;
      }
      if (language !== 'sh') continue;
      for (const line of text.trim().split('\n')) {
        // What a reader copies from the line before.
        const first = (await commands.json('policy', 'status')).document as { snapshots: { snapshot: string; current: boolean }[] };
        const earlier = first.snapshots.find(({ current }) => !current)?.snapshot ?? 'none';
        const command = line.replace('SNAPSHOT', earlier);
        ran.push({ command, ...(await commands.run(...command.split(' ').slice(1))) });
        // Somebody runs an agent before the rule is written, so that there is something to replay.
        if (command.startsWith('outwork policy new')) await commands.usedBefore();
      }
    }
    await commands[Symbol.asyncDispose]();
  }, 120_000);

  test('has the commands of the whole way', () => {
    const names = ran.map(({ command }) => command.split(' ').slice(0, 3).join(' '));
    expect(names).toEqual([
      ...['outwork policy new', 'outwork user add', 'outwork user add', 'outwork policy build', 'outwork policy check'],
      ...['outwork policy replay', 'outwork policy apply', 'outwork policy status', 'outwork policy explain', 'outwork policy rollback'],
    ]);
  });

  test('every command ends well', () => {
    expect(ran.filter(({ code }) => code !== 0)).toEqual([]);
  });

  test('each shows what the guide says it does', () => {
    expect(of('outwork policy check').stdout).toMatch(/ok +tests +\d+ passed[\s\S]*ok +coverage +100 %[\s\S]*ok +replay/);
    expect(of('outwork policy check').stdout).not.toContain('FAIL');
    expect(of('outwork policy replay').stdout).toMatch(
      /2 decisions asked again[\s\S]*allows more: 0[\s\S]*allows less: 1[\s\S]*no_push_to_main/,
    );
    expect(of('outwork policy apply').stdout).toMatch(/runs now[\s\S]*allows less: 1/);
    expect(of('outwork policy explain').stdout).toMatch(/deny[\s\S]*no_push_to_main: Nobody pushes to main[\s\S]*fired +no_push_to_main/);
    expect(of('outwork policy rollback').stdout).toContain('runs again');
  });
});
