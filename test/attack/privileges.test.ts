import { type AttackStep, attackTests, toolSays } from '../support/attack.ts';

/** A program of the executor's with the set-user-id bit, where a tool can start it. */
const startSetuid =
  (as: { uid?: number; gid?: number }): AttackStep =>
  async (sandbox) => {
    await sandbox.tool(['sh', '-c', 'rm -f /workspace/suid; chmod 777 /workspace']);
    await sandbox.executor(
      `const fs = require('node:fs'); fs.copyFileSync('/usr/bin/id', '/workspace/suid'); fs.chmodSync('/workspace/suid', 0o4755)`,
    );
    return toolSays(sandbox, ['/workspace/suid'], /\b(?:e?uid)=0\b/, as);
  };

/** Bit 128 of a wait status says that memory was written out, to a file or to the program of a core_pattern. */
const dumpCore: AttackStep = (sandbox) =>
  toolSays(
    sandbox,
    ['perl', '-e', 'system(q{ulimit -c unlimited 2>/dev/null; kill -SEGV $$}); print "dumped" if $? & 128; print " status $?"'],
    /dumped/,
  );

attackTests([
  {
    threat: 'T21',
    title: 'becomes the executor by a set-user-id program',
    actor: 'tool',
    attempt: startSetuid({}),
    control: { when: 'the tool already runs at that uid', attempt: startSetuid({ uid: 0, gid: 0 }) },
  },
  {
    threat: 'T21',
    title: 'has its memory dumped by the system kernel',
    actor: 'tool',
    attempt: dumpCore,
    control: { when: 'core dumps are not limited', weakening: { replace: { '--core=1:1': ['--core=unlimited'] } } },
  },
]);
