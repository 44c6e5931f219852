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

  it('a llama-server that loads its model, named and found', async () => {
    const loading = { status: 503, body: { error: { message: 'Loading model', code: 503 } } };
    const [named, found] = [await serve(() => loading, loading), await serve(() => loading, loading)];
    open.push(named, found);
    const port = Number(new URL(found.url).port);
    const said = await check({
      backends: [backendSetting({ name: 'named', url: named.url })],
      processes: [listener(port, { command: ['llama-server', '--port', `${port}`] })],
    });
    expect(said.named).toMatch(/^ok: a llama-server at \S+ is loading its model/);
    expect(said[`port ${port}`]).toMatch(
      /^skipped: process 42 \(llama-server\) is loading its model: ask again/,
    );
  });

  it('models of which no size can be foretold, since their files are elsewhere', async () => {
    const router = await play('llama.cpp router');
    const says = async (...paths: readonly string[]) => {
      router.put(
        ...paths.map((path) => ({ name: path, state: 'unloaded', args: ['--model', path] }) as const),
      );
      return (await check({ backends, canRead: async (path) => path.startsWith('/here') })).r;
    };
    const backends = [backendSetting({ name: 'r', kind: 'llama.cpp', url: router.url })];
    expect(await says('/here/a', 'relative/b')).not.toMatch(/from here/);
    expect(await says('/here/a', '/m/b')).toMatch(/^ok: .*the file of \/m\/b can not be read .* container/);
    expect(await says('/m/b', '/m/c')).toMatch(/the files of \/m\/b and \/m\/c can not be read/);
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
    const proxy = [listener(port, { command: ['/usr/bin/docker-proxy'] })];
    expect((await check({ backends, listeners: () => proxy })).o).toMatch(
      /what listens there is process 42 \(docker-proxy\), not the server itself/,
    );
  });

  it('another program on a usual port, by name, and what can not start there for it', async () => {
    const other = await serve(() => undefined, { status: 404, body: 'no' });
    const locked = await serve(() => undefined, { status: 401, body: 'no' });
    const frozen = await serve(() => 'hang', { status: 404, body: 'no' });
    open.push(other, locked, frozen);
    const port = (server: StagedServer) => Number(new URL(server.url).port);
    const ports = [other, locked, frozen].map(port);
    const programs: Readonly<Record<number, readonly string[]>> = {
      [port(other)]: ['/usr/sbin/nginx', '-g'],
      [port(locked)]: ['ollama', 'serve'],
      [port(frozen)]: ['llama-server', '--port', '1'],
    };
    const listeners = (wanted: number) => [listener(wanted, { command: programs[wanted] ?? null })];
    const said = await check({ usualPorts: ports, listeners, timeoutMs: 300 });
    expect(said[`port ${port(other)}`]).toMatch(
      /^skipped: process 42 \(nginx\) answers as none of the servers we know: it is left alone/,
    );
    expect(said[`port ${port(locked)}`]).toMatch(/^failed: process 42 \(ollama\) wants a key .* apiKeyEnv/);
    expect(said[`port ${port(frozen)}`]).toMatch(
      /^failed: process 42 \(llama-server\) takes connections and gives no answer: it hangs/,
    );
    expect(said.servers).toMatch(/no inference server answers/);
  });

  it('who has the port of a server that is ours to run, and who does not answer at one that is named', async () => {
    const other = await serve(() => undefined, { status: 404, body: 'no' });
    const frozen = await serve(() => 'hang', { status: 404, body: 'no' });
    open.push(other, frozen);
    const listeners = (port: number) => [listener(port, { command: ['node', 'app.js'] })];
    const backends = [
      backendSetting({ name: 'ours', url: other.url, command: ['llama-server'] }),
      backendSetting({ name: 'frozen', url: frozen.url }),
      backendSetting({ name: 'any', kind: 'openai', url: other.url }),
    ];
    const said = await check({ backends, listeners, timeoutMs: 300 });
    expect(said.ours).toMatch(
      /^failed: .* it is process 42 \(node\)\. VRAM Landlord can not start its own ours/,
    );
    expect(said.frozen).toMatch(/^failed: .* gave no answer in time.*landlord drain.*process 42 \(node\)/);
    expect(said.any).toMatch(/^ok: /);
  });

  it('further ports of a program that serves are its own, and LM Studio without its server is off', async () => {
    const studio = await play('LM Studio');
    const inner = await serve(() => undefined, { status: 404, body: 'no' });
    open.push(inner);
    const port = Number(new URL(inner.url).port);
    const one = (...ports: readonly number[]) =>
      listener(0, { command: ['/opt/lm-studio'], listeningPorts: ports });
    const both = await check({ processes: [one(studio.port, port)] });
    expect(Object.keys(both)).toEqual([`port ${studio.port}`]);
    expect((await check({ processes: [one(port)] }))['LM Studio']).toMatch(
      /^skipped: process 42 \(lm-studio\) is there, and its server is off: `lms server start`/,
    );
  });

  it('a server that listens nowhere, a port in front of a backend, and a config that can not be read', async () => {
    const router = await play('llama.cpp router');
    const front = await play('llama.cpp router');
    const said = await check({
      backends: [backendSetting({ name: 'r', kind: 'llama.cpp', url: router.url, front: front.port })],
      usualPorts: [front.port],
      processes: [listener(1, { command: ['llama-server'], listeningPorts: [] })],
      configError: 'line 3 says nothing.',
    });
    expect(said).not.toHaveProperty(`port ${front.port}`);
    expect(said['process 42']).toMatch(/^skipped: process 42 \(llama-server\) listens on no port/);
    expect(said.config).toMatch(/^failed: .*line 3 says nothing/);
  });

  it('nothing anywhere is said as such', async () => {
    expect(Object.values(await check({ usualPorts: [await freePort()] }))).toEqual([
      expect.stringMatching(/^skipped: no inference server answers on the usual ports/),
    ]);
    expect(await check({ processes: null, usualPorts: [] })).toHaveProperty('processes');
  });
});
