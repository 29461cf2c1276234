import { read, trackedFiles } from './sources.ts';

/** A claim of a document and the test that holds it up: `<!-- test: path › name -->` at the end of the claim. */
export interface Claim {
  readonly document: string;
  readonly line: number;
  readonly file: string;
  readonly name: string;
}

const MARKER = /<!-- test: (\S+) › (.+?) -->/g;

export function claimsIn(document: string, text: string): Claim[] {
  return text
    .split('\n')
    .flatMap((line, index) => [...line.matchAll(MARKER)].map(([, file = '', name = '']) => ({ document, line: index + 1, file, name })));
}

/** Why a claim is not held up; undefined when its test is there. A name is found as written, or as the fields of a table of tests. */
export function claimFault({ file, name }: Claim, sources: ReadonlyMap<string, string> = testSources()): string | undefined {
  const source = sources.get(file);
  if (source === undefined) return `${file} is no test file`;
  if (source.includes(name)) return undefined;
  const [, threat, , title] = /^(T\d\d) (tool|executor|harness): (.+)$/.exec(name) ?? [];
  if (threat !== undefined && title !== undefined && source.includes(`threat: '${threat}'`) && source.includes(title)) return undefined;
  return `${file} has no test "${name}"`;
}

/** Statements of a document that say what holds and must therefore carry a marker: the items of its lists below a heading of `headings`. */
export function unmarkedClaims(text: string, headings: readonly string[]): string[] {
  const unmarked: string[] = [];
  let inside = false;
  for (const block of text.split(/\n(?=#|- |\n)/)) {
    const heading = /^#+ (.+)$/m.exec(block.trimStart())?.[1];
    if (heading !== undefined && block.trimStart().startsWith('#')) inside = headings.includes(heading);
    else if (inside && block.trimStart().startsWith('- ') && !/<!-- test: /.test(block)) unmarked.push(block.trim().slice(0, 100));
  }
  return unmarked;
}

function testSources(): ReadonlyMap<string, string> {
  return new Map(
    trackedFiles()
      .filter((file) => file.startsWith('test/') && file.endsWith('.test.ts'))
      .map((file) => [file, read(file)]),
  );
}
