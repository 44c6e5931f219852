import { spawn } from 'node:child_process';
import { expect, it } from 'vitest';
import { serverPorts } from '../../../electron/core/backends/discovery/listening-servers.ts';
import { descendants } from '../../../electron/core/backends/own/family.ts';
import type { ProcessFacts } from '../../../electron/core/process/identity.ts';
import { procfs } from '../../../electron/core/process/procfs.ts';
import { proveServer } from '../../../electron/core/process/proof.ts';
import { until } from '../../support/router.ts';

/** Field reports about servers' processes. Numbers are those of the collected reports. */
it('32 zombie-rows: a server that has ended and was not collected is neither found, nor proven, nor held for alive', async () => {
  // A parent that never waits: its child stays a zombie.
  const shell = spawn('/bin/sh', ['-c', 'sleep 0 & exec sleep 60'], { stdio: 'ignore' });
  const parent = shell.pid ?? 0;
  const proc = procfs();
  const child = (): ReturnType<typeof proc.stat> =>
    proc
      .pids()
      .map((pid) => proc.stat(pid))
      .find((stat) => stat?.parentPid === parent) ?? null;
  try {
    await until(() => child()?.state === 'Z', 10_000, 'a zombie');
    expect(descendants(proc, parent)).toEqual([]);
  } finally {
    shell.kill('SIGKILL');
  }
  const dead: ProcessFacts = {
    pid: 5,
    startTimeTicks: 1,
    parentPid: 1,
    parentStartTimeTicks: 1,
    uid: 0,
    command: ['llama-server', '--port', '8080'],
    listeningPorts: [8080],
    routerPort: null,
    cpuMs: 0,
    state: 'Z',
  };
  expect(serverPorts([dead])).toEqual([]);
  expect(proveServer([dead], { port: 8080, alias: null, routerPort: null }, null).proven).toBe(false);
});
