import { userInfo } from 'node:os';
import type { Check } from '../sandbox/check.ts';
import type { SetupHost } from './setup/host.ts';

/** Whether a Docker daemon of this very machine answers: one in a virtual machine cannot be given a socket of this host. */
export async function checkDocker(host: SetupHost): Promise<readonly Check[]> {
  const id = 'docker';
  const docker = host.which('docker');
  if (docker === undefined) return [{ id, ok: false, detail: 'docker is not on PATH', fix: 'apt-get install docker.io' }];
  const { code, stdout, stderr } = await host.run(docker, ['info', '--format', '{{.OperatingSystem}} {{.ServerVersion}}']);
  const system = stdout.trim();
  if (code !== 0) {
    const detail = `the daemon does not answer: ${stderr.trim().split('\n').at(-1) ?? ''}`;
    const denied = /permission denied/i.test(stderr);
    const fix = denied
      ? `usermod -aG docker ${userInfo().username} (which makes it root on this host), then log in again`
      : 'systemctl start docker';
    return [{ id, ok: false, detail, fix }];
  }
  if (/docker desktop/i.test(system)) {
    const detail = 'Docker Desktop: its containers run in a virtual machine, where a socket of this host cannot be mounted';
    return [{ id, ok: false, detail, fix: 'apt-get install docker.io, then docker context use default' }];
  }
  return [{ id, ok: true, detail: `${docker}: ${system}` }];
}
