import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../adapters/cli/program.ts';
import { claimFault, claimsIn, unmarkedClaims } from './doc-claims.ts';
import { ROOT, read } from './sources.ts';

const DOCUMENTS = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md'] as const;
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

/** Paths of all commands, `runs show` and the like. */
const commands = buildProgram('', async () => {}).commands.flatMap((command) =>
  command.commands.length === 0 ? [command.name()] : command.commands.map((sub) => `${command.name()} ${sub.name()}`),
);

/** Commands of ours that a text names as code: what follows `outwork` or `npm run outwork --`. */
function namedCommands(text: string): string[] {
  return [...text.matchAll(/(?:npm run outwork --|`(?:npx )?outwork) ([a-z]+)(?: ([a-z]+))?/g)].map(([, first = '', second]) =>
    commands.some((name) => name.startsWith(`${first} `)) && second !== undefined ? `${first} ${second}` : first,
  );
}

describe('claims of the documents', () => {
  it.each(['README.md', 'SECURITY.md'])('%s: every test that is named is there', (document) => {
    const claims = claimsIn(document, read(document));
    expect(claims.length).toBeGreaterThan(5);
    expect(claims.flatMap((claim) => claimFault(claim) ?? [])).toEqual([]);
  });

  it('every guarantee of SECURITY.md names a test', () => {
    expect(unmarkedClaims(read('SECURITY.md'), ['Guarantees'])).toEqual([]);
  });

  it('control: a guarantee without a test, and a test that is not there, are found', () => {
    const text =
      '# T\n\n## Guarantees\n\nWords.\n\n- One. <!-- test: test/x.test.ts › a name -->\n- Two,\n  over two lines.\n\n## Rest\n\n- Three.\n';
    expect(unmarkedClaims(text, ['Guarantees'])).toEqual(['- Two,\n  over two lines.']);
    const [claim] = claimsIn('a.md', text);
    if (claim === undefined) throw new Error('no claim');
    expect(claim).toEqual({ document: 'a.md', line: 7, file: 'test/x.test.ts', name: 'a name' });
    expect(claimFault(claim, new Map())).toContain('no test file');
    expect(claimFault(claim, new Map([['test/x.test.ts', "it('another name', () => {});"]]))).toContain('has no test');
    expect(claimFault(claim, new Map([['test/x.test.ts', "it('a name', () => {});"]]))).toBeUndefined();
  });
});

describe('what the documents tell a person to type or to open', () => {
  it.each(DOCUMENTS)('%s: every npm script and every command exists', (document) => {
    const text = read(document);
    const named = [...text.matchAll(/\bnpm run ([a-z:-]+)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
    const known = new Set([...commands, ...commands.map((name) => name.split(' ')[0])]);
    expect(namedCommands(text).filter((name) => !known.has(name))).toEqual([]);
  });

  it('control: a command that does not exist is found', () => {
    expect(namedCommands('`outwork runs frob X` and `outwork doctor`, npm run outwork -- user add ann')).toEqual([
      'runs frob',
      'doctor',
      'user add',
    ]);
    expect(commands).toContain('runs show');
    expect(commands).not.toContain('runs frob');
  });

  it.each(DOCUMENTS)('%s: every link leads to a file', (document) => {
    const links = [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)].map(([, link = '']) => link);
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(document), link)))).toEqual([]);
  });

  it.each(DOCUMENTS)('%s: every path it names as code is there', (document) => {
    const paths = [...read(document).matchAll(/`((?:core|adapters|harnesses|policies|test|threat-model|\.ci)\/[\w./-]*)`/g)].map(
      ([, path = '']) => path,
    );
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});
