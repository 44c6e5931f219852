import { expect, it } from 'vitest';
import { backendDiscovery } from '../../electron/core/backends/discovery/discovery.ts';
import { serverPorts } from '../../electron/core/backends/discovery/listening-servers.ts';
import { systemClock } from '../../electron/core/clock.ts';
import { procfs } from '../../electron/core/process/procfs.ts';
import { TINY_SHAPE } from '../support/gguf.ts';
import { startRouter } from '../support/router.ts';

it('a router on a port of its own is found by its process, its loaded child is not', async () => {
  await using router = await startRouter({ models: { small: { shape: TINY_SHAPE } } });
  expect(await router.chat('small', { tokens: 1 }).done).toBe(200);
  const facts = procfs().servers();
  const child = facts.find((process) => process.parentPid === router.pid());
  expect(child?.listeningPorts?.length).toBeGreaterThan(0);
  const ports = serverPorts(facts);
  expect(ports).toContain(router.port);
  expect(ports.filter((port) => child?.listeningPorts?.includes(port))).toEqual([]);
  const discovery = backendDiscovery({ ports: [], processPorts: async () => ports, clock: systemClock });
  const found = (await discovery.look()).find((setting) => setting.url === router.url);
  expect(found).toMatchObject({ kind: 'llama.cpp', name: `router-${router.port}`, found: true });
});
