import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type AttackStep, attackTests, toolSays } from '../support/attack.ts';
import type { Weakening } from '../support/sandbox-client.ts';

const findMarker: AttackStep = (sandbox, { hostDir }) => {
  const look = `cat ${hostDir}/marker; find / \\( -path /usr -o -path /proc \\) -prune -o -name marker -exec cat {} + ; cat /etc/shadow /proc/1/root${hostDir}/marker`;
  return toolSays(sandbox, ['sh', '-c', look], /host-marker|root:[$*!]/);
};

/** A link where a careless mount would follow it, planted in an earlier life of the sandbox. */
const plantLink: AttackStep = async (sandbox, { hostDir }) => {
  await sandbox.tool(['sh', '-c', `ln -sfn ${hostDir} /workspace/.cache; ln -sfn ${hostDir} "$HOME/.config"`]);
  return toolSays(sandbox, ['sh', '-c', 'find -L /workspace /home /cache -name marker -exec cat {} +'], /host-marker/);
};

const openDevices: AttackStep = (sandbox) =>
  toolSays(
    sandbox,
    [
      'sh',
      '-c',
      'for d in /dev/*; do [ -b "$d" ] && echo "block $d"; done; ls /dev | grep -E "^(mem|kmsg|kvm|fuse|vda|sda|nvme|vsock|tun)" ; ls /sys /run/docker.sock 2>/dev/null',
    ],
    /./,
    { uid: 0, gid: 0 },
  );

attackTests([
  {
    threat: 'T09',
    title: 'finds a world-readable file of the host',
    actor: 'tool',
    attempt: findMarker,
    control: { when: 'the host’s /var/tmp is mounted', weakening: { first: ['--ro-bind', '/var/tmp', '/host'] } },
  },
  {
    threat: 'T09',
    title: 'finds devices and kernel file systems of the host',
    actor: 'executor',
    attempt: openDevices,
    control: {
      when: 'the host’s /dev and /sys are mounted',
      weakening: { replace: { '--dev': ['--dev-bind', '/dev'] }, first: ['--ro-bind', '/sys', '/sys'] },
    },
  },
  {
    threat: 'T04',
    title: 'plants a link to a host directory where a later mount would follow it',
    actor: 'tool',
    attempt: plantLink,
    control: {
      when: 'a directory below the workspace is a mount source',
      async weakening({ kernel, hostDir }) {
        const before = await kernel.start();
        await before.tool(['ln', '-sfn', hostDir, '/workspace/.cache']);
        await before.stop();
        return { first: ['--bind', '/tmp/w/u0/.cache', '/cache'] };
      },
    },
  },
]);

describe('T12 the kernel’s terminal', () => {
  const PROBE = fileURLToPath(new URL('../support/terminal-probe.ts', import.meta.url));

  /** Runs a kernel on a terminal of its own, a sandbox below it, and tells what the executor could do with that terminal. */
  function probe(weakening?: Weakening): string {
    const dir = mkdtempSync('/var/tmp/outwork-terminal-');
    const answer = join(dir, 'answer');
    const command = [process.execPath, PROBE, answer, `'${JSON.stringify(weakening ?? null)}'`].join(' ');
    execFileSync('script', ['--quiet', '--return', '--command', command, join(dir, 'typescript')], { stdio: 'ignore' });
    const text = readFileSync(answer, 'utf8');
    rmSync(dir, { recursive: true });
    return text;
  }

  it('T12 executor: cannot open the terminal of the kernel, nor type into it', () => {
    expect(probe()).toBe('no terminal');
  });

  it('T12 control: it succeeds when neither session is the sandbox’s own', () => {
    expect(probe({ without: ['--new-session'], kernelSession: true })).toMatch(/^terminal opened/);
  });

  it('T12 either session alone is enough', () => {
    expect(probe({ without: ['--new-session'] })).toBe('no terminal');
    expect(probe({ kernelSession: true })).toBe('no terminal');
  });
});
