import { expect, it } from 'vitest';
import { parseSettings } from '../../../electron/core/settings/parse-settings.ts';

const backendOf = (line: string) => parseSettings(`backends:\n  - ${line}\n`, 'config.yaml', '/home/ada');

it('assumeIdle is a time, start is when a command is run; what is left out stays out', () => {
  const parsed = backendOf(
    '{ name: studio, kind: lmstudio, url: "http://127.0.0.1:1234", assumeIdle: 10m, command: [lms], start: use }',
  );
  expect(parsed.ok && parsed.value.backends?.[0]).toMatchObject({ assumeIdleMs: 600_000, start: 'use' });
  const bare = backendOf('{ name: studio, kind: lmstudio, url: "http://127.0.0.1:1234" }');
  const [setting] = (bare.ok && bare.value.backends) || [];
  expect([setting?.assumeIdleMs, setting?.start]).toEqual([undefined, undefined]);
});

it.each<[string, RegExp]>([
  ['assumeIdle: soon', /soon.*180s or 2h|duration/],
  ['assumeIdle: 0s', /1s to 30d/],
  ['start: later', /later/],
  ['start: use', /has none; write its command/],
])('%s is refused with what to write', (key, why) => {
  const parsed = backendOf(`{ name: a, kind: ollama, url: "http://127.0.0.1:11434", ${key} }`);
  expect(parsed.ok ? '' : parsed.error.message).toMatch(why);
});
