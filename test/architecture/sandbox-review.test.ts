import { describe, expect, it } from 'vitest';
import { type Claim, claimFault, claimsIn } from './doc-claims.ts';
import { read } from './sources.ts';

const PAGE = 'threat-model/sandbox-review.md';
const FINDINGS = Array.from({ length: 14 }, (_, index) => index + 1);

/** Findings of the page, each with the tests its line names. */
function findingsOf(text: string): ReadonlyMap<number, readonly Claim[]> {
  const found = new Map<number, readonly Claim[]>();
  for (const [line, numbers = ''] of text.matchAll(/^- \*\*([\d, ]+)\*\*.*$/gm)) {
    for (const number of numbers.split(',').map(Number)) found.set(number, claimsIn(PAGE, line));
  }
  return found;
}

/** Findings without a test that has the finding's number in its name. */
const unnamed = (findings: ReturnType<typeof findingsOf>): number[] =>
  FINDINGS.filter((number) => !(findings.get(number) ?? []).some(({ name }) => new RegExp(`finding [\\d, ]*\\b${number}\\b`).test(name)));

describe('the findings of the sandbox review', () => {
  const text = read(PAGE);
  const findings = findingsOf(text);

  it.each(FINDINGS)('finding %i has a line, and every test that it names is there', (number) => {
    const claims = findings.get(number) ?? [];
    expect(claims.length).toBeGreaterThan(0);
    expect(claims.flatMap((claim) => claimFault(claim) ?? [])).toEqual([]);
  });

  it('every finding has a test that is named after it', () => {
    expect(unnamed(findings)).toEqual([]);
  });

  it('every finding but that of installers has a test under each placement', () => {
    const inPlacements = (claims: readonly Claim[]) =>
      claims.some(({ file }) => /\.each\([^)]*PLACEMENTS|PLACEMENTS\.map/.test(read(file)));
    expect(FINDINGS.filter((number) => !inPlacements(findings.get(number) ?? []))).toEqual([14]);
  });

  it('control: a finding without a line, and a test that is not there, are found', () => {
    const short = findingsOf(text.replace(/^- \*\*9\*\*.*$/m, '').replaceAll('finding 13: what', 'finding 1: what'));
    expect(unnamed(short)).toEqual([9, 13]);
    const [claim] = claimsIn(PAGE, '- **1** x <!-- test: test/e2e/shell.test.ts › finding 99: no such test -->');
    expect(claim && claimFault(claim)).toContain('has no test');
  });
});
