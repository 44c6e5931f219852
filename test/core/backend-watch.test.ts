import { expect, it } from 'vitest';
import { BackendWatch } from '../../electron/core/backend-watch.ts';
import type { BackendSetting } from '../../shared/settings.ts';
import { backendSetting } from '../support/backend-setting.ts';
import { handClock } from '../support/serve-fake.ts';
import { serve } from './backends/servers/server.ts';

it('watches and lists what is found beside models of our own engine, and nothing found beside a server', async () => {
  await using server = await serve(() => ({ body: { default_generation_settings: { n_ctx: 8 } } }), {
    status: 404,
    body: 'no',
  });
  const embedded = backendSetting({ name: 'embedded', kind: 'embedded', url: null });
  const router = backendSetting({ name: 'router' });
  let named: readonly BackendSetting[] | null = null;
  let watched: readonly string[] = [];
  const watch = new BackendWatch({
    clock: handClock(),
    sampler: () => {
      throw new Error('it was told where to look');
    },
    ports: [Number(new URL(server.url).port)],
    named: () => named,
    watch: async (backends) => {
      watched = backends.map(({ name }) => name);
    },
  });
  const found = `llama-${new URL(server.url).port}`;
  for (const [setting, expected] of [
    [null, [found]],
    [[embedded], ['embedded', found]],
    [
      [router, embedded],
      ['router', 'embedded'],
    ],
    [[], []],
  ] as const) {
    named = setting;
    await watch.look();
    await watch.watch();
    expect(watched).toEqual(expected);
    expect(watch.list.map(({ name }) => name)).toEqual(expected);
  }
});
