import { expect, it } from 'vitest';
import type { Sampler } from '../../electron/core/devices/sampler.ts';
import { Sampling } from '../../electron/core/sampling.ts';
import { ok } from '../../shared/errors.ts';

/** Notes what it is asked for under the name it is given. */
function noted(name: string, calls: string[]): Sampler {
  const note = (what: string): void => void calls.push(`${name} ${what}`);
  return {
    start: () => note('start'),
    stop: async () => note('stop'),
    facts: async () => ok([]),
    find: async () => ok([]),
    servers: async () => ok([]),
    watch: (pids) => note(`watch ${pids.join('+')}`),
    hurry: () => note('hurry'),
    lookAgain: () => note('lookAgain'),
  };
}

it('keeps its sampler while the devices are the same, and has the next one read before the last ends', async () => {
  const calls: string[] = [];
  const sampling = new Sampling({
    devices: null,
    create: (devices) => noted(devices === null ? 'found' : `named ${devices.length}`, calls),
    onSamples: () => {},
  });
  sampling.start();
  await sampling.follow(null);
  expect(calls).toEqual(['found start']);
  await sampling.follow([]);
  await sampling.follow([]);
  expect(calls).toEqual(['found start', 'named 0 start', 'found stop']);
});

it('tells of processes to watch when they changed, and a new sampler anew', async () => {
  const calls: string[] = [];
  const sampling = new Sampling({
    devices: null,
    create: (devices) => noted(devices === null ? 'found' : 'named', calls),
    onSamples: () => {},
  });
  sampling.watch([7]);
  sampling.watch([7]);
  sampling.watch([7, 8]);
  expect(calls).toEqual(['found watch 7', 'found watch 7+8']);
  await sampling.follow([]);
  sampling.watch([7, 8]);
  expect(calls.at(-1)).toBe('named watch 7+8');
});
