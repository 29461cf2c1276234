/**
 * The `q` quantile (0 to 1) of a list in any order, by linear interpolation between the two nearest ranks; undefined for an empty list.
 * With ten values p99 lies just below the highest one: it says little more than "the worst turn", and the report says so.
 */
export function quantile(values: readonly number[], q: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = (sorted.length - 1) * q;
  const low = sorted[Math.floor(rank)];
  const high = sorted[Math.ceil(rank)];
  if (low === undefined || high === undefined) return undefined;
  return low + (high - low) * (rank - Math.floor(rank));
}

/** Three significant digits, and never finer than a microsecond of a millisecond: what lies below is noise. */
export function rounded(value: number): number {
  return value === 0 ? 0 : Number(Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3));
}
