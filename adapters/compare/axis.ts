export interface Axis {
  /** Values of the marks, from 0; the last one is the end of the axis. */
  readonly ticks: readonly number[];
  /** Where a value lies, as a percentage of the axis with its sign, for SVG coordinates that follow the width of the page. */
  at(value: number): string;
}

/** An axis from 0 that holds `highest`, with three to six marks at round values. */
export function axisFor(highest: number): Axis {
  const step = roundStep(highest / 4);
  const count = Math.max(1, Math.ceil(highest / step - 1e-9));
  const ticks = Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
  const end = count * step;
  return { ticks, at: (value) => `${((Math.min(Math.max(value, 0), end) / end) * 100).toFixed(2)}%` };
}

/** The lowest of 1, 2, 2.5 and 5 times a power of ten that is not below `value`. */
function roundStep(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= value * (1 - 1e-9)) ?? 10;
  return factor * power;
}
