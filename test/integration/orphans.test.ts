import { spawn } from 'node:child_process';
import { expect, it } from 'vitest';
import { procfs } from '../../electron/core/process/procfs.ts';
import { landlord } from '../support/landlord.ts';
import { freePort } from '../support/llama-server.ts';
import { until } from '../support/router.ts';

/** A process as a router's child looks, which stays when its parent ends: one that hangs in its driver does. */
const STAYS = `
  const { createServer } = require('node:http');
  createServer((request, response) => response.end('{}')).listen(Number(process.argv.at(-1)), '127.0.0.1');
`;
/** Starts it and is gone. */
const PARENT = `
  const { spawn } = require('node:child_process');
  const [script, port] = process.argv.slice(-2);
  const child = spawn(process.execPath, ['-e', script, '--', '--port', port], {
    argv0: '/usr/bin/llama-server', detached: true, stdio: 'ignore',
    env: { ...process.env, LLAMA_SERVER_ROUTER_PORT: '9' },
  });
  process.stdout.write(String(child.pid), () => process.exit(0));
`;

it('a model’s process whose router is gone is listed, and ended when a person names it; nothing else is', async () => {
  const port = await freePort();
  const parent = spawn(process.execPath, ['-e', PARENT, '--', STAYS, String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const pid = await new Promise<number>((resolve) => {
    parent.stdout.once('data', (text: Buffer) => resolve(Number(String(text))));
  });
  const lives = (): boolean => !['Z', undefined].includes(procfs().stat(pid)?.state);
  try {
    const answers = async (): Promise<boolean> =>
      (await fetch(`http://127.0.0.1:${port}/`).catch(() => null))?.ok === true;
    await until(answers, 30_000, 'it to serve');
    const listed = await landlord(['orphans']);
    expect(listed).toMatchObject({ code: 0 });
    expect(listed.out).toMatch(
      new RegExp(`^\\s+${pid} .*the llama\\.cpp router on port 9 that started it is gone$`, 'm'),
    );
    expect(await landlord(['orphans', '--end', String(process.pid)])).toMatchObject({
      code: 69,
      err: expect.stringMatching(/is not proven .* nothing was done/),
    });
    expect(lives()).toBe(true);
    expect(await landlord(['orphans', '--end', String(pid)])).toMatchObject({
      code: 0,
      out: `Process ${pid} is gone.\n`,
    });
    await until(() => !lives(), 10_000, 'it to be gone');
  } finally {
    if (lives()) process.kill(pid, 'SIGKILL');
  }
});
