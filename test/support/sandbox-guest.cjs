// A guest for tests: it connects to the membrane socket and evaluates what the test sends, as the executor. Evaluated code sees
// `tool(argv, {gid, stdin})`, which runs a command as the tool uid the way a guest must: explicit environment, its own gid, no groups.
'use strict';
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');

const token = fs.readFileSync(3, 'utf8');
fs.closeSync(3);
const firstGid = Number(process.env.OUTWORK_GIDS.split('-')[0]);

function tool(argv, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(argv[0], argv.slice(1), {
      uid: options.uid ?? Number(process.env.OUTWORK_TOOL_UID),
      gid: options.gid ?? firstGid + 1,
      cwd: options.cwd ?? '/workspace',
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
      // A command that stays: the test goes on as soon as it has said that it is ready.
      if (options.until && stdout.includes(options.until)) resolve({ pid: child.pid, code: null, stdout, stderr });
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.on('error', (error) => resolve({ pid: undefined, code: -1, stdout, stderr: String(error) }));
    child.on('close', (code, signal) => resolve({ pid: child.pid, code, signal, stdout, stderr }));
    child.stdin.on('error', () => {});
    child.stdin.end(options.stdin ?? '');
  });
}

const socket = net.connect(process.env.OUTWORK_SOCKET, () => socket.write(`${JSON.stringify({ hello: token })}\n`));
let buffered = '';
socket.on('close', () => process.exit(0));
socket.on('error', () => process.exit(1));
socket.on('data', (chunk) => {
  buffered += chunk;
  for (let at = buffered.indexOf('\n'); at >= 0; at = buffered.indexOf('\n')) {
    const request = JSON.parse(buffered.slice(0, at));
    buffered = buffered.slice(at + 1);
    const evaluate = new Function('tool', 'require', 'firstGid', `return (async () => { ${request.code} })()`);
    evaluate(tool, require, firstGid)
      .then(
        (value) => ({ id: request.id, value: value === undefined ? null : value }),
        (error) => ({ id: request.id, error: `${error.code ?? error.name}: ${error.message}` }),
      )
      .then((reply) => socket.write(`${JSON.stringify(reply)}\n`));
  }
});
