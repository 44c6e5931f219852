import { afterEach, describe, expect, it } from 'vitest';
import {
  checkServers,
  type ServersCheckOptions,
} from '../../../../electron/core/backends/discovery/servers-check.ts';
import { systemClock } from '../../../../electron/core/clock.ts';
import type { ProcessFacts } from '../../../../electron/core/process/identity.ts';
import { backendSetting } from '../../../support/backend-setting.ts';
import { freePort } from '../../../support/llama-server.ts';
import { type StagedServer, serve } from '../servers/server.ts';
import { SUBJECTS } from '../subjects.ts';

const open: StagedServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server[Symbol.asyncDispose]();
});

async function play(title: string): Promise<StagedServer & { readonly port: number }> {
  const subject = SUBJECTS.find((one) => one.title === title);
  if (subject === undefined) throw new Error(title);
  const server = await serve(subject.script, subject.notFound);
  open.push(server);
  return Object.assign(server, { port: Number(new URL(server.url).port) });
}

const listener = (port: number, change: Partial<ProcessFacts> = {}): ProcessFacts => ({
  pid: 42,
  startTimeTicks: 1,
  parentPid: 1,
  parentStartTimeTicks: 1,
  uid: 1000,
  command: ['ollama', 'serve'],
  listeningPorts: [port],
  routerPort: null,
  cpuMs: 0,
  state: 'S',
  ...change,
});

const check = async (change: Partial<ServersCheckOptions>): Promise<Record<string, string>> => {
  const base = { backends: null, processes: [], uid: 1000, clock: systemClock, usualPorts: [] };
  const { checks } = await checkServers({ ...base, ...change });
  return Object.fromEntries(checks.map((one) => [one.name, `${one.outcome}: ${one.detail.join(' ')}`]));
};

describe('what doctor says of servers', () => {
  it('any mix of them: which answer, as what and in which version', async () => {
    const [ollama, swap, router] = [
      await play('Ollama'),
      await play('llama-swap'),
      await play('llama.cpp router'),
    ];
    const said = await check({ usualPorts: [ollama.port, swap.port], processes: [listener(router.port)] });
    expect(said[`port ${ollama.port}`]).toMatch(/^ok: ollama 0\.34\.2 answers; it is watched/);
    expect(said[`port ${swap.port}`]).toMatch(/^ok: llama-swap 217 answers/);
    expect(said[`port ${router.port}`]).toMatch(/^ok: a llama\.cpp router b11669-test answers/);
  });

  it('a server of the config that is away, of another kind, or another program', async () => {
    const ollama = await play('Ollama');
    const other = await serve(() => undefined, { status: 404, body: 'no' });
    open.push(other);
    const said = await check({
      backends: [
        backendSetting({ name: 'away', url: `http://127.0.0.1:${await freePort()}` }),
        backendSetting({
          name: 'ours',
          url: `http://127.0.0.1:${await freePort()}`,
          command: ['llama-server'],
        }),
        backendSetting({ name: 'wrong', kind: 'lmstudio', url: ollama.url }),
        backendSetting({ name: 'other', url: other.url }),
        backendSetting({ name: 'right', kind: 'ollama', url: ollama.url }),
      ],
      processes: [listener(ollama.port)],
    });
    expect(said.away).toMatch(/^failed: nothing answers .* start the server/);
    expect(said.ours).toMatch(/^skipped: nothing answers .* VRAM Landlord runs it/);
    expect(said.wrong).toMatch(
      /^failed: .* is ollama 0\.34\.2, and the config calls it lmstudio: write kind: ollama/,
    );
    expect(said.other).toMatch(/^failed: .* none of the servers we know/);
    expect(said.right).toMatch(/^ok: ollama 0\.34\.2 answers at http:\S+\.$/);
  });

  it('what is in the way of proving its process', async () => {
    const { url, port } = await play('Ollama');
    const backends = [backendSetting({ name: 'o', kind: 'ollama', url })];
    const says = async (...processes: readonly ProcessFacts[]) => (await check({ backends, processes })).o;
    expect(await says(listener(port, { uid: 997 }))).toMatch(
      /runs as user 997: it can be asked to unload, not signalled/,
    );
    expect(await says(listener(port, { listeningPorts: null }))).toMatch(/another user can not be read/);
    expect(await says()).toMatch(/as when it runs in a container/);
  });

  it('nothing anywhere is said as such', async () => {
    expect(Object.values(await check({ usualPorts: [await freePort()] }))).toEqual([
      expect.stringMatching(/^skipped: no inference server answers on the usual ports/),
    ]);
    expect(await check({ processes: null, usualPorts: [] })).toHaveProperty('processes');
  });
});
