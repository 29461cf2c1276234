import { createMetrics } from '../../adapters/metrics/metrics.ts';
import type { KernelGauges } from '../../core/kernel.ts';
import { steadyClock } from '../../core/seams/clock.ts';

const NOTHING: KernelGauges = {
  runs: [],
  sandboxes: { starting: 0, busy: 0, idle: 0, stopping: 0 },
  policy: { ready: true, digests: { rules: '', data: '' }, loadedAtMs: 0, reloadFault: undefined },
};

export interface Metric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
}

/** The metrics of a kernel that has done nothing: names and meanings are there from the start. */
export async function metrics(): Promise<readonly Metric[]> {
  const registry = createMetrics({ clock: steadyClock(), gauges: async () => NOTHING });
  try {
    const text = await registry.text();
    const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]));
    return [...text.matchAll(/^# HELP (\S+) (.+)$/gm)].map(([, name = '', help = '']) => ({ name, help, type: types.get(name) ?? '' }));
  } finally {
    registry.close();
  }
}

const METRICS_BEGIN = '<!-- metrics: begin -->';
const METRICS_END = '<!-- metrics: end -->';

/** README with the names of all metrics between its marks. @throws Error when it has no marks */
export function withMetrics(readme: string, all: readonly Metric[]): string {
  const start = readme.indexOf(METRICS_BEGIN);
  const end = readme.indexOf(METRICS_END);
  if (start === -1 || end < start) throw new Error('README has no place for the metrics');
  const names = all.map(({ name }) => `\`${name}\``).join(', ');
  return `${readme.slice(0, start + METRICS_BEGIN.length)}\n${names}.\n${readme.slice(end)}`;
}
