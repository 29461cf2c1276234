import { readFile, statfs } from 'node:fs/promises';
import { arch, cpus, loadavg, release, totalmem } from 'node:os';
import type { Machine } from './results.ts';

/** Magic numbers of statfs(2) for file systems on which a commit has a known character. */
const FILESYSTEMS: Readonly<Record<number, string>> = {
  16914836: 'tmpfs',
  61267: 'ext4',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  801189825: 'zfs',
  2035054128: 'overlayfs',
  26985: 'nfs',
  16914839: '9p',
};

/** The machine as it was before the first turn. */
export async function describeMachine(stateDir: string): Promise<Machine> {
  const { type } = await statfs(stateDir);
  return {
    os: await osName(),
    kernel: release(),
    arch: arch(),
    cpu: cpus()[0]?.model.trim() || 'unknown',
    cores: cpus().length,
    memoryMiB: Math.round(totalmem() / (1024 * 1024)),
    node: process.version + (import.meta.url.endsWith('.ts') ? ', from source (stripping types costs a kernel some 30 MiB)' : ''),
    stateFilesystem: FILESYSTEMS[type] ?? `0x${type.toString(16)}`,
    loadBefore: Number((loadavg()[0] ?? 0).toFixed(2)),
  };
}

async function osName(): Promise<string> {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(release)?.[1] ?? process.platform;
}
