import { afterEach, describe, expect, it } from 'vitest';
import {
  backendDiscovery,
  type Discovery,
  withFound,
} from '../../../../electron/core/backends/discovery/discovery.ts';
import { serverPorts } from '../../../../electron/core/backends/discovery/listening-servers.ts';
import type { ProcessFacts } from '../../../../electron/core/process/identity.ts';
import { serverProgram } from '../../../../electron/core/process/programs.ts';
import { backendSetting } from '../../../support/backend-setting.ts';
import { handClock } from '../../../support/serve-fake.ts';
import { NOT_FOUND } from '../servers/scripts.ts';
import { type Script, type StagedServer, serve } from '../servers/server.ts';
import { SUBJECTS } from '../subjects.ts';

const open: AsyncDisposable[] = [];

afterEach(async () => {
  for (const each of open.splice(0)) await each[Symbol.asyncDispose]();
});

async function play(script: Script, notFound = NOT_FOUND): Promise<StagedServer & { readonly port: number }> {
  const server = await serve(script, notFound);
  open.push(server);
  return Object.assign(server, { port: Number(new URL(server.url).port) });
}

const at = (ports: readonly number[], clock = handClock()): Discovery => backendDiscovery({ ports, clock });

describe('what a server is comes from its answers, not from its port', () => {
  it.each(SUBJECTS.map((subject) => [subject.title, subject] as const))('%s', async (_, subject) => {
    const server = await play(subject.script, subject.notFound);
    server.put({ name: 'm', state: 'loaded' });
    const [found, ...others] = await at([server.port]).look();
    expect(others).toEqual([]);
    // Offered and watched, not taken.
    expect(found).toMatchObject({
      kind: subject.kind,
      url: server.url,
      found: true,
      lanes: null,
      command: null,
    });
    expect(server.asked.filter((asked) => asked.method !== 'GET')).toEqual([]);
  });

  it('a plain llama-server is one, under its own name', async () => {
    const server = await play((_stage, asked) =>
      asked.path === '/props'
        ? { body: { default_generation_settings: { n_ctx: 8 }, build_info: 'b1-x' } }
        : undefined,
    );
    expect((await at([server.port]).look())[0]?.name).toBe(`llama-${server.port}`);
  });

  it('a llama-server that loads its model is one at the first look after it has', async () => {
    let isLoading = true;
    const server = await play((_stage, asked) => {
      if (isLoading)
        return {
          status: 503,
          body: { error: { message: 'Loading model', type: 'unavailable_error', code: 503 } },
        };
      return asked.path === '/props' ? { body: { default_generation_settings: { n_ctx: 8 } } } : undefined;
    });
    const discovery = at([server.port]);
    expect(await discovery.look()).toEqual([]);
    isLoading = false;
    expect((await discovery.look())[0]?.name).toBe(`llama-${server.port}`);
  });

  it('nothing, silence, a page and any other JSON are none', async () => {
    const silent = await play(() => 'hang');
    const page = await play(() => ({ body: '<html>' }));
    const other = await play(() => ({ body: { version: '1', models: 3 } }));
    await silent[Symbol.asyncDispose]();
    expect(await at([silent.port, page.port, other.port]).look()).toEqual([]);
  });

  it('a program of another kind is asked less and less', async () => {
    const clock = handClock();
    const server = await play(() => undefined);
    const discovery = at([server.port], clock);
    const asks = async (): Promise<boolean> => {
      server.asked.length = 0;
      await discovery.look();
      return server.asked.length > 0;
    };
    expect(await asks()).toBe(true);
    clock.advance(30_000);
    expect(await asks()).toBe(false);
    clock.advance(30_000);
    expect(await asks()).toBe(true);
    clock.advance(60_000);
    expect(await asks()).toBe(false);
    clock.advance(60_000);
    expect(await asks()).toBe(true);
  });

  it('where processes can’t be listed the usual ports are looked at all the same', async () => {
    const [subject] = SUBJECTS;
    const server = await play(subject?.script ?? (() => undefined));
    const discovery = backendDiscovery({
      ports: [server.port],
      clock: handClock(),
      processPorts: () => Promise.reject(new Error('no /proc')),
    });
    expect(await discovery.look()).toHaveLength(1);
  });
});

describe('what has been found', () => {
  const a = backendSetting({ name: 'router-1', url: 'http://127.0.0.1:1', found: true });
  const b = backendSetting({ name: 'ollama-1', url: 'http://127.0.0.1:1', found: true });

  it('stays while it is away, comes once, and gives way to another kind at its address', () => {
    expect(withFound([a], [])).toEqual([a]);
    expect(withFound([a], [{ ...a }])).toEqual([a]);
    expect(withFound([a], [b])).toEqual([b]);
  });
});

describe('by process', () => {
  const process = (change: Partial<ProcessFacts>): ProcessFacts => ({
    pid: 10,
    startTimeTicks: 1,
    parentPid: 1,
    parentStartTimeTicks: 1,
    uid: 0,
    command: ['/usr/bin/llama-server'],
    listeningPorts: [9000],
    routerPort: null,
    cpuMs: 0,
    state: 'S',
    ...change,
  });

  it('a server’s own children are no servers to be watched by themselves', () => {
    expect(
      serverPorts([
        process({}),
        process({ pid: 11, parentPid: 10, listeningPorts: [9001] }),
        process({ pid: 12, routerPort: 8080, listeningPorts: [9002] }),
        process({ pid: 13, command: ['ollama', 'serve'], listeningPorts: [11_435] }),
        process({ pid: 14, command: ['ollama', 'runner', '--port', '9'], listeningPorts: [9003] }),
        process({ pid: 15, state: 'Z', listeningPorts: [9004] }),
        process({ pid: 16, listeningPorts: null }),
        process({ pid: 17, command: ['nginx'], listeningPorts: [9005] }),
      ]),
    ).toEqual([9000, 11_435]);
  });

  it.each<[readonly string[], string | null]>([
    [['/usr/bin/llama-server', '-m', 'x.gguf'], 'llama-server'],
    [['/home/a/.llama-app/llama', 'serve'], 'llama-server'],
    [['/opt/llama-server-b11669'], 'llama-server'],
    [['ollama', 'serve'], 'ollama'],
    [['/usr/local/bin/ollama', 'runner', '--model', 'x'], null],
    [['llama-swap', '--config', 'c.yaml'], 'llama-swap'],
    [['/opt/llama-swap-linux-amd64'], 'llama-swap'],
    [['/opt/LM Studio/lm-studio'], 'lmstudio'],
    [['/home/a/LM-Studio-0.4.1-x64.AppImage'], 'lmstudio'],
    [['lms', 'server', 'start'], 'lmstudio'],
    [['python3', '/usr/bin/lemonade-server', 'serve'], 'lemonade'],
    [['lemonade-router', '--port', '13305'], 'lemonade'],
    [['vim', '/etc/ollama'], null],
    [['grep', 'llama-server'], null],
    [['tail', '-f', 'llama-swap.log'], null],
    [[], null],
  ])('%j is %s', (command, program) => {
    expect(serverProgram(command)).toBe(program);
  });
});
