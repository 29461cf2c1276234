import { createHash } from 'node:crypto';
import { CAPABILITIES } from '../../core/capability/types.ts';
import { headlineOf } from './headline.ts';
import { html, Markup } from './html.ts';
import { latencyPlot } from './latency-plot.ts';
import { memoryPlot } from './memory-plot.ts';
import { REPORT_STYLE } from './report-style.ts';
import { type CompareResults, type PlacementResult, placementLabel } from './results.ts';
import { rowsOf } from './rows.ts';

/**
 * The results as one HTML page that needs nothing else: no script, no network, and a policy that would refuse both. Whatever comes from
 * the results is escaped.
 */
export function renderReport(results: CompareResults): string {
  const name = (result: PlacementResult): string => (results.engines.length > 1 ? placementLabel(result) : result.placement);
  const { answer, details } = headlineOf(results);
  const { workload } = results;
  const styleDigest = createHash('sha256').update(REPORT_STYLE).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${styleDigest}'; img-src data:; base-uri 'none'; form-action 'none'`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Outwork: placements compared</title>
<style>${new Markup(REPORT_STYLE)}</style>
</head>
<body>
<main>
<h1>Outwork compare: the same turns under ${results.placements.length === 1 ? 'one placement' : `${results.placements.length} placements`}</h1>
<p class="answer">${answer}</p>
<ul>${details.map((sentence) => html`<li>${sentence}</li>`)}</ul>
<p class="note">${workload.turns} turns of the workload <code>${workload.name}</code> in each placement${workload.concurrency > 1 ? `, ${workload.concurrency} users at once` : ''}, interleaved${workload.quick ? '; a quick run: rough figures' : ''}. ${results.createdAt.slice(0, 16).replace('T', ' ')} UTC.</p>
<h2>Time of a turn</h2>
<div class="card">${latencyPlot(results.placements, name)}</div>
<p class="note">With ${workload.turns} turns the 95th and 99th percentile say little more than “the slowest turns”.</p>
<h2>Memory</h2>
<div class="card">${memoryPlot(results.placements, name)}</div>
<h2>All figures</h2>
<div class="card scroll">${figureTable(results, name)}</div>
<h2>Who enforces a denial</h2>
<div class="card scroll">${enforcementTable(results, name)}</div>
<p class="note"><span class="kernel-word">kernel</span>: what is denied never starts. <span class="executor-word">executor</span>: an honest executor does not start it; a compromised one can run what the sandbox's wall permits, on files its user already has, without credentials and without a way out.</p>
<h2>Machine and workload</h2>
<div class="card">${machineList(results)}</div>
<h2>Not measured</h2>
${unmeasuredList(results)}
<h2>How it was measured</h2>
${method()}
</main>
</body>
</html>
`.text;
}

function headRow(results: CompareResults, name: (result: PlacementResult) => string): Markup {
  return html`<thead><tr><th scope="col"></th>${results.placements.map((result) => html`<th scope="col">${name(result)}</th>`)}</tr></thead>`;
}

function figureTable(results: CompareResults, name: (result: PlacementResult) => string): Markup {
  const rows = rowsOf(results);
  return html`<table>${headRow(results, name)}<tbody>${rows.map((row, index) => {
    const starts = index > 0 && rows[index - 1]?.group !== row.group;
    return html`<tr class="${starts ? 'group' : ''}"><th scope="row">${row.label} <span class="unit">${row.unit}</span></th>${row.cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
  })}</tbody></table>`;
}

function enforcementTable(results: CompareResults, name: (result: PlacementResult) => string): Markup {
  return html`<table>${headRow(results, name)}<tbody>${CAPABILITIES.map(
    (capability) =>
      html`<tr><th scope="row"><code>${capability}</code></th>${results.placements.map((result) => {
        const enforcer = result.enforcement[capability];
        return html`<td><span class="${enforcer}-word">${enforcer}</span></td>`;
      })}</tr>`,
  )}</tbody></table>`;
}

function machineList({ machine, engines, workload, floor, placements }: CompareResults): Markup {
  const repository = workload.repository;
  const amount = (value: number | null): string => (value === null ? 'not measured' : `${value} ms`);
  const privileges = [...new Set(placements.flatMap((result) => result.deployment?.privileges ?? []))];
  const entries: readonly (readonly [string, string])[] = [
    ['system', `${machine.os}, Linux ${machine.kernel}, ${machine.arch}`],
    ['processor', `${machine.cores} × ${machine.cpu}`],
    ['memory', `${machine.memoryMiB} MiB`],
    ['Node', machine.node],
    ['state on', machine.stateFilesystem],
    ['load before', String(machine.loadBefore)],
    ['engines', engines.map((engine) => `${engine.name} (${engine.wall}; ${engine.version})`).join(', ')],
    ['host must give', privileges.join('; ')],
    [
      'repository',
      repository === null
        ? 'none'
        : `${repository.name} at ${repository.commit}, ${repository.files} files, ${repository.bundleMiB} MiB ${repository.history === 'full' ? 'with history' : 'of newest files only'}`,
    ],
    ['bare commit', amount(floor.commitMs)],
    ['bare round trip', amount(floor.roundTripMs)],
    ['bare start', amount(floor.bareStartMs)],
  ];
  return html`<dl>${entries.map(([term, text]) => html`<dt>${term}</dt><dd>${text}</dd>`)}</dl>`;
}

function unmeasuredList({ unmeasured }: CompareResults): Markup {
  if (unmeasured.length === 0) return html`<p>Nothing was left out.</p>`;
  return html`<ul>${unmeasured.map(({ field, why }) => html`<li><code>${field}</code>: ${why}</li>`)}</ul>`;
}

function method(): Markup {
  return html`<ul class="note">
<li>Every placement has a kernel in a process and a state directory of its own, so that memory can be told apart. Turns are interleaved: first turn of each, second turn of each, and so on.</li>
<li>A turn lasts from the posting of its message to the end of its run, both as the kernel recorded them, in whole milliseconds. The first turn of each user is not timed.</li>
<li>Overhead is turn time less model time and the commands’ own wall time. The floor is what the same turn’s commits, round trips and bare starts take on this machine when nothing else is done, measured between the turns.</li>
<li>Memory is what no other process shares (<code>Private_*</code> of <code>smaps_rollup</code>). Idle is read before, active is the highest sample of one extra turn that is not timed.</li>
<li>Kill to resume runs from SIGKILL of the executor (in <code>host-loop-shell</code> that is the kernel itself) to the first call that the next attempt completed.</li>
</ul>`;
}
