import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { renderReport } from '../../adapters/compare/report.ts';
import type { CompareResults } from '../../adapters/compare/results.ts';
import { ChromiumPage } from '../support/chromium.ts';
import { sampleResults } from './sample-results.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'outwork-report-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function shown(page: ChromiumPage, html: string): Promise<void> {
  const file = join(directory, 'index.html');
  await writeFile(file, html);
  await page.load(pathToFileURL(file).href);
}

interface Box {
  readonly text: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Every label of the plots, as it lies on the page. */
const LABELS = `[...document.querySelectorAll('.plot svg[role=img] text')].map((node) => {
  const { left, right, top, bottom } = node.getBoundingClientRect();
  return { text: node.textContent, left, right, top, bottom };
})`;

const overlaps = (labels: readonly Box[]): readonly string[] =>
  labels.flatMap((a, index) =>
    labels
      .slice(index + 1)
      .filter((b) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
      .map((b) => `${a.text} / ${b.text}`),
  );

for (const [device, size] of Object.entries({
  desktop: { width: 1200, height: 900 },
  phone: { width: 390, height: 844 },
  'small phone': { width: 360, height: 740 },
  'desktop in the dark': { width: 1200, height: 900, dark: true },
})) {
  test(`both plots are drawn on a ${device}, labels neither overlap nor leave the page, and nothing complains`, async () => {
    await using page = await ChromiumPage.open(size);
    await shown(page, renderReport(sampleResults()));
    expect(await page.evaluate(`document.querySelectorAll('#latency-plot .turn').length`)).toBe(30 + 3);
    expect(await page.evaluate(`document.querySelectorAll('#memory-plot svg[role=img] rect').length`)).toBe(12);
    const widths = await page.evaluate<number[]>(
      `[...document.querySelectorAll('.plot svg[role=img]')].map((svg) => svg.getBoundingClientRect().width)`,
    );
    for (const width of widths) expect(width).toBeGreaterThan(Math.min(size.width * 0.6, 700));
    const labels = await page.evaluate<Box[]>(LABELS);
    expect(overlaps(labels)).toEqual([]);
    expect(labels.filter((label) => label.left < 0 || label.right > size.width).map((label) => label.text)).toEqual([]);
    expect(await page.evaluate(`document.documentElement.scrollWidth <= innerWidth`)).toBe(true);
    // A table that has to be pushed sideways hides its last placement; below the width of today's phones it may.
    const pushed = `[...document.querySelectorAll('.scroll')].filter((card) => card.scrollWidth > card.clientWidth).length`;
    if (size.width >= 390) expect(await page.evaluate(pushed)).toBe(0);
    expect(page.complaints).toEqual([]);
  });
}

test('what comes from the results is text: markup in it is neither an element nor a script', async () => {
  const attack = `"><script>document.title='taken'</script><img src=x onerror="document.title='taken'">`;
  const sample = sampleResults();
  const hostile: CompareResults = {
    ...sample,
    machine: { ...sample.machine, cpu: attack },
    workload: {
      ...sample.workload,
      name: attack,
      repository: sample.workload.repository && { ...sample.workload.repository, name: attack },
    },
    unmeasured: [{ field: attack, why: attack }],
  };
  await using page = await ChromiumPage.open({ width: 1200, height: 900 });
  await shown(page, renderReport(hostile));
  expect(await page.evaluate(`document.querySelectorAll('script, img').length`)).toBe(0);
  expect(await page.evaluate('document.title')).toBe('Outwork: placements compared');
  expect(await page.evaluate('document.body.textContent')).toContain(attack);
  expect(page.complaints).toEqual([]);
});

test('the policy of the page refuses script and network, and the page would run them without it', async () => {
  const planted = `<script>document.title='taken'</script><img src="http://127.0.0.1:9/x.png">`;
  const html = renderReport(sampleResults()).replace('</main>', `${planted}</main>`);
  const weakened = html.replace(/<meta http-equiv[^>]*>/, '');
  {
    await using page = await ChromiumPage.open({ width: 800, height: 600 });
    await shown(page, html);
    expect(await page.evaluate('document.title')).toBe('Outwork: placements compared');
    expect(page.complaints.join()).toContain('Content Security Policy');
  }
  await using page = await ChromiumPage.open({ width: 800, height: 600 });
  await shown(page, weakened);
  expect(await page.evaluate('document.title')).toBe('taken');
});

test('a placement without figures is shown as not measured', () => {
  const sample = sampleResults();
  const [first, ...others] = sample.placements;
  if (first === undefined) throw new Error('the sample has placements');
  const silent = { ...first, latencyMs: null, memoryMiB: null, memoryPartsMiB: null, samples: [] };
  const html = renderReport({ ...sample, placements: [silent, ...others] });
  expect(html).toContain('no turn completed');
  expect(html).toContain('not measured');
  expect(html).not.toMatch(/NaN|undefined|\[object/);
});
