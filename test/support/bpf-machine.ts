/** What a filter looks at: `struct seccomp_data`, with the arguments as the registers hold them. */
export interface SystemCall {
  readonly number: number;
  readonly arch: number;
  readonly args: readonly bigint[];
}

/** A classic BPF machine with the operations of seccomp(2) that our programs use; anything else, and running off the end, is an error. */
export function runFilter(program: Uint8Array, call: SystemCall): number {
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, call.number, true);
  data.setUint32(4, call.arch, true);
  call.args.forEach((value, i) => {
    data.setBigUint64(16 + 8 * i, BigInt.asUintN(64, value), true);
  });
  const view = new DataView(program.buffer, program.byteOffset, program.byteLength);
  let word = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
    const [code, jumpTrue, jumpFalse] = [view.getUint16(at * 8, true), view.getUint8(at * 8 + 2), view.getUint8(at * 8 + 3)];
    const k = view.getUint32(at * 8 + 4, true);
    if (code === 0x06) return k;
    if (code === 0x20) word = data.getUint32(k, true);
    else if (code === 0x05) at += k;
    else if (code === 0x15) at += word === k ? jumpTrue : jumpFalse;
    else if (code === 0x35) at += word >= k ? jumpTrue : jumpFalse;
    else if (code === 0x45) at += (word & k) !== 0 ? jumpTrue : jumpFalse;
    else throw new Error(`instruction ${at}: unknown code ${code.toString(16)}`);
  }
  throw new Error('the program has no return');
}

export const ALLOWED = 0x7fff_0000;
export const KILLED = 0x8000_0000;
export const failed = (errno: number): number => 0x0005_0000 + errno;
