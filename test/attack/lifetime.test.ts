import { SECCOMP_ARGUMENTS } from '../../adapters/sandbox/bubblewrap/plan.ts';
import { type AttackStep, attackTests } from '../support/attack.ts';
import { UNDYING_INIT } from '../support/sandbox-client.ts';
import { processesOf, survivors } from '../support/sandbox-processes.ts';

/** A detached process that ignores what it can; then the guest is killed. Does the process live on? */
const outliveGuest =
  (sandboxEnds: boolean): AttackStep =>
  async (sandbox, { kernel }) => {
    const deaf = `trap '' TERM HUP; setsid sh -c 'trap "" TERM HUP; exec sleep 1000' & echo ready; wait`;
    await sandbox.tool(['sh', '-c', deaf], { until: 'ready' });
    const before = await processesOf(sandbox, kernel);
    await sandbox.executor(`process.kill(process.pid, 'SIGKILL')`).catch(() => {});
    if (sandboxEnds) await sandbox.ended();
    const alive = await survivors(before);
    // The init of the control is one survivor; the shell and the sleeper are two more.
    return { through: alive.length >= 3, evidence: `${alive.length} of ${before.length} processes alive` };
  };

const nestNamespace: AttackStep = async (sandbox) => {
  const { code, stderr } = await sandbox.tool(['unshare', '--user', '--map-root-user', '--net', 'true']);
  return { through: code === 0, evidence: `exit ${code} ${stderr}` };
};

const takeInotify: AttackStep = async (sandbox) => {
  const program =
    'my $number = `uname -m` =~ /aarch64/ ? 26 : 294; my $n = 0; while ($n < 100 && syscall($number, 0) >= 0) { $n++ } print $n';
  const { stdout } = await sandbox.tool(['perl', '-e', program]);
  return { through: Number(stdout) > 16, evidence: `${stdout} instances` };
};

const raiseLimit: AttackStep = async (sandbox) => {
  const { stdout } = await sandbox.tool(
    ['sh', '-c', 'echo 5000 >/proc/sys/user/max_user_namespaces; cat /proc/sys/user/max_user_namespaces'],
    {
      uid: 0,
      gid: 0,
    },
  );
  return { through: stdout.trim() === '5000', evidence: stdout };
};

attackTests([
  {
    threat: 'T13',
    title: 'outlives the guest that started it',
    actor: 'tool',
    attempt: outliveGuest(true),
    control: { when: 'the init does not end with the guest', weakening: { command: UNDYING_INIT }, attempt: outliveGuest(false) },
  },
  {
    threat: 'T14',
    title: 'makes a user namespace of its own',
    actor: 'tool',
    attempt: nestNamespace,
    control: { when: 'no limit is set and no filter is loaded', weakening: { limits: {}, without: SECCOMP_ARGUMENTS } },
  },
  {
    threat: 'T14',
    title: 'uses up the file watches of the kernel’s user',
    actor: 'tool',
    attempt: takeInotify,
    control: { when: 'no limit is set', weakening: { limits: {} } },
  },
  {
    threat: 'T14',
    title: 'raises its own limits',
    actor: 'executor',
    attempt: raiseLimit,
    control: {
      when: 'the executor keeps SYS_RESOURCE',
      weakening: {
        replace: {
          CAP_NET_BIND_SERVICE: ['CAP_NET_BIND_SERVICE', '--cap-add', 'CAP_SYS_RESOURCE'],
          '--bounding-set=-all,+setuid,+setgid,+kill,+net_bind_service': ['--bounding-set=+all'],
        },
      },
    },
  },
]);
