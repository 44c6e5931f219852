import { afterEach, describe, expect, it } from 'vitest';
import { attachRuntime } from '../../electron/shell/attached-runtime.ts';
import {
  connectRuntime,
  type OwnRuntime,
  type RuntimeSource,
  type SourceParts,
} from '../../electron/shell/runtime-source.ts';
import { fail, ok, type Result } from '../../shared/errors.ts';
import type { LinkState } from '../../shared/ipc-schema.ts';
import { createFakeRuntime } from '../support/fake-runtime.ts';
import { serveFake, TOKEN } from '../support/serve-fake.ts';

const choice = { configPath: null, stateDir: null, port: null };
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function ownRuntime(): OwnRuntime & { stops: number } {
  return {
    ...createFakeRuntime(),
    url: 'http://127.0.0.1:1',
    openUrl: 'http://127.0.0.1:1/?key=a',
    stops: 0,
    async stop() {
      this.stops += 1;
    },
  };
}

function parts(change: Partial<SourceParts>): SourceParts {
  return {
    startRuntime: async () => fail('already_running', 'One is running (pid 7).'),
    findRuntime: async () => fail('no_runtime', 'None.'),
    attach: (runtime) => attachRuntime(runtime),
    askToOpen: async (runtime) => ok(`${runtime.url}/?key=1`),
    ...change,
  };
}

async function connected(from: SourceParts): Promise<RuntimeSource> {
  const source = await connectRuntime(from, choice, 20);
  if (!source.ok) throw new Error(source.error.message);
  ends.push(() => source.value.stop());
  return source.value;
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};

describe('runtime source: its own', () => {
  it('starts one, and ends what it has started', async () => {
    const runtime = ownRuntime();
    const source = await connected(parts({ startRuntime: async () => ok(runtime) }));
    expect(source.owned).toBe(true);
    expect(source.link()).toMatchObject({ kind: 'own' });
    expect(await source.openUrl()).toEqual(ok('http://127.0.0.1:1/?key=a'));
    await source.stop();
    expect(runtime.stops).toBe(1);
  });

  it('tells why none could be started when none is found either', async () => {
    expect(await connectRuntime(parts({}), choice)).toEqual(
      fail('already_running', 'One is running (pid 7).'),
    );
    const full = parts({ startRuntime: async () => fail('storage_failed', 'The disk is full.') });
    expect(await connectRuntime(full, choice)).toEqual(fail('storage_failed', 'The disk is full.'));
  });
});

describe('runtime source: one that runs already', () => {
  it('shows the same state, events and answers, and leaves it running at the end', async () => {
    const { server, runtime } = await serveFake({ stateIntervalMs: 1 });
    ends.push(() => server.stop());
    const found = { url: server.url, token: TOKEN, pid: 7 };
    const source = await connected(parts({ findRuntime: async () => ok(found) }));
    expect(source.owned).toBe(false);
    expect(source.api.state()).toEqual(runtime.state());
    const seen: string[] = [];
    source.api.onState((state) => seen.push(`state ${state.revision}`));
    source.api.onEvent((event) => seen.push(event.reason));
    runtime.publish({});
    runtime.append({ reason: 'A model left.' });
    await until(() => seen.length >= 2);
    expect(seen.toSorted()).toEqual(['A model left.', 'state 2']);
    expect(await source.api.command({ type: 'wake' })).toEqual(ok({ message: 'Did wake.' }));
    expect(runtime.commands).toEqual([{ type: 'wake' }]);
    const events = await source.api.events({ limit: 5 });
    expect(events.ok && events.value.map((event) => event.reason)).toEqual(['A model left.']);
    expect(await source.openUrl()).toEqual(ok(`${server.url}/?key=1`));
    await source.stop();
    await until(() => runtime.stateListeners() === 0);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  });

  it('says when it has ended, refuses commands then, and attaches again when it is back', async () => {
    const first = await serveFake();
    let found: Awaited<ReturnType<SourceParts['findRuntime']>> = ok({
      url: first.server.url,
      token: TOKEN,
      pid: 7,
    });
    const source = await connected(parts({ findRuntime: async () => found }));
    const links: LinkState['kind'][] = [];
    source.onLink((link) => links.push(link.kind));
    const states: number[] = [];
    source.api.onState((state) => states.push(state.revision));
    found = fail('no_runtime', 'None.');
    await first.server.stop();
    await until(() => links.length === 1);
    expect(links).toEqual(['lost']);
    expect(source.link().message).toContain('nothing guards the memory now');
    const last = source.api.state();
    expect(last.devices).not.toEqual([]);
    expect(await source.api.command({ type: 'wake' })).toMatchObject({ error: { code: 'no_runtime' } });
    expect(await source.api.events({})).toMatchObject({ error: { code: 'no_runtime' } });

    const second = await serveFake({ runtime: first.runtime });
    ends.push(() => second.server.stop());
    first.runtime.publish({});
    found = ok({ url: second.server.url, token: TOKEN, pid: 8 });
    await until(() => links.length === 2);
    expect(links).toEqual(['lost', 'attached']);
    expect(states).toContain(first.runtime.state().revision);
    expect(await source.api.command({ type: 'wake' })).toEqual(ok({ message: 'Did wake.' }));
  });

  it('hosts one itself when asked to after the other has ended, once however often it is asked', async () => {
    const { server } = await serveFake();
    let found: Awaited<ReturnType<SourceParts['findRuntime']>> = ok({
      url: server.url,
      token: TOKEN,
      pid: 7,
    });
    const runtime = ownRuntime();
    let starts = 0;
    const startRuntime = async (): Promise<Result<OwnRuntime>> => {
      starts += 1;
      // The second time the one that was killed still has its lock.
      return starts <= 2 ? fail('already_running', 'One is running (pid 7).') : ok(runtime);
    };
    const source = await connected(parts({ findRuntime: async () => found, startRuntime }));
    // While it is there, there is nothing to host.
    expect(await source.host()).toMatchObject({ ok: true });
    expect(starts).toBe(1);
    found = fail('no_runtime', 'None.');
    await server.stop();
    await until(() => source.link().kind === 'lost');
    const [one, two] = await Promise.all([source.host(), source.host()]);
    expect(one).toMatchObject({ ok: true });
    expect(two).toEqual(one);
    expect(starts).toBe(3);
    expect(source.link().kind).toBe('own');
    await source.stop();
    expect(runtime.stops).toBe(1);
  });
});
