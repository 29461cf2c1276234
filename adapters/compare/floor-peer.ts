import { createServer } from 'node:http';

/** The other side of `openRoundTripFloor`: parses and answers JSON, nothing else. Ends when its parent lets go of the channel. */
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ effect: 'done', result: parsed, replayed: false }));
  });
});
server.listen(process.argv[2], () => process.send?.('listening'));
process.once('disconnect', () => process.exit(0));
