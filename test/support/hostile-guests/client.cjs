// What a hostile executor for tests needs of the membrane: it says hello as an honest one would, and does `work` with each run it is given.
'use strict';
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');

const agent = new http.Agent({ keepAlive: true });

function post(operation, bearer, body) {
  return new Promise((resolve, reject) => {
    const payload = JSON.stringify(body);
    const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) };
    const options = { socketPath: process.env.OUTWORK_SOCKET, path: `/v1/${operation}`, method: 'POST', headers, agent };
    const request = http.request(options, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve(text === '' ? {} : JSON.parse(text)));
    });
    request.on('error', reject);
    request.end(payload);
  });
}

/** Takes the sandbox's token, and every run: `work({token, deadlineMs, …})`. */
async function serve(work) {
  const token = fs.readFileSync(3, 'utf8');
  fs.closeSync(3);
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

module.exports = { post, serve };
