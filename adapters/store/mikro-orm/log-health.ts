import { readFileSync } from 'node:fs';

/** Layout of SQLite's write-ahead log: https://www.sqlite.org/fileformat2.html#the_write_ahead_log */
const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;
/** What is read while another process writes it may be of two moments: only what each look finds is so. */
const LOOKS = 3;

/**
 * Whether commits are lost in the write-ahead log of a database that was not closed. SQLite reads a log up to the first frame that is not
 * whole and forgets the rest without a word, because a crash may tear what was being written. Only the last transaction can be torn: each
 * is on the disk before the next begins. So two or more commits behind a frame that is not whole were acknowledged once, and are gone.
 *
 * A log that was cut off looks like one that ended there, and is not noticed.
 *
 * @param file - of the database; a log that is missing or empty is whole
 */
export function logLosesCommits(file: string): boolean {
  for (let look = 0; look < LOOKS; look += 1) if (!losesCommits(readLog(file))) return false;
  return true;
}

function readLog(file: string): Buffer {
  try {
    return readFileSync(`${file}-wal`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

function losesCommits(log: Buffer): boolean {
  // A log that was never synced may be all zeroes.
  if (log.length <= HEADER_BYTES || log.subarray(0, HEADER_BYTES).every((byte) => byte === 0)) return false;
  const magic = log.readUInt32BE(0);
  const sum = checksum((magic & 1) === 1);
  const whole = (magic & ~1) >>> 0 === MAGIC && sum.is(log.subarray(0, 24), log.subarray(24, HEADER_BYTES));
  if (!whole) return true;
  const pageBytes = log.readUInt32BE(8);
  const salt = log.subarray(16, 24);
  let torn = false;
  let commits = 0;
  for (let at = HEADER_BYTES; at + FRAME_HEADER_BYTES + pageBytes <= log.length; at += FRAME_HEADER_BYTES + pageBytes) {
    const frame = log.subarray(at, at + FRAME_HEADER_BYTES + pageBytes);
    const own = frame.subarray(8, 16).equals(salt);
    torn ||= !own || !sum.is([frame.subarray(0, 8), frame.subarray(FRAME_HEADER_BYTES)], frame.subarray(16, 24));
    // A frame that ends a transaction tells the pages of the database after it.
    if (torn && own && frame.readUInt32BE(4) > 0) commits += 1;
  }
  return commits > 1;
}

/** The running checksum of a log, over the header and each frame after it. */
function checksum(bigEndian: boolean): { is(parts: Buffer | readonly Buffer[], expected: Buffer): boolean } {
  let s0 = 0;
  let s1 = 0;
  const add = (part: Buffer): void => {
    for (let at = 0; at + 8 <= part.length; at += 8) {
      s0 = (s0 + (bigEndian ? part.readUInt32BE(at) : part.readUInt32LE(at)) + s1) >>> 0;
      s1 = (s1 + (bigEndian ? part.readUInt32BE(at + 4) : part.readUInt32LE(at + 4)) + s0) >>> 0;
    }
  };
  return {
    is(parts, expected) {
      for (const part of Array.isArray(parts) ? (parts as readonly Buffer[]) : [parts as Buffer]) add(part);
      return expected.readUInt32BE(0) === s0 && expected.readUInt32BE(4) === s1;
    },
  };
}

/** In words, for whoever is refused. */
export const LOST_COMMITS = 'its write-ahead log is broken in the middle, and what was committed after that is lost';
