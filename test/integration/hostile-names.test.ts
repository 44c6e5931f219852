import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HOSTILE_NAMES, UNSAFE } from '../support/hostile-names.ts';
import { LAUNCHER } from '../support/landlord.ts';
import { until } from '../support/router.ts';
import { type ServeProcess, startServeProcess } from '../support/serve-process.ts';
import { SocketClient } from '../support/socket-client.ts';

/** As a server may have them; one that begins or ends with a space is another one over HTTP. */
const NAMES = HOSTILE_NAMES;
const asked: string[] = [];
let folder = '';
let served: ServeProcess;

/** A server whose models have these names. */
const server = createServer((request, response) => {
  let text = '';
  request
    .on('data', (part: Buffer) => {
      text += part.toString('utf8');
    })
    .on('end', () => {
      response.setHeader('content-type', 'application/json');
      if (request.method === 'GET') response.end(JSON.stringify({ data: NAMES.map((id) => ({ id })) }));
      else {
        asked.push(JSON.parse(text).model);
        response.end('{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}');
      }
    });
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-names-'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  served = await startServeProcess({
    folder,
    config: `devices:\n  - { kind: system }\nbackends:\n  - { name: b, kind: openai, url: "http://127.0.0.1:${port}", lanes: 1 }\n`,
  });
  await until(async () => (await served.state()).models.length > 0, 20_000, 'the models to be listed');
});
afterAll(async () => {
  await served?.[Symbol.asyncDispose]();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

function landlord(...args: readonly string[]): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(LAUNCHER, args, {
    encoding: 'utf8',
    env: { PATH: process.env.PATH ?? '', HOME: folder, VRAM_LANDLORD_GATE_DIR: served.gateDir },
  });
  return { status, text: stdout + stderr };
}

it('a model with any name is listed, asked, pinned, told and counted as what it is', async () => {
  const state = await served.state();
  expect(state.models.map(({ id }) => id).toSorted()).toEqual(NAMES.map((name) => `b/${name}`).toSorted());
  for (const name of NAMES) {
    const answer = await served.post('/v1/chat/completions', {
      model: `b/${name}`,
      user: name,
      messages: [{ role: 'user', content: 'hello' }],
    });
    expect(await answer.text(), name).toContain('choices');
    expect(asked.at(-1)).toBe(name);
    const id = encodeURIComponent(`b/${name}`);
    expect((await served.post(`/api/models/${id}/pin`)).status, name).toBe(200);
    expect((await served.state()).models.find((model) => model.pinned)?.id).toBe(`b/${name}`);
    expect((await served.post(`/api/models/${id}/unpin`)).status, name).toBe(200);
  }
  const told = (await served.events()).filter(({ kind }) => kind === 'pinned').map(({ model }) => model);
  expect(told.toSorted()).toEqual(NAMES.map((name) => `b/${name}`).toSorted());
});

it('a terminal is given none that could move or colour it', () => {
  for (const command of [['status'], ['models'], ['events'], ['doctor']]) {
    const { text } = landlord(...command, '--state-dir', served.stateDir);
    expect(text.length).toBeGreaterThan(0);
    for (const line of text.split('\n')) expect(line, command[0]).not.toMatch(UNSAFE);
  }
});

it('a command takes each as its argument, and no shell reads it', async () => {
  // No program can be given a zero byte.
  for (const name of NAMES.filter((one) => !one.includes('\0'))) {
    const { status, text } = landlord('pin', '--state-dir', served.stateDir, '--', `b/${name}`);
    expect(status, `${name}: ${text}`).toBe(0);
    for (const line of text.split('\n')) expect(line).not.toMatch(UNSAFE);
  }
  const pinned = (await served.state()).models.filter((model) => model.pinned).length;
  expect(pinned).toBe(NAMES.length - 1);
  expect(existsSync('/tmp/pwned')).toBe(false);
}, 240_000);

it('a turn keeps each with its lane, and tells it as it is', () => {
  const url = 'http://127.0.0.1:9';
  for (const name of NAMES.filter((one) => !one.includes('\0')).slice(0, 12)) {
    const run = spawnSync(
      LAUNCHER,
      [
        'turn',
        '--backend',
        url,
        `--session=${name}`,
        `--model=${name}`,
        '--',
        'sh',
        '-c',
        '"$0" gate "$1" --json || true',
        LAUNCHER,
        url,
      ],
      {
        encoding: 'utf8',
        env: { PATH: process.env.PATH ?? '', HOME: folder, VRAM_LANDLORD_GATE_DIR: served.gateDir },
      },
    );
    const { holders } = JSON.parse(run.stdout);
    expect(holders[0]?.session, run.stderr).toBe(name);
    expect(holders[0]?.model).toBe(name);
  }
}, 240_000);

it('the ledger socket answers each in one line', async () => {
  using client = new SocketClient(served.socketPath);
  for (const name of NAMES) {
    const oneLine = name.replaceAll(/[\r\n]/g, ' ');
    const answer = await client.ask(`REGISTER ${oneLine}\t/nowhere/${oneLine}.gguf`);
    expect(answer, name).toMatch(/^ERR /);
    expect(answer?.trimEnd(), name).not.toMatch(UNSAFE);
  }
});
