import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readScenario } from '../../adapters/model/scenario.ts';
import { createScriptedGateway } from '../../adapters/model/scripted-gateway.ts';
import type { ModelMessage, ModelRequest } from '../../core/seams/model-gateway.ts';

const dir = mkdtempSync(join(tmpdir(), 'scenario-'));
afterAll(() => rmSync(dir, { recursive: true }));
const scenarioFile = (value: unknown): string => {
  const file = join(dir, 'one.json');
  writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  return file;
};
const ask = (scenario: string, request: ModelRequest, signal = new AbortController().signal) =>
  createScriptedGateway({ scenario }).generate(request, { run: 'run_1', step: 0 }, signal);
const user: ModelMessage = { role: 'user', content: 'go' };

describe('shipped scenarios', () => {
  const names = readdirSync(join(import.meta.dirname, '../../harnesses/scripted/scenarios')).map((file) => basename(file, '.json'));

  it.each(names)('%s is well formed, named like its file and ends without a tool call', (name) => {
    const scenario = readScenario(name);
    expect(scenario.name).toBe(name);
    expect(scenario.steps.at(-1)?.toolCalls).toEqual([]);
    expect(scenario.steps.slice(0, -1).every(({ toolCalls }) => toolCalls.length > 0)).toBe(true);
  });

  it('survey asks the model six times and runs five commands', () => {
    const { steps } = readScenario('survey');
    expect(steps).toHaveLength(6);
    expect(steps.flatMap(({ toolCalls }) => toolCalls)).toHaveLength(5);
  });
});

describe('replies', () => {
  it('G1 are equal for equal requests', async () => {
    const request = { messages: [user] };
    expect(await ask('survey', request)).toEqual(await ask('survey', request));
    expect(await ask('survey', request)).toMatchObject({
      toolCalls: [{ id: 'call_0_0', name: 'shell', args: { argv: ['git', 'ls-files'], cwd: 'repo' } }],
    });
  });

  it('G2 end with an abort', async () => {
    await expect(ask('hello', { messages: [user] }, AbortSignal.abort())).rejects.toThrow();
  });

  it('follow the steps of this run, not the replies of earlier turns', async () => {
    const earlier: ModelMessage[] = [user, { role: 'assistant', content: 'Hello.' }, user];
    expect(await ask('survey', { messages: earlier })).toMatchObject({ content: 'I list the tracked files.' });
    const asked: ModelMessage = { role: 'assistant', content: '', toolCalls: [{ id: 'call_0_0', name: 'shell', args: {} }] };
    const result: ModelMessage = { role: 'tool', toolCallId: 'call_0_0', content: '{"stdout":"a\\nb\\n"}' };
    expect(await ask('survey', { messages: [...earlier, asked, result] })).toMatchObject({ content: 'Now the latest history.' });
    expect(await ask('survey', { messages: [...earlier, asked, result, user] })).toMatchObject({ content: 'Now the latest history.' });
  });

  it('carry the data of tool results, and say so where there is none', async () => {
    const hole = (path: string) => `{{result.0.0.${path}}}`;
    const steps = [
      { content: '', toolCalls: [{ name: 'shell', args: {} }] },
      {
        content: `${hole('stdout.first')} ${hole('stdout.lines')} ${hole('exitCode')} ${hole('background.pid')} ${hole('none.at.all')} {{result.7.0.stdout}} {{else}}`,
        toolCalls: [{ name: 'write_file', args: { path: 'x', body: hole('stdout.head'), deep: [{ argv: [hole('stdout')] }] } }],
      },
    ];
    const scenario = scenarioFile({ name: 'one', description: 'd', steps });
    const stdout = Array.from({ length: 12 }, (_, i) => `line ${i} $& {{result.0.0.exitCode}}`).join('\n');
    const messages: ModelMessage[] = [
      user,
      { role: 'assistant', content: '', toolCalls: [{ id: 'call_0_0', name: 'shell', args: {} }] },
      { role: 'tool', toolCallId: 'call_0_0', content: JSON.stringify({ stdout, exitCode: 3, background: { pid: 9 } }) },
    ];
    const reply = await ask(scenario, { messages });
    expect(reply.content).toBe('line 0 $& {{result.0.0.exitCode}} 12 3 9 (nothing) (nothing) {{else}}');
    expect(reply.toolCalls[0]?.args).toEqual({ path: 'x', body: stdout.split('\n').slice(0, 10).join('\n'), deep: [{ argv: [stdout] }] });
  });

  it('past the end of the script are a plain end', async () => {
    const asked: ModelMessage = { role: 'assistant', content: '', toolCalls: [{ id: 'x', name: 'shell', args: {} }] };
    expect(await ask('hello', { messages: [user, asked, asked] })).toMatchObject({
      content: expect.stringContaining('no further step'),
      toolCalls: [],
    });
  });

  it('are counted crudely, but counted, and streamed whole', async () => {
    const deltas: string[] = [];
    const reply = await createScriptedGateway({ scenario: 'hello' }).generate(
      { messages: [user] },
      { run: 'r', step: 0 },
      AbortSignal.timeout(5000),
      (text) => deltas.push(text),
    );
    expect(reply.usage.inputTokens).toBeGreaterThan(0);
    expect(reply.usage.outputTokens).toBeGreaterThan(0);
    expect(deltas).toEqual(['Hello.']);
  });
});

describe('a scenario that cannot be used', () => {
  const faultOf = (scenario: string) => {
    try {
      createScriptedGateway({ scenario });
      return 'none';
    } catch (error) {
      return `${(error as { code: string }).code}: ${(error as Error).message}`;
    }
  };

  it('is refused with file, path and reason', () => {
    const steps = [{ content: 'x', toolCalls: [] }];
    expect(faultOf('no-such-one')).toMatch(/^config_unreadable: there is no scenario no-such-one$/);
    expect(faultOf(scenarioFile('{'))).toMatch(/^config_malformed: .*one\.json: /);
    expect(faultOf(scenarioFile({ name: 'x', description: 'd', steps: [{ content: 5, toolCalls: [] }] }))).toMatch(
      /one\.json\.steps\.0\.content: must be string/,
    );
    expect(faultOf(scenarioFile({ name: 'x', description: 'd', steps, more: 1 }))).toMatch(/additional properties \(more\)/);
    expect(faultOf(scenarioFile({ name: 'x', description: 'd', steps: [{ content: '', toolCalls: [{ name: 'rm', args: {} }] }] }))).toMatch(
      /toolCalls\.0\.name/,
    );
    expect(faultOf(scenarioFile({ name: 'x', description: 'd', steps }))).toBe('none');
  });
});
