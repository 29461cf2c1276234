// A hostile executor for tests of stolen tokens. The message of a run is JSON that says what it does: `tell` posts the run's own token to
// the thread, `tell-and-hang` does and stays, `keep-and-die` writes it into the workspace and ends the sandbox, `use` calls with a token that
// the message names, and so does the attempt after `keep-and-die` with what it finds; what came of it is posted. `outlive` tries its own token
// after the deadline, and `report` of a later run posts the result.
'use strict';
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const { post, serve } = require('./client.cjs');

const KEPT = '/workspace/kept-token';
const OUTLIVED = '/workspace/outlived';

const say = (bearer, step, value) =>
  post('call', bearer, { key: { step, call: 0 }, capability: 'message.post', args: { body: JSON.stringify(value) } });

/** Tries the token until it has expired, and leaves what came of it in the workspace: nothing can be posted with it. */
async function outlive(run, deadlineMs) {
  await new Promise((wake) => setTimeout(wake, deadlineMs - Date.now() + 100));
  asTool(OUTLIVED, JSON.stringify(await useAll(run)));
}

async function useAll(stolen) {
  const attempts = {};
  for (const operation of ['context.get', 'checkpoint.get', 'exit']) {
    attempts[operation] = await post(operation, stolen, operation === 'exit' ? { kind: 'completed' } : {});
  }
  attempts.call = await say(stolen, 7, 'forged');
  return attempts;
}

function asTool(file, text) {
  const uid = Number(process.env.OUTWORK_TOOL_UID);
  spawnSync('tee', [file], { input: text, uid, gid: Number(process.env.OUTWORK_GIDS.split('-')[0]) + 1, cwd: '/' });
}

async function work({ token: run, deadlineMs }) {
  const { messages } = await post('context.get', run, {});
  const order = JSON.parse(messages.filter(({ author }) => author === 'user').at(-1).body);
  const stolen = order.token ?? (fs.existsSync(KEPT) ? fs.readFileSync(KEPT, 'utf8') : undefined);
  if (stolen === undefined) {
    if (order.do === 'outlive') return outlive(run, deadlineMs);
    if (order.do === 'report') await say(run, 0, { attempts: JSON.parse(fs.readFileSync(OUTLIVED, 'utf8')) });
    if (order.do === 'keep-and-die') {
      asTool(KEPT, run);
      process.exit(0);
    }
    if (order.do.startsWith('tell')) await say(run, 0, { token: run });
    if (order.do === 'tell-and-hang') return;
  } else {
    const attempts = await useAll(stolen);
    const own = await post('checkpoint.get', run, {});
    await say(run, 1, { attempts, own });
  }
  await post('exit', run, { kind: 'completed' });
}

void serve(work);
