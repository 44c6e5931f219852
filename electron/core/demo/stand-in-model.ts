/**
 * A process that stands for a loaded model where there is no llama-server: it carries a router child's
 * command line, holds nothing, and takes a while for a long prompt, in which it does not listen to
 * SIGTERM. Started by stand-in-router.ts alone.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { port: { type: 'string' }, alias: { type: 'string' }, metrics: { type: 'boolean' } },
});

/** A prompt longer than this is a page to read, for far longer than the demo takes. */
const LONG_BODY_BYTES = 10_000;
const LONG_MS = 120_000;
const SHORT_MS = 100;

let processing = 0;
let served = 0;

async function chat(request: IncomingMessage, response: ServerResponse): Promise<void> {
  processing += 1;
  let bytes = 0;
  for await (const chunk of request) bytes += Buffer.isBuffer(chunk) ? chunk.length : String(chunk).length;
  setTimeout(
    () => {
      processing -= 1;
      served += 1;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'Yes.' } }] }));
    },
    bytes > LONG_BODY_BYTES ? LONG_MS : SHORT_MS,
  );
}

const server = createServer((request, response) => {
  const path = (request.url ?? '/').split('?')[0];
  if (request.method === 'POST') void chat(request, response);
  else if (path === '/metrics')
    response.end(
      `llamacpp:requests_processing ${processing}\nllamacpp:requests_deferred 0\nllamacpp:n_decode_total ${served}\n`,
    );
  else if (path === '/slots') {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify([{ id: 0, is_processing: processing > 0, n_ctx: 2048 }]));
  } else response.writeHead(404).end();
});

process.on('SIGTERM', () => {
  if (processing === 0) process.exit(0);
});
// The router holds the other end: without it there is nobody to work for.
process.stdin.on('end', () => process.exit(1)).resume();
server.listen(Number(values.port), '127.0.0.1', () => process.stdout.write('ready\n'));
