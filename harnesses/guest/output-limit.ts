const FLOOR_BYTES = 1024;
const CEILING_BYTES = 1024 * 1024;

/**
 * The limit of one copy of output, captured, saved or logged: a positive integer, held to [1 KiB, 1 MiB]. The kernel has refused anything
 * else and holds to the same bounds; a test compares the two.
 */
export const outputLimit = (asked: number | undefined, whenNone: number = CEILING_BYTES): number =>
  Math.min(CEILING_BYTES, Math.max(FLOOR_BYTES, asked ?? whenNone));
