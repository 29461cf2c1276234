import { type Axis, axisFor } from './axis.ts';
import { html, type Markup } from './html.ts';
import { grid } from './latency-plot.ts';
import type { PlacementResult } from './results.ts';

const BAR = 18;
const BAR_STEP = 40;
const HEAD = 26;
const ROW = HEAD + 2 * BAR_STEP + 6;
const AXIS = 34;

/** Unique memory of the kernel and of one user's sandbox on top of it, idle and active, for each placement. */
export function memoryPlot(placements: readonly PlacementResult[], name: (result: PlacementResult) => string): Markup {
  const axis = axisFor(Math.max(1, ...placements.flatMap((result) => (result.memoryMiB === null ? [] : Object.values(result.memoryMiB)))));
  const height = placements.length * ROW;
  return html`<figure class="plot" id="memory-plot">
<svg role="img" aria-labelledby="memory-title memory-text" height="${height + AXIS}">
<title id="memory-title">Memory, idle and active</title>
<desc id="memory-text">${placements.map((result) => `${name(result)}: ${spoken(result)}.`).join(' ')}</desc>
${grid(axis, height, 'MiB')}
${placements.map((result, index) => row(result, name(result), index * ROW, axis))}
</svg>
<figcaption>
<span><svg class="glyph" width="14" height="14" aria-hidden="true"><rect class="kernel" x="1" y="1" width="12" height="12" rx="2"/></svg> kernel process</span>
<span><svg class="glyph" width="14" height="14" aria-hidden="true"><rect class="sandbox" x="1" y="1" width="12" height="12" rx="2"/></svg> one user’s sandbox</span>
</figcaption>
</figure>`;
}

const spoken = ({ memoryMiB }: PlacementResult): string =>
  memoryMiB === null ? 'not measured' : `idle ${memoryMiB.idle} MiB, active ${memoryMiB.active} MiB`;

function row(result: PlacementResult, label: string, top: number, axis: Axis): Markup {
  return html`<g>
<text class="name" x="0" y="${top + 17}">${label}</text>
${result.memoryPartsMiB === null ? html`<text class="value" x="0" y="${top + 40}">not measured</text>` : html`${bar(result.memoryPartsMiB, 'idle', top + HEAD, axis)}${bar(result.memoryPartsMiB, 'active', top + HEAD + BAR_STEP, axis)}`}
</g>`;
}

function bar(parts: NonNullable<PlacementResult['memoryPartsMiB']>, when: 'idle' | 'active', top: number, axis: Axis): Markup {
  const [kernel, sandbox] = [parts.kernel[when], parts.sandbox[when]];
  const said = `${when} ${(kernel + sandbox).toFixed(1)} MiB = kernel ${kernel.toFixed(1)} + sandbox ${sandbox.toFixed(1)}`;
  return html`<g class="bar"><title>${said}</title>
<text class="value" x="0" y="${top + 12}">${said}</text>
<rect class="kernel" x="0" width="${axis.at(kernel)}" y="${top + 17}" height="${BAR}"/>
<rect class="sandbox" x="${axis.at(kernel)}" width="${axis.at(sandbox)}" y="${top + 17}" height="${BAR}"/>
</g>`;
}
