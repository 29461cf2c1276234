/** Architectures a filter is made for, as `process.arch` names them. */
export type SeccompArch = 'x64' | 'arm64';

/**
 * What the filter says to one system call. `allow`; `refuse`: EPERM, as without the capability; `absent`: ENOSYS, as in a kernel that does
 * not have it, so that programs fall back. What the table does not name is `absent`. A rule on an argument looks at its low 32 bits, which
 * is all that the kernel itself reads of these arguments: what stands above them can neither pass nor hide a value.
 */
export type Rule = 'allow' | 'refuse' | 'absent' | ArgumentRule;

export type ArgumentRule = { readonly argument: number; readonly errno: number } & (
  | { readonly kind: 'only'; readonly values: readonly number[] }
  | { readonly kind: 'not'; readonly values: readonly number[] }
  | { readonly kind: 'without'; readonly bits: number }
);

export type Row = readonly [name: string, x64: number | null, arm64: number | null, rule: Rule];

export const EPERM = 1;
export const ENOSYS = 38;
export const EAFNOSUPPORT = 97;
