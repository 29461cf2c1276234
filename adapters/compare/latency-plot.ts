import { type Axis, axisFor } from './axis.ts';
import { html, type Markup } from './html.ts';
import type { PlacementResult, TurnPoint } from './results.ts';

const ROW = 80;
const STRIP_TOP = 42;
const STRIP = 26;
const AXIS = 34;

/** Every turn as a mark on one time axis, a row for each placement, with lines at the median and the 95th percentile. */
export function latencyPlot(placements: readonly PlacementResult[], name: (result: PlacementResult) => string): Markup {
  const axis = axisFor(Math.max(1, ...placements.flatMap((result) => result.samples.map((sample) => sample.ms))));
  const height = placements.length * ROW;
  return html`<figure class="plot" id="latency-plot">
<svg role="img" aria-labelledby="latency-title latency-text" height="${height + AXIS}">
<title id="latency-title">Time of every turn</title>
<desc id="latency-text">${placements.map((result) => `${name(result)}: ${summary(result)}.`).join(' ')}</desc>
${grid(axis, height, 'ms')}
${placements.map((result, index) => row(result, name(result), index, axis))}
</svg>
<figcaption>${legend()}</figcaption>
</figure>`;
}

const summary = ({ latencyMs }: PlacementResult): string =>
  latencyMs === null ? 'no turn completed' : `p50 ${whole(latencyMs.p50)} ms · p95 ${whole(latencyMs.p95)} ms`;

const whole = (ms: number): string => (ms >= 10 ? ms.toFixed(0) : ms.toFixed(1));

/** Lines and numbers of the axis below `height`. The first and the last number stay inside the plot. */
export function grid(axis: Axis, height: number, unit: string): readonly Markup[] {
  return axis.ticks.map((tick, index) => {
    const last = index === axis.ticks.length - 1;
    const anchor = index === 0 ? 'start' : last ? 'end' : 'middle';
    return html`<line class="grid" x1="${axis.at(tick)}" x2="${axis.at(tick)}" y1="0" y2="${height}"/>
<text class="tick" x="${axis.at(tick)}" y="${height + 20}" text-anchor="${anchor}">${tick}${last ? ` ${unit}` : ''}</text>`;
  });
}

function row(result: PlacementResult, label: string, index: number, axis: Axis): Markup {
  const top = index * ROW;
  const strip = top + STRIP_TOP;
  const line = (kind: 'p50' | 'p95'): readonly Markup[] => {
    if (result.latencyMs === null) return [];
    const x = axis.at(result.latencyMs[kind]);
    return [html`<line class="${kind}" x1="${x}" x2="${x}" y1="${strip - 3}" y2="${strip + STRIP + 3}"/>`];
  };
  return html`<g class="series-${index % 4}">
<text class="name" x="0" y="${top + 17}">${label}</text>
<text class="value" x="0" y="${top + 34}">${summary(result)}</text>
<rect class="strip" x="0" width="100%" y="${strip}" height="${STRIP}" rx="4"/>
${line('p95')}${line('p50')}
${result.samples.map((sample) => mark(sample, axis.at(sample.ms), strip + offset(sample)))}
</g>`;
}

/** Turns lie below one another in four lanes, so that equal times do not hide one another. */
const offset = ({ turn }: TurnPoint): number => 5 + ((turn * 3) % 4) * 5.4;

function mark({ turn, ms, cold, completed }: TurnPoint, x: string, y: number): Markup {
  const kind = completed ? (cold ? 'cold' : 'warm') : 'failed';
  const title = html`<title>turn ${turn}: ${whole(ms)} ms, ${kind}</title>`;
  if (completed) return html`<circle class="turn ${kind}" cx="${x}" cy="${y}" r="${cold ? 4.5 : 5}">${title}</circle>`;
  return html`<svg class="turn failed" x="${x}" y="${y}" overflow="visible">${title}<path d="M-4 -4 L4 4 M-4 4 L4 -4"/></svg>`;
}

function legend(): Markup {
  const glyph = (shape: Markup): Markup => html`<svg class="glyph series-none" width="14" height="14" aria-hidden="true">${shape}</svg>`;
  return html`<span>${glyph(html`<circle class="turn warm" cx="7" cy="7" r="5"/>`)} turn in a running sandbox</span>
<span>${glyph(html`<circle class="turn cold" cx="7" cy="7" r="4.5"/>`)} turn that had to start one</span>
<span>${glyph(html`<svg class="turn failed" x="7" y="7" overflow="visible"><path d="M-4 -4 L4 4 M-4 4 L4 -4"/></svg>`)} failed turn</span>
<span>${glyph(html`<line class="p50" x1="7" x2="7" y1="0" y2="14"/>`)} median</span>
<span>${glyph(html`<line class="p95" x1="7" x2="7" y1="0" y2="14"/>`)} 95th percentile</span>`;
}
