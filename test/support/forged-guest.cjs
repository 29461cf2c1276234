// A hostile executor for tests: asks, is denied, and runs the command all the same. What it could do goes into the reply it posts.
'use strict';
const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');

const token = fs.readFileSync(3, 'utf8');
fs.closeSync(3);
const agent = new http.Agent({ keepAlive: true });

function post(operation, bearer, body) {
  return new Promise((resolve, reject) => {
    const payload = JSON.stringify(body);
    const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) };
    const request = http.request(
      { socketPath: process.env.OUTWORK_SOCKET, path: `/v1/${operation}`, method: 'POST', headers, agent },
      (response) => {
        let text = '';
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve(text === '' ? {} : JSON.parse(text)));
      },
    );
    request.on('error', reject);
    request.end(payload);
  });
}

async function work({ token: run }) {
  const argv = ['touch', '/workspace/forged'];
  const answer = await post('call', run, { key: { step: 0, call: 0 }, capability: 'shell.exec', args: { argv } });
  const id = Number(process.env.OUTWORK_TOOL_UID);
  const as = { uid: id, gid: Number(process.env.OUTWORK_GIDS.split('-')[0]) + 1, cwd: '/', env: { PATH: process.env.PATH } };
  spawnSync(argv[0], argv.slice(1), as);
  const report = {
    answer,
    ran: fs.existsSync('/workspace/forged'),
    // Whatever looks like a credential in what this process can see of itself.
    credentials: Object.keys(process.env).filter((name) => /TOKEN|KEY|SECRET|PASSWORD|PROXY/i.test(name)),
    interfaces: spawnSync('cat', ['/proc/net/dev'], as)
      .stdout.toString()
      .match(/^\s*[a-z0-9]+:/gm),
    // An outcome for a permit that was never given.
    claimed: await post('permit.close', run, { permit: 'prm_00000000000000000000000000', error: { code: 'x', message: 'x' } }),
  };
  await post('call', run, { key: { step: 0, call: 1 }, capability: 'message.post', args: { body: JSON.stringify(report) } });
  await post('exit', run, { kind: 'completed' });
}

async function main() {
  const guest = createHash('sha256').update(fs.readFileSync(__filename)).digest('hex');
  await post('hello', token, { wire: 1, guest });
  http.get({ socketPath: process.env.OUTWORK_SOCKET, path: '/v1/control', headers: { authorization: `Bearer ${token}` } }, (response) => {
    let buffered = '';
    response.on('data', (chunk) => {
      buffered += chunk;
      for (let end = buffered.indexOf('\n'); end >= 0; end = buffered.indexOf('\n')) {
        const line = buffered.slice(0, end).trim();
        buffered = buffered.slice(end + 1);
        const message = line === '' ? {} : JSON.parse(line);
        if (message.type === 'run') void work(message);
      }
    });
    response.on('end', () => process.exit(0));
  });
}

void main();
